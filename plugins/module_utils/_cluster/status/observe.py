# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads all that is to be known of a lab on its host. It changes nothing, and what does not answer is reported."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import credentials, info, layout
from ansible_collections.nometal.ipi.plugins.module_utils._bmc import faults as bmc_faults
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.api.client import client_of
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis import nodes as diagnosis_nodes
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.installation import Installation as Lookup
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.nodes import record as node_record
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.power.nodes import Record as Stops
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress.reading import glance
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import run as installer_run
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status import cluster
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status import observation as seen
from ansible_collections.nometal.ipi.plugins.module_utils._core import lab_lock, processes
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import NotThereYetError, OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.wire import from_dict
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import LABS, Paths, lab_name
from ansible_collections.nometal.ipi.plugins.module_utils._lab.rehearsed import Lab as Scenery
from ansible_collections.nometal.ipi.plugins.module_utils._observe import picture
from ansible_collections.nometal.ipi.plugins.module_utils._observe.connection import connect
from ansible_collections.nometal.ipi.plugins.module_utils._observe.host import (
    UnmeasurableError,
    memory,
    text_if_there,
    within,
)
from ansible_collections.nometal.ipi.plugins.module_utils._observe.labs import Record, record_of
from ansible_collections.nometal.ipi.plugins.module_utils._observe.network_leases import leases_of
from ansible_collections.nometal.ipi.plugins.module_utils._observe.registered_labs import registered_labs
from ansible_collections.nometal.ipi.plugins.module_utils._observe.system import distribution
from ansible_collections.nometal.ipi.plugins.module_utils._resources.checkpoint.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ansible_collections.nometal.ipi.plugins.module_utils._cluster.status.cluster import Said
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.network import Lease

SECONDS = 15.0
"""For libvirt and for BMCs, which answer in a tenth of one."""
BMC_SECONDS = 5.0
"""For one request."""
BLOCK = 512
TOOLS = Path("/var/cache/nometal/tools")
FAILURES = (OperatorError, UnmeasurableError, *picture.FAILURES)


@dataclass(frozen=True)
class Question:
    lab: str
    model: Mapping[str, Any] = field(default_factory=dict)
    """Without it, what the lab has recorded on the host."""
    host: str = ""
    """What the inventory calls this host; without it, all nodes of the model are looked for."""
    home: str = "/var/lib/nometal"
    libvirt_uri: str = "qemu:///system"
    asks: bool = True
    """Otherwise neither BMCs nor the cluster are, which takes less time."""

    @property
    def bmc_home(self) -> str:
        return f"{self.home}/bmc"


@dataclass(frozen=True)
class InLibvirt:
    picture: Mapping[str, Any] = field(default_factory=dict)
    nodes: Mapping[str, diagnosis_nodes.Node] = field(default_factory=dict)
    leases: Sequence[Lease] = ()
    silence: str = ""
    """Why it could not be asked."""


def observe(question: Question) -> tuple[seen.Observation, Mapping[str, Any]]:
    """With the picture of what libvirt and the kernel have; empty without libvirt."""
    lab = lab_name(question.lab)
    record = record_of(Path(question.home), lab)
    question = replace(question, model=question.model or record.model)
    nodes = [node for node in question.model.get("nodes", ()) if question.host in ("", node.get("hypervisor"))]
    with ThreadPoolExecutor() as pool:
        libvirt = pool.submit(_in_libvirt, question, nodes)
        bmcs = pool.submit(_bmcs, question)
        said = pool.submit(_cluster, question, nodes)
        installation = pool.submit(_installation, Paths(lab))
        files = replace(_of_files(question, record, nodes), installation=installation.result())
        observed = _with_cluster(_joined(files, nodes, libvirt.result(), bmcs.result()), said.result())
    stopped = Stops(question.home, lab).names()
    nodes_seen = [replace(node, stopped=node.vm_name in stopped) for node in observed.nodes]
    return replace(observed, nodes=nodes_seen), libvirt.result().picture


