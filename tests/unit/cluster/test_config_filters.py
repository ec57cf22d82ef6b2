# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters inside Ansible, with an inventory's own tagged and lazy data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import yaml
from support import installer_rules
from unit.cluster.config_samples import CERTIFICATE, SSH_KEY, complete
from unit.lab.samples import TREE

CONTENT = """{{
  {'config': lab | nometal.ipi.install_config('4.21.' ~ 3, ssh_key=key, bmc_ca=ca, trust_bundle=''),
   'manifests': lab | nometal.ipi.install_manifests(slow_disk=1 == 1)} | to_json
}}"""


def test_inside_ansible(tmp_path: Path) -> None:
    lab_spec = {
        "name": "{{ 'h' ~ 'a' }}",
        "install": {"version": "stable-4.20", "config": {"fips": False}},
        "nodes": {"overrides": {"control-plane-0": {"network_config": {"interfaces": [{"name": "{{ 'eth' ~ 0 }}"}]}}}},
    }
    given = tmp_path / "given.yml"
    given.write_text(
        yaml.safe_dump(
            {"lab_spec": lab_spec, "lab": "{{ lab_spec | nometal.ipi.lab_model }}", "key": SSH_KEY, "ca": CERTIFICATE}
        )
    )
    made = tmp_path / "made.json"
    report = subprocess.run(
        [
            *(str(Path(sys.executable).parent / "ansible"), "hypervisor", "-i", str(TREE / "inventory/rehearsal")),
            *("-m", "ansible.builtin.copy", "-a", json.dumps({"dest": str(made), "content": CONTENT})),
            *("-e", f"@{given}"),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(TREE / "playbooks/collections")},
        cwd=TREE,
    )
    assert report.returncode == 0, report.stdout + report.stderr
    result = json.loads(made.read_text())
    assert installer_rules.problems(complete(result["config"]), (4, 21)) == []
    assert result["config"]["platform"]["baremetal"]["hosts"][0]["networkConfig"] == {"interfaces": [{"name": "eth0"}]}
    assert result["config"]["platform"]["baremetal"]["bmcVerifyCA"] == CERTIFICATE
    assert len(result["manifests"]) == 2
