"""What every role must keep to, told from its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

ROLES = sorted((Path(__file__).parents[3] / "roles").iterdir())


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def options_of(role: Path) -> dict[str, Any]:
    """The options of all entry points of a role; one name means the same in each."""
    entry_points = load(role / "meta" / "argument_specs.yml")["argument_specs"].values()
    return {name: option for entry_point in entry_points for name, option in entry_point.get("options", {}).items()}


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_defaults_are_those_of_the_argument_specs(role: Path) -> None:
    # Ansible does not apply the defaults of argument specs; they are documentation, and must not lie.
    specified = {name: option["default"] for name, option in options_of(role).items() if "default" in option}
    assert load(role / "defaults" / "main.yml") == specified


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_options_without_a_default_are_required(role: Path) -> None:
    for name, option in options_of(role).items():
        assert option.get("required", False) != ("default" in option), name


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_options_bear_the_name_of_the_role(role: Path) -> None:
    assert [name for name in options_of(role) if not name.startswith(f"{role.name}_")] == []


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_families_have_the_same_data(role: Path) -> None:
    families = {path.stem: set(load(path)) for path in (role / "vars").glob("[A-Z]*.yml") if "-" not in path.stem}
    assert len(set(map(frozenset, families.values()))) <= 1, families
    for release in (role / "vars").glob("[A-Z]*-*.yml"):
        assert set(load(release)) <= set.union(*families.values()), release.name


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_task_files_fit_on_a_page(role: Path) -> None:
    long = {
        path.name: lines for path in role.rglob("tasks/**/*.yml") if (lines := len(path.read_text().splitlines())) > 80
    }
    assert long == {}
