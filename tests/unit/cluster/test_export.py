"""The nodes of a lab in the formats of other installers."""

from __future__ import annotations

import base64
import json
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from support import golden, installer_rules
from unit.cluster.config_samples import AUTHS, SSH_KEY, Login, lab_of, version_of

from ansible_collections.nometal.ipi.plugins.module_utils._bmc import credentials
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.export.rack import Rack, interfaces, no_cluster
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.export.resource import FORMATS, LabExport
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._lab import paths
from ansible_collections.nometal.ipi.plugins.module_utils._lab.derive.model import lab_model
from ansible_collections.nometal.ipi.plugins.modules import lab_export

if TYPE_CHECKING:
    from collections.abc import Mapping

GOLDEN = Path(__file__).parent / "golden"
NETWORK = """
    nodes:
      workers: {count: 1}
      spares: {count: 1}
      overrides:
        worker-0:
          root_device_hints: {minSizeGigabytes: 20, rotational: false, model: QEMU}
          network_config: {interfaces: [{name: enp1s0, type: ethernet}, {name: bond0, type: bond}]}
"""
LABS = {
    "three": NETWORK,
    "two-workers": """
        nodes:
          control_plane: {count: 0}
          workers: {count: 2}
          overrides:
            worker-0: {root_device_hints: {deviceName: /dev/sda}}
            worker-1: {root_device_hints: {deviceName: '/dev/disk/by-path/pci-0000:00:01.0-scsi-0:0:0:0'}}
        firmware: uefi-secure
        bmc: {tls: false}
    """,
    "ipmi": """
        nodes: {control_plane: {count: 1}}
        provisioning_network: {}
        bmc: {protocol: ipmi}
        firmware: bios
    """,
    "arbiter-of-two-families": """
        nodes: {control_plane: {count: 2}, arbiters: {count: 1}}
        machine_network: {cidr: 192.168.126.0/24, cidr_v6: 'fd2e:6f44:5dd8::/64', ntp_servers: [192.168.126.1]}
    """,
}


def model(text: str) -> dict[str, Any]:
    return lab_model({"name": "demo", **yaml.safe_load(text)})


def rack(lab: Mapping[str, Any], **given: Any) -> Rack:
    logins: Any = {node["name"]: Login("admin", f"secret-of-{node['name']}") for node in lab["nodes"]}
    return Rack(**{"lab": lab, "logins": logins, "release": (4, 20), **given})


@pytest.mark.parametrize("name", LABS)
def test_files(name: str) -> None:
    given = {"ca_file": "/etc/ironic/bmc-ca.pem", "pull_secret": AUTHS, "ssh_key": SSH_KEY} if name == "three" else {}
    lab = model(LABS[name])
    made: dict[str, str] = {}
    for each in FORMATS.values():
        if not each.missing(lab):
            contents = each.contents(rack(lab, **given))
            assert tuple(contents) == each.names
            made |= contents
    golden.compare("".join(f"=== {file}\n{text}" for file, text in made.items()), GOLDEN / f"export-{name}.txt")


def test_no_file_is_of_another_name_than_teardown_knows() -> None:
    names = [name for each in FORMATS.values() for name in each.names]
    assert sorted([*names, paths.BMC_CA, ".*.new"]) == sorted(paths.KNOWN_OF_EXPORT)


@pytest.mark.parametrize(
    ("nodes", "is_one"),
    [
        ("control_plane: {count: 0}, workers: {count: 1}", False),
        ("control_plane: {count: 1}", False),
        ("control_plane: {count: 2}", False),
        ("control_plane: {count: 2}, arbiters: {count: 1}", True),
        ("control_plane: {count: 2}, arbiters: {count: 2}", False),
        ("control_plane: {count: 2, fencing: true}", True),
        ("control_plane: {count: 3}", True),
        ("control_plane: {count: 3}, arbiters: {count: 1}", False),
        ("control_plane: {count: 5}", True),
        ("control_plane: {count: 6}", False),
    ],
)
def test_of_which_nodes_there_can_be_a_cluster(nodes: str, is_one: bool) -> None:
    assert (no_cluster(model(f"nodes: {{{nodes}}}")) == "") == is_one


