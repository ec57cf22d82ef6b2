"""How the redfish_emulator module has systemd keep a lab's service, which is a small stand-in here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support import lab_host
from support.modules import run_in
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.lab_host import LabHost

UNIT = "nometal-bmc-demo.service"
BROKER_UNIT = "nometal-broker-demo.service"
HOME = "/var/lib/nometal/bmc"
MEDIA = "/var/lib/libvirt/images/nometal-demo-media"
DROP_IN = f"/etc/systemd/system/{UNIT}.d/mine.conf"
PROGRAM = "/opt/nometal/bmc/bin/python"
PARAMS = {"lab": "demo", "tls": False, "listen": [{"address": "127.0.0.1", "port": 8000}], "nodes": []}
# Answers everything with the same, after it has written where the real one writes.
# The broker only writes.
STAND_IN = f"""#!/usr/bin/python3
import http.server, os, pathlib, sys, time
if sys.argv[2] == "nometal_bmc.broker":
    for directory in ("{MEDIA}", "{HOME}/demo/broker/state"):
        pathlib.Path(directory, "written").touch()
    time.sleep(10**6)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        pathlib.Path("{HOME}/demo/state", "written").touch()
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{{}}")
http.server.HTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
"""
FAILING = """#!/bin/sh
case $2 in *.broker) exec sleep infinity;; esac
echo "The beginning of attempt $$"
for number in $(seq 20); do echo "line $number"; done
echo "The port is taken, sorry, by a program that has rather long a name"
exit 3
"""


@pytest.fixture(scope="module")
def host() -> Iterator[LabHost]:
    with lab_host.start(layer="prepared") as started:
        started.run("useradd --system --user-group --shell /usr/sbin/nologin nometal-bmc")
        started.run("useradd --system --user-group --groups libvirt --shell /usr/sbin/nologin nometal-bmc-broker")
        started.run("systemctl start libvirtd")
        yield started


def emulator(host: LabHost, **changed: Any) -> dict[str, Any]:
    return run_in(host, "redfish_emulator", {**PARAMS, **changed})


def steps(host: LabHost, **changed: Any) -> list[str]:
    result = emulator(host, **changed)
    assert not result["failed"], result["msg"]
    done: list[str] = result["steps"]
    return done


def put_program(host: LabHost, text: str) -> None:
    host.run(f"mkdir -p $(dirname {PROGRAM})")
    host.write(PROGRAM, text, "0755")


def shown(host: LabHost, name: str) -> str:
    return host.run(["systemctl", "show", f"--property={name}", "--value", UNIT]).stdout.strip()


def test_a_service_that_never_comes_up_is_not_left_behind(host: LabHost) -> None:
    put_program(host, FAILING)
    refused = emulator(host)
    assert refused["failed"]
    told = refused["msg"].splitlines()
    assert "It has never answered, so it was stopped" in told[-1]
    assert (shown(host, "ActiveState"), shown(host, "UnitFileState")) == ("inactive", "disabled")
    words = told[told.index("Its last words:") + 1 : -1]
    assert "line 20" in words
    assert "The port is taken, sorry, by a program that has rather long a name" in words
    assert words.count("line 20") == 1
    assert "status=3" in words[-1]


def test_the_next_run_brings_it_up(host: LabHost) -> None:
    put_program(host, STAND_IN)
    assert steps(host) == ["install service", "start service"]
    assert steps(host) == []


@pytest.mark.parametrize("directory", [MEDIA, f"{HOME}/demo/state", f"{HOME}/demo/broker/state", f"{HOME}/demo"])
def test_a_directory_that_was_made_again_can_be_written(host: LabHost, directory: str) -> None:
    host.run(f"rm -r {directory}")
    done = steps(host)
    assert f"make {directory}" in done
    assert done[-1] == "restart service"
    # The broker writes when it has started, which nothing waits for.
    written = [f"{place}/written" for place in (MEDIA, f"{HOME}/demo/state", f"{HOME}/demo/broker/state")]
    missing = f"for file in {' '.join(written)}; do [ -e $file ] || echo $file; done"
    wait_until("each directory is written", lambda: not host.run(missing).stdout, seen=lambda: host.run(missing).stdout)
    assert steps(host) == []


def test_a_drop_in_is_the_operators_unless_it_takes_user_or_confinement_away(host: LabHost) -> None:
    host.run(f"mkdir -p $(dirname {DROP_IN})")
    host.write(DROP_IN, "[Service]\nEnvironment=MINE=1\n")
    host.run("systemctl daemon-reload")
    assert steps(host) == []
    for line, said in (
        ("User=root", "User is root instead of nometal-bmc"),
        ("ProtectSystem=no", "ProtectSystem is no instead of strict"),
        ("CapabilityBoundingSet=CAP_KILL", "CapabilityBoundingSet is cap_kill instead of empty"),
    ):
        host.write(DROP_IN, f"[Service]\n{line}\n")
        host.run("systemctl daemon-reload")
        refused = emulator(host)
        assert refused["failed"]
        assert f"{said}, by {DROP_IN}" in refused["msg"]
    host.write(DROP_IN, "[Service]\nUser=root\n")
    host.run(f"systemctl daemon-reload; systemctl restart {UNIT}; rm {DROP_IN}; systemctl daemon-reload")
    assert steps(host) == ["restart service"]
    assert steps(host) == []


def test_a_unit_that_was_changed_is_put_right(host: LabHost) -> None:
    host.run(f"sed -i s/^User=.*/User=root/ /etc/systemd/system/{UNIT}; systemctl daemon-reload")
    host.run(f"systemctl restart {UNIT}")
    assert steps(host) == ["install service", "restart service"]
    assert shown(host, "User") == "nometal-bmc"
    assert steps(host) == []


def test_a_service_that_has_answered_before_stays_on(host: LabHost) -> None:
    put_program(host, FAILING)
    refused = emulator(host)
    assert refused["failed"]
    assert "stopped" not in refused["msg"]
    assert refused["msg"].count("line 20") == 1
    assert shown(host, "ActiveState") in ("active", "activating")
    assert shown(host, "UnitFileState") == "enabled"
    put_program(host, STAND_IN)
    assert steps(host) == ["restart service"]
    assert steps(host) == []


def test_it_goes(host: LabHost) -> None:
    assert steps(host, state="absent")[0] == "remove service"
    host.run(f"test ! -e /etc/systemd/system/{UNIT} -a ! -e /etc/systemd/system/{BROKER_UNIT}")
