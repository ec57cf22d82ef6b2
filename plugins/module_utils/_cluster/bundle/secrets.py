# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The secrets of an installation that are known, so that nothing tells them. Nothing else is done with them."""

from __future__ import annotations

import base64
import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import credentials
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import yaml_text
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import runner
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

try:
    import yaml
except ImportError:  # what looks like a secret is found without it
    yaml = None  # type: ignore[assignment]  # mypy takes the name for the module alone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths

SECRET_KEYS = re.compile(r"pass|secret|token|private|(^|[-_.])(auth|key|key-data)$", re.IGNORECASE)
LOGIN = re.compile(r"://[^/\s:@]*:(?P<password>[^/\s@]+)@")


def given(config: Mapping[str, Any], secret_config: Mapping[str, Any], manifests: Iterable[str]) -> list[str]:
    """What the configuration's keys do not tell to be secret, to be noted. What its public part says as well is not."""
    public = json.dumps(config, ensure_ascii=False)
    found = {*_leaves(secret_config), *(secret for text in manifests for secret in _of_manifests(text))}
    return sorted(secret for secret in found if secret not in public)


def known(paths: Paths, bmc_home: Path | None = None) -> set[str]:
    """bmc_home: for accounts of BMCs of which the configuration says nothing."""
    config = _yaml(paths.config)
    environment = _json(paths.directory / runner.PLAN).get("environment", {})
    found = {
        *_of_pull_secret(str(config.get("pullSecret", ""))),
        *_leaves(_json(paths.secrets)),
        *_below_secret_keys(config),
        *_below_secret_keys(environment),
        *_below_secret_keys(_yaml(paths.kubeconfig)),
        *(_of_bmcs(credentials.file_of(bmc_home, paths.lab)) if bmc_home else ()),
        _text(paths.password).strip(),
    }
    logins = (LOGIN.search(text) for text in {*found, *_leaves(environment)})
    found.update(login["password"] for login in logins if login)
    return {secret for secret in found if secret}


def _of_manifests(text: str) -> Iterator[str]:
    for manifest in yaml_text.documents_in(text, "A manifest"):
        if isinstance(manifest, dict) and manifest.get("kind") == "Secret":
            yield from _leaves(manifest.get("stringData"))
            for encoded in _leaves(manifest.get("data")):
                yield encoded
                with suppress(ValueError):  # neither Base64 nor text in it
                    yield base64.b64decode(encoded).decode()


def _of_pull_secret(text: str) -> Iterator[str]:
    yield text
    with suppress(ValueError, AttributeError):
        for login in json.loads(text)["auths"].values():
            yield from _leaves(login)
            yield base64.b64decode(login.get("auth", "")).decode(errors="replace").partition(":")[2]


def _of_bmcs(path: Path) -> Iterator[str]:
    with suppress(OperatorError):
        yield from (login.password for login in credentials.read(path).values())


def _leaves(tree: Any) -> Iterator[str]:
    for branch in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _leaves(branch)
    if isinstance(tree, str):
        yield tree


def _below_secret_keys(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        for key, branch in tree.items():
            yield from _leaves(branch) if SECRET_KEYS.search(str(key)) else _below_secret_keys(branch)
    elif isinstance(tree, list):
        for branch in tree:
            yield from _below_secret_keys(branch)


def _yaml(path: Path) -> Mapping[str, Any]:
    if yaml is not None:
        with suppress(yaml.YAMLError):
            found = yaml.safe_load(_text(path))
            return found if isinstance(found, dict) else {}
    return {}


def _json(path: Path) -> dict[str, Any]:
    with suppress(ValueError):
        found = json.loads(_text(path))
        return found if isinstance(found, dict) else {}
    return {}


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""
