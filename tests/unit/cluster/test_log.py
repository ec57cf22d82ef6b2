"""The installer's log is read whatever is in it, and no secret comes out of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.progress import log, progress

LOGS = sorted(Path(__file__).with_name("logs").glob("*.log"))
PLANTED = "PLANT-eddSe-CRETp-A55Wd"
STAMP = '"2026-10-01T09:00:00Z"'


def line(msg: str, level: str = "info", stamp: str = STAMP) -> str:
    return f"time={stamp} level={level} msg={json.dumps(msg)}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'time={STAMP} level=debug msg="a \\"b\\" \\\\ c"\n', ['a "b" \\ c']),
        (f'time={STAMP} level=info msg="tab\\tnew\\nline \\x1b \\u00e9 \\U0001f600"\n', ["tab\tnew\nline \ufffd é 😀"]),
        (f"time={STAMP} level=info msg=plain\n", ["plain"]),
        (f'time={STAMP} level=info msg="with" func="x.go:1"\n', ["with"]),
        (f"time={STAMP} level=error\n", [""]),
        ("time=2026-10-01T09:00:00Z level=info msg=unquoted\n", ["unquoted"]),
        (f'time={STAMP} level=info msg="half of a l', []),
        (f'time={STAMP} level=info msg="half of a ltime={STAMP} level=info msg="whole"\n', ["whole"]),
        ("\x00\x00garbage\nINFO without a time\n" + line("behind garbage"), ["behind garbage"]),
        (line("no such day", stamp='"2026-13-41T09:00:00Z"'), []),
        (line("no such year", stamp='"0000-01-01T00:00:00Z"'), []),
        (line("with\r\n"), ["with\r\n"]),
        ("", []),
    ],
)
def test_lines(text: str, expected: list[str]) -> None:
    assert [entry.msg for entry in log.entries(text)] == expected


@pytest.mark.parametrize(
    ("stamp", "seconds"),
    [
        ("2026-10-01T09:00:00Z", 1790845200),
        ("2026-10-01T11:00:00+02:00", 1790845200),
        ("2026-10-01T04:00:00-05:00", 1790845200),
    ],
)
def test_times(stamp: str, seconds: float) -> None:
    [entry] = log.entries(line("x", stamp=f'"{stamp}"'))
    assert (entry.at, entry.level) == (seconds, "info")


@pytest.mark.parametrize(
    "msg",
    [
        f'Login to the console with user: "kubeadmin", and password: "{PLANTED}"',
        f"Login to the console with user: kubeadmin, password: {PLANTED}",
        f"The cluster is ready when 'oc login -u kubeadmin -p {PLANTED}' succeeds (wait a few minutes).",
        f"whatever {PLANTED} is",
        "-----BEGIN RSA PRIVATE KEY-----\nPLANT-eddSe",
    ],
)
def test_logins_are_left_out(msg: str) -> None:
    assert not list(log.entries(line(msg)))


@pytest.mark.parametrize(
    ("msg", "shown"),
    [
        ('pullSecret: Invalid value: "{\\"auths\\":PLANT"', "pullSecret: ***"),
        ('failed: {"auths":{"q":{"auth":"PLANT"}}}', 'failed: {"auths":{"q":{"auth":***'),
        ("hosts[0].bmc.password: Invalid value: PLANT", "hosts[0].bmc.password: ***"),
        ("bmc.password=PLANT rest PLANT", "bmc.password=***"),
        ("Authorization: Basic PLANT", "Authorization: ***"),
        ("GET https://me:PLANT@192.0.2.1/redfish failed", "GET https://***@192.0.2.1/redfish failed"),
        ("token eyJhbGciOiJSUzI1NiIsIPLANT.abc.def sent", "token *** sent"),
        ("hosts[0].bmc.password: Required value: missing", "hosts[0].bmc.password: Required value: missing"),
        ("access denied: Invalid username or password", "access denied: Invalid username or password"),
        ("waiting on authentication: console", "waiting on authentication: console"),
        ("openshift-kube-state-metrics-proxy", "openshift-kube-state-metrics-proxy"),
        ("id 3c487200-231b-4684-963c-90ddc0c45b31", "id 3c487200-231b-4684-963c-90ddc0c45b31"),
    ],
)
def test_secrets_are_masked(msg: str, shown: str) -> None:
    assert [entry.msg for entry in log.entries(line(msg))] == [shown]


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_no_whole_log_gives_its_password_away(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    told = progress.progress_of(log.entries(text))
    assert PLANTED not in repr([*log.entries(text), told])


@given(st.one_of(st.text(), st.text(alphabet='time="2026-10-01T:Z level=infomsg\\ux\n'), st.text().map(line)))
def test_whatever_it_is(text: str) -> None:
    whole = progress.Progress()
    for entry in log.entries(text):
        whole.add(entry)
    assert whole.last >= 0


MESSAGES = [
    *("  baremetalhost: a: ", "Still waiting for the cluster to initialize: ", "module.masters.ironic_node_v1."),
    *(
        "openshift-master-host[",
        "]: ",
        "Waiting up to ",
        "for ",
        "Creating...",
        "Cluster operators ",
        "are degraded",
        "* ",
    ),
    *(
        "1 of 2 done (",
        "50% complete)",
        "OpenShift Installer ",
        "Creating infrastructure resources...",
        "\n",
        ", ",
        "99",
    ),
]


@given(st.lists(st.lists(st.sampled_from(MESSAGES), max_size=6).map("".join), max_size=12))
def test_whatever_it_says(messages: list[str]) -> None:
    whole = progress.progress_of((log.Entry(float(at), "error", msg) for at, msg in enumerate(messages)), ["a"])
    assert all(span.end >= span.begin for span in whole.spans)
    whole.operators.words()


def test_a_log_that_grows(tmp_path: Path) -> None:
    path = tmp_path / "log"
    tail = log.Tail(path)
    told: list[str] = []

    def seen() -> list[str]:
        told[:] = [entry.msg for entry in tail.entries()]
        return told

    assert seen() == []
    path.write_text(line("one") + line("two")[:30])
    assert seen() == ["one"]
    assert seen() == []
    with path.open("a") as file:
        file.write(line("two")[30:] + "\n\n")
    assert seen() == ["two"]
    path.write_text(line("begun anew"))
    assert seen() == ["begun anew"]
    path.unlink()
    assert seen() == []
    path.write_text(line("begun anew") + line("longer"))
    assert seen() == ["begun anew", "longer"]


def test_known_secrets_are_left_out_of_it(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(line('it says "error"') + line("it fails"))
    told = list(log.Tail(path, lambda text: text.replace("error", "-").replace("fails", "-")).entries())
    assert [entry.msg for entry in told] == ['it says "-"', "it -"]


def test_a_large_log_is_not_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "CHUNK_BYTES", 1000)
    path = tmp_path / "log"
    path.write_text("".join(line(f"entry {number} ü") for number in range(500)))
    tail = log.Tail(path)
    assert [entry.msg for entry in tail.entries()] == [f"entry {number} ü" for number in range(500)]
    with path.open("a") as file:
        file.write(line("last"))
    assert [entry.msg for entry in tail.entries()] == ["last"]