def _of_files(question: Question, record: Record, nodes: Sequence[Mapping[str, Any]]) -> seen.Observation:
    """What files and the kernel say by themselves."""
    model = question.model
    checkpoints, damaged = _checkpoints(question)
    return seen.Observation(
        lab=question.lab,
        domain=str(model.get("domain") or record.domain),
        time=seen.iso(datetime.now(timezone.utc).timestamp()),
        registered=question.lab in registered_labs(Path(question.home)),
        installs=bool(model.get("install")),
        host=_host(),
        storage=_storage(model, nodes),
        run=_run(question.lab),
        rehearsal=_rehearsal(Path(question.home) / LABS / question.lab),
        checkpoints=checkpoints,
        unread=damaged,
        half_restored=_half_restored(question),
        replacing=sorted(node_record.read(Paths(question.lab)).replacing),
    )


def _joined(
    files: seen.Observation,
    nodes: Sequence[Mapping[str, Any]],
    libvirt: InLibvirt,
    answers: tuple[seen.Bmcs, Mapping[str, Mapping[str, Any]]],
) -> seen.Observation:
    pool = Path(files.storage.path)
    bmcs, said = answers
    return replace(
        files,
        host=replace(files.host, libvirt=libvirt.silence),
        networks=[_network(network) for network in libvirt.picture.get("networks", ())],
        bmcs=_listening(bmcs, libvirt.picture.get("bmc", ())),
        nodes=[_node(node, pool, libvirt, said.get(node["name"], {})) for node in nodes],
        unread=[*files.unread, *libvirt.picture.get("unread", ())],
    )


def _with_cluster(observed: seen.Observation, said: Said | None) -> seen.Observation:
    if said is None:
        return observed
    nodes = [replace(node, member=said.members.get(node.name)) for node in observed.nodes]
    return replace(observed, nodes=nodes, cluster=said.cluster)


def _cluster(question: Question, nodes: Sequence[Mapping[str, Any]]) -> Said | None:
    """As long as there is a kubeconfig."""
    paths = Paths(question.lab)
    if not question.asks or not paths.kubeconfig.exists():
        return None
    oc = _oc(installer_run.read(paths).version)
    vips = question.model.get("vips") or {}
    asked = {cluster.API: vips.get("api") or [], cluster.INGRESS: vips.get("ingress") or []}
    macs = {nic["mac"]: node["name"] for node in nodes for nic in node.get("nics", ())}
    networks = {node["name"]: node["network_config"] for node in nodes if node.get("network_config")}
    return cluster.ask(client_of(paths, str(Path(oc).parent) if oc else None), asked, macs, networks)


def _host() -> seen.Host:
    total, available = memory()
    lines = text_if_there("/proc/stat").splitlines()
    booted = next((float(line.split()[1]) for line in lines if line.startswith("btime ")), 0.0)
    return seen.Host(
        name=os.uname().nodename,
        distribution=distribution().name,
        booted=seen.iso(booted) if booted else "",
        cores=os.cpu_count() or 1,
        load=round(os.getloadavg()[0], 2),
        memory_bytes=total,
        memory_available_bytes=available,
    )


def _storage(model: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]]) -> seen.Storage:
    pool = model.get("storage_pool") or {}
    path = str(pool.get("path", ""))
    disks = [disk for node in nodes for disk in node.get("disks", ())]
    storage = seen.Storage(
        pool=str(pool.get("name", "")), path=path, promised_bytes=sum(disk.get("size_bytes", 0) for disk in disks)
    )
    try:
        used = sum(entry.stat(follow_symlinks=False).st_blocks * BLOCK for entry in os.scandir(path or "/nonexistent"))
        file_system = os.statvfs(path)
    except OSError:
        return storage
    size = file_system.f_frsize
    free, capacity = file_system.f_bavail * size, file_system.f_blocks * size
    return replace(storage, is_there=True, used_bytes=used, free_bytes=free, capacity_bytes=capacity)


