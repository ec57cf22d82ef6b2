"""A lab is removed by what is on its host: by its name, without its lab_spec, and where packages are gone."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support import checkout, lab_host, made_lab, snapshot
from support.checkout import run_playbook
from support.failures import ending

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from subprocess import CompletedProcess

    from support.lab_host import LabHost

BY_NAME = ("--extra-vars", '{"teardown_lab": "rehearsal"}')
PACKAGES = "/usr/lib/python3/dist-packages"
UNITS = "libvirtd.socket libvirtd-ro.socket libvirtd-admin.socket libvirtd.service"
OWN_PYTHON = "/usr/local/bin/own-python"
PURGE = "dpkg --force-depends --purge $(dpkg -l | awk '/libvirt|pyroute|lxml|qemu|dnsmasq/ {print $2}')"
RECORD = "/var/lib/nometal/labs/rehearsal/lab.json"


@pytest.fixture
def host() -> Iterator[LabHost]:
    with made_lab.start() as started:
        yield started


def went_well(run: CompletedProcess[str], changed: str = r"\d+") -> bool:
    recap = rf"^hypervisor .* changed={changed} .*failed=0"
    return run.returncode == 0 and re.search(recap, run.stdout, re.MULTILINE) is not None


def write_hosts(directory: Path, host: LabHost, **variables: Any) -> None:
    hosts = {"hypervisors": {"hosts": {"hypervisor": {**host.inventory_variables(), **variables}}}}
    (directory / "hosts.yml").write_text(yaml.safe_dump(hosts), encoding="utf-8")


def without_spec(host: LabHost, below: Path, lab_yml: str | None) -> Path:
    """The inventory of an operator whose lab.yml is lost, or invalid by today's rules."""
    directory = below / "hosts-alone"
    (directory / "group_vars/all").mkdir(parents=True, exist_ok=True)
    write_hosts(directory, host)
    if lab_yml is not None:
        (directory / "group_vars/all/lab.yml").write_text(lab_yml, encoding="utf-8")
    return directory


@pytest.mark.full
def test_a_host_on_which_nothing_was_installed_is_left_alone(tmp_path: Path) -> None:
    with lab_host.start(layer="bare") as bare:
        before = snapshot.take(bare)
        inventory = checkout.inventory(bare, tmp_path)
        for playbook, arguments in (("teardown", ()), ("teardown", BY_NAME), ("labs", ())):
            run = run_playbook(playbook, inventory, *arguments)
            assert went_well(run, changed="0"), ending(run.stdout)
        assert "No lab has anything on this host" in run.stdout
        assert snapshot.take(bare).diff(before) == ""


def test_a_renamed_or_lost_lab_spec(host: LabHost, tmp_path: Path) -> None:
    """The host and its records say what is to be removed. Damaged records lead to nothing of others."""
    doctor = run_playbook("doctor", checkout.inventory(host, tmp_path, name="renamed"))
    assert doctor.returncode != 0
    assert "make teardown NAME=rehearsal" in " ".join(doctor.stdout.split())

    lost = without_spec(host, tmp_path, None)
    refused = run_playbook("teardown", lost)
    assert refused.returncode != 0
    assert "make teardown NAME=..." in refused.stdout
    listed = run_playbook("labs", lost)
    assert went_well(listed, changed="0"), ending(listed.stdout)
    assert "rehearsal (rehearsal.lab.example.test): recorded" in listed.stdout

    # What a hand has written into the record is no proof of anything.
    host.run("mkdir /srv/mine && touch /srv/mine/file && ip link add mine0 type veth peer name mine1")
    host.run("virsh pool-define-as mine dir --target /srv/mine")
    mine = things_of_mine(host)
    pair = {"name": "mine0", "a": {"name": "mine0"}, "b": {"name": "mine1"}, "mtu": 1500, "state": "present"}
    pool = {"name": "mine", "path": "/srv/mine"}
    host.write(RECORD, json.dumps({"name": "rehearsal", "storage_pool": pool, "veth_pairs": [pair]}))
    invalid = without_spec(host, tmp_path, "lab_spec: {name: 7, nodes: nonsense}\n")
    refused = run_playbook("teardown", invalid)
    assert refused.returncode != 0
    assert "make teardown NAME=..." in refused.stdout
    # The Python that Ansible finds may be one without bindings.
    host.write(OWN_PYTHON, '#!/bin/sh\nexec /usr/bin/python3 -S "$@"\n')
    host.run(f"chmod +x {OWN_PYTHON}")
    write_hosts(invalid, host, ansible_python_interpreter=OWN_PYTHON)
    removed = run_playbook("teardown", invalid, *BY_NAME)
    assert went_well(removed), ending(removed.stdout)
    assert things_of_mine(host) == mine
    host.run(f"rm -r /srv/mine {OWN_PYTHON} && ip link delete mine0 && virsh pool-undefine mine")
    write_hosts(invalid, host)
    assert snapshot.take(host).diff(made_lab.before()) == ""


