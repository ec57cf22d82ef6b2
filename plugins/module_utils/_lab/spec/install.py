# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The specification of a real installation."""

# ruff: noqa: RUF009 - key() is how a field is declared; it makes no shared mutable default
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._core import key_types as types
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import must_be
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
    """The source of the tools."""
    if value.startswith("/"):
        return types.absolute_path(value.rstrip("/"))
    return _url(value, ("http", "https"), "https://mirror.example.test/clients or /srv/mirror/clients").rstrip("/")


def _url(value: str, schemes: tuple[str, ...], example: str) -> str:
    if not re.fullmatch(f"({'|'.join(schemes)})://{URL_PATTERN}", value):
        begins = " or ".join(f"{item}://" for item in schemes)
        raise ValueError(_must_be(f"a URL that begins with {begins}, such as {example}", value))
    return value


def _must_be(what: str, value: str) -> str:
    """Text before an @ may be a password, and is not shown."""
    return f"must be {what}" if "@" in value else must_be(what, value)


def repository(value: str) -> str:
    if not re.fullmatch(REPOSITORY_PATTERN, value):
        raise ValueError(_must_be("a registry or repository, without scheme, tag and digest", value))
    return value


def bypass(value: str) -> str:
    if not re.fullmatch(BYPASS_PATTERN, value):
        raise ValueError(must_be("one domain, address or network, without comma or space", value))
    return value


def baseline(value: str) -> str:
    if not re.fullmatch(BASELINE_PATTERN, value):
        raise ValueError(must_be("None, vCurrent or a release such as v4.18", value))
    return value


def capability(value: str) -> str:
    if not re.fullmatch(CAPABILITY_PATTERN, value):
        raise ValueError(must_be("the name of a capability, such as Console", value))
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
    """How the cluster reaches the outside. A proxy with a password is a secret and must not be here."""

    http: str | None = key(HTTP_URL, "Proxy for http.")
    https: str | None = key(ANY_URL, "Proxy for https.", derived="that for http")
    no_proxy: tuple[str, ...] = key(
        ListOf(BYPASS, at_most=200), "Destinations without the proxy, besides the cluster's own networks.", default=[]
    )


@dataclass(frozen=True)
class ImageMirror(Located):
    """Other sources for the images of a repository, as `oc adm release mirror` prints them."""

    source: str = key(REPOSITORY, "Repository in the names of images.", required=True)
    mirrors: tuple[str, ...] = key(
        ListOf(REPOSITORY.like("mirror.example.test:5000/ocp/release"), 1, 20),
        "Repositories to use instead.",
        required=True,
    )


@dataclass(frozen=True)
class Capabilities:
    """The optional parts of OpenShift to install."""

    baseline: str = key(BASELINE, "Initial set: `None`, `vCurrent` or that of a release.", default="vCurrent")
    additional: tuple[str, ...] = key(ListOf(CAPABILITY, at_most=100), "Further capabilities.", default=[])


@dataclass(frozen=True)
class Install:
    """The real installation. Without it, everything ends with the rehearsal."""

    distribution: str = key(Choice(("ocp", "okd")), "OpenShift or OKD.", default="ocp")
    version: str = key(
        types.VERSION,
        "Release or channel, 4.9 or later, or own build, such as `5.0-alpha.2-66-g1966deb`. OKD: a release, unless "
        "`source` has channels.",
        default="stable-4.20",
    )
    release_image: str | None = key(
        types.WORDS.like("quay.io/openshift-release-dev/ocp-release:4.20.3-x86_64"),
        "Release image instead of the version's own. `version` must still name its release, or for an own build the "
        "release that it is treated as.",
    )
    source: str | None = key(
        SOURCE,
        "Source of the tools: a client mirror or a directory on the host, with a directory per version or channel.",
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
    fips: bool = key(YesNo(), "FIPS mode. From 4.16 on, the installer needs its host in FIPS mode, too.", default=False)
    capabilities: Capabilities | None = key(
        Section(Capabilities, may_be_empty=False), "Optional parts of OpenShift.", derived="all"
    )
    cpu_partitioning: bool = key(YesNo(), "Prepare all nodes for workload partitioning.", default=False)
    manifests_dir: str | None = key(
        types.FILE.like("~/lab/manifests"), "Directory of further manifests, which may be templates (`.j2`)."
    )
    config: dict[str, Any] = key(
        FreeMapping("mapping"),
        "Merged last into install-config.yaml: lists replace, `null` removes. It must not change what the lab has made "
        "already (names, addresses, networks, hosts) or contain secrets.",
        default={},
    )
