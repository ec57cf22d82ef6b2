"""The Redfish service of a lab beside a private libvirtd, and clients of it in the same network.

with private_libvirtd.start() as libvirtd, redfish_service.Service(libvirtd, directory, nodes) as service:
    answer = service.get("Systems")  # as the operator; service.client(...) is for others
"""

from __future__ import annotations

import ctypes
import datetime
import http.client
import ipaddress
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import uuid
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import libvirt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from support.bmc_broker import AS_ITS_UNIT, Broker
from support.waiting import PATIENCE, wait_until

import nometal_bmc
from nometal_bmc.config import passwords

if TYPE_CHECKING:
    from email.message import Message
    from types import TracebackType
    from typing import Callable

    from support.private_libvirtd import PrivateLibvirtd

PACKAGE = Path(nometal_bmc.__file__).parents[1]
ADDRESS, PORT = "127.0.0.1", 8443
ROOT = "/redfish/v1/"
CLONE_NEWNET = 0x40000000
N, R, P = 2**12, 8, 1  # a quarter of what is usual, for tests that log in often
DOMAIN = """<domain type='qemu'><name>{name}</name><uuid>{uuid}</uuid><memory unit='MiB'>64</memory><vcpu>1</vcpu>
<os><type arch='x86_64' machine='q35'>hvm</type></os><devices>
<disk type='file' device='cdrom'><driver name='qemu' type='raw'/><target dev='sda' bus='sata'/><readonly/></disk>
</devices></domain>"""
T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Message
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def members(self) -> list[str]:
        return [member["@odata.id"] for member in self.json["Members"]]


@dataclass(frozen=True)
class Node:
    """A VM with a BMC. Its password is its name backwards."""

    name: str

    @property
    def uuid(self) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_DNS, self.name))

    @property
    def login(self) -> tuple[str, str]:
        return self.name, self.name[::-1]


def define(libvirtd: PrivateLibvirtd, nodes: list[Node]) -> None:
    with closing(libvirt.open(libvirtd.uri)) as connection:
        for node in nodes:
            connection.defineXML(DOMAIN.format(name=node.name, uuid=node.uuid))


class Service:
    """A running service. `config` is what its file says; change it and call `configure`."""

    operator = ("operator", "s3cret")

    def __init__(self, libvirtd: PrivateLibvirtd, directory: Path, nodes: list[Node], *, tls: bool = True) -> None:
        self.libvirtd = libvirtd
        self.directory = directory
        self.log = directory / "log"
        self.authority = Authority(directory)
        self.broker = Broker(libvirtd, str(directory), directory / "broker.log")
        self.config = self._config(nodes, tls=tls)
        self._inside = ThreadPoolExecutor(24, initializer=_join_network, initargs=(libvirtd.sandbox.init,))
        self.process: subprocess.Popen[bytes] | None = None

    def _config(self, nodes: list[Node], *, tls: bool) -> dict[str, Any]:
        everywhere = [account(*self.operator)]
        own = [account(*node.login, systems=[node.uuid]) for node in nodes]
        return {
            "lab": "demo",
            "broker": self.broker.socket,
            "listen": [{"address": ADDRESS, "port": PORT}],
            "tls": {"certificate": str(self.authority.certificate), "key": str(self.authority.key)} if tls else None,
            "systems": [{"uuid": node.uuid, "name": node.name} for node in nodes],
            "accounts": everywhere + own,
            "media": {"directory": str(self.directory), "max_bytes": 2**30, "timeout": 60, "ca_file": None},
            "state": str(self.directory),
        }

    def configure(self) -> None:
        """Replace the file as the module does. The service takes it within a second."""
        self.broker.configure(self.config["systems"], self.config["media"]["directory"])
        new = self.directory / "config.new"
        new.write_text(json.dumps(self.config))
        new.replace(self.directory / "config.json")

    def hang_up(self) -> None:
        """Replace the file, and have the service take it at once."""
        self.configure()
        self.signal(signal.SIGHUP)

    def start(self) -> Service:
        self.configure()
        if self.broker.process is None:
            self.broker.start()
        command = self.libvirtd.command([sys.executable, "-m", "nometal_bmc", str(self.directory / "config.json")])
        environment = {**os.environ, **AS_ITS_UNIT, "PYTHONPATH": str(PACKAGE), "PYTHONUNBUFFERED": "1"}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        return self

    def wait_ready(self) -> Service:
        wait_until("the service answers", self._answers, seen=self.log.read_text)
        return self

    def _answers(self) -> bool:
        assert self.process
        assert self.process.poll() is None, f"The service has ended:\n{self.log.read_text()}"
        with suppress(OSError):
            return self.client(None).get("").status == http.client.OK
        return False

    @property
    def pid(self) -> int:
        """Of the service itself: below nsenter and a shell, in which setpriv has become it."""
        assert self.process
        pid = self.process.pid
        while children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            pid = int(children[0])
        return pid

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def stop(self) -> int:
        """End it as systemd does, and return its exit status."""
        assert self.process
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def __enter__(self) -> Service:
        try:
            return self.start().wait_ready()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self.process and self.process.poll() is None:
            self.signal(signal.SIGKILL)
            self.process.wait()
        self.broker.stop()
        self._inside.shutdown()

    def inside(self, action: Callable[..., T], *arguments: Any) -> T:
        """Call something in a thread whose sockets are in the service's network."""
        return self._inside.submit(action, *arguments).result()

    def map(self, action: Callable[..., T], *arguments: Any) -> list[T]:
        """Likewise for many at once."""
        return list(self._inside.map(action, *arguments))

    def client(self, login: tuple[str, str] | None, source: str = ADDRESS) -> Client:
        return Client(self, login, source)

    def get(self, path: str) -> Answer:
        return self.client(self.operator).get(path)

    @property
    def url(self) -> str:
        return f"{'https' if self.config['tls'] else 'http'}://{ADDRESS}:{PORT}"


