"""A lab on two hypervisors: what the first one knows of its cluster counts on the other one, too."""

from __future__ import annotations

import json
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

VM = """<domain type='qemu'><name>demo-worker-0</name><memory unit='MiB'>64</memory>
<metadata><vm xmlns='urn:nometal:ipi' owner='demo' pool='nometal-demo'/></metadata><os><type>hvm</type></os></domain>"""
LAB = {"name": "demo", "hypervisors": ["first", "second"], "nodes": [], "storage_pool": {"name": "nometal-demo"}}


def nodes(first: LabHost, second: LabHost, below: Path) -> subprocess.CompletedProcess[str]:
    """The stage nodes on the second one alone, told to remove VMs that the lab no longer has."""
    hosts = {"first": first.inventory_variables(), "second": second.inventory_variables()}
    (below / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}), encoding="utf-8")
    play = {
        "hosts": "second",
        "gather_facts": False,
        "vars_files": [str(ROOT / "playbooks/vars/stages.yml")],
        "vars": {"lab": LAB, "node_vms_exclusive": True},
        "tasks": [{"ansible.builtin.import_role": {"name": "nometal.ipi.node_vms"}}],
    }
    (below / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
    ansible = str(Path(sys.executable).with_name("ansible-playbook"))
    command = [ansible, "-i", str(below / "hosts.yml"), str(below / "play.yml")]
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "playbooks/collections")}
    return subprocess.run(command, env=environment, check=False, text=True, capture_output=True)


def test_nodes_of_an_installed_cluster_are_kept_on_every_hypervisor(tmp_path: Path) -> None:
    with lab_host.start(layer="bare") as first, lab_host.start(layer="prepared") as second:
        noted = {"commands": ["create cluster"], "current": "create cluster", "version": "4.20.3", "started": 1.0}
        first.write("/var/lib/nometal/install/demo/run.json", json.dumps({**noted, "ended": 2.0, "exit_code": 0}))
        second.run(["virsh", "define", "/dev/stdin"], input=VM)
        second.run(
            "virsh pool-define-as nometal-demo dir --target /var/lib/libvirt/images && virsh pool-start nometal-demo"
        )

        refused = nodes(first, second, tmp_path)
        assert refused.returncode != 0, refused.stdout + refused.stderr
        told = " ".join(refused.stdout.split())
        assert "Lab demo has a cluster (" in told
        assert "/var/lib/nometal/install/demo/cluster on first)" in told
        assert second.run(["virsh", "list", "--all", "--name"]).stdout.split() == ["demo-worker-0"]

        first.run("rm -r /var/lib/nometal/install/demo")
        removed = nodes(first, second, tmp_path)
        assert removed.returncode == 0, removed.stdout + removed.stderr
        assert second.run(["virsh", "list", "--all", "--name"]).stdout.split() == []
