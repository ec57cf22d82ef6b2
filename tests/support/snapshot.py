"""What a host is like at a moment, and what has changed between two moments.

before = snapshot.take(host)
...
assert snapshot.take(host).diff(before, without=PACKAGES) == ""
"""

from __future__ import annotations

import difflib
import fnmatch
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Collection, Iterator, Mapping, Sequence

PROBE = Path(__file__).with_name("snapshot_probe.py")

# Files that change by themselves, and why.
BY_THEMSELVES = {
    "/var/log": "journals and logs grow; of VMs' logs, the names are compared",
    "/var/cache": "apt's, man-db's and libvirt's caches are made anew when missing; of ours, the names are compared",
    "/var/lib/apt": "lists, and the time of the last update",
    "/var/lib/dpkg": "dpkg keeps times and copies of its lists; the packages are compared by name and version",
    "/var/lib/systemd": "timers' stamps, the random seed, the catalog",
    "/var/tmp": "private directories with random names of running services",  # noqa: S108 - only named here
    "/etc/machine-id": "every host has its own",
    "/etc/ld.so.cache": "made anew by package installations",
    "/root/.ansible": "Ansible's working directory",
    "/home/*/.ansible": "the same, of whoever may use sudo",
    "/root/.cache": "a cache",
    "/var/lib/NetworkManager": "NetworkManager's notes",
    "/root/.bash_history": "of whoever looked around",
    "/etc/.pwd.lock": "touched by whoever reads users carefully",
    **dict.fromkeys(
        (f"/etc/{name}-" for name in ("group", "gshadow", "passwd", "shadow")),
        "the file from before the last change, as shadow's tools keep it",
    ),
    "/etc/libvirt/nwfilter": "libvirt's record of its filters, with random UUIDs; they are compared as libvirt objects",
    "/etc/libvirt/qemu/*": "libvirt's record of domains and networks, likewise",
    "/etc/libvirt/storage*": "libvirt's record of pools, likewise",
    "/var/lib/libvirt/dnsmasq/*.status": "leases",
    "/var/lib/libvirt/dnsmasq/*.macs": "leases",
    "/var/lib/libvirt/qemu/nvram/*": "written by guests' firmware",
    "/var/lib/nometal/bmc/*/broker/state/power.json": "names the host's start",
    "*/__pycache__": "Python's own doing",
}
# Lab hosts begin with the rehearsal's image, as if another lab had been there, and it goes with the last lab.
GO_WITH_THE_LAST_LAB = ("files /var/cache/nometal", "files /var/cache/nometal/rehearsal*")
# Of nodes that have run; they go with the nodes.
LOGS_OF_NODES = ("files /var/log/libvirt/qemu/*-control-plane-*", "files /var/log/libvirt/qemu/*-worker-*")
# What stays when packages stay: they, and what their installation has made.
WITH_PACKAGES = ("packages", "package *")
MADE_BY_PACKAGES = (
    *("files /etc/passwd*", "files /etc/group*", "files /etc/shadow*", "files /etc/gshadow*", "files /etc/sub?id*"),
    *("files /etc/alternatives/*", "files /usr/bin/*", "files /usr/sbin/*"),  # links of alternatives
    *("files /etc/rc?.d/*", "files /etc/systemd/system/*.wants*", "files /etc/systemd/system/dbus-*"),
    *("files /etc/ca-certificates.conf", "files /etc/ssl/certs/*", "files /etc/pam.d/common-*", "files /etc/networks"),
    *("files /etc/sgml/*", "files /etc/xml/*", "files /usr/local/share/sgml*", "files /usr/local/share/xml*"),
    *("files /etc/apparmor.d/local*", "files /usr/lib/python3*", "files /usr/share/*", "files /var/lib/*"),
    "files /usr/lib/udev/hwdb.bin",  # made by udev's own package script
    "files /var/log/libvirt/qemu/.placeholder",
    *("libvirt nwfilter *", "libvirt network default", "files /etc/libvirt/*"),  # libvirt's packages bring them
)

# What libvirt leaves behind by itself, once a network has run: chains with nothing in them.
MADE_BY_LIBVIRT = ("firewall table ip *", "firewall table ip6 *", "files /var/lib/libvirt/dnsmasq")


# ruff: noqa: A002 - `input` is named as in subprocess.run
class Runs(Protocol):
    """Whatever can run a command on a host and has its output in `stdout`, such as a lab host or a private libvirtd."""

    def run(self, command: Sequence[str], *, input: str) -> subprocess.CompletedProcess[str]: ...


@dataclass(frozen=True)
class Snapshot:
    """Of each kind (packages, links, ...) the things by their names, each with a text that says how it is."""

    kinds: Mapping[str, Mapping[str, str]]

    def diff(self, earlier: Snapshot, without: Collection[str] = ()) -> str:
        """A readable text, empty when nothing differs.

        `without` holds patterns for a kind ("links") or for a kind and a name ("files /etc/hosts*").
        """
        parts = []
        for kind in sorted({*self.kinds, *earlier.kinds}):
            old, new = earlier.kinds.get(kind, {}), self.kinds.get(kind, {})
            changed = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
            aside = {name: without if name in new else (*without, *GO_WITH_THE_LAST_LAB) for name in changed}
            told = [name for name in changed if not _left_aside(kind, name, aside[name])]
            if told:
                parts.append("\n".join([f"{kind}:", *(line for name in told for line in _change(name, old, new))]))
        return "\n".join(parts)


def take(host: Runs, leave_out: Collection[str] = ()) -> Snapshot:
    """One run on the host. `leave_out`: patterns for files or directories that are not even looked at."""
    patterns = json.dumps([*BY_THEMSELVES, *leave_out])
    done = host.run(["/usr/bin/python3", "-", patterns], input=PROBE.read_text())
    return Snapshot(json.loads(done.stdout))


def _left_aside(kind: str, name: str, without: Collection[str]) -> bool:
    return any(fnmatch.fnmatchcase(kind, each) or fnmatch.fnmatchcase(f"{kind} {name}", each) for each in without)


def _change(name: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    if name not in old:
        yield f"  + {name}: {_indented(new[name])}"
    elif name not in new:
        yield f"  - {name}: {_indented(old[name])}"
    elif "\n" not in old[name] + new[name]:
        yield f"  ~ {name}: {old[name] or '(empty)'}  =>  {new[name] or '(empty)'}"
    else:
        yield f"  ~ {name}:"
        for line in difflib.unified_diff(old[name].splitlines(), new[name].splitlines(), n=1, lineterm=""):
            if not line.startswith(("---", "+++", "@@")):
                yield f"      {line}"


def _indented(text: str) -> str:
    return text.replace("\n", "\n      ")
