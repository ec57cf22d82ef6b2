"""What installer_tools makes of texts, names and errors, without any server."""

from __future__ import annotations

import errno
import io
import json
import os
import socket
import ssl
import tarfile
from email.message import Message
from http.client import IncompleteRead
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import checksums
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import disk as tools_disk
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import download_errors as download_trouble
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import kept as tools_kept
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import making as tools_archive
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import programs as tools_programs
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import release as tools_release
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.directory import Tools, plan
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.download_errors import (
    DroppedError,
    NotThereError,
    UnreachableError,
)
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.kept import Kept
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.release import Release, Report
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step

if TYPE_CHECKING:
    from collections.abc import Sequence

A, B = "a" * 64, "b" * 64
IMAGE = f"quay.io/openshift-release-dev/ocp-release@sha256:{A}"
OWN = f"registry.lab.example.test:5000/ocp/release@sha256:{A}"
LOGINS = {"quay.io": {"auth": "YW5uOmdlaGVpbTE="}, "i.test": {"username": "bob", "password": "geheim2"}}
PULL_SECRET = json.dumps({"auths": LOGINS})
MASTER, ALPHA = "unreleased-master-12272-g349feecf1e", "5.0-alpha.2-66-g1966debed4"
"""Versions of builds that were never released."""
TOLD = f"""\
/x/ocp-4.20.3/bin/openshift-install 4.20.3
built from commit 8bcf87f80e1803f9ec986dfe099625a088ac2412
release image {IMAGE}
release architecture amd64
"""
RELEASE_TEXT = f"""\
The openshift-install binary has been preconfigured to install the following release:

---

Name:           4.12.22
Digest:         sha256:{A}
OS/Arch:        linux/amd64

Pull From: {IMAGE}

Release Metadata:
  Version:  4.12.22
Images:
  NAME    PULL SPEC
  cli     quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:{B}
"""


@pytest.mark.parametrize(
    ("current", "wanted", "steps"),
    [
        (None, None, []),
        (None, Tools("a"), [Step("get", "tools")]),
        (Tools(None), Tools("a"), [Step("get", "tools")]),
        (Tools("a"), Tools("a"), []),
        (Tools("a", leftovers=True), Tools("a"), [Step("tidy", "tools")]),
        (Tools(None), None, [Step("remove", "tools")]),
    ],
)
def test_plan(current: Tools | None, wanted: Tools | None, steps: Sequence[Step]) -> None:
    assert plan(current, wanted) == steps


@pytest.mark.parametrize(
    ("text", "release"),
    [
        (RELEASE_TEXT, Release("4.12.22", IMAGE, "amd64")),
        (RELEASE_TEXT.replace("\n", "\r\n"), Release("4.12.22", IMAGE, "amd64")),
        ("Name: 4.20.0-okd-scos.10\n", Release("4.20.0-okd-scos.10")),
        ("Name:      5.0.0-0.nightly-2026-08-01-010203", Release("5.0.0-0.nightly-2026-08-01-010203")),
        (f"Name: {ALPHA}\n", Release(ALPHA)),
        ("Name: ../../etc\n", None),
        ("<html>Name: 4.12.22</html>", None),
        ("", None),
    ],
)
def test_release_text(text: str, release: Release | None) -> None:
    assert tools_release.parse(text) == release


@pytest.mark.parametrize(
    ("text", "sums"),
    [
        (f"{A}  oc-linux.tar.gz\n{B.upper()} *release.txt\n", {"oc-linux.tar.gz": A, "release.txt": B}),
        (f"{A}  ./oc.tar.gz\r\n\n", {"oc.tar.gz": A}),
        (f"-----BEGIN PGP SIGNED MESSAGE-----\n{A[:63]}  short\n{A} one-space\n{A}\n", {}),
        ("<html></html>", {}),
    ],
)
def test_checksums(text: str, sums: dict[str, str]) -> None:
    assert checksums.parse(text) == sums


