# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Directories that must not be a storage pool: those of the system and of this collection."""

from __future__ import annotations

from pathlib import PurePosixPath

from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import must_be

SYSTEM = (
    *("/", "/home", "/media", "/mnt", "/opt", "/root", "/srv", "/tmp", "/var"),  # noqa: S108 - nothing is made there
    *(f"/var/{name}" for name in ("backups", "cache", "lib", "local", "log", "mail", "opt", "spool", "tmp")),
    *("/var/lib/libvirt", "/var/lib/libvirt/images"),
)
"""Directories that other software expects. A directory below one may be a pool."""
TREES = (
    *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/lost+found", "/proc", "/run", "/sbin"),
    *("/sys", "/usr", "/var/lock", "/var/run"),
    *(f"/var/lib/libvirt/{name}" for name in ("boot", "dnsmasq", "network", "openshift-images", "qemu", "swtpm")),
    *(f"/var/lib/{name}" for name in ("apt", "dbus", "dpkg", "rpm", "systemd")),
)
"""A pool must not be below these either."""
OUR_TREES = ("/opt/nometal", "/var/cache/nometal", "/var/lib/nometal")


def objection(path: str) -> str:
    """Why this cannot be the directory of a pool; empty if it can."""
    if path in SYSTEM:
        return must_be(f"a directory of its own, such as {_below(path)}, not one of the system", path)
    for trees, whose in ((TREES, "the system"), (OUR_TREES, "nometal.ipi")):
        tree = next((tree for tree in trees if _is_in(path, tree)), "")
        if tree:
            return must_be(f"outside {tree}, which belongs to {whose}, such as /srv/labs/demo", path)
    return ""


def _is_in(path: str, tree: str) -> bool:
    return PurePosixPath(tree) in (PurePosixPath(path), *PurePosixPath(path).parents)


def _below(path: str) -> str:
    return f"{path.rstrip('/')}/labs/demo" if path != "/" else "/srv/labs/demo"
