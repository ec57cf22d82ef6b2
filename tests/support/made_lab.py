"""Hosts on which the playbooks have made a lab already: it is made once, and what they have changed is kept on disk.

with made_lab.start() as host:  # lab rehearsal, as it ships
    inventory = checkout.inventory(host, tmp_path)
"""

from __future__ import annotations

import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support import checkout, lab_host, lab_trees, snapshot, stranger
from support.cache import cache_dir, made_once
from support.failures import ending
from support.kept_code import digest, digest_of
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.lab_host import LabHost
    from support.snapshot import Snapshot
    from support.street import Street

STAGES = "host network nodes bmc"
# What playbooks make of a host may depend on any of it.
PRODUCT = ("playbooks", "roles", "plugins", "inventory")
LOGS_VMS = "systemctl start virtlogd"
"""Whoever runs a VM leaves it running."""
IS_UP = "virsh net-list --name | grep -q ^nometal- && systemctl is-active --quiet 'nometal-bmc-*'"


def start(street: Street | None = None, **spec: Any) -> LabHost:
    """A host that has been switched off since its lab was made; `spec` replaces keys of the shipped lab_spec."""
    return once_up(lab_host.start(upon=[disk(**spec)], street=street), wait_until_up)


def once_up(host: LabHost, wait: Callable[[LabHost], None]) -> LabHost:
    """The host, which is gone if what it has does not come up."""
    try:
        wait(host)
    except BaseException:
        host.destroy()
        raise
    return host


def wait_until_up(host: LabHost) -> None:
    """After each boot of the host."""
    wait_until("the lab is up", lambda: host.run(IS_UP, check=False).returncode == 0)
    host.run(LOGS_VMS)


@cache
def before() -> Snapshot:
    """What a host was like before its lab came."""
    with without_lab() as host:
        return snapshot.take(host)


def without_lab(keep: Path | None = None) -> LabHost:
    """Where libvirt has been in use, so that what it leaves behind by itself is there already."""
    host = lab_host.start(keep=keep)
    stranger.use_libvirt(host)
    host.run(LOGS_VMS)
    return host


def disk(**spec: Any) -> Path:
    """What the playbooks have changed."""
    path = cache_dir() / "labs" / f"{_name(spec)}-{_key(spec)}"
    return made_once(path, f"lab-{_name(spec)}", lambda: _make(path, spec))


def _name(spec: dict[str, Any]) -> str:
    """Another one for each spec; of the same spec, only the latest is kept."""
    return f"{spec.get('name', 'rehearsal')}.{digest(json.dumps(spec, sort_keys=True))[:8]}"


def _key(spec: dict[str, Any]) -> str:
    below = (tree.name for tree in lab_host.trees())
    made_of = [json.dumps(spec, sort_keys=True), *below, Path(__file__).read_text(), digest_of(*PRODUCT)]
    return digest("\0".join(made_of))[:12]


def _make(path: Path, spec: dict[str, Any]) -> None:
    unfinished = path.parent / f"{_name(spec)}.making"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.parent.mkdir(exist_ok=True)
    with without_lab(keep=unfinished) as host, tempfile.TemporaryDirectory() as inventories:
        made = checkout.run_playbook(STAGES, checkout.inventory(host, Path(inventories), **spec))
        if made.returncode != 0:
            raise RuntimeError(f"The lab for the tests could not be made:\n{ending(made.stdout)}")
        host.switch_off()
    unfinished.rename(path)
    lab_trees.remove_outdated(path)
