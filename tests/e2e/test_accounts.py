"""Users and groups of the host: those that others have made are neither changed nor removed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from support import lab_host
from support.checkout import ROOT

if TYPE_CHECKING:
    from support.lab_host import LabHost

MADE = "useradd --system --comment 'BMCs of nometal.ipi' nometal-bmc"
LAB = {"bmc_emulation_lab": "demo", "host_prep_lab": "demo", "bmc_emulation_nodes": []}
BEFORE_THE_LABS = {"nometal.ipi.host_memory": {}, "register": "host_prep_memory"}


def run(host: LabHost, below: Path, *steps: tuple[str, str]) -> str:
    """Parts of roles, by the names of role and file; returns what Ansible shows."""
    (below / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {"host": host.inventory_variables()}}}))
    tasks = [
        {"ansible.builtin.include_role": {"name": f"nometal.ipi.{role}", "tasks_from": part}} for role, part in steps
    ]
    play = {"hosts": "host", "gather_facts": False, "vars": LAB, "tasks": [BEFORE_THE_LABS, *tasks]}
    (below / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    ansible = str(Path(sys.executable).with_name("ansible-playbook"))
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "playbooks/collections")}
    command = [ansible, "-i", str(below / "hosts.yml"), str(below / "play.yml")]
    return subprocess.run(command, env=environment, check=False, text=True, capture_output=True).stdout


def test_a_user_of_others_is_refused_and_stays(tmp_path: Path) -> None:
    with lab_host.start(layer="bare", compiled=True) as host:
        host.run("useradd --system --comment 'their backups' --home-dir /srv/backups --shell /bin/sh nometal-bmc")
        before = host.run("getent passwd nometal-bmc; id nometal-bmc").stdout
        refused = " ".join(run(host, tmp_path, ("bmc_emulation", "main")).split())
        assert "Stage bmc has changed nothing" in refused
        assert "user nometal-bmc is there and was not made by nometal.ipi" in refused
        removed = run(host, tmp_path, ("bmc_emulation", "teardown"))
        assert "Left in place: user nometal-bmc (not made by nometal.ipi)." in removed, removed
        assert host.run("getent passwd nometal-bmc; id nometal-bmc").stdout == before

        host.run(f"userdel nometal-bmc && {MADE}")
        assert "Left in place" not in run(host, tmp_path, ("bmc_emulation", "teardown"))
        assert host.run("getent passwd nometal-bmc", check=False).stdout == ""


def test_the_group_that_was_made_for_the_kvm_device_goes_unless_somebody_is_in_it(tmp_path: Path) -> None:
    with lab_host.start(layer="bare", compiled=True) as host:
        groups = host.run("groupdel kvm; touch /dev/kvm; chmod 600 /dev/kvm; getent group").stdout
        made = run(host, tmp_path, ("host_prep", "host"), ("host_prep", "kvm_device"))
        assert host.run("stat -c '%G %a' /dev/kvm").stdout == "kvm 660\n", made
        host.run("usermod -aG kvm nobody")
        run(host, tmp_path, ("host_prep", "teardown/kvm"))
        assert "nobody" in host.run("getent group kvm").stdout
        host.run("gpasswd --delete nobody kvm; usermod --gid kvm nobody")
        run(host, tmp_path, ("host_prep", "teardown/kvm"))
        assert host.run("getent group kvm", check=False).returncode == 0
        host.run("usermod --gid nogroup nobody")
        removed = run(host, tmp_path, ("host_prep", "teardown/kvm"))
        assert host.run("getent group").stdout == groups, removed


def test_a_group_for_the_kvm_device_that_was_there_is_not_noted(tmp_path: Path) -> None:
    with lab_host.start(layer="bare", compiled=True) as host:
        host.run("getent group kvm || groupadd --system kvm; touch /dev/kvm; chmod 600 /dev/kvm")
        run(host, tmp_path, ("host_prep", "host"), ("host_prep", "kvm_device"))
        assert "groups" not in host.read("/var/lib/nometal/host.json")
        run(host, tmp_path, ("host_prep", "teardown/kvm"))
        assert host.run("getent group kvm; stat -c '%G %a' /dev/kvm").stdout.endswith("root 600\n")
