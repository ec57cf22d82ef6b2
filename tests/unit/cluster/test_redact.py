"""What is a secret in a text is not in it afterwards, and what is none is."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Callable
from urllib.parse import quote

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.bundle import secrets as bundle_secrets
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.bundle.redact import Redactor
from ansible_collections.nometal.ipi.plugins.module_utils._lab import paths
from ansible_collections.nometal.ipi.plugins.module_utils._lab.paths import Paths

KEY = "MIIEpAIBAAKCAQEAtesttesttesttesttesttesttesttesttesttesttesttest"
SECRETS = {
    'level=info msg="Login to the console with user: \\"kubeadmin\\", and password: \\"{}\\""': "w1nTer-is.c0ming",
    "kubeadmin has {} now": "dKx4F-9hTsQ-PzW3n-aB7cE",
    '{{"auths":{{"quay.io":{{"auth":"{}","email":"me@example.test"}}}}}}': "bWU6c2VjcmV0",
    '{{\\"auths\\":{{\\"quay.io\\":{{\\"auth\\":\\"{}\\"}}}}}}': "bWU6c2VjcmV0",
    "pullSecret: '{}'": '{"auths":{"x":{"auth":"bWU6"}}}',
    "    password: {}\n    username: me": "hunter2",
    "password={} and more": "hunter2",
    "--password='{}'": "hunter 2",
    "<graphics type='vnc' passwd='{}'/>": "hunter2",
    '"passwordHash": "{}"': "$6$rounds=5000$abcdefgh$ijklmnopqrstuvwxyz",
    "core:{}:19000:0": "$y$j9T$abcdefghijkl$mnopqrstuvwxyz",
    "GET https://me:{}@registry.example.test/v2": "hun@ter2",
    "Authorization: Bearer {}": "abcdefghijkl",
    "Authorization: Basic {}": "bWU6c2VjcmV0",
    "    token: {}": "abcdef",
    "found eyJhbGciOi.{} there": "eyJpc3MiOiJ.c2lnbmF0dXJl",
    "oauth {} x": "sha256~0123456789abcdefghijklmnopqrstuvwxyzABCDEFG",
    "join with {}": "abcdef.0123456789abcdef",
    "-----BEGIN RSA PRIVATE KEY-----\n{}\nabcd\n-----END RSA PRIVATE KEY-----": KEY,
    "key: -----BEGIN PRIVATE KEY-----\\n{}\\n-----END PRIVATE KEY-----\\n": KEY,
    "Nov 1 a[1]: -----BEGIN EC PRIVATE KEY-----\nNov 1 a[1]: {}\nNov 1 a[1]: -----END EC PRIVATE KEY-----": KEY,
    "cut off before\n{}\n-----END PRIVATE KEY-----\nnext": KEY,
    "-----BEGIN PRIVATE KEY-----\n{}": KEY,
    "client-key-data: {}": base64.b64encode(f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}".encode()).decode(),
    '"source":"data:text/plain;charset=utf-8;base64,{}"': base64.b64encode(b'{"auths":{"q":{"auth":"aTpi"}}}').decode(),
    '"source":"data:;base64,{}"': base64.b64encode(gzip.compress(b'{"auths":{"q":{"auth":"aTpi"}}}', mtime=0)).decode(),
}
KEPT = [
    'level=debug msg="  baremetalhost: control-plane-0: provisioned"',
    'level=error msg="secret \\"pull-secret\\" not found"',
    "Still waiting for the cluster to initialize: Working towards 4.20.3: 31 of 34 done (91% complete)",
    "sshKey: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJfvZqkzv1234567890abcdefghijklmnopqrstuv me@example.test",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQsw\n-----END CERTIFICATE-----",
    "password: null",
    "c5d81e07-6a2b-4f39-b7c4-90e3fa1d5826 52:54:00:16:52:a2 192.168.126.20 demo-x7k2p-bootstrap",
    "quay.io/openshift-release-dev/ocp-release@sha256:1111111111111111111111111111111111111111111111111111111111111111",
    "https://192.168.126.1:8000/redfish/v1/Systems/c5d81e07-6a2b-4f39-b7c4-90e3fa1d5826",
]


@pytest.mark.parametrize(("text", "secret"), SECRETS.items())
def test_what_looks_like_a_secret_goes(text: str, secret: str) -> None:
    redacted = Redactor([]).text(text.format(secret))
    assert secret not in redacted
    assert "[redacted]" in redacted
    assert Redactor([]).text(redacted) == redacted


@pytest.mark.parametrize("text", KEPT)
def test_what_is_none_stays(text: str) -> None:
    assert Redactor(["Tr0ub4dor&3", "", "a", "me:"]).text(text) == text


def test_lines_after_a_key_stay() -> None:
    text = f"-----BEGIN PRIVATE KEY-----\n{KEY}\n-----END PRIVATE KEY-----\nThe end of things"
    assert Redactor([]).text(text) == "[redacted]\nThe end of things"


def test_short_known_secrets_are_taken_out_as_whole_words() -> None:
    assert Redactor(["root"]).text("root/chroot root: 'root'") == "[redacted]/chroot [redacted]: '[redacted]'"


WRITINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda secret: secret,
    "JSON": json.dumps,
    "JSON in JSON": lambda secret: json.dumps(json.dumps(secret)),
    "URL": lambda secret: quote(secret, safe=""),
    "Base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "in Base64": lambda secret: base64.b64encode(f"some text {secret} and more".encode()).decode(),
    "Base64 in Base64": lambda secret: base64.b64encode(
        b"text:" + base64.b64encode(f"a line with {secret}".encode())
    ).decode(),
    "gzip in Base64": lambda secret: base64.b64encode(
        gzip.compress(f"a line with {secret}".encode(), mtime=0)
    ).decode(),
}
SECRET = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=12, max_size=60)


@given(secret=SECRET, writing=st.sampled_from(list(WRITINGS)), around=st.tuples(st.text(), st.text()))
@settings(max_examples=300, deadline=None)
def test_a_known_secret_is_gone_in_any_writing(secret: str, writing: str, around: tuple[str, str]) -> None:
    written = WRITINGS[writing](secret)
    redacted = Redactor([secret]).text(f"{around[0]} {written} {around[1]}")
    assert secret not in redacted
    assert written not in redacted


@given(text=st.text(st.sampled_from("ab:=@/\\\"' \n{}-password token PRIVATE KEY")))
@settings(max_examples=300, deadline=None)
def test_any_text_can_be_searched(text: str) -> None:
    once = Redactor(["Tr0ub4dor&3"]).text(text)
    assert len(once.splitlines()) <= len(text.splitlines()) + 1


def test_the_known_secrets_of_an_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "INSTALLS", tmp_path / "install")
    mine, bmcs = Paths("demo"), tmp_path / "bmc"
    (bmcs / "demo").mkdir(parents=True)
    mine.password.parent.mkdir(parents=True)
    mine.password.write_text("kube-admin-password\n")
    mine.kubeconfig.write_text(yaml.safe_dump({"users": [{"user": {"client-key-data": "a2V5", "token": "a-token"}}]}))
    auth = base64.b64encode(b"robot:registry-password").decode()
    host = {"bmc": {"username": "admin", "password": "bmc-password-1"}, "name": "demo-0"}
    config = {"pullSecret": json.dumps({"auths": {"q": {"auth": auth}}}), "sshKey": "ssh-rsa AAAA", "hosts": [host]}
    mine.config.write_text(yaml.safe_dump(config))
    (bmcs / "demo/credentials.json").write_text('{"demo-0": {"username": "demo-0", "password": "bmc-password-2"}}')
    mine.secrets.write_text(json.dumps({"secrets": ["planted", "http://me:of-a-proxy@proxy.test"]}))
    environment = {"https_proxy": "http://me:of-another@proxy.test", "MY_TOKEN": "my-token", "no_proxy": ".test"}
    (mine.directory / "plan.json").write_text(json.dumps({"environment": environment}))

    known = bundle_secrets.known(mine, bmcs)
    assert known >= {"kube-admin-password", "a2V5", "a-token", auth, "registry-password", "bmc-password-1"}
    assert known >= {"bmc-password-2", "planted", "of-a-proxy", "of-another", "my-token"}
    assert not known & {"admin", "demo-0", "ssh-rsa AAAA", ".test", ""}
    assert bundle_secrets.known(mine) == known - {"bmc-password-2"}
    assert bundle_secrets.known(Paths("none"), bmcs) == set()


def test_what_is_noted_of_what_an_operator_gives() -> None:
    config = {"baseDomain": "lab.example.test"}
    extra = {"proxy": {"httpProxy": "planted", "noProxy": ".example.test"}, "list": ["more", 1, None]}
    encoded = base64.b64encode(b"in data").decode()
    manifests = [
        yaml.safe_dump_all(
            [{"kind": "ConfigMap", "data": {"a": "public"}}, {"kind": "Secret", "data": {"a": encoded}}]
        ),
        yaml.safe_dump({"kind": "Secret", "stringData": {"a": "in text"}, "data": {"a": "//79", "b": "no Base64"}}),
    ]
    noted = bundle_secrets.given(config, extra, manifests)
    assert noted == sorted(["planted", "more", encoded, "in data", "in text", "//79", "no Base64"])
