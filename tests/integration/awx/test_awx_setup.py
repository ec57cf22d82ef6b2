"""Role awx_setup by the real modules of collection awx.awx, against an API of ours with the rules of AWX."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import ansible_package, awx_surveys, stand_in_awx
from support.checkout import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.stand_in_awx import StandInAwx

PULL = '{"auths":{"registry.example.test":{"auth":"c2VjcmV0LW9mLXRoZS10ZXN0"}}}'
SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIexample core"
CONFIG = {"proxy": {"httpProxy": "http://user:password-of-the-test@proxy.example.test:3128"}}
GIVEN = {
    "awx_setup_execution_environment_image": "registry.example.test/nometal/ee:1",
    "awx_setup_machine_credential": "hypervisor",
    "awx_setup_notifications_error": ["mail"],
    "awx_setup_operators": "operators",
    "awx_setup_pull_secret": PULL,
    "awx_setup_secret_config": CONFIG,
    "awx_setup_ssh_key": SSH_KEY,
}
SECRETS = ("c2VjcmV0LW9mLXRoZS10ZXN0", "password-of-the-test")
TEMPLATES = ["doctor", "install", "rehearse", "site", "start", "status", "stop", "teardown"]


@dataclass
class Setup:
    awx: StandInAwx
    below: Path

    def run(self, **variables: Any) -> str:
        given = self.below / "given.json"
        given.write_text(json.dumps({**GIVEN, **variables}), encoding="utf-8")
        paths = [ROOT / "playbooks/collections", ansible_package.collections("awx")]
        done = subprocess.run(
            [
                Path(sys.executable).with_name("ansible-playbook"),
                "playbooks/awx.yml",
                "-e",
                f"@{given}",
            ],
            cwd=ROOT,
            env={**os.environ, **self.awx.environment(), "ANSIBLE_COLLECTIONS_PATH": ":".join(map(str, paths))},
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert done.returncode == 0, done.stdout
        assert not any(secret in done.stdout for secret in SECRETS)
        return done.stdout


def with_what_others_have(awx: StandInAwx) -> None:
    awx.playbooks = [f"playbooks/{path.name}" for path in (ROOT / "playbooks").glob("*.yml")]
    organization = awx.answer("POST", "/api/v2/organizations/", {"name": "others"})[1]["id"]
    kind = {"name": "Machine", "kind": "net", "managed": True}
    machine = awx.answer("POST", "/api/v2/credential_types/", kind)[1]["id"]
    credential = {"name": "hypervisor", "organization": organization, "credential_type": machine}
    awx.answer("POST", "/api/v2/credentials/", credential)
    awx.answer("POST", "/api/v2/notification_templates/", {"name": "mail", "organization": organization})
    awx.changes.clear()


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    """In which the role has run once."""
    with stand_in_awx.start() as awx:
        with_what_others_have(awx)
        made = Setup(awx, tmp_path_factory.mktemp("awx"))
        made.run()
        yield made


def test_all_objects_are_there(setup: Setup) -> None:
    awx = setup.awx
    assert [item["name"] for item in awx.all("job_templates")] != []
    assert sorted(item["name"].removeprefix("nometal ") for item in awx.all("job_templates")) == TEMPLATES
    site = awx.named("job_templates", "nometal site")
    assert site["playbook"] == "playbooks/site.yml"
    assert awx.names_of(site, "credentials") == ["hypervisor", "nometal installation", "nometal registries and BMCs"]
    assert awx.names_of(site, "notification_templates_error") == ["mail"]
    assert awx.names_of(awx.named("job_templates", "nometal stop"), "credentials") == ["hypervisor"]
    source = awx.named("inventory_sources", "nometal project")
    assert (source["source_path"], source["update_on_launch"]) == ("inventory/ha", True)
    assert awx.named("projects", "nometal")["scm_update_on_launch"] is True
    assert [item["enabled"] for item in awx.all("schedules")] == [False]


def test_the_workflow_fails_with_each_of_its_jobs(setup: Setup) -> None:
    nodes = ("doctor", "site", "report")
    assert {node: setup.awx.follow(node, "success") for node in nodes} == {
        "doctor": ["site"],
        "site": ["report"],
        "report": [],
    }
    assert [node for node in nodes if not setup.awx.fails_with(node)] == []


RIGHTS = {
    ("job_template", "execute_role"),
    ("workflow_job_template", "execute_role"),
    ("inventory", "read_role"),
}


def rights(awx: StandInAwx, team: str) -> set[tuple[str, str]]:
    number = awx.named("teams", team)["id"]
    return {
        (item["type"], role)
        for kind in ("job_templates", "workflow_job_templates", "inventories")
        for item in awx.all(kind)
        for role, about in item["summary_fields"]["object_roles"].items()
        if number in awx.holders.get(about["id"], [])
    }


def test_operators_may_run_but_not_edit(setup: Setup) -> None:
    assert rights(setup.awx, "operators") == RIGHTS


def test_former_operators_may_nothing_any_more(setup: Setup, tmp_path: Path) -> None:
    """The team of another set of objects in the same organization stays."""
    with stand_in_awx.start(like=setup.awx) as awx:
        team = {"name": "of-another-set", "description": "Made by nometal.ipi.awx_setup for another"}
        organization = awx.named("organizations", "nometal")["id"]
        awx.answer("POST", "/api/v2/teams/", {**team, "organization": organization})
        changed = Setup(awx, tmp_path)
        changed.run(awx_setup_operators="others")
        assert (rights(awx, "operators"), rights(awx, "others")) == (set(), RIGHTS)
        changed.run(awx_setup_operators="")
        assert rights(awx, "others") == set()
        changed.run(awx_setup_operators="", awx_setup_state="absent")
        assert [team["name"] for team in awx.all("teams")] == ["of-another-set"]


def test_a_job_gets_answers_and_secrets_as_variables(setup: Setup) -> None:
    variables = setup.awx.variables("nometal site", {"lab_spec_nodes_workers_count": 2, "lab_spec_name": "demo"})
    assert variables["ipi_install_pull_secret"] == PULL
    assert variables["ipi_install_ssh_key"] == SSH_KEY
    assert json.loads(variables["ipi_install_secret_config"]) == CONFIG
    assert {variables["lab_spec_name"], variables["lab_spec_nodes_workers_count"]} == {"demo", 2}
    assert variables["lab_spec_base_domain"] == ""
    assert "ipi_install_pull_secret" not in setup.awx.variables("nometal stop", {})


def test_a_lab_is_removed_only_if_it_is_named_twice(setup: Setup) -> None:
    with pytest.raises(awx_surveys.SurveyError, match="teardown_lab is missing; teardown_confirmation is missing"):
        setup.awx.variables("nometal teardown", {})


def test_a_second_run_changes_nothing(setup: Setup) -> None:
    setup.awx.changes.clear()
    assert "changed=0 " in setup.run()
    assert setup.awx.changes == []


def test_it_is_removed_and_what_others_have_stays(setup: Setup, tmp_path: Path) -> None:
    with stand_in_awx.start(like=setup.awx) as awx:
        copied = Setup(awx, tmp_path)
        copied.run(awx_setup_state="absent", awx_setup_operators="")
        left = [(kind, item["name"]) for kind in stand_in_awx.KINDS for item in awx.all(kind)]
        assert left == [
            ("organizations", "others"),
            ("credential_types", "Machine"),
            ("credentials", "hypervisor"),
            ("notification_templates", "mail"),
        ]
        assert "changed=0 " in copied.run(awx_setup_state="absent")


def test_what_others_have_in_its_organization_stays(setup: Setup, tmp_path: Path) -> None:
    with stand_in_awx.start(like=setup.awx) as awx:
        organization = awx.named("organizations", "nometal")["id"]
        theirs = {
            "execution_environments": {"name": "theirs", "image": "registry.example.test/theirs/ee:1"},
            "applications": {"name": "their portal"},
            "notification_templates": {"name": "slack"},
        }
        for kind, fields in theirs.items():
            awx.answer("POST", f"/api/v2/{kind}/", {**fields, "organization": organization})
        for kind in ("projects", "inventories"):
            awx.answer("PATCH", awx.named(kind, "nometal")["url"], {"description": "theirs"})
        Setup(awx, tmp_path).run(awx_setup_state="absent")
        left = [(kind, item["name"]) for kind in stand_in_awx.KINDS for item in awx.all(kind)]
        assert left == [
            ("organizations", "others"),
            ("organizations", "nometal"),
            ("execution_environments", "theirs"),
            ("applications", "their portal"),
            ("credential_types", "Machine"),
            ("credentials", "hypervisor"),
            ("notification_templates", "mail"),
            ("notification_templates", "slack"),
            ("projects", "nometal"),
            ("inventories", "nometal"),
            ("inventory_sources", "nometal project"),
        ]