@pytest.mark.parametrize(
    ("text", "report"),
    [
        (TOLD, Report("4.20.3", IMAGE)),
        (
            f"./openshift-baremetal-install 4.7.19\nbuilt from commit 3948\nrelease image {IMAGE}",
            Report("4.7.19", IMAGE),
        ),
        ("openshift-install v4.9.0\n", Report("4.9.0", None)),
        ("openshift-install-fips 4.17.1", Report("4.17.1", None)),
        (f"openshift-install {MASTER}\nrelease image {IMAGE}", Report(MASTER, IMAGE)),
        (f"openshift-install {ALPHA}\n", Report(ALPHA, None)),
        ("Client Version: 4.20.3\n", None),
    ],
)
def test_what_an_installer_tells(text: str, report: Report | None) -> None:
    assert tools_release.report(text) == report


@pytest.mark.parametrize(
    ("version", "numbers", "installer"),
    [
        ("4.9.59", (4, 9), "openshift-baremetal-install"),
        ("4.15.0-0.okd-2024-03-10-010116", (4, 15), "openshift-baremetal-install"),
        ("4.16.0-rc.1", (4, 16), "openshift-install"),
        ("latest-5.0", (5, 0), "openshift-install"),
        ("eus-4.8", (4, 8), "openshift-baremetal-install"),
        (ALPHA, (5, 0), "openshift-install"),
        (MASTER, (5, 2), "openshift-install"),
    ],
)
def test_versions(version: str, numbers: tuple[int, int], installer: str) -> None:
    tools_release.refuse_bad_version(version, "ocp", own_source=False)
    assert (tools_release.numbers(version), tools_release.installer_of(version)) == (numbers, installer)


@pytest.mark.parametrize(
    "version",
    [
        "4.20",
        "stable",
        "stable-4.20.3",
        "v4.20.3",
        "4.20.3/..",
        "4.20.3-",
        "",
        "nightly-4.20",
        "4.20-rc.1",
        "unreleased",
    ],
)
def test_bad_versions_are_refused(version: str) -> None:
    with pytest.raises(OperatorError, match=r"^version must be a release \(4\.20\.3\) or a channel \(stable-4\.20\) "):
        tools_release.refuse_bad_version(version, "ocp", own_source=True)


@pytest.mark.parametrize(
    ("version", "installer", "directory"),
    [
        ("4.15.9", "openshift-baremetal-install", "ocp-4.15.9"),
        ("4.16.0-rc.1", "openshift-install-fips", "ocp-4.16.0-rc.1-fips"),
        ("5.0.1", "openshift-install-fips", "ocp-5.0.1-fips"),
    ],
)
def test_fips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, installer: str, directory: str) -> None:
    assert tools_release.installer_of(version, fips=True) == installer
    assert tools_release.directory_of("ocp", version, None, fips=True) == directory
    monkeypatch.setattr(tools_release, "FIPS_ENABLED", tmp_path / "fips_enabled")
    for text in (None, "0\n"):
        if text:
            tools_release.FIPS_ENABLED.write_text(text)
        if "fips" not in installer:
            tools_release.refuse_host_without_fips(version)
            continue
        with pytest.raises(OperatorError, match=r"^This host is not in FIPS mode: .*fips_enabled is not 1\."):
            tools_release.refuse_host_without_fips(version)
    tools_release.FIPS_ENABLED.write_text("1\n")
    tools_release.refuse_host_without_fips(version)


def test_okd_has_channels_only_in_mirrors_of_your_own() -> None:
    tools_release.refuse_bad_version("stable-4.20", "okd", own_source=True)
    tools_release.refuse_bad_version("4.20.0-okd-scos.10", "okd", own_source=False)
    with pytest.raises(OperatorError, match="OKD's releases page has none: name a release, such as"):
        tools_release.refuse_bad_version("stable-4.20", "okd", own_source=False)