@dataclass(frozen=True)
class Client:
    """Somebody with a login, or without one, who comes from an address."""

    service: Service
    login: tuple[str, str] | None
    source: str

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        return self.ask("POST", path, body, **headers)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Paths are below /redfish/v1/ unless they begin with a slash. Underscores in header names are hyphens."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.login:
            sent["Authorization"] = basic(*self.login)
        if body is not None and not isinstance(body, bytes):
            sent["Content-Type"], body = "application/json", json.dumps(body).encode()
        return self.service.inside(self._ask, method, path if path.startswith("/") else ROOT + path, body, sent)

    def _ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        with closing(self.connection()) as connection:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())

    def connection(self) -> http.client.HTTPConnection:
        """Only for threads inside."""
        source = (self.source, 0)
        if not self.service.config["tls"]:
            return http.client.HTTPConnection(ADDRESS, PORT, timeout=PATIENCE, source_address=source)
        context = self.service.authority.client_context()
        return http.client.HTTPSConnection(ADDRESS, PORT, timeout=PATIENCE, source_address=source, context=context)


class Authority:
    """A certificate authority and the certificate of a service."""

    def __init__(self, directory: Path) -> None:
        self.ca, self.certificate, self.key = (directory / name for name in ("ca.pem", "server.pem", "server.key"))
        self._ca_key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "the lab's CA")])
        ca = self._sign(self._name, self._ca_key, x509.BasicConstraints(ca=True, path_length=0))
        self.ca.write_bytes(ca)
        self.issue("first")

    def issue(self, name: str, *addresses: str) -> None:
        """A new certificate with a new key, put in place as the module does it."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses or [ADDRESS]]
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
        _replace(self.key, key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain))
        _replace(self.certificate, self._sign(subject, key, x509.SubjectAlternativeName(names)))

    def client_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.ca))

    def _sign(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType) -> bytes:
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = x509.CertificateBuilder(self._name, subject, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(days=1))
        builder = builder.not_valid_after(now + datetime.timedelta(days=1)).add_extension(extension, critical=False)
        return builder.sign(self._ca_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def set_faults(directory: Path, *rules: dict[str, Any], seed: int = 7) -> None:
    """As module bmc_faults does, beside the configuration. The next request meets them; none: no faults."""
    path = directory / "faults.json"
    if not rules:
        path.unlink(missing_ok=True)
        return
    path.with_suffix(".new").write_text(json.dumps({"seed": seed, "rules": rules}))
    path.with_suffix(".new").replace(path)


def account(name: str, password: str, systems: list[str] | None = None) -> dict[str, Any]:
    cheap = passwords.HashedPassword(N, R, P, os.urandom(16), bytes(32)).of(password)
    return {"name": name, "password": str(cheap), "systems": systems}


def basic(name: str, password: str) -> str:
    return "Basic " + b64encode(f"{name}:{password}".encode()).decode()


def tls_socket(service: Service, source: str = ADDRESS, context: ssl.SSLContext | None = None) -> ssl.SSLSocket:
    """Only for threads inside."""
    plain = socket.create_connection((ADDRESS, PORT), timeout=PATIENCE, source_address=(source, 0))
    return (context or service.authority.client_context()).wrap_socket(plain, server_hostname=ADDRESS)


def _replace(path: Path, content: bytes) -> None:
    new = path.with_suffix(".new")
    new.write_bytes(content)
    new.replace(path)


def _join_network(pid: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with Path(f"/proc/{pid}/ns/net").open() as network:
        if libc.setns(network.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
