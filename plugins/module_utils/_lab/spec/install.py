# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of the specification that is for the real installation."""

# ruff: noqa: RUF009 - key() is how a field is declared; it makes no shared mutable default
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core import key_types as types
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import show
from ansible_collections.nometal.ipi.plugins.module_utils._core.scalars import Choice, FreeMapping, YesNo
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import ListOf, Located, Section, Text, key

HOST_PATTERN = r"[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?"
REPOSITORY_PATTERN = rf"{HOST_PATTERN}(:[0-9]{{1,5}})?(/[a-z0-9]+([-._]+[a-z0-9]+)*)*"
URL_PATTERN = r"[^\s/?#]+[^\s]*"
BASELINE_PATTERN = r"None|vCurrent|v[0-9]{1,3}\.[0-9]{1,3}"
CAPABILITY_PATTERN = "[A-Za-z][-A-Za-z0-9]*"
BYPASS_PATTERN = r"[^\s,]+"


def http_url(value: str) -> str:
    return _url(value, ("http",), "http://proxy.example.test:3128")


def any_url(value: str) -> str:
    return _url(value, ("http", "https"), "http://proxy.example.test:3128")


def source(value: str) -> str:
    """Where the tools come from."""
    if value.startswith("/"):
        return types.absolute_path(value.rstrip("/"))
    return _url(value, ("http", "https"), "https://mirror.example.test/clients or /srv/mirror/clients").rstrip("/")


def _url(value: str, schemes: tuple[str, ...], example: str) -> str:
    if not re.fullmatch(f"({'|'.join(schemes)})://{URL_PATTERN}", value):
        # What stands before an @ may be a password.
        wrong = "is no such URL" if "@" in value else f"is {show(value)}"
        raise ValueError(
            f"{wrong}; one that begins with {' or '.join(f'{item}://' for item in schemes)} is right, such as {example}"
        )
    return value


def repository(value: str) -> str:
    if not re.fullmatch(REPOSITORY_PATTERN, value):
        wrong = "is no such name" if "@" in value else f"is {show(value)}"
        raise ValueError(f"{wrong}; a registry or repository is right, without scheme, tag and digest")
    return value


def bypass(value: str) -> str:
    if not re.fullmatch(BYPASS_PATTERN, value):
        raise ValueError(f"is {show(value)}; one domain, address or network is right, without comma or space")
    return value


def baseline(value: str) -> str:
    if not re.fullmatch(BASELINE_PATTERN, value):
        raise ValueError(f"is {show(value)}; None, vCurrent or a release such as v4.18 is right")
    return value


def capability(value: str) -> str:
    if not re.fullmatch(CAPABILITY_PATTERN, value):
        raise ValueError(f"is {show(value)}; the name of a capability is right, such as Console")
    return value


HTTP_URL = Text("URL", http_url, "http://proxy.example.test:3128", f"http://{URL_PATTERN}")
ANY_URL = Text("URL", any_url, "http://proxy.example.test:3128", f"https?://{URL_PATTERN}")
SOURCE = Text("URL or absolute path", source, "https://mirror.example.test/clients")
REPOSITORY = Text("repository", repository, "quay.io/openshift-release-dev/ocp-release", REPOSITORY_PATTERN)
BYPASS = Text("domain, address or network", bypass, ".example.test", BYPASS_PATTERN)
BASELINE = Text("set of capabilities", baseline, "vCurrent", BASELINE_PATTERN)
CAPABILITY = Text("capability", capability, "Console", CAPABILITY_PATTERN)


@dataclass(frozen=True)
class Proxy:
    """How the cluster reaches the outside. One with a password is a secret, and has no place here."""

    http: str | None = key(HTTP_URL, "Proxy for http.")
    https: str | None = key(ANY_URL, "Proxy for https.", derived="that for http")
    no_proxy: tuple[str, ...] = key(
        ListOf(BYPASS, at_most=200), "What is reached without it. The cluster's own networks are, always.", default=[]
    )


@dataclass(frozen=True)
class ImageMirror(Located):
    """Where the images of a repository are found as well: what `oc adm release mirror` prints."""

    source: str = key(REPOSITORY, "As images are named.", required=True)
    mirrors: tuple[str, ...] = key(
        ListOf(REPOSITORY.like("mirror.example.test:5000/ocp/release"), 1, 20),
        "Where they are taken from.",
        required=True,
    )


@dataclass(frozen=True)
class Capabilities:
    """Which optional parts of OpenShift are installed."""

    baseline: str = key(BASELINE, "Set to begin with: `None`, `vCurrent` or that of a release.", default="vCurrent")
    additional: tuple[str, ...] = key(ListOf(CAPABILITY, at_most=100), "Capabilities beside it.", default=[])


@dataclass(frozen=True)
class Install:
    """The real installation. Left out, everything ends with the rehearsal."""

    distribution: str = key(Choice(("ocp", "okd")), "OpenShift or OKD.", default="ocp")
    version: str = key(
        types.VERSION,
        "Release or channel, 4.9 or later. OKD: a release, unless `source` has channels.",
        default="stable-4.20",
    )
    release_image: str | None = key(
        types.WORDS.like("quay.io/openshift-release-dev/ocp-release:4.20.3-x86_64"),
        "Release image instead of the version's own; `version` still says which release it is.",
    )
    source: str | None = key(
        SOURCE,
        "Where the tools are: a client mirror or a directory on the host, with one inside for each version or channel.",
        derived="the distribution's own",
    )
    pull_secret_file: str = key(types.FILE, "File with the pull secret.", default="~/pull-secret.json")
    ssh_key_file: str = key(
        types.FILE.like("~/.ssh/id_ed25519.pub"),
        "Public key to log in to the nodes with.",
        default="~/.ssh/id_ed25519.pub",
    )
    proxy: Proxy | None = key(Section(Proxy, may_be_empty=False), "Proxy of the cluster.", derived="none")
    trust_bundle_file: str | None = key(
        types.FILE.like("~/mirror-ca.pem"), "File with further CA certificates that the nodes trust (PEM)."
    )
    image_mirrors: tuple[ImageMirror, ...] = key(
        ListOf(Section(ImageMirror), at_most=200), "Mirror registries.", default=[]
    )
    fips: bool = key(
        YesNo(), "FIPS mode. From 4.16 on, the installer wants its host in FIPS mode as well.", default=False
    )
    capabilities: Capabilities | None = key(
        Section(Capabilities, may_be_empty=False), "Optional parts of OpenShift.", derived="all"
    )
    cpu_partitioning: bool = key(YesNo(), "Prepare all nodes for workload partitioning.", default=False)
    manifests_dir: str | None = key(
        types.FILE.like("~/lab/manifests"), "Directory of further manifests, which may be templates (`.j2`)."
    )
    config: dict[str, Any] = key(
        FreeMapping("mapping"),
        "Merged into install-config.yaml: lists replace, `null` removes. It has the last word but on what the lab has "
        "made already: names, addresses, networks and hosts. No secrets.",
        default={},
    )