@pytest.mark.parametrize(
    ("told", "asked", "called"),
    [
        ("4.20.3", "4.20.3", "4.20.3"),
        (MASTER, "5.0.0", "5.0.0"),
        (ALPHA, ALPHA, ALPHA),
        (ALPHA, "stable-5.0", ALPHA),
        (ALPHA, "", ALPHA),
    ],
)
def test_a_build_is_taken_for_the_release_that_was_asked_for(told: str, asked: str, called: str) -> None:
    assert tools_release.named(told, asked) == called


def test_names() -> None:
    assert tools_release.tarball_of("oc", "4.20.3") == "openshift-client-linux-4.20.3.tar.gz"
    assert tools_release.tarball_of("openshift-install", "4.20.3") == "openshift-install-linux-4.20.3.tar.gz"
    directories = [tools_release.directory_of("ocp", "4.20.3", image) for image in (None, IMAGE, OWN)]
    assert directories[0] == "ocp-4.20.3"
    assert len(set(directories)) == 3
    assert all(name.startswith("ocp-4.20.3-") for name in directories[1:])
    [of_okd] = tools_release.usual_sources("okd", "x86_64")
    assert of_okd.startswith("https://github.com/okd-project/")
    mirror = "https://mirror.openshift.com/pub/openshift-v4/aarch64/clients"
    assert tools_release.usual_sources("ocp", "aarch64") == (f"{mirror}/ocp", f"{mirror}/ocp-dev-preview")


@pytest.mark.parametrize(
    ("architecture", "machine"), [("amd64", "x86_64"), ("arm64", "aarch64"), (None, "aarch64"), ("multi", "x86_64")]
)
def test_releases_for_this_machine(architecture: str | None, machine: str) -> None:
    tools_release.refuse_other_machine(Release("4.20.3", None, architecture), machine, "https://m")


@pytest.mark.parametrize(("architecture", "machine"), [("arm64", "x86_64"), ("amd64", "aarch64")])
def test_releases_for_other_machines_are_refused(architecture: str, machine: str) -> None:
    with pytest.raises(
        OperatorError, match=rf"^https://m has 4\.20\.3 for {architecture}, and this host is .*{machine}"
    ):
        tools_release.refuse_other_machine(Release("4.20.3", None, architecture), machine, "https://m")


@pytest.mark.parametrize(
    ("told", "wanted", "image", "said"),
    [
        (Report("4.20.3", IMAGE), "4.20.3", None, ""),
        (Report("4.20.3", OWN), "4.20.3", OWN, ""),
        (Report("4.20.3", None), "4.20.3", OWN, ""),
        (Report("4.20.3", OWN), "stable-4.20", "registry.example.test/ocp:4.20.3", ""),
        (Report(MASTER, OWN), "4.20.3", OWN, ""),
        (Report(MASTER, OWN), "stable-4.20", OWN, ""),
        (Report(ALPHA, OWN), ALPHA, OWN, ""),
        (Report("built by hand", OWN), "5.0.0", OWN, ""),
        (Report(ALPHA, OWN), MASTER, OWN, f"installs {ALPHA}, and {MASTER} was asked for"),
        (Report("4.20.4", IMAGE), ALPHA, None, f"installs 4.20.4, and {ALPHA} was asked for"),
        (Report(MASTER, IMAGE), "5.0.0", f"x@sha256:{B}", "and not that image"),
        (Report("4.20.4", IMAGE), "4.20.3", None, r"installs 4\.20\.4, and 4\.20\.3 was asked for"),
        (Report("4.19.4", IMAGE), "stable-4.20", OWN, r"installs 4\.19\.4, and stable-4\.20 was asked for"),
        (Report("4.20.3", IMAGE), "4.20.3", f"x@sha256:{B}", "and not that image"),
    ],
)
def test_installers_of_other_releases_are_refused(told: Report, wanted: str, image: str | None, said: str) -> None:
    if not said:
        tools_release.refuse_other_release(told, wanted, image, "it")
        return
    with pytest.raises(OperatorError, match=said):
        tools_release.refuse_other_release(told, wanted, image, "it")


