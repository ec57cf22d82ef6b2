# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Directories that no storage pool may be: those of the system, and our own."""

from __future__ import annotations

from pathlib import PurePosixPath

SYSTEM = (
    *("/", "/home", "/media", "/mnt", "/opt", "/root", "/srv", "/tmp", "/var"),  # noqa: S108 - nothing is made there
    *(f"/var/{name}" for name in ("backups", "cache", "lib", "local", "log", "mail", "opt", "spool", "tmp")),
    *("/var/lib/libvirt", "/var/lib/libvirt/images"),
)
"""Directories that others expect to be there. One below may be a pool."""
TREES = (
    *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/lost+found", "/proc", "/run", "/sbin"),
    *("/sys", "/usr", "/var/lock", "/var/run"),
    *(f"/var/lib/libvirt/{name}" for name in ("boot", "dnsmasq", "network", "openshift-images", "qemu", "swtpm")),
    *(f"/var/lib/{name}" for name in ("apt", "dbus", "dpkg", "rpm", "systemd")),
)
"""Not even below them."""
OUR_TREES = ("/opt/nometal", "/var/cache/nometal", "/var/lib/nometal")


def objection(path: str) -> str:
    """Why this cannot be a pool's directory; empty if it can."""
    if path in SYSTEM:
        return f"is {path}, a directory of the system; one of its own below it is right, such as {_below(path)}"
    for trees, whose in ((TREES, "the system"), (OUR_TREES, "nometal.ipi itself")):
        tree = next((tree for tree in trees if _is_in(path, tree)), "")
        if tree:
            where = f"in {tree}, which is" if path != tree else "a directory"
            return f"is {path}, {where} of {whose}; one elsewhere is right, such as /srv/labs/demo"
    return ""


def _is_in(path: str, tree: str) -> bool:
    return PurePosixPath(tree) in (PurePosixPath(path), *PurePosixPath(path).parents)


def _below(path: str) -> str:
    return f"{path.rstrip('/')}/labs/demo" if path != "/" else "/srv/labs/demo"
