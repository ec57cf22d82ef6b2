"""Real Ironic from PyPI, one process beside a private libvirtd or on a street, and a small client of its REST API.

with ironic.start(libvirtd, tmp_path) as service:
    node = service.enrol("one", driver_info, {"boot_mode": "uefi"})
    node.go("manage", "manageable")

Ironic is installed into an environment of its own in the cache (40 seconds, once). The client's requests come out of
threads in libvirtd's network: `service.each(function, nodes)` does something with several nodes at once.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pyroute2 import netns
from support.cache import cache_dir, locked
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from support.place import Place

    T = TypeVar("T")
    R = TypeVar("R")

REQUIREMENTS = ("ironic>=39,<40", "python-ironicclient>=6,<7")
URL = "http://127.0.0.1:6385/v1"
STABLE = re.compile("enroll|manageable|available|active|error|.* failed")

CONFIG = """\
[DEFAULT]
auth_strategy = noauth
host = tests
my_ip = 127.0.0.1
rpc_transport = none
state_path = {directory}
tempdir = {directory}
log_file = {directory}/ironic.log
enabled_hardware_types = redfish
enabled_bios_interfaces = no-bios
enabled_boot_interfaces = redfish-virtual-media
enabled_console_interfaces = no-console
enabled_deploy_interfaces = ramdisk
enabled_firmware_interfaces = no-firmware
enabled_inspect_interfaces = redfish
enabled_management_interfaces = redfish
enabled_network_interfaces = noop
enabled_power_interfaces = redfish
enabled_raid_interfaces = no-raid
enabled_rescue_interfaces = no-rescue
enabled_storage_interfaces = noop
enabled_vendor_interfaces = no-vendor

[api]
host_ip = 127.0.0.1
port = 6385

[conductor]
automated_clean = false
workers_pool_size = 60

[database]
connection = sqlite:///{directory}/ironic.sqlite

[deploy]
http_root = {directory}/http
ramdisk_image_download_source = http

[redfish]
use_swift = false
"""

# Before each request to a BMC, Ironic hashes the password 600,000 times to find its session: two thirds of all that a
# test would cost. This changes how long Ironic thinks, and not what it says.
CHEAP_HASHES = """\
import hashlib

as_often_as_told = hashlib.pbkdf2_hmac


def pbkdf2_hmac(name, password, salt, iterations, dklen=None):
    return as_often_as_told(name, password, salt, min(iterations, 1000), dklen)


hashlib.pbkdf2_hmac = pbkdf2_hmac
"""


class IronicFailed(Exception):  # noqa: N818 - reads as a sentence in `pytest.raises(IronicFailed)`
    """Ironic did not start, refused a request, or a node did not come to the state that it should."""


@dataclass(frozen=True)
class Node:
    """A node that Ironic knows."""

    service: Ironic
    name: str

    def read(self) -> dict[str, Any]:
        return self.service.request("GET", f"/nodes/{self.name}")

    def inventory(self) -> dict[str, Any]:
        """What an inspection has found."""
        return self.service.request("GET", f"/nodes/{self.name}/inventory")["inventory"]

    def macs(self) -> list[str]:
        """The addresses of its ports."""
        return [port["address"] for port in self.service.request("GET", f"/ports?node={self.name}")["ports"]]

    def last_error(self) -> str:
        """What an operator is told last. A node's own `last_error` is cleared when Ironic switches the node off."""
        history = self.service.request("GET", f"/nodes/{self.name}/history?detail=true")["history"]
        errors = sorted((entry["created_at"], entry["event"]) for entry in history if entry["severity"] == "ERROR")
        return errors[-1][1] if errors else ""

    def change(self, **values: Any) -> None:
        """Replace members of the node; `driver_info__redfish_password` is /driver_info/redfish_password."""
        patch = [{"op": "add", "path": "/" + key.replace("__", "/"), "value": value} for key, value in values.items()]
        self.service.request("PATCH", f"/nodes/{self.name}", patch)

    def go(self, verb: str, reached: str) -> None:
        """Ask for a state, and wait until the node has reached the one that is named."""
        self.service.request("PUT", f"/nodes/{self.name}/states/provision", {"target": verb})
        state = wait_until(f"{verb} of {self.name} has come to an end", self._settled_state, every=0.5)
        if state != reached:
            raise IronicFailed(f"{self.name}: {verb} led to {state}: {self.last_error()}")

    def _settled_state(self) -> str:
        """The provision state once the node is nobody's; asked for in the way that costs Ironic least."""
        node = self.service.request("GET", f"/nodes/{self.name}?fields=provision_state,reservation")
        settled = not node["reservation"] and STABLE.fullmatch(node["provision_state"])
        return node["provision_state"] if settled else ""


