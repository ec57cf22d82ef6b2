# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What releases, channels and the installer are called, and what they say of themselves. Pure."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.nometal.ipi.plugins.module_utils._core import types as kinds
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import NEWEST, release_of

RELEASE = re.compile(kinds.RELEASE_PATTERN)
CHANNEL = re.compile(kinds.CHANNEL_PATTERN)
BUILD = re.compile(kinds.BUILD_PATTERN)
ONE_INSTALLER_SINCE = (4, 16)
INSTALLER = "openshift-install"
# The other one was made without libvirt, so it could not make the bootstrap VM.
OLDER_INSTALLER = "openshift-baremetal-install"
FIPS_INSTALLER = "openshift-install-fips"
FIPS_ENABLED = Path("/proc/sys/crypto/fips_enabled")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

MIRROR = "https://mirror.openshift.com/pub/openshift-v4/{machine}/clients"
OKD_RELEASES = "https://github.com/okd-project/okd/releases"


@dataclass(frozen=True)
class Release:
    """As release.txt has it."""

    version: str
    image: str | None = None
    architecture: str | None = None


@dataclass(frozen=True)
class Report:
    """What an installer says that it installs."""

    version: str
    image: str | None


def is_release(version: str) -> bool:
    """Otherwise it is a channel, or a build that was never released."""
    return bool(RELEASE.fullmatch(version))


def is_channel(version: str) -> bool:
    """Its release changes."""
    return bool(CHANNEL.fullmatch(version))


def named(version: str, asked: str) -> str:
    """What an installer is called that says `version` itself: a build is taken for the release that was asked for."""
    return version if is_release(version) or is_channel(asked) or not asked else asked


def refuse_bad_version(version: str, distribution: str, *, own_source: bool) -> None:
    try:
        kinds.version(version)
    except ValueError as error:
        raise OperatorError(f"version {error}.") from error
    if distribution == "okd" and is_channel(version) and not own_source:
        raise OperatorError(
            f"version is {version}, a channel, and OKD's releases page has none: name a release, such as "
            f"4.20.0-okd-scos.10. {OKD_RELEASES} lists them."
        )


def usual_sources(distribution: str, machine: str) -> tuple[str, ...]:
    """In the order in which they are tried: releases that are not out yet are previews."""
    if distribution == "okd":
        return (f"{OKD_RELEASES}/download",)
    mirror = MIRROR.format(machine=machine)
    return (f"{mirror}/ocp", f"{mirror}/ocp-dev-preview")


def parse(text: str) -> Release | None:
    """None for another page, such as a proxy's."""
    version = _field(text, r"Name:\s+(\S+)")
    if version is None or not (is_release(version) or BUILD.fullmatch(version)):
        return None
    image = _field(text, r"Pull From:\s+(\S+)")
    return Release(version, image, _field(text, r"OS/Arch:\s+linux/(\S+)"))


def report(text: str) -> Report | None:
    """Of `openshift-install version`, which begins with the program as it was called."""
    version = _field(text, r"\S*openshift\S*-install\S* v?(\S+)")
    return Report(version, _field(text, r"release image (\S+)")) if version else None


def _field(text: str, pattern: str) -> str | None:
    found = re.search(rf"^{pattern}\s*$", text, re.MULTILINE)
    return found[1] if found else None


def numbers(version: str) -> tuple[int, int]:
    """Of a release, a channel or a build."""
    return release_of(version) or NEWEST


def installer_of(version: str, *, fips: bool = False) -> str:
    if numbers(version) < ONE_INSTALLER_SINCE:
        return OLDER_INSTALLER  # links the host's libraries, and installs either way
    return FIPS_INSTALLER if fips else INSTALLER


def refuse_host_without_fips(version: str) -> None:
    if numbers(version) >= ONE_INSTALLER_SINCE and not is_fips_host():
        raise OperatorError(
            f"This host is not in FIPS mode: {FIPS_ENABLED} is not 1. From 4.16 on, clusters in FIPS mode are "
            "installed from such hosts only. Install this host in FIPS mode, or do without lab_spec.install.fips."
        )


def is_fips_host() -> bool:
    return FIPS_ENABLED.exists() and FIPS_ENABLED.read_text(encoding="ascii").strip() == "1"


def tarball_of(program: str, version: str) -> str:
    return f"{'openshift-client' if program == 'oc' else program}-linux-{version}.tar.gz"


def directory_of(distribution: str, version: str, release_image: str | None, *, fips: bool = False) -> str:
    """An image of the same version may be another one, or from another registry, which the installer remembers."""
    name = f"{distribution}-{version}{'-fips' if installer_of(version, fips=fips) == FIPS_INSTALLER else ''}"
    return f"{name}-{hashlib.sha256(release_image.encode()).hexdigest()[:12]}" if release_image else name


def refuse_other_machine(release: Release, machine: str, where: str) -> None:
    """The nodes are VMs of this host, so a release for another architecture is of no use."""
    own = ARCHITECTURES.get(machine, machine)
    if release.architecture in ARCHITECTURES.values() and release.architecture != own:
        raise OperatorError(
            f"{where} has {release.version} for {release.architecture}, and this host is {own} ({machine}), as its VMs "
            f"will be: name a source that has it for {own}."
        )


def refuse_other_release(told: Report, wanted: str, image: str | None, what: str) -> None:
    """`wanted` is a release, a channel or a build. Which release a build is, its name says at best roughly."""
    as_wanted = numbers(told.version) == numbers(wanted) if is_channel(wanted) else told.version == wanted
    if not as_wanted and (is_release(told.version) or BUILD.fullmatch(wanted)):
        raise OperatorError(f"{what} installs {told.version}, and {wanted} was asked for: give the same release twice.")
    digest = (image or "").partition("@")[2]
    if digest and told.image and not told.image.endswith(f"@{digest}"):
        raise OperatorError(f"{what} installs {told.image}, and not that image.")