@pytest.mark.full
def test_what_is_no_name_or_needs_a_lab_spec_is_refused(host: LabHost, tmp_path: Path) -> None:
    lost = without_spec(host, tmp_path, None)
    for arguments, told in (
        (("--extra-vars", '{"teardown_lab": "../rehearsal"}'), "cannot be the name of a lab"),
        (("--extra-vars", "teardown_lab="), "cannot be the name of a lab"),
        ((*BY_NAME, "--extra-vars", "teardown_scope=cluster"), "teardown_scope=cluster needs lab_spec"),
    ):
        refused = run_playbook("teardown", lost, *arguments)
        assert refused.returncode != 0
        assert told in refused.stdout


def things_of_mine(host: LabHost) -> str:
    links = "ip -brief link show mine0; ip -brief link show mine1"
    return host.run(f"ls -lR /srv/mine; {links}; virsh pool-dumpxml mine").stdout


@pytest.mark.full
def test_what_is_there_without_libvirt_goes_and_the_rest_with_it(host: LabHost, tmp_path: Path) -> None:
    """First it is masked, and nothing can ask it or netlink. Then it is uninstalled, with all that it needs."""
    inventory = checkout.inventory(host, tmp_path)
    host.run(f"systemctl mask --now {UNITS}")
    host.run(f"mkdir /srv/away && mv {PACKAGES}/pyroute2 {PACKAGES}/libvirt.py {PACKAGES}/lxml /srv/away/")
    removed = run_playbook("teardown", inventory)
    assert went_well(removed), ending(removed.stdout)
    host.run("! ip -brief link | grep -E '^nm[nb]-|^baremetal'")
    host.run("! ls /etc/systemd/system | grep -E '^nometal-b' && ! ls -d /opt/nometal && ! ls -d /var/lib/nometal/bmc")
    host.run("! ls /etc/libvirt/hooks/nometal.d/*.veth && ! ls /etc/libvirt/hooks/nometal.d/*.firewall")
    assert "libvirt has things of lab rehearsal and cannot be asked to remove them" in removed.stdout
    assert re.search(
        "Of lab rehearsal this stays: .*VM rehearsal-worker-0.*make teardown NAME=rehearsal", removed.stdout
    )
    assert "VM rehearsal-worker-0" in run_playbook("labs", inventory).stdout

    # Then somebody uninstalls what nothing uses any more, as it seems.
    host.run(f"mv /srv/away/* {PACKAGES}/ && rmdir /srv/away")
    host.run(PURGE)
    completed = run_playbook("teardown", inventory, *BY_NAME)
    assert went_well(completed), ending(completed.stdout)
    host.run("! ls /etc/libvirt/qemu/*.xml /etc/libvirt/qemu/networks/*.xml /etc/libvirt/storage/*.xml")
    host.run("! ls -d /var/lib/libvirt/images/* && ! ls -d /var/lib/nometal && ! ls -d /etc/libvirt/hooks/nometal.d")
    host.run("! ip -brief link | grep nm- && ! pgrep dnsmasq")
    assert went_well(run_playbook("teardown", inventory, *BY_NAME), changed="0")
