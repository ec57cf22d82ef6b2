"""Artifacts of a job of AWX have every hypervisor of a lab."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from support.checkout import ROOT

HOSTS = ("hv1", "hv2")
DOCTOR = yaml.safe_load((ROOT / "roles/host_prep/tasks/doctor.yml").read_text(encoding="utf-8"))
[KEEP] = [task for task in DOCTOR if "ansible.builtin.set_stats" in task]


def artifacts(below: Path, *tasks: dict[str, Any]) -> dict[str, Any]:
    found = {"blockers": ["{{ 'of ' ~ inventory_hostname }}"], "checks": [{"check": "kvm"}]}
    play = {
        "hosts": "all",
        "gather_facts": False,
        "vars": {
            "host_prep_examination": found,
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
        },
        "tasks": tasks,
    }
    (below / "play.json").write_text(json.dumps([play]), encoding="utf-8")
    done = subprocess.run(
        [Path(sys.executable).with_name("ansible-playbook"), below / "play.json", "-i", ",".join(HOSTS)],
        cwd=below,
        env={
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "playbooks/collections"),
            "ANSIBLE_SHOW_CUSTOM_STATS": "true",
        },
        check=True,
        text=True,
        capture_output=True,
    )
    [shown] = re.findall(r"^\s*RUN: (\{.*\})$", done.stdout, re.MULTILINE)
    return dict(json.loads(shown))


def test_the_doctor_keeps_the_findings_of_each_host(tmp_path: Path) -> None:
    kept = artifacts(tmp_path, KEEP)["nometal_doctor"]
    assert kept == {host: {"blockers": [f"of {host}"], "checks": [{"check": "kvm"}]} for host in HOSTS}


def test_the_status_keeps_the_state_of_each_host(tmp_path: Path) -> None:
    status = {"lab": "nowhere", "home": str(tmp_path), "output": "summary"}
    once = {"nometal.ipi.lab_status": status}
    named = {"nometal.ipi.lab_status": {**status, "host": "{{ inventory_hostname }}"}}
    kept = artifacts(tmp_path, once, named)["nometal_lab"]
    assert {host: about["lab"] for host, about in kept.items()} == dict.fromkeys(HOSTS, "nowhere")
