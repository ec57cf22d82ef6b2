"""What is prepared before the installer runs: YAML, manifests, virtual media, and what it says of mistakes."""

from __future__ import annotations

import base64
import fcntl
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config import (
    installer_errors,
    manifest_files,
    media_tls,
    no_proxy,
    yaml_text,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import (
    job_secrets,
    prepare,
    run,
    running,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._lab import paths
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths
from ansible_collections.nometal.ipi.plugins.module_utils._lab.releases import release_of
from ansible_collections.nometal.ipi.plugins.modules import cluster_install

PASSWORD, TOKEN = "pAsSw0rd-of-the-bmc", "t0ken-of-the-registry"
AUTH = base64.b64encode(f"robot:{TOKEN}".encode()).decode()
PULL_SECRET = json.dumps({"auths": {"registry.example.test": {"auth": AUTH}}})
FULL = {"hosts": [{"name": "master-0", "bmc": {"username": "demo-master-0", "password": PASSWORD}}]}
PROVISIONING = """\
apiVersion: metal3.io/v1alpha1
kind: Provisioning
metadata:
  name: provisioning-configuration
spec:
  provisioningNetwork: Disabled
"""
WHERE = 'failed to fetch Master Machines: failed to load asset "Install Config": invalid "install-config.yaml" file: '


@pytest.mark.parametrize(
    "text", ["1e3", "0o17", "y", "n", "yes", "null", "12", "1.20", "~", "", "a: b", "a\nb\n", "- x"]
)
def test_text_stays_text_for_the_installers_reader(text: str) -> None:
    written = yaml_text.dump({"password": text})
    assert yaml.safe_load(written) == {"password": text}
    if text.isalnum():
        assert written == f'password: "{text}"\n' or f"'{text}'" in written


def test_what_is_plain_is_written_plainly() -> None:
    assert yaml_text.dump({"apiVersion": "v1beta", "replicas": 3}) == "apiVersion: v1beta\nreplicas: 3\n"


def test_broken_yaml_is_told_without_its_text() -> None:
    with pytest.raises(OperatorError, match=r"^Manifest a\.yaml must be valid YAML: .* in line 2\.$") as told:
        yaml_text.documents_in(f"kind: Secret\n\t{PASSWORD}: [", "Manifest a.yaml")
    assert PASSWORD not in str(told.value)


@pytest.mark.parametrize("text", [f"a: *{PASSWORD}", f"a: !{PASSWORD} b", f"a: !{PASSWORD}!x b"])
def test_what_broken_yaml_is_about_is_not_quoted(text: str) -> None:
    with pytest.raises(OperatorError, match=r"^Manifest a\.yaml must be valid YAML: .* in line 1\.$") as told:
        yaml_text.documents_in(text, "Manifest a.yaml")
    assert PASSWORD not in str(told.value)


@pytest.fixture
def assets(tmp_path: Path) -> Path:
    for name in ("manifests/cluster-config.yaml", "openshift/99_baremetal-provisioning-config.yaml"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("apiVersion: v1\nkind: ConfigMap\n")
    return tmp_path


def test_virtual_media_over_http_is_asked_for_where_provisioning_is_described(assets: Path) -> None:
    file = assets / "openshift/99_baremetal-provisioning-config.yaml"
    file.write_text(PROVISIONING)
    media_tls.switch_off(assets)
    spec = {"provisioningNetwork": "Disabled", "disableVirtualMediaTLS": True}
    assert yaml.safe_load(file.read_text()) == {**yaml.safe_load(PROVISIONING), "spec": spec}
    assert file.stat().st_mode & 0o777 == 0o600
    assert "disableVirtualMediaTLS" not in (assets / "manifests/cluster-config.yaml").read_text()


def test_other_documents_of_the_file_stay() -> None:
    text = media_tls.without_tls(f"{PROVISIONING}---\nkind: Other\n---\nkind: Provisioning\napiVersion: x/v1\n", "a")
    first, *others = yaml.safe_load_all(text)
    assert first["spec"]["disableVirtualMediaTLS"] is True
    assert others == [{"kind": "Other"}, {"kind": "Provisioning", "apiVersion": "x/v1"}]


def test_a_cluster_without_provisioning_has_nothing_to_switch_off(assets: Path) -> None:
    with pytest.raises(OperatorError, match="no manifest of kind Provisioning"):
        media_tls.switch_off(assets)


def test_manifests_are_put_beside_the_installers_or_in_place_of_them(assets: Path) -> None:
    given = {
        "own.yaml": {"apiVersion": "v1", "kind": "ConfigMap"},
        "two.json": '{"apiVersion": "v1", "kind": "Secret"}',
    }
    given["99_baremetal-provisioning-config.yaml"] = PROVISIONING
    note = manifest_files.add(assets, manifest_files.texts_of(given))
    assert note.endswith("yours are used: 99_baremetal-provisioning-config.yaml.")
    assert (assets / "openshift/99_baremetal-provisioning-config.yaml").read_text() == PROVISIONING
    for name in ("own.yaml", "two.json"):
        assert (assets / "manifests" / name).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("../evil.yaml", PROVISIONING, "plain file name"),
        ("a/b.yaml", PROVISIONING, "plain file name"),
        (".hidden.yaml", PROVISIONING, "plain file name"),
        ("a.txt", PROVISIONING, "plain file name"),
        ("a.yaml", "", "must not be empty"),
        ("a.yaml", "just text", "an apiVersion and a kind"),
        ("a.yaml", [{"kind": "ConfigMap"}], "an apiVersion and a kind"),
        ("a.yaml", "a: [", "must be valid YAML"),
    ],
)
def test_manifests_that_cannot_be_meant_are_refused(name: str, content: Any, words: str) -> None:
    with pytest.raises(OperatorError, match=words):
        manifest_files.texts_of({name: content})


def test_each_mistake_is_a_line_of_its_own() -> None:
    mistaken = (
        'platform.baremetal.apiVIPs[0]: Invalid value: "192.0.2.9": IP expected to be in [192.168.0.0/24, fd00::/64]'
    )
    missing = "platform.baremetal.hosts[1].bmc.address: Required value: missing Address"
    message = f"{WHERE}[{mistaken}, {missing}, metadata.name: Forbidden: a, b]"
    said = f"level=info msg=Consuming\nlevel=error msg={json.dumps(message)}\n"
    assert installer_errors.errors_in(said, []) == [mistaken, missing, "metadata.name: Forbidden: a, b"]
    assert installer_errors.errors_in(f"level=fatal msg={json.dumps(WHERE + mistaken)}", []) == [mistaken]


def test_what_is_no_list_of_mistakes_is_told_as_it_is() -> None:
    assert installer_errors.errors_in("level=fatal msg=open: no space left", []) == ["open: no space left"]
    assert installer_errors.errors_in("panic: out of\nluck\n", []) == ["panic: out of", "luck"]


def test_what_mistakes_quote_is_not_told() -> None:
    secrets = {PASSWORD, TOKEN, AUTH, PULL_SECRET}
    message = (
        f"[pullSecret: Invalid value: {json.dumps(PULL_SECRET)}: auths required, "
        f"platform.baremetal.hosts[0].bmc.password: Invalid value: {json.dumps(PASSWORD)}: too long, "
        f"platform.baremetal.hosts[0]: Invalid value: {json.dumps(json.dumps(FULL))}: strange, "
        "platform.baremetal.hosts[1].bmc.password: Required value: missing Password]"
    )
    found = installer_errors.errors_in(f"level=error msg={json.dumps(WHERE + message)}", secrets)
    assert len(found) == 4
    assert found[3].endswith(".bmc.password: Required value: missing Password")
    assert not [secret for secret in secrets if secret in "\n".join(found)]


@pytest.mark.parametrize(("given", "read"), [({"a": 1}, {"a": 1}), ('{"a": 1}', {"a": 1}), ("", {}), ({}, {})])
def test_what_is_secret_is_given_as_mapping_or_as_text(given: Any, read: dict[str, Any]) -> None:
    assert job_secrets.mapping_of("environment", given) == read


@pytest.mark.parametrize("given", ["a=hidden", '["hidden"]', ["hidden"], None])
def test_what_is_neither_is_not_quoted(given: Any) -> None:
    with pytest.raises(OperatorError, match=r"^environment must be a mapping, or JSON of one\.$"):
        job_secrets.mapping_of("environment", given)


def test_a_pull_secret_that_ansible_has_read_is_json_again() -> None:
    assert json.loads(job_secrets.pull_secret_of(json.loads(PULL_SECRET))) == json.loads(PULL_SECRET)
    assert job_secrets.pull_secret_of(PULL_SECRET) == PULL_SECRET


def test_logins_are_those_of_the_lab_by_the_nodes_own_names(tmp_path: Path) -> None:
    file = tmp_path / "credentials.json"
    entry = {"username": "u", "password": PASSWORD}
    file.write_text(json.dumps({"operator": entry, "demo-master-0": entry}))
    assert list(job_secrets.logins_of(file, "demo")) == ["master-0"]


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("4.20.3", (4, 20)),
        ("5.0.0-ec.1", (5, 0)),
        ("4.20.0-okd-scos.9", (4, 20)),
        ("5.0-alpha.2-66-g1966debed4", (5, 0)),
        ("unreleased-master-12272-g349feecf1e", None),
        ("", None),
    ],
)
def test_releases_are_told_from_versions(version: str, release: tuple[int, int] | None) -> None:
    assert release_of(version) == release


