# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Add secrets to install-config.yaml and remove them, on the managed host only."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any, Protocol

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.contradictions import contradictions
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.merge import merged
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.reading import entries
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.secrecy import is_secret_key, is_secret_text

HIDDEN = "(hidden)"


class Login(Protocol):
    @property
    def username(self) -> str: ...

    @property
    def password(self) -> str: ...


def with_secrets(
    config: dict[str, Any], *, pull_secret: str, logins: Mapping[str, Login], extra: dict[str, Any]
) -> dict[str, Any]:
    """logins: by name of the host. extra: the operator's vaulted part, merged last."""
    result: dict[str, Any] = copy.deepcopy(config)
    result["pullSecret"] = checked_pull_secret(pull_secret)
    for host in entries(result, "platform.baremetal.hosts"):
        _log_in(host.setdefault("bmc", {}), host["name"], logins)
    for credential in entries(result, "controlPlane.fencing.credentials"):
        _log_in(credential, _fenced(result, credential), logins)
    complete: dict[str, Any] = merged(result, extra)
    errors = list(map(str, contradictions(result, complete)))
    if errors:
        raise OperatorError("\n".join(["The secret part of install-config.yaml contradicts the lab:", *errors]))
    return complete


def _fenced(config: dict[str, Any], credential: Mapping[str, Any]) -> str:
    """The name of the host, which may be given by its MAC."""
    hosts = entries(config, "platform.baremetal.hosts")
    by_mac = [host["name"] for host in hosts if host["bootMACAddress"] == credential.get("macAddress")]
    return str(credential.get("hostName") or (by_mac or [None])[0])


def _log_in(bmc: dict[str, Any], host: str, logins: Mapping[str, Login]) -> None:
    login = logins.get(host)
    if login is None:
        raise OperatorError(f"The BMC of {host} has no login: run playbooks/bmc.yml, which makes one for every node.")
    bmc["username"], bmc["password"] = login.username, login.password


def checked_pull_secret(pull_secret: str) -> str:
    """As the installer needs it: JSON in one line."""
    advice = "use the whole text, as Red Hat's page or the registry gives it"
    try:
        read = json.loads(pull_secret)
    except ValueError:
        raise OperatorError(f"The pull secret must be JSON: {advice}.") from None
    auths = read.get("auths") if isinstance(read, dict) else None
    if not isinstance(auths, dict) or not auths:
        raise OperatorError(f"The pull secret must have auths: {advice}.")
    return json.dumps(read, separators=(",", ":"))


def without_secrets(config: Any) -> Any:
    """For showing and comparing: every secret is replaced by the same word."""
    if isinstance(config, Mapping):
        return {name: HIDDEN if is_secret_key(name) else without_secrets(item) for name, item in config.items()}
    if isinstance(config, list):
        return [without_secrets(item) for item in config]
    return HIDDEN if isinstance(config, str) and is_secret_text(config) else config
