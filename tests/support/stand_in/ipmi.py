"""A BMC by IPMI, where the host has ipmitool."""

from __future__ import annotations

import os
import subprocess
import time
from typing import Any
from urllib.parse import urlsplit

from support.stand_in.bmc import BmcFailed

PORT, SECONDS, POWER_SECONDS = 623, 30, 60
DEVICES = {"Pxe": "pxe", "Hdd": "disk", "Cd": "cdrom"}


class Ipmi:
    def __init__(self, address: str, bmc: dict[str, Any]) -> None:
        parts = urlsplit(address)
        self._place = ["-H", parts.hostname or "", "-p", str(parts.port or PORT), "-U", bmc["username"]]
        self._password = str(bmc["password"])

    def power(self) -> str:
        return "On" if "is on" in self._tool("power", "status") else "Off"

    def switch(self, wanted: str) -> None:
        if self.power() != wanted:
            self._tool("power", wanted.lower())
        deadline = time.monotonic() + POWER_SECONDS
        while self.power() != wanted:
            if time.monotonic() > deadline:
                raise BmcFailed(f"Failed to change power state to '{wanted.lower()}'.")
            time.sleep(0.1)

    def shut_down(self) -> None:
        self._tool("power", "soft")

    def insert(self, url: str) -> None:
        raise BmcFailed(f"IPMI has no drive for {url}.")

    def eject(self) -> None:
        """There is nothing to eject."""

    def boot(self, target: str, enabled: str) -> None:
        options = ["options=persistent"] if enabled == "Continuous" else []
        self._tool("chassis", "bootdev", DEVICES[target], *options)

    def _tool(self, *arguments: str) -> str:
        command = ["ipmitool", "-I", "lanplus", *self._place, "-E", *arguments]
        environment = {**os.environ, "IPMI_PASSWORD": self._password}
        try:
            done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.CalledProcessError as error:
            raise BmcFailed(f"ipmitool: {error.stderr.strip()}") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BmcFailed(str(error)) from error
        return done.stdout