LAB = {
    "metadata": {"name": "ha"},
    "baseDomain": "lab.example.test",
    "networking": {"machineNetwork": [{"cidr": "192.0.2.0/24"}, {"cidr": "fd00:1::/64"}]},
    "platform": {
        "baremetal": {
            "apiVIPs": ["192.0.2.5", "fd00:1::5"],
            "ingressVIPs": ["192.0.2.6"],
            "provisioningNetworkCIDR": "172.22.0.0/24",
        }
    },
}
OF_LAB = (
    "localhost,127.0.0.1,::1,.ha.lab.example.test,192.0.2.0/24,fd00:1::/64,172.22.0.0/24,192.0.2.5,fd00:1::5,192.0.2.6"
)


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"https_proxy": "http://proxy.example.test"}, OF_LAB),
        ({"HTTP_PROXY": "http://proxy.example.test", "NO_PROXY": "a.test, b.test"}, f"a.test,b.test,{OF_LAB}"),
        ({"all_proxy": "x", "no_proxy": "localhost,b.test", "NO_PROXY": "a.test"}, f"a.test,{OF_LAB}"),
    ],
)
def test_the_lab_is_reached_without_a_proxy(given: dict[str, str], made: str) -> None:
    found = no_proxy.exceptions(given, LAB)
    assert found["NO_PROXY"] == found["no_proxy"]
    assert {*found["no_proxy"].split(",")} >= {*made.split(",")}
    assert {*found["no_proxy"].split(",")} - {*made.split(",")} <= {"b.test"}


