"""A mirror of oc and the installer, as a directory and as a server with all the moods that servers and proxies have.

mirror = tools_mirror.make(directory)
mirror.release("4.20.3", channels=("stable-4.20",))
with tools_mirror.Server(directory) as server:
    server.cut = [1000]  # the next answer ends after so many bytes
"""

from __future__ import annotations

import hashlib
import io
import os
import random
import re
import tarfile
import threading
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import ssl
    from types import TracebackType

MACHINE = os.uname().machine
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[MACHINE]
PADDING = 600_000
REPOSITORY = "quay.io/openshift-release-dev/ocp-release"
RELEASE_TEXT = """\
Client tools for OpenShift
--------------------------

These archives contain the client tooling for [OpenShift](https://docs.openshift.com).

---

Name:           {version}
Digest:         sha256:{digest}
Created:        2026-05-14T08:49:02Z
OS/Arch:        linux/{architecture}
Manifests:      761
Metadata files: 2

Pull From: {repository}@sha256:{digest}

Release Metadata:
  Version:  {version}
  Upgrades: 4.20.1, 4.20.2

Images:
  NAME                                           PULL SPEC
  agent-installer-api-server                     quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:0
"""
INSTALLER = """\
#!/bin/sh
echo "$0 {version}"
echo "built from commit 8bcf87f80e1803f9ec986dfe099625a088ac2412"
echo "release image {image}"
echo "release architecture {architecture}"
"""
OC = """\
#!/bin/sh
if [ "$1" = version ]; then echo "Client Version: {version}"; exit; fi
program=${{4#--command=}} to=$6 image=$7 version={version}
{{ echo "$*"; env; }} >{seen}
[ -z "$9" ] || cat "$9" >{seen}.secret
case $image in
*denied*) echo "error: unauthorized: $(cat "$9")" >&2; exit 1 ;;
*mute*) exit 0 ;;
*strange*) image=$image-strange ;;
*built*) version=unreleased-master-12272-g349feecf1e ;;
esac
cat >"$to/$program" <<END
#!/bin/sh
echo "\\$0 $version"
echo "release image $image"
END
"""


def digest_of(version: str) -> str:
    return hashlib.sha256(version.encode()).hexdigest()


@dataclass(frozen=True)
class Mirror:
    path: Path
    seen: Path
    """What oc writes down of how it was called."""

    def release(self, version: str, channels: tuple[str, ...] = (), *, installer: bool = True) -> Path:
        """Without an installer, it is in the release image only."""
        directory = self.path / version
        directory.mkdir(parents=True, exist_ok=True)
        image = f"{REPOSITORY}@sha256:{digest_of(version)}"
        oc = OC.format(version=version, seen=self.seen)
        self.tarball(directory / f"openshift-client-linux-{version}.tar.gz", {"oc": oc.encode()}, link="kubectl")
        if installer:
            script = INSTALLER.format(version=version, image=image, architecture=ARCHITECTURE)
            name = f"openshift-install-linux-{version}.tar.gz"
            self.tarball(directory / name, {"openshift-install": script.encode()})
        text = RELEASE_TEXT.format(
            version=version, digest=digest_of(version), architecture=ARCHITECTURE, repository=REPOSITORY
        )
        (directory / "release.txt").write_text(text)
        self.sum_up(directory)
        for channel in channels:
            (self.path / channel).unlink(missing_ok=True)
            (self.path / channel).symlink_to(version)
        return directory

    def tarball(self, file: Path, programs: dict[str, bytes], link: str = "") -> None:
        """With something that cannot be compressed, as programs hardly can."""
        padding = random.Random(file.name).randbytes(PADDING)  # noqa: S311 - the same each time
        with tarfile.open(file, "w:gz", compresslevel=1) as archive:
            for name, content in {"README.md": padding, **programs}.items():
                member = tarfile.TarInfo(name)
                member.size, member.mode = len(content), 0o755
                archive.addfile(member, io.BytesIO(content))
            if link:
                member = tarfile.TarInfo(link)
                member.type, member.linkname = tarfile.LNKTYPE, "oc"
                archive.addfile(member)

    def sum_up(self, directory: Path) -> None:
        files = sorted(file for file in directory.iterdir() if file.name != "sha256sum.txt")
        lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
        (directory / "sha256sum.txt").write_text("".join(lines))


class Request(NamedTuple):
    name: str
    start: int | None
    condition: str | None


@dataclass
class Server:
    """Serves a directory on loopback, also as a proxy that answers for whatever host it is asked."""

    directory: Path
    tls: ssl.SSLContext | None = None
    ranges: bool = True
    tags: bool = True
    lengths: bool = True
    cut: list[int] = field(default_factory=list)
    """For the answers to come that are files: how many bytes of them are sent."""
    stall: list[int] = field(default_factory=list)
    """The same, but the connection stays open and silent."""
    refuse: dict[str, int] = field(default_factory=dict)
    login: str = ""
    requests: list[Request] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)

    def __enter__(self) -> Server:
        self.stalled, self.over = threading.Event(), threading.Event()
        handler = type("Bound", (Handler,), {"shop": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        if self.tls:
            self._http.socket = self.tls.wrap_socket(self._http.socket, server_side=True)
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        self._http.shutdown()
        self._http.server_close()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._http.server_port}"

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.host}"

    def asked_for(self, ending: str) -> list[Request]:
        return [request for request in self.requests if request.name.endswith(ending)]


class Handler(BaseHTTPRequestHandler):
    shop: Server

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        shop, path = self.shop, parts.path
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        shop.requests.append(Request(path, int(asked[1]) if asked else None, self.headers.get("If-Range")))
        shop.hosts.append(parts.netloc)
        if path.startswith("/moved/"):
            self._refuse(302, Location=path.replace("/moved/", "/"))
        elif shop.login and self.headers.get("Authorization") != f"Basic {b64encode(shop.login.encode()).decode()}":
            self._refuse(401, **{"WWW-Authenticate": 'Basic realm="mirror"'})
        elif path.rpartition("/")[2] in shop.refuse:
            self._refuse(shop.refuse[path.rpartition("/")[2]])
        elif not (shop.directory / path.lstrip("/")).is_file():
            self._refuse(404)
        else:
            self._serve((shop.directory / path.lstrip("/")).read_bytes(), int(asked[1]) if asked else 0)

    def _serve(self, content: bytes, start: int) -> None:
        shop, tag = self.shop, f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        if not shop.ranges or self.headers.get("If-Range", tag) != tag:
            start = 0
        if start and start >= len(content):
            self._refuse(416, **{"Content-Range": f"bytes */{len(content)}"})
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if shop.tags:
            self.send_header("ETag", tag)
        if shop.lengths:
            self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        is_file = self.path.endswith(".gz")
        sent = shop.cut.pop(0) if is_file and shop.cut else len(content)
        silent = shop.stall.pop(0) if is_file and shop.stall else None
        with suppress(ConnectionError):
            self.wfile.write(content[start:][: sent if silent is None else silent])
            if silent is not None:
                self.wfile.flush()
                shop.stalled.set()
                shop.over.wait()

    def _refuse(self, code: int, **headers: str) -> None:
        self.send_response(code)
        for name, value in {"Content-Length": "0", **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Tests look at the requests."""
