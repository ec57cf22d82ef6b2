"""Files for those who reach a cluster from elsewhere."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support.stand_in import pki

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.access.resource import ClusterAccess, by_proxy
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._lab import paths

if TYPE_CHECKING:
    from pathlib import Path

DOMAIN = "demo.lab.example.test"


@pytest.fixture
def auth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the kubeconfig, of lab demo."""
    monkeypatch.setattr(paths, "INSTALLS", tmp_path)
    directory = tmp_path / "demo/cluster/auth"
    directory.mkdir(parents=True)
    authority = pki.authority("kube-apiserver-lb-signer")
    own = pki.issue(authority, "system:admin", groups=["system:masters"])
    (directory / "kubeconfig").write_text(pki.kubeconfig(authority, own, f"api.{DOMAIN}", "192.168.126.5", 6443))
    return directory


def run(*, check_mode: bool = False, **options: Any) -> dict[str, Any]:
    arguments = {"lab": "demo", "domain": DOMAIN, "port": 1080, **options}
    return ClusterAccess.run(arguments, check_mode=check_mode)


def test_they_are_written_once_for_root_alone(auth: Path) -> None:
    assert run(check_mode=True)["changed"]
    assert [file.name for file in auth.iterdir()] == ["kubeconfig"]
    made = run()
    assert made["steps"] == [f"write {auth}/kubeconfig-proxy", f"write {auth}/proxy.pac"]
    assert (made["kubeconfig"], made["pac"]) == (f"{auth}/kubeconfig-proxy", f"{auth}/proxy.pac")
    assert {stat.S_IMODE(file.stat().st_mode) for file in (auth / "kubeconfig-proxy", auth / "proxy.pac")} == {0o600}
    assert "PRIVATE" not in str(made)
    assert not run()["changed"]
    (auth / "proxy.pac").chmod(0o644)
    assert run()["steps"] == [f"write {auth}/proxy.pac"]
    assert run(port=1081)["changed"]


def test_the_kubeconfig_differs_in_the_proxy_alone(auth: Path) -> None:
    run(port=9050)
    given = yaml.safe_load((auth / "kubeconfig").read_text())
    made = yaml.safe_load((auth / "kubeconfig-proxy").read_text())
    assert [each["cluster"].pop("proxy-url") for each in made["clusters"]] == ["socks5://127.0.0.1:9050"]
    assert made == given


def test_the_pac_file_names_the_cluster(auth: Path) -> None:
    run()
    text = (auth / "proxy.pac").read_text()
    assert 'dnsDomainIs(host, ".demo.lab.example.test")' in text
    assert '"SOCKS5 127.0.0.1:1080; SOCKS 127.0.0.1:1080"' in text


def test_what_is_not_there_or_damaged_is_refused(auth: Path) -> None:
    with pytest.raises(OperatorError, match="names no server"):
        by_proxy("clusters: []\n", 1080)
    with pytest.raises(OperatorError, match="domain: must be a domain"):
        run(domain='x"; evil')
    (auth / "kubeconfig").unlink()
    with pytest.raises(OperatorError, match="no kubeconfig on this host"):
        run()
    assert run(check_mode=True)["changed"]


def test_a_removal_knows_them() -> None:
    assert {"auth/kubeconfig-proxy", "auth/proxy.pac"} < set(paths.KNOWN_OF_CLUSTER)
