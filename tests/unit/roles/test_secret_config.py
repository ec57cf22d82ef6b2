"""What of install-config.yaml is secret is a mapping, or JSON of one, as credentials of AWX give it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from support.checkout import ROOT

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import job_secrets

CONFIG = {"proxy": {"httpsProxy": "http://me:planted@proxy.example.test:3128"}}


@pytest.mark.parametrize("given", [CONFIG, json.dumps(CONFIG), {}, ""])
def test_both_reach_the_installer(given: Any) -> None:
    tasks = yaml.safe_load((ROOT / "roles/ipi_install/tasks/run.yml").read_text(encoding="utf-8"))
    [text] = [
        task["nometal.ipi.cluster_install"]["secret_config"] for task in tasks if "nometal.ipi.cluster_install" in task
    ]
    templar = Templar(loader=DataLoader(), variables={"ipi_install_secret_config": given})
    filled = templar.template(trust_as_template(text))
    assert job_secrets.mapping_of("secret_config", filled) == (CONFIG if given else {})
