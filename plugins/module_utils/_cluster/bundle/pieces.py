# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a bundle is made of, and where each piece comes from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.bundle.archive import Piece, tail
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.bundle.gather import Gathering, gather, gathered
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.removal import bootstrap, leftovers
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import LOGS
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Role
from ansible_collections.nometal.ipi.plugins.module_utils._observe import domain_xml
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect
from ansible_collections.nometal.ipi.plugins.module_utils._observe.network_leases import STATUS
from ansible_collections.nometal.ipi.plugins.module_utils._resources.vm.state import console_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.bundle.archive import Content

MOST_BYTES = 64 * 1024**2
ENDINGS = {"image/png": "png", "image/x-portable-pixmap": "ppm"}


def take(connection: Any, domain: Any) -> tuple[str, bytes]:
    """The ending that goes with the format, and the picture."""
    if not domain.isActive():
        raise OperatorError("it is switched off")
    if domain_xml.parsed(domain.XMLDesc()).find("devices/video") is None:
        raise OperatorError("it has no screen, for its VM has no video device; its serial console is in the log")
    stream = connection.newStream()
    kind = domain.screenshot(stream, 0)
    picture = bytearray()
    stream.recvAll(_receive, picture)
    stream.finish()
    return ENDINGS.get(kind, "img"), bytes(picture)


def _receive(_stream: Any, data: bytes, picture: bytearray) -> int:
    picture += data[: MOST_BYTES - len(picture)]
    return len(data)


JOURNAL_LINES = 20000
MORE_SECONDS = 90
LEASE = ("ipaddr", "mac", "hostname", "expirytime", "clientid", "iface")


@dataclass(frozen=True)
class Source:
    """Where there is something to be gathered."""

    uri: str
    lab: leftovers.Lab
    networks: Sequence[str] = ()
    tools: Path | None = None
    gather_seconds: float = 300
    bootstrap_ips: Sequence[str] = ()
    """Of one that has a static address, and so no lease."""


def pieces(source: Source, extra: Mapping[str, str]) -> Iterator[Piece]:
    paths = source.lab.paths
    for path in (paths.log, paths.output, paths.run):
        yield Piece(f"installer/{path.name.lstrip('.')}", partial(_file, path, "installer"))
    yield Piece("libvirt", _asking(source, _overview))
    yield Piece("bootstrap", _asking(source, _bootstrap))
    for node in source.lab.nodes:
        yield from _of_node(source, node["vm_name"])
    for name in source.networks:
        yield Piece(f"networks/{name}", _asking(source, partial(_network, name=name)))
    yield Piece("bmc", partial(_bmc_log, source.lab))
    for name, text in extra.items():
        yield Piece(f"extra/{name}", partial(_given, f"extra/{Path(name).name}", str(text)))
    yield Piece("installer/log-bundle", partial(_gathered_before, paths.assets), MORE_SECONDS)
    yield Piece("gather", _asking(source, _gathered), source.gather_seconds + MORE_SECONDS)


def _asking(source: Source, question: Callable[[Any, Source], Mapping[str, Content]]) -> Callable[[], Any]:
    """Each has a connection of its own, so one that hangs does not hold up the others."""

    def ask() -> Mapping[str, Content]:
        with connect(source.uri) as connection:
            return question(connection, source)

    return ask


def _of_node(source: Source, vm_name: str) -> Iterator[Piece]:
    yield Piece(f"nodes/{vm_name}.xml", _asking(source, partial(_definition, name=vm_name, directory="nodes")))
    for path in (Path(console_of(vm_name)), LOGS / f"{vm_name}.log"):
        yield Piece(f"nodes/{path.name}", partial(_file, path, "nodes"))
    yield Piece(f"screenshots/{vm_name}", _asking(source, partial(_screenshot, name=vm_name)))


def _given(name: str, text: str) -> dict[str, Content]:
    return {name: text}


def _file(path: Path, directory: str) -> dict[str, Content]:
    if not path.exists():
        raise OperatorError(f"{path} is not there")
    return {f"{directory}/{path.name.lstrip('.')}": tail(path)}


def _gathered_before(assets: Path) -> dict[str, Content]:
    return {f"installer/{name}": text for name, text in gathered(assets).items()}


