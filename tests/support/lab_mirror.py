"""This machine's package registries inside a lab host that has no way to the machine's network.

tinyproxy listens on the machine's loopback; socat carries a port of the lab host's loopback there by a unix socket.
"""

from __future__ import annotations

import configparser
import os
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from support.waiting import wait_until

PORT = 3128
PROXY = f"http://127.0.0.1:{PORT}"
_SOCKET = "mirror.sock"
_CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
_OWN_CAS = Path("/usr/local/share/ca-certificates")


def start(place: Path) -> None:
    """The proxy and the socket that leads to it. Both end with the sandbox they are started in."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = f"Port {port}\nListen 127.0.0.1\nAllow 127.0.0.1\nMaxClients 100\nTimeout 600\nLogLevel Warning\n"
    (place / "tinyproxy.conf").write_text(settings + _upstream())
    subprocess.Popen(["tinyproxy", "-d", "-c", str(place / "tinyproxy.conf")])
    subprocess.Popen(["socat", f"UNIX-LISTEN:{place / _SOCKET},fork", f"TCP4:127.0.0.1:{port}"])
    wait_until(
        "the package mirror's proxy (tinyproxy) has started",
        lambda: (place / _SOCKET).exists() and _answers(port),
        seen=lambda: "See the messages above.",
    )


def forward(network_process: int, place: Path) -> list[subprocess.Popen[bytes]]:
    """Listen in the network namespace of that process."""
    listen = f"TCP4-LISTEN:{PORT},bind=127.0.0.1,fork,reuseaddr"
    enter = ["nsenter", f"--net=/proc/{network_process}/ns/net"]
    return [subprocess.Popen([*enter, "socat", listen, f"UNIX-CONNECT:{place / _SOCKET}"])]


def pip_settings() -> dict[str, str]:
    """pip's settings on this machine. They may hold a password, so they appear on no command line."""
    return {**_pip_files(), **_pip_environment()}


def local_paths() -> list[str]:
    """Directories of this machine that pip's settings name."""
    paths = [Path(urlsplit(word).path) for value in pip_settings().values() for word in value.split()]
    local = [path for path in paths if path.is_absolute() and path.is_dir()]
    # An index in file:// form names its files by paths beside it.
    return sorted({str(path.parent if path.name == "simple" else path) for path in local})


def configure(root: Path) -> None:
    """Point the apt and the pip of a lab host to the mirror."""
    apt = root / "etc/apt/apt.conf.d/01mirror"
    apt.write_text(f'Acquire::http::Proxy "{PROXY}";\nAcquire::https::Proxy "{PROXY}";\n')
    pip = configparser.ConfigParser(interpolation=None)
    pip["global"] = {**pip_settings(), "proxy": PROXY, "disable-pip-version-check": "1", "retries": "8"}
    if _CA_BUNDLE.exists():
        pip["global"]["cert"] = "/etc/mirror-ca.crt"
        (root / "etc/mirror-ca.crt").write_bytes(_CA_BUNDLE.read_bytes())
    with (root / "etc/pip.conf").open("w") as file:
        pip.write(file)
    for authority in _OWN_CAS.glob("*.crt"):  # for whoever installs ca-certificates
        copy = root / str(authority).lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(authority.read_bytes())


def _upstream() -> str:
    """This machine's own proxy, where it needs one."""
    proxy = os.environ.get("https_proxy") or os.environ.get("HTTPS_PROXY")
    return f"Upstream http {urlsplit(proxy).netloc}\n" if proxy else ""


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _pip_files() -> dict[str, str]:
    parser = configparser.ConfigParser(interpolation=None)
    home = Path("~").expanduser()
    parser.read(["/etc/pip.conf", home / ".pip/pip.conf", home / ".config/pip/pip.conf"])
    return dict(parser["global"]) if parser.has_section("global") else {}


def _pip_environment() -> dict[str, str]:
    wanted = ("index-url", "extra-index-url", "find-links", "trusted-host", "default-timeout", "timeout")
    names = {name: f"PIP_{name.upper().replace('-', '_')}" for name in wanted}
    return {name: os.environ[variable] for name, variable in names.items() if variable in os.environ}
