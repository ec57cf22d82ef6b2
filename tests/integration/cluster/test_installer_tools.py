"""The installer_tools module against a mirror in a directory and on a server that drops, stalls, moves and lies."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import ssl
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from support import tools_mirror
from support.checkout import ROOT
from support.tools_mirror import MACHINE, REPOSITORY, Mirror, Server, digest_of
from support.waiting import PATIENCE, wait_until

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import directory as tools
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import download, program
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import progress as tools_progress
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import release as tools_release
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.directory import MARK, InstallerTools
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._lab import paths
from ansible_collections.nometal.ipi.plugins.modules import installer_tools

if TYPE_CHECKING:
    from collections.abc import Iterator

GET, REMOVE = ["get tools"], ["remove tools"]
CLIENT, INSTALLER = "openshift-client-linux-4.20.3.tar.gz", "openshift-install-linux-4.20.3.tar.gz"
IMAGE = f"{REPOSITORY}@sha256:{digest_of('4.20.3')}"
OWN = f"registry.lab.example.test:5000/ocp/release@sha256:{digest_of('own')}"
PULL_SECRET = json.dumps({"auths": {"registry.lab.example.test:5000": {"auth": "Ym9iOmdlaGVpbQ=="}}})
RUN = """
import json, sys
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.directory import InstallerTools
print(json.dumps(InstallerTools.run(json.loads(sys.argv[1]), check_mode=False)))
"""


@pytest.fixture(autouse=True)
def _impatience(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (name for name in os.environ if name.lower().endswith("_proxy")):
        monkeypatch.delenv(name)
    monkeypatch.setattr(download, "PAUSES", (0.01, 0.01, 0.01))
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    made = Mirror(tmp_path / "mirror", tmp_path / "seen")
    made.release("4.20.3", channels=("stable-4.20",))
    return made


@pytest.fixture
def server(mirror: Mirror) -> Iterator[Server]:
    with Server(mirror.path) as started:
        yield started


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "nometal/tools"


def parameters(path: Path, source: Path | str | None, **changed: Any) -> dict[str, Any]:
    arguments: dict[str, dict[str, Any]] = installer_tools.ARGUMENTS  # type: ignore[assignment]  # mypy infers less
    params = {name: known.get("default") for name, known in arguments.items()}
    given = {"version": "4.20.3", "distribution": "ocp", "source": source and str(source), "state": "present"}
    return {**params, **given, "path": str(path), **changed}


def run(path: Path, source: Path | str | None = None, *, check_mode: bool = False, **changed: Any) -> dict[str, Any]:
    with patch.dict(os.environ):  # which is the module's own when Ansible runs it
        return InstallerTools.run(parameters(path, source, **changed), check_mode=check_mode)


@contextmanager
def beside(path: Path, source: Path | str, **changed: Any) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}/playbooks/collections"}
    path.parent.mkdir(parents=True, exist_ok=True)  # so that the process has nothing to note of this machine
    command = [sys.executable, "-c", RUN, json.dumps(parameters(path, source, **changed))]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for_part(path: Path, size: int) -> None:
    parts = "unfinished-ocp-4.20.3/*.part"
    wait_until("so much is there", lambda: any(part.stat().st_size >= size for part in path.glob(parts)))


def said(program: str) -> str:
    return subprocess.run([program, "version", "--client"], check=True, capture_output=True, text=True).stdout


def kept(path: Path) -> list[str]:
    return sorted(str(entry.relative_to(path)) for entry in path.iterdir() if entry.name != MARK)


def test_a_channel(path: Path, mirror: Mirror, server: Server) -> None:
    wanted: dict[str, Any] = {"version": "stable-4.20", "source": server.url}
    foreseen = run(path, check_mode=True, **wanted)
    assert (foreseen["steps"], path.exists()) == (GET, False)
    made = run(path, **wanted)
    bin_directory = path / "ocp-4.20.3/bin"
    expected = {
        "version": "4.20.3",
        "release_image": IMAGE,
        "directory": str(bin_directory),
        "oc": f"{bin_directory}/oc",
        "openshift_install": f"{bin_directory}/openshift-install",
        "note": "",
    }
    assert made == {**expected, "changed": True, "steps": GET, "diff": made["diff"], "warnings": []}
    assert expected.items() <= foreseen.items()
    assert said(made["oc"]) == "Client Version: 4.20.3\n"
    assert said(made["openshift_install"]).split("\n")[0].endswith(" 4.20.3")
    assert kept(path) == [".channels", "ocp-4.20.3"]
    for each in (path, bin_directory, *bin_directory.iterdir()):
        assert each.stat().st_mode & 0o777 == 0o755
    for check_mode in (True, False):
        assert run(path, check_mode=check_mode, **wanted)["steps"] == []
    assert len(server.asked_for(CLIENT)) == 1
    mirror.release("4.20.4", channels=("stable-4.20",))
    assert (run(path, **wanted)["version"], run(path, **wanted)["changed"]) == ("4.20.4", False)
    assert kept(path) == [".channels", "ocp-4.20.3", "ocp-4.20.4"]


def test_a_release_that_is_kept_needs_no_network(path: Path, server: Server) -> None:
    run(path, server.url)
    server.requests.clear()
    for check_mode in (True, False):
        again = run(path, "http://127.0.0.1:9", check_mode=check_mode)
        assert (again["changed"], again["version"], again["release_image"]) == (False, "4.20.3", IMAGE)
    assert server.requests == []
    Path(again["oc"]).write_text("damaged")
    assert run(path, server.url, check_mode=True)["steps"] == GET
    assert said(run(path, server.url)["oc"])


def test_a_channel_without_network(path: Path, server: Server) -> None:
    run(path, server.url, version="stable-4.20")
    gone = "http://127.0.0.1:9"
    again = run(path, gone, version="stable-4.20")
    assert (again["changed"], again["version"]) == (False, "4.20.3")
    assert again["note"].startswith(
        "stable-4.20 is taken to be 4.20.3 still, as it was when it was last looked up: http"
    )
    with pytest.raises(OperatorError, match=r"latest-4\.20/release\.txt cannot be downloaded: .*Connection refused"):
        run(path, gone, version="latest-4.20")
    server.refuse["release.txt"] = 503
    assert "503 Service Unavailable" in run(path, server.url, version="stable-4.20")["note"]


def test_dropped_connections_are_resumed(path: Path, server: Server) -> None:
    server.cut = [100_000, 200_000, 0]
    run(path, server.url)
    assert [request.start for request in server.asked_for(CLIENT)] == [None, 100_000, 300_000, 300_000]
    first, *later = server.asked_for(CLIENT)
    assert first.condition is None
    assert all(request.condition for request in later)


@pytest.mark.parametrize(
    "mood", [{"ranges": False}, {"tags": False}, {"lengths": False}, {"ranges": False, "lengths": False}]
)
def test_plain_servers(path: Path, server: Server, mood: dict[str, bool]) -> None:
    for name, value in mood.items():
        setattr(server, name, value)
    if server.lengths:
        server.cut = [100_000, 200_000]
    assert run(path, server.url)["changed"]


def test_a_download_that_stalls(path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "PATIENCE", 0.3)
    server.stall = [100_000]
    run(path, server.url)
    assert [request.start for request in server.asked_for(CLIENT)][:2] == [None, 100_000]


def test_what_never_comes_is_kept_for_the_next_run(path: Path, server: Server) -> None:
    server.cut = [100_000, *[0] * 4]
    with pytest.raises(
        OperatorError, match=rf"{CLIENT} cannot be downloaded: the connection ended after 100000 of \d+ bytes\.$"
    ):
        run(path, server.url)
    assert kept(path) == ["unfinished-ocp-4.20.3"]
    server.requests.clear()
    assert run(path, server.url)["steps"] == GET
    assert [request.start for request in server.asked_for(CLIENT)] == [100_000]
    assert kept(path) == ["ocp-4.20.3"]


@pytest.mark.parametrize("tags", [True, False])
@pytest.mark.parametrize("there", [b"other" * 1000, b"other" * 200_000])
def test_parts_of_another_file_are_not_patched_together(
    path: Path, server: Server, there: bytes, *, tags: bool
) -> None:
    """Also if the server does not notice, or the part is longer than the file."""
    server.tags = tags
    server.cut = [100_000, *[0] * 4]
    with pytest.raises(OperatorError, match="ended after"):
        run(path, server.url)
    [part] = path.glob("unfinished-*/*.part")
    part.write_bytes(there)
    if tags:
        part.with_suffix(".validator").write_text('"other"')
    assert run(path, server.url)["changed"]


def test_a_wrong_checksum(path: Path, mirror: Mirror, server: Server) -> None:
    with (mirror.path / "4.20.3" / CLIENT).open("ab") as file:
        file.write(b"more")
    with pytest.raises(
        OperatorError, match=rf"{server.url}/4\.20\.3/{CLIENT} has the checksum .*\. It was not taken\."
    ):
        run(path, server.url)
    assert kept(path) == []
    assert len(server.asked_for(CLIENT)) == 1


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("4.20.9", "There is no release 4.20.9: is the version right"),
        ("stable-4.99", "There is no channel stable-4.99: it may be misspelt, not be open yet"),
    ],
)
def test_what_is_not_there(path: Path, mirror: Mirror, server: Server, version: str, told: str) -> None:
    address = f"{server.url}/{version}/release.txt: the server answers 404 Not Found."
    for source, end in ((server.url, address), (mirror.path, f"{mirror.path}/{version}/release.txt is not there.")):
        with pytest.raises(OperatorError) as caught:
            run(path, source, version=version)
        assert (str(caught.value).startswith(told), str(caught.value).endswith(end)) == (True, True)
    assert not path.exists()


def test_previews_are_looked_for_where_they_are(path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = (f"{server.url}/ocp", server.url)
    monkeypatch.setattr(tools_release, "usual_sources", lambda *_: sources)
    assert run(path)["changed"]
    with pytest.raises(OperatorError, match=r"/ocp/latest-5\.0/release\.txt: .*/latest-5\.0/release\.txt: "):
        run(path, version="latest-5.0")


def test_redirects_logins_and_proxies(path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.cut = [100_000]
    run(path / "a", f"{server.url}/moved")
    assert [request.start for request in server.asked_for(CLIENT)] == [None, None, 100_000, 100_000]
    server.login = "bob:gehe/im"
    assert run(path / "b", server.url.replace("//", "//bob:gehe%2Fim@"))["changed"]
    for source in (server.url, server.url.replace("//", "//bob:geheim2@")):
        with pytest.raises(OperatorError, match="the server asks for a login") as caught:
            run(path / "c", source)
        assert "geheim2" not in str(caught.value)
    server.login = ""
    monkeypatch.setenv("http_proxy", f"http://proxy-user:geheim3@{server.host}")
    assert run(path / "d", "http://mirror.example.test/")["changed"]
    assert "mirror.example.test" in server.hosts
    server.refuse["release.txt"] = 502
    with pytest.raises(OperatorError, match=rf"502 Bad Gateway \(by the proxy {server.host}\)"):
        run(path / "e", "http://mirror.example.test/")
    monkeypatch.setenv("https_proxy", f"http://{server.host}")
    with pytest.raises(
        OperatorError, match=rf"the proxy refuses \(by the proxy {server.host}\): Tunnel connection failed: 501"
    ):
        run(path / "e", "https://mirror.example.test/")


def tls_of(directory: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    certificate = builder.not_valid_before(now).not_valid_after(now + datetime.timedelta(1)).sign(key, hashes.SHA256())
    kind, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    file = directory / "tls.pem"
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, kind, plain)
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def test_a_certificate_of_nobody(path: Path, mirror: Mirror, tmp_path: Path) -> None:
    with Server(mirror.path, tls=tls_of(tmp_path)) as server:
        with pytest.raises(
            OperatorError, match=r"certificate is not trusted: self.signed certificate\. If it is of a CA"
        ):
            run(path, server.url)
        with (
            pytest.raises(OperatorError, match=r"https://.*: TLS fails: WRONG_VERSION_NUMBER"),
            Server(mirror.path) as plain,
        ):
            run(path, plain.url.replace("http:", "https:"))


def test_a_local_directory(path: Path, mirror: Mirror) -> None:
    shown = run(path, f"file://{mirror.path}", version="stable-4.20")
    assert (shown["steps"], said(shown["oc"])) == (GET, "Client Version: 4.20.3\n")
    assert run(path, mirror.path)["steps"] == []
    assert sorted(entry.name for entry in (mirror.path / "4.20.3").iterdir()) == sorted(
        [CLIENT, INSTALLER, "release.txt", "sha256sum.txt"]
    )
    for source in ("mirror/ocp", "ftp://mirror.example.test", "https://"):
        with pytest.raises(OperatorError, match=r"must be a URL .* or the absolute path of a directory"):
            run(path, source, version="4.20.4")


def test_bad_mirrors(path: Path, mirror: Mirror) -> None:
    directory = mirror.path / "4.20.3"
    release_text, sums = directory / "release.txt", directory / "sha256sum.txt"
    whole = shutil.copytree(directory, mirror.path.parent / "whole")

    def refused(told: str) -> None:
        with pytest.raises(OperatorError, match=told):
            run(path, mirror.path)
        assert not path.exists() or kept(path) == []
        shutil.copytree(whole, directory, dirs_exist_ok=True)

    release_text.write_text("<html>Log in</html>")
    refused("names no release: another server answers")
    release_text.write_text(release_text.read_text().replace("4.20.3", "4.20.2"))
    refused(r"is of 4\.20\.2, and 4\.20\.3 was asked for")
    release_text.write_text(
        release_text.read_text().replace(
            tools_mirror.ARCHITECTURE, "arm64 amd64".replace(tools_mirror.ARCHITECTURE, "").strip()
        )
    )
    refused(rf"this host is {tools_mirror.ARCHITECTURE} \({MACHINE}\)")
    sums.unlink()
    refused(r"Without sha256sum\.txt nothing is taken")
    sums.write_text(sums.read_text().replace(CLIENT, "other"))
    refused(rf"{CLIENT} is not listed in .*/sha256sum\.txt")
    (directory / CLIENT).unlink()
    refused(rf"/{CLIENT} is not there")
    for name, content, told in (
        (CLIENT, {"oc": b"\x7fELF\2\1\1"}, "oc does not run on this host .*another architecture"),
        (CLIENT, {"kubectl": b""}, f"{directory}/{CLIENT} has no program oc in it"),
        (
            INSTALLER,
            {"openshift-install": b"#!/bin/sh\necho openshift-install 4.20.2\n"},
            r"installs 4\.20\.2, and 4\.20\.3",
        ),
        (INSTALLER, {"openshift-install": b"#!/bin/sh\necho hello\n"}, "does not say its version, but: hello"),
    ):
        mirror.tarball(directory / name, content)
        mirror.sum_up(directory)
        refused(told)
    (directory / INSTALLER).write_text("no tarball")
    mirror.sum_up(directory)
    refused(f"{directory}/{INSTALLER} is a damaged tarball")
    assert run(path, mirror.path)["changed"]


def test_an_image_of_ones_own(path: Path, mirror: Mirror, tmp_path: Path) -> None:
    run(path, mirror.path)
    proxy = {"https_proxy": "http://proxy.example.test:3128"}
    made = run(path, mirror.path, release_image=OWN, pull_secret=PULL_SECRET, environment=json.dumps(proxy))
    assert (made["steps"], made["release_image"], made["version"]) == (GET, OWN, "4.20.3")
    assert made["directory"] != str(path / "ocp-4.20.3/bin")
    called, *environment = mirror.seen.read_text().splitlines()
    program = "--command=openshift-install"
    assert called.startswith(f"adm release extract {program} --to {path}/unfinished-")
    assert called.split()[6:] == [OWN, "--registry-config", called.split()[-1]]
    assert Path(f"{mirror.seen}.secret").read_text() == PULL_SECRET
    assert "https_proxy=http://proxy.example.test:3128" in environment
    assert "geheim" not in "".join(environment)
    assert "Ym9iOmdlaGVpbQ" not in called + "".join(environment)
    assert subprocess.run(["grep", "-r", "Ym9iOmdlaGVpbQ", path], check=False).returncode == 1
    assert run(path, "/nowhere", release_image=OWN)["changed"] is False
    by_tag = "registry.lab.example.test/ocp:4.20.3"
    assert run(path, mirror.path, release_image=by_tag, version="stable-4.20")["release_image"] == by_tag
    assert "--registry-config" not in mirror.seen.read_text()


def test_a_build_of_ones_own(path: Path, mirror: Mirror) -> None:
    """What it calls itself names no release, so it is taken for the release that is asked for."""
    built = OWN.replace("ocp/", "built/")
    for version in ("4.20.3", "stable-4.20"):
        made = run(path, mirror.path, release_image=built, version=version)
        assert (made["version"], made["release_image"]) == ("4.20.3", built)
    said = subprocess.run([made["openshift_install"], "version"], check=True, capture_output=True, text=True).stdout
    assert "unreleased-master-12272-g349feecf1e" in said
    found = program.find(Path(made["directory"]), "4.20.3", path)
    assert found.version == "4.20.3"
    alpha = "5.0-alpha.2-66-g1966debed4"
    mirror.release(alpha)
    assert run(path, mirror.path, version=alpha)["version"] == alpha
    assert program.find(Path(run(path, "/nowhere", version=alpha)["directory"]), "", path).version == alpha


def test_images_that_fail(path: Path, mirror: Mirror) -> None:
    for image, told in (
        ("r.example.test/denied:1", r"openshift-install cannot be taken out of .*/denied:1: error: unauthorized: "),
        ("r.example.test/mute:1", "openshift-install cannot be taken out of"),
        (OWN.replace("ocp/", "strange/"), r"installs .*-strange, and not that image"),
        ("--help", "registry/name@sha256"),
    ):
        with pytest.raises(OperatorError, match=told) as caught:
            run(path, mirror.path, release_image=image, pull_secret=PULL_SECRET)
        assert "Ym9iOmdlaGVpbQ" not in str(caught.value)
        assert not path.exists() or kept(path) == []


def test_installers_that_are_in_the_image_only(path: Path, mirror: Mirror) -> None:
    mirror.release("4.15.9")
    mirror.release("4.21.0", installer=False)
    older = run(path, mirror.path, version="4.15.9", pull_secret=PULL_SECRET)
    assert (older["version"], Path(older["openshift_install"]).readlink()) == (
        "4.15.9",
        Path("openshift-baremetal-install"),
    )
    assert older["release_image"] == f"{REPOSITORY}@sha256:{digest_of('4.15.9')}"
    newer = run(path, mirror.path, version="4.21.0")
    assert (newer["version"], Path(newer["openshift_install"]).is_symlink()) == ("4.21.0", False)
    text = mirror.path / "4.21.0/release.txt"
    text.write_text(text.read_text().replace("Pull From", "Pulled"))
    with pytest.raises(OperatorError, match=r"has to come out of the release image, and .* names none"):
        run(path / "../other", mirror.path, version="4.21.0")


def test_fips(path: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools_release, "FIPS_ENABLED", path.parents[1] / "fips_enabled")
    for check_mode in (True, False):
        with pytest.raises(OperatorError, match="This host is not in FIPS mode"):
            run(path, mirror.path, fips=True, version="stable-4.20", check_mode=check_mode)
    assert not path.exists()
    tools_release.FIPS_ENABLED.write_text("1\n")
    usual = run(path, mirror.path)
    made = run(path, mirror.path, fips=True, version="stable-4.20", pull_secret=PULL_SECRET)
    assert f"--command=openshift-install-fips --to {path}" in mirror.seen.read_text()
    assert Path(made["openshift_install"]).readlink() == Path("openshift-install-fips")
    assert (made["version"], made["release_image"]) == ("4.20.3", IMAGE)
    assert not Path(usual["openshift_install"]).is_symlink()
    assert kept(path) == [".channels", "ocp-4.20.3", "ocp-4.20.3-fips"]
    assert run(path, None, fips=True)["steps"] == []


def test_two_at_once(path: Path, server: Server) -> None:
    with beside(path, server.url) as one, beside(path, server.url) as other:
        results = [json.loads(process.communicate(timeout=PATIENCE)[0]) for process in (one, other)]
    assert [result["version"] for result in results] == ["4.20.3", "4.20.3"]
    assert (len(server.asked_for(CLIENT)), len(server.asked_for(INSTALLER))) == (1, 1)
    assert kept(path) == ["ocp-4.20.3"]


def test_a_killed_run_is_gone_on_with_and_removal_waits_for_a_running_one(path: Path, server: Server) -> None:
    server.stall = [100_000]
    with beside(path, server.url) as killed:
        assert server.stalled.wait(PATIENCE)
        wait_for_part(path, 100_000)
    assert run(path, server.url, check_mode=True)["steps"] == GET
    server.requests.clear()
    server.stalled.clear()
    server.stall = [50_000]
    with beside(path, server.url, events=str(path.parent / "events")) as slow:
        assert server.stalled.wait(PATIENCE)
        with beside(path, "", state="absent") as removal:
            with pytest.raises(subprocess.TimeoutExpired):
                removal.wait(0.5)
            slow.kill()
            assert json.loads(removal.communicate(timeout=PATIENCE)[0])["steps"] == REMOVE
    assert killed.returncode == -9
    assert [request.start for request in server.asked_for(CLIENT)] == [100_000]
    assert not path.exists()


def test_a_run_that_was_killed_at_its_very_end_is_completed(path: Path, mirror: Mirror) -> None:
    run(path, mirror.path)
    (path / "unfinished-ocp-4.20.3").mkdir()
    for check_mode in (True, False):
        assert run(path, mirror.path, check_mode=check_mode)["steps"] == ["tidy tools"]
    assert (run(path, mirror.path)["steps"], kept(path)) == ([], ["ocp-4.20.3"])


def test_leftovers_go_when_nobody_wants_them_any_more(path: Path, mirror: Mirror, server: Server) -> None:
    mirror.release("4.20.4")
    server.cut = [100_000, *[0] * 4]
    with pytest.raises(OperatorError, match="ended after"):
        run(path, server.url)
    work = path / "unfinished-ocp-4.20.3"
    run(path, server.url, version="4.20.4")
    assert work.exists()
    for entry in (*work.iterdir(), work):
        os.utime(entry, (0, 0))
    shutil.rmtree(path / "ocp-4.20.4")
    run(path, server.url, version="4.20.4")
    assert kept(path) == ["ocp-4.20.4"]


def test_older_releases_go_that_nobody_uses(
    path: Path, mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (paths, tools):
        monkeypatch.setattr(module, "INSTALLS", tmp_path / "install")
    (paths.INSTALLS / "lab").mkdir(parents=True)
    paths.Paths("lab").run.write_text('{"version": "4.20.3"}')
    for number in range(3, 8):
        for age, old in enumerate(sorted(path.glob("ocp-*"))):
            os.utime(old, (age, age))
        mirror.release(f"4.20.{number}", channels=("stable-4.20",))
        run(path, mirror.path, version="stable-4.20")
        if number == 5:
            mirror.release("4.19.1")
            run(path, mirror.path, version="4.19.1")
            run(path, mirror.path, version="4.20.4")
    assert kept(path) == [".channels", *(f"ocp-{release}" for release in ("4.19.1", "4.20.3", "4.20.6", "4.20.7"))]
    mirror.release("4.20.8")
    for release in ("4.20.6", "4.20.8"):
        run(path, mirror.path, version=release)
    assert kept(path)[-3:] == ["ocp-4.20.6", "ocp-4.20.7", "ocp-4.20.8"]


@pytest.mark.parametrize("lengths", [True, False])
def test_a_full_disk(path: Path, server: Server, *, lengths: bool) -> None:
    """Noticed before it begins, if the server tells how much there is; else when it is full."""
    server.lengths = lengths
    path.mkdir(parents=True)
    told = "takes 1 MB, of which 0 MB are free" if lengths else "did not fit and was removed"
    full = f'mount -t tmpfs -o size=300k none {path} && {sys.executable} -c "$0" "$1"; ls -R {path}'
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}/playbooks/collections"}
    command = ["unshare", "--mount", "sh", "-c", full, RUN, json.dumps(parameters(path, server.url))]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert f"There is not enough room in {path}/unfinished-ocp-4.20.3: " in done.stderr
    assert told in done.stderr
    assert done.stdout.split() == [f"{path}:"]


def test_progress_is_told(path: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools_progress, "PAUSE", 0.0)
    events = tmp_path / "run/events.jsonl"
    run(path, server.url, events=str(events), check_mode=True)
    assert not events.exists()
    run(path, server.url, events=str(events))
    told = [json.loads(line) for line in events.read_text().splitlines()]
    assert all(set(event) == {"at", "who", "state"} for event in told)
    spoken = [(event["who"], event["state"]) for event in told]
    assert ("oc", "downloads 1 of 1 MB") in spoken
    assert spoken[-2:] == [("openshift-install", "is unpacked"), ("openshift-install", "is there")]
    run(path, server.url, events=str(events))
    assert events.read_text() == ""


def test_what_is_not_ours_stays(path: Path, mirror: Mirror) -> None:
    path.mkdir(parents=True)
    (path / "theirs").touch()
    for state in ("present", "absent"):
        with pytest.raises(OperatorError, match=r"holds no tools of nometal\.ipi"):
            run(path, mirror.path, state=state)
    with pytest.raises(OperatorError, match="path: must be an absolute path"):
        run(Path("tools"), mirror.path)
    assert kept(path) == ["theirs"]


def test_it_goes(path: Path, mirror: Mirror) -> None:
    run(path, mirror.path, version="stable-4.20")
    for check_mode in (True, False):
        assert run(path, state="absent", check_mode=check_mode)["steps"] == REMOVE
    assert not path.parent.exists()
    assert run(path, state="absent")["steps"] == []
    path.mkdir(parents=True)
    (path / MARK).touch()
    assert run(path, state="absent")["steps"] == REMOVE
