"""The process that stands for the bootstrap VM's and the nodes' systems: what they would do, it does by itself.

It is none of the installer's: it goes on when that has ended. Before the cluster is installed, it ends when the VMs are
off that it stands for. From then on it sleeps while they are off, and ends when nothing of it is left on their disks.
"""

from __future__ import annotations

import ipaddress
import json
import os
import signal
import socket
import subprocess
import sys
import syslog
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import libvirt
from support.stand_in import bootstrap, pki, servers, state
from support.stand_in.installed import Installed, Told
from support.stand_in.kubernetes.store import Store
from support.stand_in.lab import Lab
from support.stand_in.resources import Publisher
from support.stand_in.servers import MEDIA, MEDIA_BY_TLS
from support.stand_in.state import State
from support.stand_in.world import World

COMMAND = "stand-in-cluster"
LOOK_SECONDS = 0.2
READY_SECONDS = 120


def start(lab: Lab, ca: pki.Pair, *, media_by_tls: bool) -> None:
    """Returns once it answers. What it is told is secret, so it goes by a file that it removes at once."""
    told = {
        "lab": vars(lab),
        "ca": vars(ca),
        "server": vars(pki.issue(ca, lab.api, [lab.api, f"api-int.{lab.domain}", *lab.api_vips])),
        "media": vars(pki.issue(pki.authority("ironic"), "ironic", lab.api_vips)) if media_by_tls else None,
    }
    state.end_others(_macs(lab), lab.infra_id)
    descriptor, file = tempfile.mkstemp(dir="/run", prefix="stand-in-cluster-")
    with os.fdopen(descriptor, "w") as opened:
        json.dump(told, opened)
    own = [sys.executable, "-I", os.path.abspath(sys.argv[0]), COMMAND, lab.infra_id, file]  # noqa: PTH100 - a zip is no Path
    if Path("/proc/1/comm").read_text() == "systemd\n":  # it would end with the unit that the installer runs in
        subprocess.run(["systemd-run", "--quiet", "--collect", f"--unit={COMMAND}-{lab.infra_id}", *own], check=True)
    else:
        _detached(own)
    _wait_until_read(Path(file))


def _detached(command: list[str]) -> None:
    quiet = subprocess.DEVNULL
    shell = ["env", "-u", "TMPDIR", "sh", "-c", '"$@" &', "-", *command]  # that directory may go any time
    subprocess.run(shell, check=True, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True, cwd="/")