def _overview(connection: Any, _source: Source) -> dict[str, Content]:
    """Names and states: what of others is on the host may be in the way."""
    state = {True: "active", False: "inactive"}
    kinds = {
        "VM": connection.listAllDomains(),
        "network": connection.listAllNetworks(),
        "pool": connection.listAllStoragePools(),
    }
    lines = [f"{kind} {one.name()}: {state[bool(one.isActive())]}" for kind, found in kinds.items() for one in found]
    return {"libvirt.txt": "\n".join(lines) + "\n"}


def _own_bootstraps(connection: Any, source: Source) -> list[str]:
    lab = source.lab
    return leftovers.names(connection, lab.paths, lab.bridges)


def _bootstrap(connection: Any, source: Source) -> dict[str, Content]:
    names = _own_bootstraps(connection, source)
    found: dict[str, Content] = {}
    for name in (name for name in bootstrap.domains(connection) if name in names):
        found.update(_definition(connection, source, name=name, directory="bootstrap"))
    for log in bootstrap.logs(names):
        found.update(_file(log, "bootstrap"))
    if not found:
        raise OperatorError("there is no bootstrap VM, and it has left no log")
    return found


def _definition(connection: Any, _source: Source, *, name: str, directory: str) -> dict[str, Content]:
    return {f"{directory}/{name}.xml": connection.lookupByName(name).XMLDesc()}


def _screenshot(connection: Any, _source: Source, *, name: str) -> dict[str, Content]:
    ending, picture = take(connection, connection.lookupByName(name))
    return {f"screenshots/{name}.{ending}": picture}


def _network(connection: Any, _source: Source, *, name: str) -> dict[str, Content]:
    network = connection.networkLookupByName(name)
    found: dict[str, Content] = {f"networks/{name}.xml": network.XMLDesc()}
    if network.isActive():
        lines = ["  ".join(str(lease[key]) for key in LEASE) for lease in network.DHCPLeases()]
        found[f"networks/{name}-leases.txt"] = "\n".join(["  ".join(LEASE), *lines]) + "\n"
        status = STATUS / f"{network.bridgeName()}.status"
        found.update(_file(status, "networks") if status.exists() else {})
    return found


def _bmc_log(lab: leftovers.Lab) -> dict[str, Content]:
    """Of the service, where systemd runs it and where it does not."""
    own = lab.bmc_home / lab.paths.lab / "service.log"
    if own.exists():
        return _file(own, "bmc")
    unit = f"nometal-bmc-{lab.paths.lab}"
    broker = f"nometal-broker-{lab.paths.lab}"
    units = (f"--unit={unit}", f"--unit={broker}")
    told = run("journalctl", "--quiet", "--no-pager", *units, f"--lines={JOURNAL_LINES}")
    if not told:
        raise OperatorError(f"the journal has nothing of {unit}")
    return {"bmc/service.log": told}


def _gathered(connection: Any, source: Source) -> dict[str, Content]:
    if source.tools is None:
        raise OperatorError("no installer was named that could gather")
    names = _own_bootstraps(connection, source)
    running = [name for name in bootstrap.domains(connection) if name in names and _is_running(connection, name)]
    if not running:
        raise OperatorError("the bootstrap VM does not run")
    paths = source.lab.paths
    wanted = Gathering(
        assets=paths.assets,
        scratch=paths.directory / "gather",
        tools=source.tools,
        bootstrap=_address(connection, running[0], source.bootstrap_ips),
        masters=[node["ips"][0] for node in source.lab.nodes if is_master(node)],
        seconds=source.gather_seconds,
    )
    return {f"gather/{name}": text for name, text in gather(wanted).items()}


def _is_running(connection: Any, name: str) -> bool:
    return bool(connection.lookupByName(name).isActive())


def is_master(node: Mapping[str, Any]) -> bool:
    return bool(node.get("role") == Role.CONTROL_PLANE and node.get("installer", True) and node.get("ips"))


def _address(connection: Any, name: str, static: Sequence[str]) -> str:
    macs = bootstrap.macs(connection, name)
    networks = [network for network in connection.listAllNetworks() if network.isActive()]
    leases = [lease for network in networks for lease in network.DHCPLeases() if (lease["mac"] or "").lower() in macs]
    address = next((lease["ipaddr"] for lease in leases), next(iter(static), ""))
    if not address:
        raise OperatorError(f"the bootstrap VM {name} has no lease (MAC addresses {', '.join(macs)})")
    return str(address)