@pytest.mark.parametrize("release", [(4, 12), (4, 14), (4, 20), (4, 22), (5, 2)])
def test_the_agent_based_installer_reads_what_it_is_given(release: tuple[int, int]) -> None:
    own = "install: {config: {controlPlane: {hyperthreading: Disabled}}}"
    lab = lab_of(f"nodes: {{workers: {{count: 2}}, spares: {{count: 1}}}}\n{own}", version_of(release))
    files = FORMATS["agent"].contents(rack(lab, release=release, pull_secret=AUTHS))
    config, agent = (yaml.safe_load(files[name]) for name in ("install-config.yaml", "agent-config.yaml"))
    assert config["controlPlane"]["hyperthreading"] == "Disabled"
    assert config["pullSecret"] == AUTHS
    assert [host["role"] for host in agent["hosts"]] == ["master"] * 3 + ["worker"] * 2
    assert agent["apiVersion"] == ("v1alpha1" if release < (4, 14) else "v1beta1")
    # Of hosts with BMCs, which the bare metal installer would miss, it is not given any.
    complaints = installer_rules.problems({**config, "platform": {"baremetal": _with_hosts(config, lab)}}, release)
    assert complaints == []


def _with_hosts(config: dict[str, Any], lab: Mapping[str, Any]) -> dict[str, Any]:
    hosts = [
        {
            "name": node["name"],
            "role": {"control-plane": "master"}.get(node["role"], node["role"]),
            "bmc": {"address": node["bmc"]["address"], "username": "admin", "password": "p"},
            "bootMACAddress": node["boot_mac"],
        }
        for node in lab["nodes"]
        if node["role"] != "spare"
    ]
    return {**config["platform"]["baremetal"], "provisioningNetwork": "Disabled", "hosts": hosts}


@pytest.mark.parametrize(
    ("configured", "names"),
    [
        (None, ["eth0", "eth1"]),
        ({"interfaces": [{"name": "enp2s0", "type": "ethernet"}]}, ["enp2s0", "eth1"]),
        (
            {
                "interfaces": [
                    {"name": "second", "type": "ethernet", "mac-address": "52:54:00:00:00:02"},
                    {"name": "first", "type": "ethernet"},
                ]
            },
            ["first", "second"],
        ),
    ],
)
def test_interfaces_bear_the_names_of_the_network_configuration(configured: Any, names: list[str]) -> None:
    nics = [{"mac": f"52:54:00:00:00:0{number}"} for number in (1, 2)]
    found = interfaces({"network_config": configured, "nics": nics})
    assert [(each["name"], each["macAddress"]) for each in found] == [
        (name, nic["mac"]) for name, nic in zip(names, nics)
    ]


@pytest.fixture
def bmc_home(tmp_path: Path) -> Path:
    """Of lab demo, whose BMCs have logins."""
    directory = tmp_path / "bmc" / "demo"
    (directory / "tls").mkdir(parents=True)
    (directory / "tls/ca.pem").write_text("the CA")
    names = [*(f"worker-{number}" for number in range(2)), *(f"control-plane-{number}" for number in range(3))]
    logins = {f"demo-{name}": credentials.Login("admin", "hidden-word") for name in names}
    (directory / "credentials.json").write_text(credentials.text_of(logins))
    return tmp_path / "bmc"


def run(home: Path, *, check_mode: bool = False, **options: Any) -> dict[str, Any]:
    lab = model("nodes: {control_plane: {count: 0}, workers: {count: 2}}")
    arguments = {
        **dict.fromkeys(("directory", "version", "ca_file", "cluster_image_set", "pull_secret", "ssh_key"), ""),
        "lab": lab,
        "formats": [],
        "namespace": "metal3",
        "bmc_home": str(home),
        **options,
    }
    return LabExport.run(arguments, check_mode=check_mode)


def test_files_are_written_once_for_root_alone(bmc_home: Path, tmp_path: Path) -> None:
    directory = tmp_path / "mine"
    foreseen = run(bmc_home, directory=str(directory), check_mode=True)
    assert not directory.exists()
    made = run(bmc_home, directory=str(directory))
    assert made["steps"] == foreseen["steps"] != []
    assert made["left_out"] == ["agent", "cluster-instance"]
    assert sorted(made["files"]) == sorted(file.name for file in directory.iterdir())
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir()} == {0o600}
    assert "hidden-word" in (directory / "nodes.json").read_text()
    assert "hidden-word" not in json.dumps(made)
    assert not run(bmc_home, directory=str(directory))["changed"]
    again = run(bmc_home, directory=str(directory), formats=["ironic"], ca_file="/etc/bmc-ca.pem")
    assert again["steps"] == [f"write {directory}/nodes.json"]