def _wait_until_read(file: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while file.exists():
        if time.monotonic() > deadline:
            file.unlink()
            raise RuntimeError("the stand-in's cluster does not start; the system log may say why")
        time.sleep(0.02)


def main(file: str) -> int:
    told = json.loads(Path(file).read_text())
    lab = Lab(**told["lab"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    threading.excepthook = lambda failed: syslog.syslog(f"{lab.infra_id}: {failed.thread}: {failed.exc_value!r}")
    kept, store = State(lab.infra_id), Store()
    front = Front(lab, store, told)
    _alone = _at_its_addresses_alone(lab)
    try:
        if Path(file) == kept.told:
            _come_back(lab, told, store, front, kept)
        elif _install(lab, told, store, front, Path(file)):
            _go_on(lab, told, store, front, kept)
    except Exception as error:
        syslog.syslog(f"{lab.infra_id}: {error!r}")
        raise
    finally:
        front.close()
    return 0


def _at_its_addresses_alone(lab: Lab) -> socket.socket:
    """To be kept. A cluster that had the addresses before closes its servers and removes them while it ends."""
    mine = socket.socket(socket.AF_UNIX)
    while True:
        with suppress(OSError):  # it is in use
            mine.bind(f"\0{COMMAND}-{lab.api_vips[0]}")  # of this network namespace, and gone with the process
            return mine
        time.sleep(LOOK_SECONDS)


def _install(lab: Lab, told: dict[str, Any], store: Store, front: Front, file: Path) -> bool:
    """Whether it was, before its VMs were off."""
    front.join()
    world = World(lab, _media(lab, told))
    publisher = Publisher(world, store)
    publisher.start()
    servers.serve_ironic(world, lab.api_vips[0])
    front.serve_media()
    threading.Thread(target=_open_api, args=(world, front), name="opens the API", daemon=True).start()
    world.start()
    file.unlink()
    return _stay(lab, world, publisher)


def _open_api(world: World, front: Front) -> None:
    world.api_is_up.wait()
    front.serve_api()


def _go_on(lab: Lab, told: dict[str, Any], store: Store, front: Front, kept: State) -> None:
    kept.begin({**told, "lab": {**told["lab"], "config": _kept(lab)}, "macs": _macs(lab)}, COMMAND)
    installed = Installed(lab, Told(_media(lab, told), pki.Pair(**told["ca"])), store, front, kept)
    installed.take_over()
    installed.run(is_open=True)


def _come_back(lab: Lab, told: dict[str, Any], store: Store, front: Front, kept: State) -> None:
    installed = Installed(lab, Told(_media(lab, told), pki.Pair(**told["ca"])), store, front, kept)
    installed.load()
    installed.run(is_open=False)


def _macs(lab: Lab) -> list[str]:
    return [str(host["bootMACAddress"]).lower() for host in lab.platform["hosts"]]


def _kept(lab: Lab) -> dict[str, Any]:
    """Of the install-config, what is needed later and no secret."""
    platform = {"apiVIPs": lab.api_vips, "ingressVIPs": lab.ingress_vips, "externalBridge": lab.bridges[0]}
    parts = {key: lab.config[key] for key in ("baseDomain", "networking")}
    return {**parts, "metadata": {"name": lab.name}, "platform": {"baremetal": platform}}


def _media(lab: Lab, told: dict[str, Any]) -> str:
    address = lab.api_vips[0]
    host = f"[{address}]" if ":" in address else address
    return f"https://{host}:{MEDIA_BY_TLS}" if told["media"] else f"http://{host}:{MEDIA}"


class Front:
    """The addresses of the cluster, with its API server and its image server there."""

    def __init__(self, lab: Lab, store: Store, told: dict[str, Any]) -> None:
        self._lab = lab
        self._told = told
        self._servers = servers.api_servers(lab, store, pki.Pair(**told["server"]), told["ca"]["certificate"])
        self._has_media = self._is_open = False

    def join(self) -> None:
        self._is_open = True
        _addresses("add", self._lab)

    def open(self) -> None:
        self.join()
        self.serve_media()
        self.serve_api()

    def serve_api(self) -> None:
        for server in self._servers:
            server.start()

    def serve_media(self) -> None:
        if not self._has_media:
            media = pki.Pair(**self._told["media"]) if self._told["media"] else None
            servers.serve_media(self._lab.api_vips[0], media)
        self._has_media = True

    def close(self) -> None:
        if not self._is_open:  # others may have the addresses by now
            return
        self._is_open = False
        for server in self._servers:
            server.stop()
        _addresses("del", self._lab)


def _stay(lab: Lab, world: World, publisher: Publisher) -> bool:
    """Until it is installed, or its VMs are off."""
    while True:
        with suppress(libvirt.libvirtError), bootstrap.connection() as connection:  # libvirt may be restarted
            while _is_on(connection, lab, world):
                if publisher.installed.wait(LOOK_SECONDS):
                    return True
            return False
        time.sleep(LOOK_SECONDS)


def _is_on(connection: Any, lab: Lab, world: World) -> bool:
    """What carries the cluster: the bootstrap VM at first, and any of its nodes from then on."""
    if bootstrap.is_running(connection, lab):
        return True
    running = bootstrap.nodes(connection, lab.platform["hosts"]).values()
    return world.bootstrapped.is_set() and (not running or any(node.isActive() for node in running))


def _addresses(verb: str, lab: Lab) -> None:
    """As the bootstrap VM, and then one of the nodes, would have them: in the lab's network."""
    for address in (*lab.api_vips, *lab.ingress_vips):
        found = ipaddress.ip_address(address)
        at_once = ["nodad"] if verb == "add" and found.version == 6 else []  # or it cannot be bound for a second
        command = ["ip", "address", verb, f"{address}/{found.max_prefixlen}", "dev", lab.bridges[0], *at_once]
        subprocess.run(command, check=False, capture_output=True)
