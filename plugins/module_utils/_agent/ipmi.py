# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's BMC by IPMI, asked with ipmitool as Ironic asks it."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from typing import Any

from .redfish import POWER_SECONDS, BmcFailed, NotNow

PROGRAM = "/extras/ipmitool"
SECONDS = 30
ANSWER_SECONDS = 3
WHICH_LOGINS = bytes.fromhex("0600ff07 00 00000000 00000000 09 20 18 c8 81 00 38 8e 04 b5")


class Ipmi:
    """It has no media: a node boots what the provisioning network has for it."""

    def __init__(self, bmc: dict[str, Any]) -> None:
        self._bmc = bmc

    def answers(self) -> str:
        """Before any login, a BMC tells everybody which logins it takes."""
        place = (self._bmc["host"], self._bmc["port"])
        with socket.socket(socket.AF_INET6 if ":" in place[0] else socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.settimeout(ANSWER_SECONDS)
            try:
                asking.connect(place)
                asking.send(WHICH_LOGINS)
                asking.recv(1024)
            except OSError as error:
                raise BmcFailed(f"{place[0]} port {place[1]}: {error}") from error
        return "it does"

    def lets_in(self) -> str:
        return self._run("chassis", "power", "status")

    def refuses_strangers(self) -> str:
        try:
            self._run("chassis", "power", "status", password="not the password")  # noqa: S106
        except BmcFailed:
            return "refused"
        raise BmcFailed("a wrong password is accepted")

    def hides(self, _path: str) -> str:
        """Each VM has a port of its own."""
        return ""

    def switch_off(self) -> str:
        self._run("chassis", "power", "off")
        return self._becomes("off")

    def switch_on(self) -> str:
        self._run("chassis", "power", "on")
        return self._becomes("on")

    def insert(self) -> str:
        return ""

    def boot_from_medium(self) -> str:
        return self._run("chassis", "bootdev", "pxe", *self._options())

    def eject(self) -> str:
        return ""

    def boot_from_disk(self) -> str:
        return self._run("chassis", "bootdev", "disk", *self._options("persistent"))

    def forget_overrides(self) -> str:
        return self._run("chassis", "bootdev", "none")

    def _options(self, *more: str) -> list[str]:
        options = [*more, *(["efiboot"] if self._bmc["mode"] == "uefi" else [])]
        return [f"options={','.join(options)}"] if options else []

    def _becomes(self, wanted: str) -> str:
        deadline = time.monotonic() + POWER_SECONDS
        while not (said := self.lets_in()).endswith(wanted):
            if time.monotonic() > deadline:
                raise BmcFailed(f"{said} after {POWER_SECONDS} s")
            time.sleep(0.3)
        return wanted

    def _run(self, *words: str, password: str | None = None) -> str:
        place = ["-H", self._bmc["host"], "-p", str(self._bmc["port"]), "-U", self._bmc["username"]]
        secret = self._bmc["password"] if password is None else password
        try:
            done = subprocess.run(
                [PROGRAM, "-I", "lanplus", "-E", "-R", "2", "-N", "2", *place, *words],
                check=False,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                env={**os.environ, "IPMITOOL_PASSWORD": secret, "IPMI_PASSWORD": secret},
            )
        except subprocess.TimeoutExpired as error:
            raise NotNow(f"no answer in {SECONDS} s") from error
        if done.returncode != 0:
            raise NotNow((done.stderr.strip() or done.stdout.strip() or "no answer").splitlines()[-1])
        return done.stdout.strip()