def _run(lab: str) -> seen.Run | None:
    with suppress(OSError):
        record = lab_lock.LabLock(lab).look()
        if record:
            described = lab_lock.described(record, datetime.now(timezone.utc).timestamp())
            return seen.Run(by=described, going=_is_going(record))
    return None


def _is_going(record: lab_lock.Record) -> bool | None:
    if record.host_boot != processes.boot_id():
        return False
    connection = record.connection
    return None if connection is None else not processes.has_ended(connection.pid, connection.started)


def _rehearsal(directory: Path) -> seen.Rehearsal:
    try:
        report = json.loads((directory / "rehearsal.json").read_text(encoding="utf-8"))
        checks = [check for check in report["checks"] if check["state"] == "failed"]
        outcome = seen.OK if report["ok"] else seen.FAILED
    except (OSError, ValueError, LookupError, TypeError):
        return seen.Rehearsal()
    page = directory / "rehearsal.html"
    began = str(report.get("began", ""))
    return seen.Rehearsal(outcome, began, failures=len(checks), page=str(page) if page.exists() else "")


def _checkpoints(question: Question) -> tuple[list[seen.Checkpoint], list[str]]:
    """With what is wrong with those that are damaged."""
    with suppress(OSError):  # only root can read them
        found, damaged = Store(question.home, question.lab).readable()
        return [seen.Checkpoint(each.name, each.taken, each.while_running, each.held_bytes) for each in found], damaged
    return [], []


def _half_restored(question: Question) -> str:
    with suppress(OSError, ValueError, OperatorError):
        return Store(question.home, question.lab).unfinished().restore
    return ""


def _installation(paths: Paths) -> seen.Installation:
    if not paths.is_in_use:
        return seen.Installation()
    try:
        result = glance(Lookup(paths))
    except (OSError, ValueError, OperatorError) as error:
        return seen.Installation(state="unknown", outcome=str(error))
    version = installer_run.read(paths).version
    bundles = sorted(paths.bundles.glob("*.tar.gz"), key=lambda path: path.stat().st_mtime)
    return seen.Installation(
        state=result["state"],
        outcome=result["words"],
        stage=result["stage"],
        version=version,
        kubeconfig=_if_there(paths.kubeconfig),
        password_file=_if_there(paths.password),
        console_url=result["console_url"],
        client=_oc(version),
        bundle=str(bundles[-1]) if bundles else "",
    )


def _oc(version: str) -> str:
    """Of several distributions, those of one release are alike."""
    return next((str(file) for file in sorted(TOOLS.glob(f"*-{version}/bin/oc"))), "") if version else ""


def _if_there(file: Path) -> str:
    return str(file) if file.exists() else ""


def _in_libvirt(question: Question, nodes: Sequence[Mapping[str, Any]]) -> InLibvirt:
    def look() -> InLibvirt:
        with connect(question.libvirt_uri) as connection:
            scene = _scene(question, nodes)
            looked_at = diagnosis_nodes.look(connection, nodes)
            return InLibvirt(
                picture=picture.read(connection, scene),
                nodes={node.name: node for node in looked_at},
                leases=_leases(connection, [network.name for network in scene.networks]),
            )

    try:
        return within(SECONDS, look)
    except UnmeasurableError as error:
        return InLibvirt(silence=f"{question.libvirt_uri}: {error}.")
    except (NotThereYetError, OperatorError) as error:
        return InLibvirt(silence=str(error))


def _scene(question: Question, nodes: Sequence[Mapping[str, Any]]) -> picture.Scene:
    lab = from_dict(Scenery, {**question.model, "lab": question.lab, "nodes": []})
    return picture.Scene(
        networks=lab.networks,
        bridges=[lab.bridge],
        veth_pairs=lab.veth_pairs,
        vms={node["name"]: node["vm_name"] for node in nodes},
        endpoints=lab.bmc.endpoints,
    )


