"""The BMC service's package and the role that installs it are of one mind."""

from __future__ import annotations

import re

import yaml
from support.checkout import ROOT

PROJECT = ROOT / "bmc"


def test_the_role_installs_the_whole_package() -> None:
    named = yaml.safe_load((ROOT / "roles/bmc_emulation/vars/main.yml").read_text(encoding="utf-8"))
    package = PROJECT / "nometal_bmc"
    there = {str(file.parent.relative_to(package)) for file in package.rglob("*.py")}
    assert sorted(named["bmc_emulation_directories"]) == sorted(there)
    patterns = {f"nometal_bmc/{name}/*.py".replace("/./", "/") for name in there}
    example = (ROOT / "plugins/modules/bmc_software.py").read_text(encoding="utf-8")
    assert set(re.findall(r"^ +- (nometal_bmc/.*)$", example, re.MULTILINE)) == patterns


def test_both_have_one_version() -> None:
    version = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
    assert f'\nversion = "{version}"\n' in (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nVERSION = "{version}"\n' in (PROJECT / "nometal_bmc/config/__init__.py").read_text(encoding="utf-8")
