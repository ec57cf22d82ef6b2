"""The job templates of role awx_setup, as AWX runs them, with answers to their surveys."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import checkout, made_lab
from support.awx_job import Jobs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.lab_host import LabHost

PLANTED = "planted-9b1e77"
SECRETS = {
    "ipi_install_pull_secret": f'{{"auths":{{"registry.example.test":{{"auth":"{PLANTED}"}}}}}}',
    "ipi_install_ssh_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFakeKeyOfNobodyFakeKeyOfNobodyFakeKeyOfNob operator",
}
WORKERS = {
    "lab_spec_nodes_workers_count": 2,
    "lab_spec_nodes_workers_disks": "1GiB\r\n\r\n2GiB\r\n",
    "lab_spec_name": " ",
}


@pytest.fixture
def host() -> Iterator[LabHost]:
    """With the lab rehearsal."""
    with made_lab.start() as started:
        yield started


@contextmanager
def jobs_of(host: LabHost) -> Iterator[Jobs]:
    with tempfile.TemporaryDirectory() as below:
        yield Jobs(Path(below), checkout.inventory(host, Path(below)), **SECRETS)


@pytest.fixture
def jobs(host: LabHost) -> Iterator[Jobs]:
    with jobs_of(host) as made:
        yield made


@pytest.fixture(scope="module")
def jobs_that_change_nothing() -> Iterator[Jobs]:
    with made_lab.start() as started, jobs_of(started) as made:
        yield made


def vms(host: LabHost) -> list[str]:
    return sorted(host.run("virsh list --all --name").stdout.split())


@pytest.mark.long
def test_a_lab_by_jobs(jobs: Jobs, host: LabHost) -> None:
    refused = jobs.launch("doctor", {"lab_spec_nodes_workers_memory": "900GiB"})
    assert not refused.succeeded
    assert "memory" in refused.artifacts["nometal_doctor"]["hypervisor"]["blockers"]

    nowhere = jobs.launch("site", WORKERS, "--limit nowhere")
    assert not nowhere.succeeded
    assert "no hosts to target" in nowhere.text

    made = jobs.launch("site", WORKERS)
    assert made.succeeded, made.text
    assert "rehearsal-worker-1" in vms(host)
    assert host.run("virsh domblklist rehearsal-worker-1 | grep -c qcow2").stdout.strip() == "2"
    assert made.artifacts["nometal_lab"]["hypervisor"]["lab"] == "rehearsal"
    assert made.artifacts["nometal_lab"]["hypervisor"]["bmc_accounts"].endswith("/rehearsal/credentials.json")

    of_networks = jobs.launch("site", WORKERS, "--tags network --limit hypervisor")
    assert of_networks.succeeded, of_networks.text
    assert of_networks.changed == 0
    assert "Create the libvirt networks" in " ".join(of_networks.ran())
    assert "Create the VMs" not in " ".join(of_networks.ran())

    told = jobs.launch("status", WORKERS)
    assert told.succeeded, told.text
    assert told.artifacts["nometal_lab"]["hypervisor"]["state"] == made.artifacts["nometal_lab"]["hypervisor"]["state"]

    for limit in ("", "--limit hypervisor"):
        kept = jobs.launch("teardown", {"teardown_lab": "rehearsal", "teardown_confirmation": "ha"}, limit)
        assert not kept.succeeded
        assert "Nothing was removed." in kept.text
    assert vms(host) != []
    removed = jobs.launch("teardown", {"teardown_lab": "rehearsal", "teardown_confirmation": "rehearsal"})
    assert removed.succeeded, removed.text
    assert vms(host) == []
    assert removed.artifacts["nometal_lab"]["hypervisor"]["state"] == "absent"
    assert PLANTED not in jobs.kept()


@pytest.mark.full
@pytest.mark.parametrize("template", ["site", "doctor", "rehearse", "install", "status", "stop", "start"])
def test_each_with_the_defaults_of_its_survey(jobs_that_change_nothing: Jobs, template: str) -> None:
    done = jobs_that_change_nothing.launch(template)
    assert done.succeeded, done.text
    assert PLANTED not in jobs_that_change_nothing.kept()
