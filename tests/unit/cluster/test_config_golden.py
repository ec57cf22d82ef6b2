# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""install-config.yaml of every kind of lab for every release: whole for the first, and then what changes.

After a change that is meant: NOMETAL_UPDATE_GOLDEN=1 pytest tests/unit/cluster -k config, and look at the difference.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import installer_rules
from unit.cluster.config_samples import CERTIFICATE, LABS, RELEASES, SSH_KEY, complete, spec, version_of

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.install_config import install_config
from ansible_collections.nometal.ipi.plugins.module_utils._core.problems import LabSpecError
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", LABS)
def test_install_config_of_every_release(name: str) -> None:
    made = "".join(_written(name))
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("NOMETAL_UPDATE_GOLDEN"):
        golden.write_text(made)
    assert made == golden.read_text()


def _written(name: str) -> Iterator[str]:
    before: dict[str, Any] | None = None
    told = [(f"{release[0]}.{release[1]}", _config(name, release)) for release in RELEASES]
    for same, group in itertools.groupby(told, key=lambda item: item[1]):
        releases = [release for release, _config in group]
        yield f"=== {releases[0]}{f' to {releases[-1]}' if len(releases) > 1 else ''}\n"
        if isinstance(same, str):
            yield f"{same}\n"
        else:
            yield from [yaml.safe_dump(same, sort_keys=False, width=150)] if before is None else _changes(before, same)
            before = same


def _config(name: str, release: tuple[int, int]) -> dict[str, Any] | str:
    try:
        lab = lab_model(spec(name, version_of(release)))
    except LabSpecError as error:
        keys = (finding.subject.removeprefix("lab_spec.") for finding in error.findings)
        return f"refused for {', '.join(keys)}"
    given = {"bmc_ca": CERTIFICATE, "trust_bundle": CERTIFICATE} if name == "wishes" else {}
    config = install_config(lab, ssh_key=SSH_KEY, **given)
    assert installer_rules.problems(complete(config), release) == []
    shown: dict[str, Any] = json.loads(json.dumps(config).replace(json.dumps(CERTIFICATE), '"(PEM)"'))
    return shown


def _changes(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    old, new = dict(_leaves(before)), dict(_leaves(after))
    yield from (f"- {path}: {old[path]}\n" for path in old if old[path] != new.get(path))
    yield from (f"+ {path}: {new[path]}\n" for path in new if new[path] != old.get(path))


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _leaves(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for number, item in enumerate(value):
            yield from _leaves(item, f"{path}[{number}]")
    else:
        yield path, json.dumps(value)
