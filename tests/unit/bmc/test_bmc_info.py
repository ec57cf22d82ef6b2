"""What the bmc_info module says of files that are wrong or missing; a running service is asked elsewhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.modules import bmc_info

if TYPE_CHECKING:
    from pathlib import Path

UUID = "07cead2f-f762-5578-a5c9-a377314b4257"
SYSTEM = {"uuid": UUID, "name": "demo-worker-0"}
IPMI = {"uuid": UUID, "name": "demo-worker-0", "addresses": ["172.22.0.1", "192.168.126.1"], "port": 6230}
CONFIG: dict[str, Any] = {
    "systems": [SYSTEM],
    "listen": [{"address": "127.0.0.1", "port": 1}],
    "tls": {"certificate": "server.pem"},
    "ipmi": [],
}
LOGINS = {"operator": {"username": "operator", "password": "one"}}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "demo").mkdir()
    put(tmp_path, CONFIG, LOGINS)
    return tmp_path


def put(home: Path, config: object, logins: object) -> None:
    (home / "demo/config.json").write_text(json.dumps(config))
    (home / "demo/credentials.json").write_text(json.dumps(logins))


def refusal(home: Path | str, lab: str = "demo") -> str:
    with pytest.raises(OperatorError) as refused:
        bmc_info.run({"home": str(home), "lab": lab})
    return str(refused.value)


@pytest.mark.parametrize("lab", ["", ".", "../demo", "demo/../demo", "Demo"])
def test_what_is_no_name_of_a_lab_is_refused(home: Path, lab: str) -> None:
    assert refusal(home, lab).startswith("lab: must be lower case letters")
    assert refusal(home, lab).endswith(f"(got '{lab}').")
    assert refusal("bmc") == "home: must be an absolute path (got 'bmc')."


def test_a_lab_without_bmcs_is_told(home: Path) -> None:
    assert refusal(home, "other") == "Lab other has no BMCs on this host. Run playbooks/bmc.yml."


@pytest.mark.parametrize(
    ("config", "logins", "said"),
    [
        ([], LOGINS, "config.json or"),
        ({**CONFIG, "systems": [{}]}, LOGINS, "config.json or"),
        (CONFIG, {}, "credentials.json has been damaged"),
        (CONFIG, {"operator": {}}, "credentials.json: entry operator has no username"),
        (CONFIG, LOGINS, "tls/ca.pem cannot be used"),
    ],
)
def test_damage_is_told_with_its_remedy(home: Path, config: object, logins: object, said: str) -> None:
    put(home, config, logins)
    assert said in refusal(home)


def test_an_ipmi_node_is_told_by_the_address_that_clients_use(home: Path) -> None:
    put(home, {**CONFIG, "listen": [], "tls": None, "ipmi": [IPMI]}, {})
    [node] = bmc_info.run({"home": str(home), "lab": "demo"})["nodes"]
    assert (node["address"], node["power"], node["trouble"]) == ("ipmi://172.22.0.1:6230", None, "")