def test_the_installer_is_told_so_and_of_older_vips() -> None:
    given = {"https_proxy": "http://proxy.example.test", "no_proxy": "a.test"}
    old = {**LAB, "platform": {"baremetal": {"apiVIP": "192.0.2.7", "ingressVIP": "192.0.2.8"}}}
    environment = prepare.environment_of(Paths("ha"), Path("/tools"), given, old)
    assert environment["no_proxy"].startswith("a.test,localhost,")
    assert environment["NO_PROXY"].endswith(",192.0.2.7,192.0.2.8")


def test_no_two_labs_have_one_cache() -> None:
    caches = {prepare.environment_of(Paths(lab), Path("/tools"), {}, LAB)["XDG_CACHE_HOME"] for lab in ("ha", "hb")}
    assert caches == {"/var/cache/nometal/installer/ha", "/var/cache/nometal/installer/hb"}


def test_without_a_proxy_there_are_no_exceptions() -> None:
    assert no_proxy.exceptions({"NO_PROXY": "a.test"}, LAB) == {}


def test_only_the_certificate_of_the_bmcs_may_change_unnoticed() -> None:
    def digest(**platform: str) -> str:
        return cluster_install.digest_of({"baseDomain": "a.test", "platform": {"baremetal": platform}})

    assert digest(apiVIP="192.0.2.5", bmcVerifyCA="one") == digest(apiVIP="192.0.2.5", bmcVerifyCA="two")
    assert digest(apiVIP="192.0.2.5") != digest(apiVIP="192.0.2.6")


def test_who_holds_a_lock_is_found_without_reading_of_every_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    real = Path.read_text

    def counted(path: Path, **options: Any) -> str:
        read.append(path)
        return real(path, **options)

    monkeypatch.setattr(Path, "read_text", counted)
    with (tmp_path / "lock").open("w") as lock, (tmp_path / "lock").open():
        assert list(running.holders(tmp_path / "lock")) == []
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert list(running.holders(tmp_path / "lock")) == [os.getpid()]
    assert len(read) <= 4


def test_whether_it_runs_is_asked_without_looking_at_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "INSTALLS", tmp_path)
    monkeypatch.setattr(running, "holders", lambda _lock: pytest.fail("looks at all processes"))
    (tmp_path / "ha").mkdir()
    assert not run.read(Paths("ha")).running
    with Paths("ha").lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert run.read(Paths("ha")).running
