"""What follows from a version: names, numbers, and the release image that stands for it."""

from __future__ import annotations

import re

Release = tuple[int, int]
OCP, OKD = "quay.io/openshift-release-dev/ocp-release", "quay.io/okd/scos-release"
ONE_BINARY = (4, 16)
LIVE_ISO = (4, 22)
"""The bootstrap VM is the live ISO on UEFI."""
ETCD_IS_WAITED_FOR = (4, 18)
MEDIA_BY_TLS = (4, 20)
LAST_MINOR_OF_4 = 23
"""5.0 is the same as this."""
FIRST_KUBERNETES = 13
DIGITS = 64


def parse(version: str) -> Release:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def program(version: str) -> str:
    return "openshift-install" if parse(version) >= ONE_BINARY else "openshift-baremetal-install"


def kubernetes(version: str) -> str:
    major, minor = parse(version)
    since = minor if major == 4 else LAST_MINOR_OF_4 + minor
    return f"1.{since + FIRST_KUBERNETES}.5"


def digest(version: str) -> str:
    """One that tells the version to our `oc`, for there is no registry to ask."""
    return "sha256:" + version.encode().hex().ljust(DIGITS, "0")


def image(version: str) -> str:
    return f"{OKD if 'okd' in version else OCP}@{digest(version)}"


def version_in(image_or_tag: str) -> str:
    """The version of a release image, by its digest or its tag; empty for one that is unknown."""
    _name, found, hexadecimal = image_or_tag.partition("@sha256:")
    if found:
        return _from_digest(hexadecimal)
    tag = image_or_tag.rpartition("/")[2].partition(":")[2]
    return re.sub(r"-(x86_64|multi)$", "", tag) if re.match(r"\d+\.\d+", tag) else ""


def _from_digest(hexadecimal: str) -> str:
    digits = hexadecimal.rstrip("0")
    try:
        text = bytes.fromhex(digits + "0" * (len(digits) % 2)).decode()
    except ValueError:
        return ""
    return text if re.match(r"\d+\.\d+\.", text) else ""
