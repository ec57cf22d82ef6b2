"""The status of a lab on its host: before it is made, as it stands, and with parts of it away. It changes nothing."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from support import checkout, lab_host, made_lab, modules, snapshot
from support.checkout import run_playbook
from support.failures import ending

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.lab_host import LabHost

DOCUMENT = re.compile(r"^\{$.*?^\}$", re.MULTILINE | re.DOTALL)
SERVICE = "nometal-bmc-rehearsal.service"


@pytest.fixture(scope="module")
def host() -> Iterator[LabHost]:
    with made_lab.start() as started:
        yield started


def status(host: LabHost, **options: Any) -> dict[str, Any]:
    result = modules.run_in(host, "lab_status", {"lab": "rehearsal", **options})
    assert not result["failed"], result
    return dict(result["status"])


def codes(told: dict[str, Any]) -> set[str]:
    return {finding["code"] for finding in told["findings"]}


def test_the_playbook_shows_one_screen_or_json_and_changes_nothing(host: LabHost, tmp_path: Path) -> None:
    host.run("virsh start rehearsal-worker-0")
    before, inventory = snapshot.take(host), checkout.inventory(host, tmp_path)
    shown = run_playbook("status", inventory)
    assert shown.returncode == 0, ending(shown.stdout)
    assert "it is made and was not rehearsed; 1 of 4 nodes on\n" in shown.stdout
    assert re.search(r"^  worker-0 +worker +on +192\.168\.126\.30 ", shown.stdout, re.MULTILINE)
    assert re.search(r"^  make rehearse LAB=\S+ +# rehearse the installation$", shown.stdout, re.MULTILINE)
    assert " changed=0 " in shown.stdout
    assert snapshot.take(host).diff(before) == ""

    [document] = DOCUMENT.findall(run_playbook("status", inventory, "-e", "output=json").stdout)
    told = json.loads(document)
    assert (told["state"], told["findings"], told["bmcs"]["state"]) == ("made", [], "answers")
    assert {network["state"] for network in told["networks"]} == {"active"}
    powers = {node["name"]: node["power"] for node in told["nodes"]}
    assert powers == {**dict.fromkeys(powers, "off"), "worker-0": "on"}
    assert all(host.run(["test", "-f", node["console"]]) for node in told["nodes"] if node["power"] == "on")
    host.run(["test", "-f", told["bmcs"]["credentials"]])
    host.run("virsh destroy rehearsal-worker-0")


def test_by_name_alone_it_reads_what_the_host_has_recorded(host: LabHost) -> None:
    told = status(host)
    assert (told["state"], told["domain"], len(told["nodes"])) == ("made", "rehearsal.lab.example.test", 4)
    assert told["storage"]["is_there"]
    assert status(host, lab="another")["state"] == "absent"


def test_a_run_that_fails_ends_with_the_summary(host: LabHost, tmp_path: Path) -> None:
    failed = run_playbook("nodes", checkout.inventory(host, tmp_path), "-e", "node_vms_pool=missing")
    assert failed.returncode != 0
    before, headline, after = failed.stdout.partition("Lab rehearsal (rehearsal.lab.example.test) on lab: it is made")
    assert "fatal: [hypervisor]" in before, ending(failed.stdout)
    assert headline
    assert re.search(r"^  ansible-playbook playbooks/nodes\.yml -i \S+ +# run it again, once ", after, re.MULTILINE)
    host.run("rm /run/nometal/locks/rehearsal")  # which it leaves to the next run


def test_what_is_away_is_found_and_the_next_run_offered(host: LabHost) -> None:
    host.run(f"systemctl stop {SERVICE} && virsh net-destroy nometal-rehearsal")
    host.run("virsh undefine --nvram rehearsal-worker-0")
    told = status(host)
    assert told["state"] == "partial"
    assert codes(told) == {"network.inactive", "bmc.silent", "node.missing"}
    assert told["next"][0]["command"] == "ansible-playbook nometal.ipi.site -i INVENTORY"


def test_without_libvirt_the_rest_is_shown(host: LabHost) -> None:
    host.run("systemctl stop libvirtd.socket libvirtd-ro.socket libvirtd-admin.socket libvirtd.service")
    told = status(host)
    assert (told["state"], told["networks"]) == ("unknown", [])
    assert "libvirt.silent" in codes(told)
    assert told["storage"]["is_there"]


def test_a_run_that_was_killed_is_named(host: LabHost) -> None:
    record = {
        "controller": {
            "name": "laptop",
            "machine": "",
            "boot": "",
            "pid_namespace": "",
            "process": {"pid": 4711, "started": ""},
        },
        "user": "alice",
        "playbook": "playbooks/site.yml",
        "connection": None,
        "host_boot": "an earlier one",
        "taken": 0.0,
        "renewed": 0.0,
    }
    host.run("mkdir -p /run/nometal/locks")
    host.write("/run/nometal/locks/rehearsal", json.dumps(record))
    told = status(host)
    assert told["run"]["going"] is False
    assert "alice@laptop, playbooks/site.yml" in told["run"]["by"]
    assert "run.ended" in codes(told)
    host.run("rm /run/nometal/locks/rehearsal")


@pytest.mark.full
def test_on_a_host_that_has_nothing_a_lab_is_absent(tmp_path: Path) -> None:
    with lab_host.start(layer="bare", compiled=True) as empty:
        shown = run_playbook("status", checkout.inventory(empty, tmp_path))
        assert shown.returncode == 0, ending(shown.stdout)
        assert "nothing of it is on this host" in shown.stdout
        assert "make doctor LAB=" in shown.stdout
