"""A small web server for images, beside a private libvirtd or on a street, that can misbehave and notes all requests.

with image_server.start(libvirtd, directory) as server:
    server.url("/good.iso")            # a file of the directory, with ETag and Last-Modified
    server.requests("/good.iso")       # ["HEAD", "GET"]

What misbehaves is below: /redirect?<url>, /loop, /endless, /long, /short, /half, /trickle, /stall, /login/<file>.
"""

from __future__ import annotations

import json
import ssl
import struct
import subprocess
import sys
import time
from base64 import b64encode
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.utils import formatdate
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from support.place import Place

LOGIN = ("reader", "s3cret-of-the-image")
MIB = 1 << 20


def iso(size: int = MIB, content: bytes = b"") -> bytes:
    """The bare minimum that looks like an ISO 9660 image, up to the end of `content`."""
    head = bytearray(0x8800)
    head[0x8000:0x8007] = b"\x01CD001\x01"
    struct.pack_into("<L", head, 0x8000 + 80, size // 2048)
    struct.pack_into("<H", head, 0x8000 + 128, 2048)
    return bytes(head) + content


def write_iso(path: Path, size: int = MIB, content: bytes = b"") -> None:
    """A sparse file."""
    with path.open("wb") as file:
        file.write(iso(size, content))
        file.truncate(size)


@dataclass(frozen=True)
class ImageServer:
    """A running one."""

    directory: Path
    port: int
    scheme: str

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"

    @contextmanager
    def stalling(self) -> Iterator[Callable[[], None]]:
        """While /stall sends no more than a half; the rest comes when what this gives is called, or at the end."""
        go = self.directory / "go"
        go.unlink(missing_ok=True)
        try:
            yield go.touch
        finally:
            go.touch()

    def requests(self, path: str) -> list[str]:
        """The methods of the requests for a path, in their order."""
        lines = (self.directory / ".requests").read_text().splitlines()
        return [method for method, asked in map(json.loads, lines) if asked == path]


@contextmanager
def start(place: Place, directory: Path, certificate: Sequence[Path] = ()) -> Iterator[ImageServer]:
    """Serve a directory there; over https with a certificate and its key."""
    (directory / ".requests").touch()
    command = place.command([sys.executable, str(Path(__file__)), str(directory), *map(str, certificate)])
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        port = int(process.stdout.readline())
        yield ImageServer(directory, port, "https" if certificate else "http")
        process.kill()


class Handler(BaseHTTPRequestHandler):
    """Serves files well and everything else badly."""

    protocol_version = "HTTP/1.1"

    def __init__(self, directory: Path, *request: object) -> None:
        self.directory = directory
        super().__init__(*request)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        with (self.directory / ".requests").open("a") as log:
            log.write(json.dumps([self.command, path]) + "\n")
        misbehave = getattr(self, f"_{path.split('/')[1]}", None)
        with suppress(BrokenPipeError, ConnectionResetError):
            if misbehave:
                misbehave(unquote(query))
            else:
                self._file(path)

    do_HEAD = do_GET  # noqa: N815 - named by http.server

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def _file(self, path: str) -> None:
        file = self.directory / path.lstrip("/")
        if not file.is_file():
            self._answer(404, {"Content-Length": "0"})
            return
        status = file.stat()
        etag = f'"{status.st_mtime_ns:x}-{status.st_size:x}"'
        modified = formatdate(status.st_mtime, usegmt=True)
        self._answer(200, {"Content-Length": str(status.st_size), "ETag": etag, "Last-Modified": modified})
        if self.command == "GET":
            with file.open("rb") as content:
                self.connection.sendfile(content)

    def _login(self, _: str) -> None:
        if self.headers["Authorization"] == "Basic " + b64encode(":".join(LOGIN).encode()).decode():
            self._file(self.path.removeprefix("/login"))
        else:
            self._answer(401, {"Content-Length": "0", "WWW-Authenticate": "Basic"})

    def _index(self, _: str) -> None:
        page = b"<!DOCTYPE HTML>\n<html><title>Index of /</title></html>"
        self._answer(200, {"Content-Length": str(len(page)), "Content-Type": "text/html"})
        self.wfile.write(page)

    def _redirect(self, target: str) -> None:
        self._answer(302, {"Location": target, "Content-Length": "0"})

    def _loop(self, _: str) -> None:
        self._redirect("/loop")

    def _endless(self, _: str) -> None:
        self._answer(200, {"Connection": "close"})
        self.wfile.write(iso())
        while True:
            self.wfile.write(bytes(MIB))

    def _long(self, _: str) -> None:
        self._answer(200, {"Content-Length": str(1 << 50)})
        self.wfile.write(iso())

    def _short(self, _: str) -> None:
        """Announces less than the image has."""
        self._answer(200, {"Content-Length": str(MIB // 2)})
        self.wfile.write(iso().ljust(MIB, b"\0"))

    def _half(self, _: str) -> None:
        """Closes the connection in the middle."""
        self._answer(200, {"Content-Length": str(MIB), "Connection": "close"})
        self.wfile.write(iso())

    def _trickle(self, _: str) -> None:
        """A byte now and then, for ever: it never stalls."""
        self._answer(200, {"Content-Length": str(MIB)})
        while True:
            self.wfile.write(b"\0")
            time.sleep(0.1)

    def _stall(self, _: str) -> None:
        """Half of the image, then nothing until somebody makes the file `go` in the directory."""
        self._answer(200, {"Content-Length": str(MIB)})
        self.wfile.write(iso().ljust(MIB // 2, b"\0"))
        while not (self.directory / "go").exists():
            time.sleep(0.02)
        self.wfile.write(bytes(MIB // 2))

    def _answer(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


def main() -> None:
    directory, *certificate = sys.argv[1:]
    server = ThreadingHTTPServer(("", 0), partial(Handler, Path(directory)))
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_port, flush=True)  # noqa: T201 - the test waits for it
    server.serve_forever()


if __name__ == "__main__":
    main()