@pytest.mark.parametrize("secret", ["geheim", '{"auth": 1}', "[]", "{'auths': {}}", '{"auths": 1}'])
def test_bad_pull_secrets_are_refused_and_not_shown(secret: str) -> None:
    with pytest.raises(
        OperatorError, match=r"^pull_secret must be JSON with `auths` in it: download it again, and use it unchanged"
    ):
        tools_programs.refuse_bad_pull_secret(secret)
    for fine in ("", '{"auths": {}}', PULL_SECRET):
        tools_programs.refuse_bad_pull_secret(fine)


def program(directory: Path, text: str | bytes, mode: int = 0o755) -> Path:
    file = directory / "oc"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    file.chmod(mode)
    return file


def test_what_oc_says_is_shown_without_logins(tmp_path: Path) -> None:
    oc = program(tmp_path, '#!/bin/sh\ncat "$9" >&2; echo " geheim1 geheim2" >&2; exit 1\n')
    with pytest.raises(OperatorError, match=r"cannot be taken out of the release image i\.test/x: ") as caught:
        tools_programs.extract(oc, "openshift-install", "i.test/x", tmp_path, PULL_SECRET)
    for secret in ("geheim", "YW5u"):
        assert secret not in str(caught.value)
    with pytest.raises(OperatorError, match=r"There was no pull_secret\.$"):
        tools_programs.extract(oc, "openshift-install", "i.test/x", tmp_path, "")


@pytest.mark.parametrize(
    ("content", "mode", "said"),
    [
        (b"\x7fELF\x02\x01\x01" + b"\0" * 57, 0o755, "another architecture, or no program at all"),
        ("#!/bin/sh\n", 0o644, "mounted with noexec"),
        ('#!/bin/sh\necho "oc: version GLIBC_2.34 not found" >&2; exit 1\n', 0o755, "GLIBC_2.34 not found"),
        ("#!/bin/sh\nexit 3\n", 0o755, "ended with 3"),
        ("#!/nowhere\n", 0o755, "No such file"),
    ],
)
def test_programs_that_do_not_run(tmp_path: Path, content: str | bytes, mode: int, said: str) -> None:
    with pytest.raises(OperatorError, match=rf"^oc does not run on this host \({os.uname().machine}\): .*{said}"):
        tools_programs.try_oc(program(tmp_path, content, mode), tmp_path)


def test_a_program_that_hangs_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools_programs, "START_SECONDS", 0.1)
    with pytest.raises(OperatorError, match="gives no answer"):
        tools_programs.try_oc(program(tmp_path, "#!/bin/sh\nexec sleep 60\n"), tmp_path)


def tarball(file: Path, *members: tuple[str, bytes | str]) -> Path:
    """Text instead of content makes a link to it."""
    with tarfile.open(file, "w:gz") as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            if isinstance(content, str):
                member.type, member.linkname = tarfile.LNKTYPE, content
                archive.addfile(member)
            else:
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return file


@pytest.mark.parametrize(
    "members",
    [
        [("README.md", b"x"), ("oc", b"program")],
        [("./oc", b"program")],
        [("kubectl", b"program"), ("oc", "kubectl")],
        [("../oc", b"evil"), ("/etc/oc", b"evil"), ("sub/oc", b"evil"), ("oc", b"program")],
    ],
)
def test_only_the_program_is_taken(tmp_path: Path, members: list[tuple[str, bytes | str]]) -> None:
    directory = tmp_path / "to"
    directory.mkdir()
    tools_archive.take(tarball(tmp_path / "x.tar.gz", *members), "oc", directory / "oc", "x")
    assert (directory / "oc").read_bytes() == b"program"
    assert (directory / "oc").stat().st_mode & 0o777 == 0o755
    assert [path.name for path in directory.iterdir()] == ["oc"]


