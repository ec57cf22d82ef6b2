# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""lab -> install-config.yaml, as a dict without secrets."""

from __future__ import annotations

import ssl
from typing import Any

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.contradictions import contradictions
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.keys import knows
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.merge import merged
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.networking import networking
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.platform import installed, platform
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.releases import (
    ARBITER_WITHOUT_PREVIEW,
    FENCING_WITHOUT_PREVIEW,
    PREVIEW,
    release_to_configure,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.rules import problems
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.findings import BLOCKER, WARNING, Finding
from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import NEWEST, Release, release_text
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Role

PRIVATE = "PRIVATE KEY-----"
KEY_TYPES = ("ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-")
NOT_FOR_FIPS = ("ssh-ed25519", "ssh-dss", "sk-ssh-ed25519")


def certificates(pem: str | None, what: str) -> str | None:
    if not pem or not pem.strip():
        return None
    advice = "give one or more CA certificates in PEM"
    if PRIVATE in pem:
        raise OperatorError(f"{what} contains a private key, which would be copied to every node: {advice}.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=pem.strip() + "\n")
    except (ssl.SSLError, ValueError):
        raise OperatorError(f"{what} cannot be read as certificates: {advice}.") from None
    return pem.strip() + "\n"


def public_keys(text: str | None, *, fips: bool) -> str | None:
    """One per line."""
    if not text or not text.strip():
        return None
    where, advice = "lab_spec.install.ssh_key_file", "give a public key, such as ~/.ssh/id_ed25519.pub"
    if PRIVATE in text:
        raise OperatorError(f"{where} names a file with a private key: {advice}.")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines or not all(line.startswith(KEY_TYPES) for line in lines):
        raise OperatorError(f"{where} must name a file with public keys only: {advice}.")
    if fips and any(line.startswith(NOT_FOR_FIPS) for line in lines):
        raise OperatorError(f"{where} names a key of a type that FIPS does not allow: use RSA or ECDSA.")
    return "\n".join(lines)


class InstallConfigError(OperatorError):
    """Invalid for installers of that release. Its text lists every error, one per line."""

    def __init__(self, release: Release, found: list[Finding]) -> None:
        count = len(found)
        errors = f"{count} error{'s' if count > 1 else ''}"
        heading = f"install-config.yaml has {errors} for release {release_text(release)}:"
        super().__init__("\n".join([heading, *(f"- {finding}" for finding in found)]))


def install_config(
    lab: dict[str, Any],
    version: str | None = None,
    *,
    ssh_key: str | None = None,
    bmc_ca: str | None = None,
    trust_bundle: str | None = None,
) -> dict[str, Any]:
    """InstallConfigError also reports what the installer does not check before it fails."""
    own = lab["install"] or {}
    release = release_to_install(lab, version)
    made = content(lab, release, ssh_key=ssh_key, bmc_ca=bmc_ca, trust_bundle=trust_bundle)
    result: dict[str, Any] = merged(made, own.get("config", {}))
    found = problems(result, release)
    reported = [finding.subject for finding in found]
    others = contradictions(made, result)
    found += [other for other in others if not any(_overlap(other.subject, key) for key in reported)]
    errors = [finding for finding in found if finding.severity == BLOCKER]
    if errors:
        raise InstallConfigError(release, errors)
    return result


def content(
    lab: dict[str, Any],
    release: Release,
    *,
    ssh_key: str | None = None,
    bmc_ca: str | None = None,
    trust_bundle: str | None = None,
) -> dict[str, Any]:
    """As it follows from the lab, before lab_spec.install.config is merged into it."""
    own = lab["install"] or {}
    keys = public_keys(ssh_key, fips=bool(merged({"fips": own.get("fips")}, own.get("config", {})).get("fips")))
    return {
        **_cluster(lab, release),
        "platform": {"baremetal": platform(lab, release, certificates(bmc_ca, "The CA of the BMC service"))},
        **({"sshKey": keys} if keys else {}),
        **_trust(certificates(trust_bundle, "The trust bundle"), release),
        **_options(own, release),
    }


def warnings(lab: dict[str, Any], config: dict[str, Any], version: str | None = None) -> list[str]:
    """About what may be right: keys that this does not know, of a release that it does not know."""
    release = release_to_install(lab, version)
    newest = f"the newest release whose keys are known here is {release_text(NEWEST)}"
    found = (finding for finding in problems(config, release) if finding.severity == WARNING)
    return [f"install-config.yaml: {finding.subject}: {finding.message} ({newest})" for finding in found]


def _overlap(path: str, other: str) -> bool:
    return path.startswith(other) or other.startswith(path)


def release_to_install(lab: dict[str, Any], version: str | None) -> Release:
    if version:
        return release_to_configure(version)
    if lab["install"] is None:
        raise OperatorError("The lab has no release: set lab_spec.install.version, or give a version.")
    own = lab["install"]["release"]
    return own["major"], own["minor"]


def _cluster(lab: dict[str, Any], release: Release) -> dict[str, Any]:
    counts = lab["control_plane"]
    control_plane = _pool("master", counts["replicas"])
    if counts["fencing"]:
        control_plane["fencing"] = {"credentials": [_fence(node) for node in installed(lab) if _is_control_plane(node)]}
    is_preview = (counts["fencing"] and release < FENCING_WITHOUT_PREVIEW) or (
        counts["arbiters"] and release < ARBITER_WITHOUT_PREVIEW
    )
    return {
        "apiVersion": "v1",
        "baseDomain": lab["base_domain"],
        "metadata": {"name": lab["name"]},
        **({"featureSet": PREVIEW} if is_preview and knows(release, "featureSet") else {}),
        "networking": networking(lab),
        "compute": [_pool("worker", counts["workers"])],
        "controlPlane": control_plane,
        **({"arbiter": _pool("arbiter", counts["arbiters"])} if counts["arbiters"] else {}),
    }


def _pool(name: str, replicas: int) -> dict[str, Any]:
    return {"name": name, "replicas": replicas, "platform": {"baremetal": {}}}


def _is_control_plane(node: dict[str, Any]) -> bool:
    return bool(node["role"] == Role.CONTROL_PLANE)


def _fence(node: dict[str, Any]) -> dict[str, Any]:
    """Fence agents switch power: they support neither virtual media nor our CA. IPMI has been refused."""
    _scheme, _plus, url = node["bmc"]["address"].partition("+")
    return {"hostName": node["name"], "address": f"redfish+{url}", "certificateVerification": "Disabled"}


def _trust(bundle: str | None, release: Release) -> dict[str, Any]:
    if not bundle:
        return {}
    always = knows(release, "additionalTrustBundlePolicy")
    return {"additionalTrustBundle": bundle, **({"additionalTrustBundlePolicy": "Always"} if always else {})}


def _options(own: dict[str, Any], release: Release) -> dict[str, Any]:
    """From the keys of lab_spec.install. The model refuses each for a release that does not support it."""
    sources = "imageDigestSources" if knows(release, "imageDigestSources") else "imageContentSources"
    options = {
        "proxy": _proxy(own.get("proxy")),
        sources: own.get("image_mirrors"),
        "fips": own.get("fips"),
        "capabilities": _capabilities(own.get("capabilities")),
        "cpuPartitioningMode": "AllNodes" if own.get("cpu_partitioning") else None,
    }
    return {name: value for name, value in options.items() if value}


def _proxy(own: dict[str, Any] | None) -> dict[str, Any] | None:
    if own is None:
        return None
    named = {"httpProxy": own["http"], "httpsProxy": own["https"], "noProxy": ",".join(own["no_proxy"])}
    return {name: value for name, value in named.items() if value}


def _capabilities(own: dict[str, Any] | None) -> dict[str, Any] | None:
    if own is None:
        return None
    more = {"additionalEnabledCapabilities": list(own["additional"])} if own["additional"] else {}
    return {"baselineCapabilitySet": own["baseline"], **more}
