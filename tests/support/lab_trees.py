"""Debian trees for lab hosts: each made once, kept in the cache, and never changed afterwards."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from support import sandbox
from support.cache import cache_dir, locked, made_once

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRESS_SECONDS = 5
RELEASES = {"bookworm": 12, "trixie": 13}
SUITES = tuple(RELEASES)
BUILDER = Path(__file__).with_name("lab_tree.sh")
ROLE_VARS = Path(__file__).parents[2] / "roles/host_prep/vars"

# A layer holds its parent's packages too.
PARENTS: dict[str, str | None] = {"bare": None, "prepared": "bare", "peers": "prepared"}
LAYERS = tuple(PARENTS)
# A fresh Debian with Python and make; sshd is a way in for Ansible and does not run as a service.
BARE = ["systemd", "systemd-sysv", "dbus", "python3", "make", "iproute2", "procps", "openssh-server"]
# What tests look at things with, beside what the role installs.
TOOLS = ["ca-certificates", "iputils-ping", "nftables"]
# What administrators run beside a lab: these packages, and their services, which are disabled.
PEERS = {
    "firewalld": ["firewalld"],
    "network-manager": ["NetworkManager", "NetworkManager-dispatcher", "NetworkManager-wait-online"],
    "systemd-resolved": ["systemd-resolved"],
    "dnsmasq": ["dnsmasq"],
    "unbound": ["unbound", "unbound-resolvconf"],
    "sudo": [],
}


def packages(suite: str, layer: str) -> list[str]:
    """The names of the Debian packages that a layer adds to its parent."""
    if layer == "peers":
        return sorted(PEERS)
    return BARE if layer == "bare" else sorted({*TOOLS, *_installed_by_host_prep(RELEASES[suite])})


def _installed_by_host_prep(release: int) -> Iterator[str]:
    """As the role's own data files tell it: the family's, then the release's, whose values win."""
    values: dict[str, list[str]] = {}
    for name in ("Debian.yml", f"Debian-{release}.yml"):
        if (ROLE_VARS / name).exists():
            values |= yaml.safe_load((ROLE_VARS / name).read_text())
    for key in ("host_prep_packages_of_family", "host_prep_packages_of_release"):
        yield from values[key]


def tree(suite: str, layer: str) -> Path:
    """The directory of a tree, made first if need be."""
    if suite not in SUITES or layer not in LAYERS:
        raise ValueError(f"No tree {suite}/{layer}; suites: {', '.join(SUITES)}; layers: {', '.join(LAYERS)}.")
    path = _trees() / f"{suite}-{layer}-{_key(suite, layer)}"
    parent_layer = PARENTS[layer]
    parent = tree(suite, parent_layer) if parent_layer and not path.exists() else None
    return made_once(path, f"{suite}-{layer}", lambda: _build(path, suite, layer, parent))


def in_use(path: Path) -> int:
    """A descriptor which, while any process has it open, keeps the tree from being removed as outdated."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def kept_packages(suite: str) -> Path:
    path = cache_dir() / "packages" / suite
    (path / "partial").mkdir(parents=True, exist_ok=True)
    return path


def mirrors() -> tuple[str, str]:
    """This machine's own Debian mirror and security mirror."""
    files = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    text = "\n".join(path.read_text() for path in files if path.is_file())
    found = re.findall(r"^(?:deb|URIs:)\s.*?(https?://\S+)", text, re.MULTILINE)

    def ending(name: str) -> str:
        for uri in found:
            if uri.rstrip("/").endswith(f"/{name}"):
                return uri
        raise ValueError(f"This machine's apt sources name no mirror whose address ends with /{name}: add one.")

    return ending("debian"), ending("debian-security")


def _trees() -> Path:
    path = cache_dir() / "trees"
    path.mkdir(exist_ok=True)
    return path


def _key(suite: str, layer: str) -> str:
    parent = PARENTS[layer]
    recipe = [suite, *packages(suite, layer), BUILDER.read_text(), *mirrors(), _key(suite, parent) if parent else ""]
    return hashlib.sha256("\0".join(recipe).encode()).hexdigest()[:12]


def _build(path: Path, suite: str, layer: str, parent: Path | None) -> None:
    # The name is fixed and the lock is ours: what an earlier, killed build left is removed here.
    unfinished = path.with_name(f"{suite}-{layer}.building")
    shutil.rmtree(unfinished, ignore_errors=True)
    arguments = [
        str(unfinished),
        suite,
        *mirrors(),
        str(parent or ""),
        str(kept_packages(suite)),
        *packages(suite, layer),
    ]
    _say(f"Building the Debian tree {suite}/{layer}: once, one to three minutes")
    started = time.monotonic()
    with locked(f"packages-{suite}"):  # shared by the layers of a suite, and apt wants them for itself
        _run_to_end(["sh", str(BUILDER), *arguments], path.name)
    if layer == "peers":
        _disable(unfinished, [service for services in PEERS.values() for service in services])
    unfinished.rename(path)
    remove_outdated(path)
    _say(f"Built {path.name} in {time.monotonic() - started:.0f} s")


def _disable(tree_path: Path, services: list[str]) -> None:
    """As they would be if nobody had ever started them; what their packages did to resolv.conf is undone as well."""
    for service in services:
        subprocess.run(["systemctl", f"--root={tree_path}", "--quiet", "disable", service], check=True)
    (tree_path / "etc/resolv.conf").unlink(missing_ok=True)
    (tree_path / "etc/resolv.conf").touch()


def _run_to_end(command: list[str], name: str) -> None:
    """Say every few seconds what it is at; a failure is told with the end of what it printed."""
    building = sandbox.call("build", name, command)
    assert building.stdout is not None
    lines, spoken = [], time.monotonic()
    for raw in building.stdout:
        lines.append(raw.decode(errors="replace"))
        if time.monotonic() > spoken + PROGRESS_SECONDS:
            spoken = time.monotonic()
            _say(f"  {lines[-1].strip()[:100]}")
    if building.wait() != 0:
        raise RuntimeError(f"The Debian tree {name} could not be built:\n{''.join(lines[-60:])}")


def remove_outdated(current: Path) -> None:
    """Trees of the same kind by an older recipe, unless a lab host runs on them."""
    name = current.name.rpartition("-")[0]
    for path in current.parent.glob(f"{name}-*"):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path != current:
                shutil.rmtree(path)
        os.close(descriptor)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
