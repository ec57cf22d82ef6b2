"""Logins of a pull secret at registries that take them themselves, or send a client to a token server."""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools import registries
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.tools.registries import Answer
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.modules import registry_logins

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GOOD, BAD = (b64encode(f"robot:{password}".encode()).decode() for password in ("g00dPassw0rd", "b4dPassw0rd"))


class Registry(BaseHTTPRequestHandler):
    """At /v2/, it takes a login itself if its server says so, or names its own /token."""

    def do_GET(self) -> None:
        accepted = self.headers.get("Authorization") == f"Basic {GOOD}"
        by_token: bool = self.server.by_token  # type: ignore[attr-defined]
        if by_token and self.path == "/v2/":
            place = f"https://{self.headers['Host']}/token"
            self._answer(401, f'Bearer realm="{place}",service="registry"')
        else:
            self._answer(200 if accepted else 401, 'Basic realm="registry"')

    def _answer(self, status: int, challenge: str) -> None:
        self.send_response(status)
        self.send_header("WWW-Authenticate", challenge)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_arguments: Any) -> None:
        """Nothing."""


@pytest.fixture(params=[False, True], ids=["by itself", "by token"])
def registry(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    files = {name: str(tmp_path / name) for name in ("key", "certificate")}
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", files["key"], "-out", files["certificate"]]
    subprocess.run(command, check=True, capture_output=True)
    monkeypatch.setenv("SSL_CERT_FILE", files["certificate"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files["certificate"], files["key"])
    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        server.by_token = request.param  # type: ignore[attr-defined]
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"localhost:{server.server_port}"
        server.shutdown()


def pull_secret(**logins: str) -> str:
    return json.dumps({"auths": {name: {"auth": auth} for name, auth in logins.items()}})


def test_a_login_is_accepted_or_refused(registry: str) -> None:
    [accepted] = registries.check(pull_secret(**{registry: GOOD}), {})
    assert accepted == registries.Login(registry, Answer.ACCEPTED)
    [refused] = registries.check(pull_secret(**{f"{registry}/some/path": BAD}), {})
    assert (refused.answer, "answered 401" in refused.why) == (Answer.REFUSED, True)


def test_a_registry_that_no_proxy_names_is_asked_without_one(registry: str) -> None:
    by_nothing = {"HTTPS_PROXY": "http://127.0.0.1:1"}
    [lost] = registries.check(pull_secret(**{registry: GOOD}), by_nothing)
    assert lost.answer is Answer.UNREACHABLE
    [accepted] = registries.check(pull_secret(**{registry: GOOD}), {**by_nothing, "no_proxy": "localhost"})
    assert accepted.answer is Answer.ACCEPTED


def test_a_refused_login_is_an_error_that_quotes_no_password(registry: str) -> None:
    with pytest.raises(OperatorError) as error:
        registry_logins.run({"pull_secret": pull_secret(**{registry: BAD}), "environment": {}})
    assert str(error.value).startswith(f"The pull secret is refused: {registry}: ")
    assert BAD not in str(error.value)


def test_what_is_not_reachable_is_a_warning() -> None:
    told = registry_logins.run({"pull_secret": pull_secret(**{"localhost:1": GOOD}), "environment": "{}"})
    assert told["accepted"] == []
    assert "refused" in told["without_answer"]["localhost:1"]
    assert told["warnings"] == [f"localhost:1 is not reachable: {told['without_answer']['localhost:1']}"]


@pytest.mark.parametrize("text", ["", "{}", '{"auths": []}', f'{{"auths": {{"a": "{GOOD}"}}}}', GOOD])
def test_what_is_no_pull_secret_is_refused_without_quoting_it(text: str) -> None:
    with pytest.raises(OperatorError, match="pull_secret: must be JSON with auths") as error:
        registries.check(text, {})
    assert GOOD not in str(error.value)
