"""Installations on a whole host in which something is broken on purpose: what is told of it, and how they go on."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from support import checkout, install_lab
from support.failures import ending
from support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.install_lab import InstallLab
    from support.lab_host import LabHost

NO_DHCP = """table inet mine {
    chain in { type filter hook input priority 0; udp dport 67 drop; }
}"""
IMPATIENCE = "ipi_install_patience=0.01"
"""Eight seconds for the API, three for a BMC, and six for a node that says nothing."""
OTHERS = re.compile(r"\b(?:host|API|bootstrap|names|BMC|control-plane-\d): ")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InstallLab]:
    with install_lab.start(tmp_path_factory.mktemp("stalls")) as made:
        yield made


def events(host: LabHost, lab: InstallLab) -> list[dict[str, Any]]:
    told = host.run(["cat", f"/run/nometal/install/{lab.name}/events.jsonl"], check=False).stdout
    return [json.loads(line) for line in told.splitlines()]


def wait_until_told(lab: InstallLab, who: str, words: str) -> str:
    def told() -> list[str]:
        states = [str(event["state"]) for event in events(lab.host, lab) if event["who"] == who]
        return [state for state in states if words in state]

    return wait_until(f"{who} {words}", told, seen=lambda: events(lab.host, lab))[0]


def test_what_stands_still_is_named_and_when_it_is_mended_the_installation_goes_on(lab: InstallLab) -> None:
    host = lab.host
    host.write("/root/no-dhcp", NO_DHCP)
    host.run("nft -f /root/no-dhcp")
    lab.scenario(hang={"stage": "api"})
    command = checkout.command("install", lab.inventory(), "-e", IMPATIENCE)
    with subprocess.Popen(
        command, cwd=checkout.ROOT, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    ) as run:
        bootstrap = wait_until_told(lab, "bootstrap", "has no address")
        assert re.match(r"lab-[a-z0-9]{5}-bootstrap, MAC address 52:54:00:", bootstrap)
        assert "`udp dport 67 drop` in table inet mine" in wait_until_told(lab, "host", "keeps from the DHCP server")
        assert not any(event["who"] in ("API", "names", "BMC") for event in events(host, lab)), "they are innocent"

        host.run("nft delete table inet mine; systemctl stop nometal-bmc-lab")
        lab.scenario(hang={"stage": "control plane", "host": "control-plane-1"})
        wait_until_told(lab, "bootstrap", "gone on since")
        wait_until_told(lab, "control-plane-1", "registration error")
        assert "playbooks/bmc.yml" in wait_until_told(lab, "BMC", "Those of all nodes: No answer")

        host.run("systemctl start nometal-bmc-lab")
        wait_until_told(lab, "control-plane-1", "was reset")
        shown = run.communicate(timeout=PATIENCE)[0]
    assert run.returncode == 0, ending(shown)
    assert re.search(r"installer +100%  has installed the cluster", shown)
    assert re.findall(r"(\S+) +TROUBLE: hung at power-on", shown) == ["control-plane-1"]
    record = json.loads(host.read(f"/var/lib/nometal/install/{lab.name}/power-cycled.json"))
    assert list(record.values()) == [["control-plane-1"]]


@pytest.mark.full
def test_what_fails_at_once_is_blamed_on_nobody_else(lab: InstallLab) -> None:
    removed = lab.remove_cluster()
    assert removed.returncode == 0, ending(removed.stdout)
    lab.scenario(fail={"stage": "infrastructure", "message": "something unheard of"})
    failed = lab.install()
    assert failed.returncode != 0
    said = re.search(r"is not complete: .*? Run this again", failed.stdout, re.DOTALL)
    assert said, ending(failed.stdout)
    assert "something unheard of" in said[0]
    assert not OTHERS.search(said[0]), said[0]
