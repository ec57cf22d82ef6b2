"""A client mirror as the vendor's, with our stand-ins for the installer and oc in it.

mirror = stand_in_mirror.make(directory, ["4.20.3", "4.15.9"], {"stable-4.20": "4.20.3"})
stand_in_mirror.program(directory / "openshift-install", "4.20.3")  # without any mirror

What a directory of a version holds: release.txt, sha256sum.txt, and the archives of the client and of the installer.
"""

from __future__ import annotations

import gzip
import io
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from support.stand_in import package, release

README = "# OpenShift\n\nThis is a stand-in, of tests.\n"


def make(directory: Path, versions: Sequence[str], channels: Mapping[str, str]) -> Path:
    """Returns the directory; channels are directories like those of versions."""
    for version in versions:
        _fill(directory / version, version)
    for channel, version in channels.items():
        shutil.copytree(directory / version, directory / channel)
    return directory


def program(path: Path, version: str) -> Path:
    """By the name `oc` it is the one, by every other the installer."""
    path.parent.mkdir(parents=True, exist_ok=True)
    package.make(path, version)
    return path


def _fill(place: Path, version: str) -> None:
    place.mkdir(parents=True)
    made = program(place / "program", version)
    data = made.read_bytes()
    made.unlink()
    for kind, names in {"client": ("oc", "kubectl"), "install": ("openshift-install",)}.items():
        whole = place / f"openshift-{kind}-linux-{version}.tar.gz"
        _archive(whole, dict.fromkeys(names, data))
        shutil.copyfile(whole, place / f"openshift-{kind}-linux.tar.gz")
    (place / "release.txt").write_text(_release_text(version), encoding="utf-8")
    sums = [f"{sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(place.iterdir())]
    (place / "sha256sum.txt").write_text("".join(sums), encoding="utf-8")


def _archive(path: Path, programs: Mapping[str, bytes]) -> None:
    """The same at each call."""
    with (
        path.open("wb") as file,
        gzip.GzipFile("", "wb", 1, file, 0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for name, content in {"README.md": README.encode(), **programs}.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644 if name == "README.md" else 0o755
            tar.addfile(entry, io.BytesIO(content))


def _release_text(version: str) -> str:
    image = release.image(version)
    return f"""\
Client tools for OpenShift
--------------------------

Name:           {version}
Digest:         {release.digest(version)}
Created:        2026-01-01T00:00:00Z
OS/Arch:        linux/amd64
Manifests:      959
Metadata files: 2

Pull From: {image}

Release Metadata:
  Version:  {version}
  Upgrades: <none>
  Metadata:
    url: https://access.redhat.com/errata/

Component Versions:
  kubernetes {release.kubernetes(version)}
  machine-os 9.6.20260101-0 Red Hat Enterprise Linux CoreOS
"""