def _leases(connection: Any, names: Sequence[str]) -> list[Lease]:
    networks = [network for network in connection.listAllNetworks() if network.name() in names and network.isActive()]
    return [lease for network in networks for lease in leases_of(network)]


def _bmcs(question: Question) -> tuple[seen.Bmcs, Mapping[str, Mapping[str, Any]]]:
    """What they say, and by node what each says."""
    home, bmc = question.bmc_home, question.model.get("bmc") or {}
    directory = layout.directory_of(home, question.lab)
    known = seen.Bmcs(url=str(bmc.get("url") or ""), protocol=str(bmc.get("protocol") or ""))
    if not (directory / "config.json").exists():
        return known, {}
    accounts = credentials.file_of(home, question.lab)
    known = replace(known, state=seen.ANSWERS, credentials=_if_there(accounts))
    if not question.asks:
        return known, {}
    try:
        known = replace(known, faults=[str(rule) for rule in bmc_faults.of_lab(directory).rules])
        said = within(SECONDS, lambda: info.information(home, question.lab, BMC_SECONDS))["nodes"]
    except FAILURES as error:
        return replace(known, state=seen.SILENT, error=str(error)), {}
    errors = [node["trouble"] for node in said]
    if said and all(errors):
        known = replace(known, state=seen.SILENT, error=errors[0])
    return known, {node["name"]: node for node in said}


def _listening(bmcs: seen.Bmcs, endpoints: Iterable[Mapping[str, Any]]) -> seen.Bmcs:
    """Those that speak IPMI are not asked: a listener is all that is known of them."""
    deaf = [f"{each['address']}:{each['port']}/{each['protocol']}" for each in endpoints if each["listening"] is False]
    if bmcs.state != seen.ANSWERS or not deaf:
        return bmcs
    return replace(bmcs, state=seen.SILENT, error=f"Nothing listens at {', '.join(deaf)}.")


def _network(found: Mapping[str, Any]) -> seen.Network:
    return seen.Network(
        name=found["name"],
        role=str(found["role"]),
        bridge=found["bridge"] or "",
        state=found["state"],
        addresses=found["addresses"],
        missing_addresses=found["missing_addresses"],
        dnsmasq=found["dnsmasq"],
    )


def _node(model: Mapping[str, Any], pool: Path, libvirt: InLibvirt, said: Mapping[str, Any]) -> seen.Node:
    looked_at = libvirt.nodes.get(model["name"])
    by_bmc = {"On": seen.ON, "Off": seen.OFF}.get(str(said.get("power")), seen.UNKNOWN)
    macs = [nic["mac"] for nic in model.get("nics", ())]
    disks = model.get("disks", ())
    return seen.Node(
        name=model["name"],
        role=model.get("role", ""),
        vm_name=model["vm_name"],
        installer=bool(model.get("installer")),
        power=seen.power_of(looked_at.state) if looked_at else by_bmc,
        bmc=said.get("address") or "",
        bmc_error=said.get("trouble") or "",
        address=next(iter(model.get("ips") or ()), ""),
        leases=_of_macs(libvirt.leases, macs),
        console=looked_at.console if looked_at else "",
        disk_bytes=sum(_occupied(pool / disk["name"]) for disk in disks),
        disk_size_bytes=sum(disk.get("size_bytes", 0) for disk in disks),
    )


def _of_macs(leases: Iterable[Lease], macs: Sequence[str]) -> list[str]:
    """The client ID of a lease by DHCPv6 ends with the MAC address."""
    return sorted({lease.ip for lease in leases if any(lease.id.endswith(mac) for mac in macs)})


def _occupied(disk: Path) -> int:
    with suppress(OSError):
        return disk.stat().st_blocks * BLOCK
    return 0
