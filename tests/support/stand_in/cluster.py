"""The process that stands for the bootstrap VM's and the nodes' systems: what they would do, it does by itself.

It is none of the installer's: it goes on when that has ended, and ends when the VMs are off that it stands for.
"""

from __future__ import annotations

import ipaddress
import json
import os
import signal
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
from support.stand_in import bootstrap, pki, servers
from support.stand_in.kubernetes.store import Store
from support.stand_in.lab import Lab
from support.stand_in.resources import Publisher
from support.stand_in.servers import MEDIA, MEDIA_BY_TLS
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
    try:
        _addresses("add", lab)
        world = _open(lab, told)
        Path(file).unlink()
        _stay(lab, world)
    except Exception as error:
        syslog.syslog(f"{lab.infra_id}: {error!r}")
        raise
    finally:
        _addresses("del", lab)
    return 0


def _open(lab: Lab, told: dict[str, Any]) -> World:
    address = lab.api_vips[0]
    media = pki.Pair(**told["media"]) if told["media"] else None
    host = f"[{address}]" if ":" in address else address
    world = World(lab, f"https://{host}:{MEDIA_BY_TLS}" if media else f"http://{host}:{MEDIA}")
    store = Store()
    Publisher(world, store).start()
    servers.serve_media(address, media)
    servers.serve_ironic(world, address)
    threading.Thread(target=_open_api, args=(world, store, told), name="opens the API", daemon=True).start()
    world.start()
    return world


def _open_api(world: World, store: Store, told: dict[str, Any]) -> None:
    world.api_is_up.wait()
    servers.serve_api(world, store, pki.Pair(**told["server"]), told["ca"]["certificate"])


def _stay(lab: Lab, world: World) -> None:
    done = False
    while not done:
        with suppress(libvirt.libvirtError), bootstrap.connection() as connection:  # libvirt may be restarted
            while _is_on(connection, lab, world):
                time.sleep(LOOK_SECONDS)
            done = True
        time.sleep(LOOK_SECONDS)


def _is_on(connection: Any, lab: Lab, world: World) -> bool:
    """What carries the cluster: the bootstrap VM at first, and any of its nodes from then on."""
    if bootstrap.is_running(connection, lab):
        return True
    running = bootstrap.nodes(connection, lab.platform["hosts"]).values()
    return world.bootstrapped.is_set() and (not running or any(node.isActive() for node in running))


def _addresses(verb: str, lab: Lab) -> None:
    """As the bootstrap VM, and then one of the nodes, would have them."""
    for address in (*lab.api_vips, *lab.ingress_vips):
        length = ipaddress.ip_address(address).max_prefixlen
        command = ["ip", "address", verb, f"{address}/{length}", "dev", "lo"]
        subprocess.run(command, check=False, capture_output=True)