class Ironic:
    """A running Ironic."""

    def __init__(self, process: subprocess.Popen[bytes], directory: Path, threads: ThreadPoolExecutor) -> None:
        self.directory = directory
        self._process = process
        self._threads = threads

    def enrol(self, name: str, driver_info: Mapping[str, Any], capabilities: Mapping[str, str]) -> Node:
        written = ",".join(f"{key}:{value}" for key, value in capabilities.items())
        node = {
            "name": name,
            "driver": "redfish",
            "driver_info": dict(driver_info),
            "properties": {"capabilities": written},
        }
        self.request("POST", "/nodes", node)
        return Node(self, name)

    def each(self, function: Callable[[T], R], values: Iterable[T]) -> list[R]:
        """Call a function for several values at once, inside of the network; with the first error if one has failed."""
        return list(self._threads.map(function, values))

    def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Only for functions that `each` calls, whose threads are inside."""
        headers = {"Content-Type": "application/json", "X-OpenStack-Ironic-API-Version": "latest"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{URL}{path}", data, headers, method=method)  # noqa: S310 - always http
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - likewise
                return json.loads(answer.read() or "{}")
        except urllib.error.HTTPError as error:
            raise IronicFailed(f"{method} {path}: {error.code} {error.read().decode(errors='replace')}") from error

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._threads.shutdown(cancel_futures=True)  # what they wait for has just ended

    def wait_ready(self) -> None:
        output = self.directory / "output"

        def answers() -> bool:
            if self._process.poll() is not None:
                raise IronicFailed(f"Ironic has ended:\n{output.read_text()}")
            return self.each(_answers, [self])[0]

        wait_until("Ironic answers", answers, seen=output.read_text)

    def __enter__(self) -> Ironic:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def start(place: Place, directory: Path) -> Ironic:
    """Start Ironic there, with its files in a directory of the test's, and wait until it answers."""
    programs = environment() / "bin"
    config = directory / "ironic.conf"
    config.write_text(CONFIG.format(directory=directory))
    options = ["--config-file", str(config)]
    _run(place.command([str(programs / "ironic-dbsync"), *options, "create_schema"]))
    with (directory / "output").open("wb") as output:
        command = place.command([str(programs / "ironic"), *options])
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    threads = ThreadPoolExecutor(8, initializer=netns.setns, initargs=(place.network,))
    service = Ironic(process, directory, threads)
    try:
        service.wait_ready()
    except BaseException:
        service.stop()
        raise
    return service


def environment() -> Path:
    """The virtual environment with Ironic in it, made first if need be."""
    key = hashlib.sha256(f"{REQUIREMENTS} {CHEAP_HASHES} {sys.version}".encode()).hexdigest()[:12]
    path = cache_dir() / "ironic" / key
    with locked("ironic"):
        if not (path / "complete").exists():
            shutil.rmtree(path, ignore_errors=True)  # what a killed installation left
            _run([sys.executable, "-m", "venv", str(path)])
            _run([str(path / "bin/pip"), "install", "--quiet", "--no-input", *REQUIREMENTS])
            [packages] = path.glob("lib/python*/site-packages")
            (packages / "cheap_hashes.py").write_text(CHEAP_HASHES)
            (packages / "cheap_hashes.pth").write_text("import cheap_hashes\n")
            (path / "complete").touch()
    return path


def _answers(service: Ironic) -> bool:
    try:
        return bool(service.request("GET", "/drivers/redfish"))
    except (OSError, IronicFailed):
        return False


def _run(command: list[str]) -> None:
    done = subprocess.run(command, check=False, text=True, capture_output=True)
    if done.returncode != 0:
        raise IronicFailed(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
