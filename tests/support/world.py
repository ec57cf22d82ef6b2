"""A street with a name server for all the world."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from support.street import OUTSIDE, ROUTER, Street

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OUTSIDE_NAME = "www.outside.test"


@dataclass(frozen=True)
class World:
    """A street, with a name server for all the world at the router, which notes what it is asked."""

    street: Street
    questions: Path

    @contextmanager
    def not_asked_for_labs(self) -> Iterator[None]:
        self.questions.write_text("", encoding="utf-8")
        yield
        asked = self.questions.read_text(encoding="utf-8")
        assert "lab.test from" not in asked
        assert "168.192.in-addr.arpa from" not in asked


@contextmanager
def a_world(below: Path) -> Iterator[World]:
    questions = below / "questions"
    options = [
        "--conf-file=/dev/null",
        "--pid-file",
        "--keep-in-foreground",
        "--no-resolv",
        "--no-hosts",
        "--local=/#/",
    ]
    addresses = [f"--listen-address={ROUTER},{OUTSIDE}", "--bind-interfaces", f"--address=/outside.test/{OUTSIDE}"]
    log = ["--log-queries", f"--log-facility={questions}", "--user=root"]
    street = Street()
    enter = ["nsenter", f"--net=/proc/self/fd/{street.fd}"]
    with subprocess.Popen([*enter, "dnsmasq", *options, *addresses, *log], pass_fds=[street.fd]) as server:
        try:
            yield World(street, questions)
        finally:
            server.kill()
            street.close()
