"""The build context of an execution environment, from the collection as it is packed; images are not built."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.checkout import ROOT

VERSION = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
TARBALL = f"nometal-ipi-{VERSION}.tar.gz"
DEFINITION = "execution-environment.yml"


def run(directory: Path, program: str, *arguments: str | Path) -> str:
    command = [Path(sys.executable).with_name(program), *arguments]
    done = subprocess.run(command, cwd=directory, check=False, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `make execution-environment` makes it."""
    below = tmp_path_factory.mktemp("environment")
    shutil.copy(ROOT / DEFINITION, below)
    run(below, "ansible-galaxy", "collection", "build", "--output-path", "build/execution-environment", ROOT)
    run(below, "ansible-builder", "create", "--output-filename", "Containerfile", "--context", "context")
    return below / "context"


@pytest.fixture(scope="module")
def installed(context: Path) -> Path:
    """As the build does, in its directory."""
    target = context.with_name("installed")
    options = ("--requirements-file", "requirements.yml", "--collections-path", target, "--offline")
    run(context / "_build", "ansible-galaxy", "collection", "install", *options)
    return target


def test_the_base_image_and_the_versions_of_ansible_are_those_of_the_definition(context: Path) -> None:
    definition = yaml.safe_load((ROOT / DEFINITION).read_text(encoding="utf-8"))
    lines = (context / "Containerfile").read_text(encoding="utf-8").splitlines()
    assert f'ARG EE_BASE_IMAGE="{definition["images"]["base_image"]["name"]}"' in lines
    assert {line.split()[1] for line in lines if line.startswith("FROM")} <= {"$EE_BASE_IMAGE", "base"}
    assert f'ARG PYPKG="{definition["dependencies"]["python_interpreter"]["package_system"]}"' in lines
    ansible = [definition["dependencies"][each]["package_pip"] for each in ("ansible_core", "ansible_runner")]
    assert f'ARG ANSIBLE_INSTALL_REFS="{" ".join(ansible)}"' in lines
    assert ansible[0] in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()


def test_the_collection_is_in_it_as_it_is_packed(context: Path, installed: Path) -> None:
    assert (context / "_build/collections" / TARBALL).is_file()
    manifest = installed / "ansible_collections/nometal/ipi/MANIFEST.json"
    assert yaml.safe_load(manifest.read_text(encoding="utf-8"))["collection_info"]["version"] == VERSION
    assert not (manifest.with_name(DEFINITION)).exists(), "it names a tarball of a checkout"


def test_what_the_collection_needs_is_found_in_it(installed: Path) -> None:
    found: dict[str, Any] = yaml.safe_load(run(installed, "ansible-builder", "introspect", installed))
    lines = (ROOT / "bindep.txt").read_text(encoding="utf-8").splitlines()
    assert [line.partition("  #")[0] for line in found["system"]] == [
        line for line in lines if not line.startswith("#")
    ]
    assert found["python"] == [], "ansible-core is the environment's own"


@pytest.mark.parametrize("platform", ["rpm", "dpkg"])
def test_an_ssh_client_is_named_for_every_package_manager(platform: str) -> None:
    lines = (ROOT / "bindep.txt").read_text(encoding="utf-8").splitlines()
    assert any(line.startswith("openssh-client") and f"platform:{platform}" in line for line in lines)


def test_the_documented_definition_is_that_of_the_checkout() -> None:
    page = (ROOT / "docs/execution-environment.md").read_text(encoding="utf-8")
    shown = yaml.safe_load(page.partition("```text\n")[2].partition("```")[0])
    own = yaml.safe_load((ROOT / DEFINITION).read_text(encoding="utf-8"))
    own.pop("additional_build_files")
    own["dependencies"]["galaxy"]["collections"] = ["nometal.ipi"]
    assert shown == own