def test_a_pair_with_fencing_has_it_from_the_agent_based_installer_alone(bmc_home: Path, tmp_path: Path) -> None:
    lab = model("nodes: {control_plane: {count: 2, fencing: true}}")
    made = run(bmc_home, lab=lab, directory=str(tmp_path / "mine"))
    assert made["left_out"] == ["cluster-instance"]
    assert made["left_out_because"] == "a ClusterInstance has no place for fencing of the control plane"
    config = yaml.safe_load((tmp_path / "mine/install-config.yaml").read_text())
    assert [each["password"] for each in config["controlPlane"]["fencing"]["credentials"]] == ["hidden-word"] * 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"directory": "here"}, "must be an absolute path"),
        ({"formats": ["ironic", "agent"]}, "formats: agent must be left out: the control plane must have 3 to 5 nodes"),
        ({"directory": "/dev/null"}, "is not a directory"),
        (
            {"lab": model("nodes: {control_plane: {count: 2, fencing: true}}"), "formats": ["cluster-instance"]},
            "formats: cluster-instance must be left out: a ClusterInstance has no place for fencing",
        ),
        ({"version": "latest"}, r"version: must be a release such as 4\.20 \(got 'latest'\)"),
        ({"version": "4.8"}, r"version: must be a release such as 4\.20 \(got '4\.8'\)"),
        ({"version": "20"}, r"version: must be a release such as 4\.20 \(got '20'\)"),
        ({"pull_secret": "here"}, "The pull secret must be JSON"),
        ({"lab": model("{}"), "formats": ["cluster-instance"], "pull_secret": {}}, "The pull secret must have auths"),
        ({"lab": model("nodes: {workers: {count: 3}}")}, "BMCs of worker-2 have no login: playbooks/bmc.yml"),
    ],
)
def test_what_cannot_be_written_is_refused(bmc_home: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(OperatorError, match=said):
        run(bmc_home, **options)


@pytest.mark.parametrize("given", [AUTHS, json.loads(AUTHS), f"{json.dumps(json.loads(AUTHS), indent=2)}\n"])
def test_a_pull_secret_may_have_been_read_by_ansible_already(bmc_home: Path, tmp_path: Path, given: Any) -> None:
    checked = ArgumentSpecValidator(lab_export.ARGUMENTS).validate({"lab": {}, "pull_secret": given})
    lab, secret = model("{}"), checked.validated_parameters["pull_secret"]
    run(bmc_home, lab=lab, directory=str(tmp_path / "mine"), formats=["agent", "cluster-instance"], pull_secret=secret)
    config = yaml.safe_load((tmp_path / "mine/install-config.yaml").read_text())
    objects = list(yaml.safe_load_all((tmp_path / "mine/cluster-instance.yaml").read_text()))
    [encoded] = [each["data"][".dockerconfigjson"] for each in objects if each["metadata"]["name"] == "pull-secret"]
    assert config["pullSecret"] == base64.b64decode(encoded).decode() == AUTHS


def test_former_files_go_from_the_directory_of_the_lab(
    bmc_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "STATE", tmp_path)
    directory = paths.export_of("demo")
    run(bmc_home, lab=model("{}"))
    former = {"agent-config.yaml", "install-config.yaml", "cluster-instance.yaml", ".nodes.json.new"}
    for name in (".nodes.json.new", "mine.txt"):
        (directory / name).touch()
    (directory / ".mine.new").mkdir()
    before = {file.name for file in directory.iterdir()}
    run(bmc_home, formats=["ironic"])
    assert {file.name for file in directory.iterdir()} | {".nodes.json.new"} == before
    (directory / ".nodes.json.new").touch()
    foreseen = run(bmc_home, check_mode=True)
    assert {file.name for file in directory.iterdir()} == before
    made = run(bmc_home)
    assert made["steps"] == foreseen["steps"]
    assert {step for step in made["steps"] if "remove" in step} == {f"remove {directory / name}" for name in former}
    assert "agent-config.yaml" in foreseen["diff"]["before"]
    assert "agent-config.yaml" not in foreseen["diff"]["after"]
    assert {file.name for file in directory.iterdir()} == before - former
    assert not run(bmc_home)["changed"]


def test_former_files_stay_in_another_directory(bmc_home: Path, tmp_path: Path) -> None:
    directory = tmp_path / "mine"
    run(bmc_home, lab=model("{}"), directory=str(directory))
    run(bmc_home, directory=str(directory))
    assert (directory / "agent-config.yaml").exists()


def test_of_nodes_on_which_a_cluster_is_installed_there_is_a_warning(
    bmc_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "INSTALLS", tmp_path / "install")
    directory = str(tmp_path / "mine")
    assert run(bmc_home, directory=directory)["warnings"] == []
    kubeconfig = paths.paths_of("demo").kubeconfig
    kubeconfig.parent.mkdir(parents=True)
    kubeconfig.touch()
    [said] = run(bmc_home, directory=directory, check_mode=True)["warnings"]
    assert "bare-metal-hosts.yaml names nodes of the cluster that is installed on lab demo" in said
    assert run(bmc_home, directory=directory, formats=["ironic"])["warnings"] == []


def test_before_there_are_bmcs_check_mode_foresees_the_files(tmp_path: Path) -> None:
    foreseen = run(tmp_path, check_mode=True)
    assert f"write {paths.export_of('demo')}/nodes.json" in foreseen["steps"]
