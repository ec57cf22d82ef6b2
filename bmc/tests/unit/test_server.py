"""What the service does when it cannot be where it should be."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from nometal_bmc.config.settings import Config, Listen, Media, Tls
from nometal_bmc.front import server


def test_why_it_cannot_listen_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket, "socket", refuse)
    with pytest.raises(server.NotServing, match=r"Cannot listen at fd00::1 port 1: Permission denied"):
        server.Server(current(Listen("fd00::1", 1)))


def test_a_certificate_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(server.NotServing, match=r"The certificate .*server.pem.* cannot be used"):
        server.Server(current(Listen("192.0.2.77", 8000), Tls(tmp_path / "server.pem", tmp_path / "server.key")))


def current(listen: Listen, tls: Tls | None = None) -> server.CurrentConfig:
    media = Media(Path("/"), 0, 0, None)
    return SimpleNamespace(config=Config("ha", Path("/broker.sock"), (listen,), tls, (), (), media, Path("/")))  # type: ignore[return-value]