def test_bad_tarballs(tmp_path: Path) -> None:
    whole = tarball(tmp_path / "whole.tar.gz", ("oc", os.urandom(50_000))).read_bytes()
    for content, said in (
        (b"<html>", "is a damaged tarball"),
        (b"", "is a damaged tarball"),
        (whole[:20_000], "is a damaged tarball"),
        (tarball(tmp_path / "x", ("kubectl", b"")).read_bytes(), "has no program oc in it"),
        (tarball(tmp_path / "x", ("oc", "gone")).read_bytes(), "is a damaged tarball"),
    ):
        (tmp_path / "x.tar.gz").write_bytes(content)
        with pytest.raises(OperatorError, match=f"^https://m/x {said}"):
            tools_archive.take(tmp_path / "x.tar.gz", "oc", tmp_path / "oc", "https://m/x")


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = tmp_path / "x.part"
    part.touch()
    told = pytest.raises(OperatorError, match=r"not enough room in .*: x did not fit and was removed\. Free some")
    with told, tools_disk.writing(part, "x"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert not part.exists()
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result([4096, 4096, 9, 9, 1000, 0, 0, 0, 0, 255]))
    tools_disk.require_room(tmp_path, 4_096_000, "x")
    with pytest.raises(OperatorError, match=r"x takes 5 MB, of which 4 MB are free"):
        tools_disk.require_room(tmp_path, 4_096_001, "x")


@pytest.mark.parametrize(
    ("trouble", "kind", "said"),
    [
        (socket.gaierror(socket.EAI_NONAME, "?"), UnreachableError, "cannot find the address of m.example.test"),
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure"), DroppedError, "Temporary failure"),
        (socket.timeout("timed out"), DroppedError, "nothing came for too long"),
        (ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"), DroppedError, "Connection reset by peer"),
        (OSError(errno.ENETUNREACH, "Network is unreachable"), DroppedError, "Network is unreachable"),
        (ssl.SSLEOFError(8, "EOF occurred"), DroppedError, "EOF occurred"),
        (ssl.SSLError(1, "no protocols"), OperatorError, "TLS fails: .*no protocols"),
        (IncompleteRead(b"x"), DroppedError, "IncompleteRead"),
    ],
)
def test_what_goes_wrong_with_connections(trouble: Exception, kind: type[Exception], said: str) -> None:
    """Before there is an answer, and later."""
    for error in (trouble, URLError(trouble)) if isinstance(trouble, OSError) else (trouble,):
        with pytest.raises(kind, match=said), download_trouble.told("https://m.example.test/x", fine=()):
            raise error


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (403, NotThereError),
        (404, NotThereError),
        (400, OperatorError),
        (401, OperatorError),
        (429, DroppedError),
        (503, DroppedError),
    ],
)
def test_what_servers_answer(code: int, kind: type[Exception]) -> None:
    answer = HTTPError("https://other.example.test", code, "Why", Message(), None)
    with pytest.raises(kind, match=f"{code} Why"), download_trouble.told("https://m.example.test/x", fine=()):
        raise answer


def spoil(directory: Path, what: str) -> None:
    file = directory / what
    if what.endswith(".json"):
        file.write_text("{")
    else:
        file.write_text("longer than it was")


@pytest.mark.parametrize("what", ["tools.json", "bin/oc", "bin/openshift-install"])
@pytest.mark.parametrize("damage", [lambda directory, what: (directory / what).unlink(), spoil])
def test_what_is_kept_is_whole(tmp_path: Path, what: str, damage: Any) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("oc", "openshift-install"):
        (tmp_path / "bin" / name).write_text("program")
        (tmp_path / "bin" / name).chmod(0o755)
    assert tools_kept.read(tmp_path) is None
    kept = Kept("4.20.3", IMAGE)
    tools_kept.record(tmp_path, kept)
    assert tools_kept.read(tmp_path) == kept
    damage(tmp_path, what)
    assert tools_kept.read(tmp_path) is None
