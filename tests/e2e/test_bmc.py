"""The BMCs of a lab on a host with systemd: installed, hardened, back after whatever befell it, and removed.

The tests follow one another; the last two take it away.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support import bmc_attacker, checkout, lab_host, snapshot
from support.bmc_attacker import CROWD_IS_THERE, CROWD_MAY_GO
from support.failures import ending
from support.former_lab import BROKER, HOME, MEDIA, UNIT
from support.guest_lab import Lab
from support.modules import run_in
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.lab_host import LabHost
    from support.snapshot import Snapshot

IN_GROUP = (
    "user: daemon must not be in the group libvirt, which is as good as being root; "
    "`gpasswd --delete daemon libvirt` removes it."
)
USERS = {"user": "daemon", "broker_user": "games"}
VM = """
<domain type='qemu'><name>{vm_name}</name><uuid>{uuid}</uuid><memory unit='MiB'>64</memory>
<metadata><nometal:vm xmlns:nometal="urn:nometal:ipi" owner="rehearsal"/></metadata>
<os><type arch='x86_64' machine='q35'>hvm</type></os>
<devices><disk type='file' device='cdrom'><target dev='sdz' bus='sata'/><readonly/></disk></devices></domain>
"""
# Prints the status, or why there is none. Arguments: URL, account, and a CA file unless the system's are to be used.
ASK = f"""
import base64, json, ssl, sys, urllib.error, urllib.request
url, account = sys.argv[1:3]
login = json.load(open("{HOME}/credentials.json")).get(account, {{"username": account, "password": "wrong"}})
secret = base64.b64encode(f"{{login['username']}}:{{login['password']}}".encode()).decode()
request = urllib.request.Request(url, headers={{"Authorization": f"Basic {{secret}}"}} if account else {{}})
try:
    context = ssl.create_default_context(cafile="".join(sys.argv[3:]) or None)
    print(urllib.request.urlopen(request, context=context, timeout=60).status)
except urllib.error.HTTPError as error:
    print(error.code)
except OSError as error:
    print(error)
"""
CHANGE_PASSWORD = f"""
import base64, json, ssl, sys, urllib.request
url, account, password = sys.argv[1:]
login = json.load(open("{HOME}/credentials.json"))[account]
secret = base64.b64encode(f"{{login['username']}}:{{login['password']}}".encode()).decode()
body = json.dumps({{"Password": password}}).encode()
request = urllib.request.Request(url, body, {{"Authorization": f"Basic {{secret}}"}}, method="PATCH")
context = ssl.create_default_context(cafile="{HOME}/tls/ca.pem")
print(urllib.request.urlopen(request, context=context, timeout=60).status)
"""
# Its frames cross the bridge and the host's packet filter, as a guest's do.
NEIGHBOUR = """
ip netns add neighbour
ip link add eth0 netns neighbour type veth peer name neighbour
ip link set neighbour master baremetal up
ip -n neighbour link set lo up
ip -n neighbour addr add 192.168.126.99/24 dev eth0
ip -n neighbour link set eth0 up
"""
ATTACKER = Path(bmc_attacker.__file__)
BY_OTHERS = ["package *"]  # polkit, which libvirt asks about unprivileged users
TEARDOWN = [
    *(str(Path(sys.executable).with_name("ansible")), "hypervisor", "--playbook-dir", str(checkout.ROOT / "playbooks")),
    *("--module-name", "include_role", "--args", "name=nometal.ipi.bmc_emulation tasks_from=teardown"),
    *("--extra-vars", "bmc_emulation_lab=rehearsal"),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_host.start(layer="prepared") as host:
        made = Lab(host, tmp_path_factory.mktemp("lab"))
        made.specify()
        made.make_network()
        for node in made.model["nodes"]:
            host.run(["virsh", "define", "/dev/stdin"], input=VM.format(**node))
        yield made


@pytest.fixture(scope="module")
def before(lab: Lab) -> Snapshot:
    """After a reboot, for libvirt orders its VMs' devices anew then."""
    lab.host.reboot()
    ready = "systemctl is-active nometal-resolver.path"
    wait_until("the network is back", lambda: lab.host.run(ready, check=False).returncode == 0)
    return snapshot.take(lab.host)


@pytest.fixture(scope="module")
def installed(lab: Lab, before: Snapshot) -> str:
    """What Ansible has shown meanwhile, at its most talkative."""
    return play_bmc(lab)


def play_bmc(lab: Lab) -> str:
    run = checkout.run_playbook("bmc", lab.inventory, "--diff", "-vvv")
    assert run.returncode == 0, run.stdout[-4000:]
    return run.stdout


def changed(shown: str) -> int:
    return sum(map(int, re.findall(r"changed=(\d+)", shown)))


def ask(host: LabHost, url: str, account: str = "operator", *, ca: str = f"{HOME}/tls/ca.pem") -> str:
    return host.run(["python3", "-c", ASK, url, account, ca]).stdout.strip()


def wait_until_it_answers(lab: Lab) -> None:
    url = url_of(lab, lab.model["nodes"][0])
    wait_until("it answers", lambda: ask(lab.host, url) == "200", seen=lambda: ask(lab.host, url))


def url_of(lab: Lab, node: dict[str, Any]) -> str:
    return f"{lab.model['bmc']['url']}/redfish/v1/Systems/{node['uuid']}"


def passwords(host: LabHost) -> dict[str, str]:
    return {name: login["password"] for name, login in json.loads(host.read(f"{HOME}/credentials.json")).items()}


def main_pid(host: LabHost, unit: str = UNIT) -> str:
    return host.run(["systemctl", "show", "--property=MainPID", "--value", unit]).stdout.strip()


@pytest.mark.usefixtures("installed")
def test_every_node_answers_to_its_own_credentials_and_the_operators(lab: Lab) -> None:
    one, other = lab.model["nodes"][:2]
    assert ask(lab.host, url_of(lab, one), one["vm_name"]) == "200"
    assert ask(lab.host, url_of(lab, one)) == "200"
    assert ask(lab.host, url_of(lab, one), other["vm_name"]) == "404"
    assert ask(lab.host, url_of(lab, one), "") == "401"
    assert "CERTIFICATE_VERIFY_FAILED" in ask(lab.host, url_of(lab, one), ca="")
    assert len(set(passwords(lab.host).values())) == len(lab.model["nodes"]) + 1


@pytest.mark.usefixtures("installed")
def test_bmc_info_tells_all_nodes(lab: Lab) -> None:
    told = run_in(lab.host, "bmc_info", {"lab": "rehearsal"})
    assert [node["name"] for node in told["nodes"]] == [node["vm_name"] for node in lab.model["nodes"]]
    for node in told["nodes"]:
        assert (node["power"], node["power_restore"]) == ("Off", "AlwaysOff")
        assert (node["media"], node["trouble"]) == (None, "")
        assert node["credentials"] == {"file": f"{HOME}/credentials.json", "key": node["name"]}


@pytest.mark.usefixtures("installed")
def test_the_example_of_the_documentation_works(lab: Lab) -> None:
    text = (checkout.ROOT / "docs/bmc.md").read_text(encoding="utf-8")
    [example] = re.findall(r"^    cd /var/lib/nometal/bmc/ha\n(?:    .*\n)+", text, re.MULTILINE)
    here = textwrap.dedent(example).replace("/bmc/ha", "/bmc/rehearsal")
    said = lab.host.run(here.replace("https://192.168.126.1:8000", lab.model["bmc"]["url"])).stdout
    assert all(node["uuid"] in said for node in lab.model["nodes"])


@pytest.mark.usefixtures("installed")
def test_what_stands_in_the_way_of_another_lab_is_named_and_nothing_made(lab: Lab) -> None:
    lab.host.run("install --mode=600 /etc/ssl/certs/ca-certificates.crt /etc/own-ca.pem")
    wrong: dict[str, Any] = {
        "listen": lab.model["bmc"]["endpoints"][:1],
        **USERS,
        "media": {"ca_file": "/etc/own-ca.pem"},
    }
    lab.host.run("usermod --append --groups libvirt daemon")
    told = run_in(lab.host, "redfish_emulator", {"lab": "other", **wrong})
    lab.host.run("gpasswd --delete daemon libvirt")
    lab.host.run("rm /etc/own-ca.pem")
    [place] = [f"{endpoint['address']}:{endpoint['port']}/tcp" for endpoint in wrong["listen"]]
    assert told["msg"].splitlines() == [
        "media.ca_file: /etc/own-ca.pem cannot be read by user daemon; `chmod o+r` lets it, and o+x above it.",
        f"listen: {place} is in use by python (pid {main_pid(lab.host)}); stop that, or take another port.",
        IN_GROUP,
        "broker_user: games may not use libvirt; `usermod --append --groups libvirt games` lets it.",
    ]
    assert lab.host.run(["ls", str(Path(HOME).parent)]).stdout.split() == ["rehearsal"]


def test_no_password_is_shown(lab: Lab, installed: str) -> None:
    processes = lab.host.run("ps axww; systemctl show --all " + UNIT).stdout
    logs = lab.host.run("journalctl --no-pager").stdout
    for name, password in passwords(lab.host).items():
        assert password not in installed + processes + logs, name


@pytest.mark.usefixtures("installed")
def test_a_password_changed_through_a_bmc_goes_into_the_credentials(lab: Lab) -> None:
    node = lab.model["nodes"][1]
    name, chosen = node["vm_name"], "chosen by its cluster"
    url = f"{lab.model['bmc']['url']}/redfish/v1/AccountService/Accounts/{name}"
    assert lab.host.run(["python3", "-c", CHANGE_PASSWORD, url, name, chosen]).stdout.strip() == "204"
    shown = play_bmc(lab)
    assert f"write credentials (changed by their BMCs: {name})" in shown
    assert chosen not in shown
    assert passwords(lab.host)[name] == chosen
    assert ask(lab.host, url_of(lab, node), name) == "200"
    assert f"Password of {name} changed" in lab.host.read(f"{HOME}/state/events/service.jsonl")


@pytest.mark.usefixtures("installed")
def test_nothing_is_changed_or_restarted_by_another_run(lab: Lab) -> None:
    before = main_pid(lab.host)
    assert changed(play_bmc(lab)) == 0
    assert main_pid(lab.host) == before


@pytest.mark.usefixtures("installed")
def test_faults_come_and_go_without_a_restart(lab: Lab) -> None:
    node, before = lab.model["nodes"][0], main_pid(lab.host)
    busy = {"fault": "status", "status": 503, "nodes": [node["vm_name"]]}
    assert run_in(lab.host, "bmc_faults", {"lab": "rehearsal", "rules": [busy]})["steps"] == ["write faults"]
    assert [ask(lab.host, url_of(lab, node), name) for name in (node["vm_name"], "operator")] == ["503", "200"]
    told = run_in(lab.host, "bmc_info", {"lab": "rehearsal"})
    assert [rule["status"] for rule in told["faults"]["rules"]] == [503]
    assert {node["trouble"] for node in told["nodes"]} == {""}

    declared = {"seed": 7, "rules": [{"fault": "status", "status": 502, "nodes": [node["name"]]}]}
    lab.specify(bmc={"faults": declared})
    assert "write faults" in play_bmc(lab)
    assert ask(lab.host, url_of(lab, node), node["vm_name"]) == "502"
    lab.specify()
    assert "remove faults" in play_bmc(lab)
    assert ask(lab.host, url_of(lab, node), node["vm_name"]) == "200"
    assert main_pid(lab.host) == before
    log = lab.host.run(["journalctl", "--unit", UNIT, "--grep", "on purpose", "--output", "cat"]).stdout
    assert f"Fault on purpose for {node['vm_name']}: status 502 at GET /redfish/v1/Systems/{node['uuid']}" in log


@pytest.mark.usefixtures("installed")
def test_the_service_is_unprivileged_and_hardened(lab: Lab) -> None:
    for unit, user in {UNIT: "nometal-bmc", BROKER: "nometal-bmc-broker"}.items():
        shown = lab.host.run(["systemd-analyze", "security", "--no-pager", unit]).stdout
        [exposure] = re.findall(r"Overall exposure level for \S+: ([\d.]+)", shown)
        assert float(exposure) < 3, shown
        assert owner_of(lab.host, f"/proc/{main_pid(lab.host, unit)}") == user
    for file in ("credentials.json", "tls/ca.key", "tls/server.key", "config.json", "hashes.json"):
        read = lab.host.run(["setpriv", "--reuid=nobody", "--clear-groups", "cat", f"{HOME}/{file}"], check=False)
        assert "Permission denied" in read.stderr, file


@pytest.mark.usefixtures("installed")
def test_libvirt_and_images_are_closed_to_the_service(lab: Lab) -> None:
    pid = main_pid(lab.host)
    assert "libvirt" not in lab.host.run("id --groups --name nometal-bmc").stdout.split()
    inside = ["nsenter", f"--target={pid}", "--mount", "setpriv", "--reuid=nometal-bmc", "--regid=nometal-bmc"]
    tries = (["ls", "/run/libvirt/libvirt-sock-ro"], ["touch", f"{MEDIA}/own.iso"], ["touch", f"{HOME}/broker/own"])
    for command in tries:
        assert lab.host.run([*inside, "--init-groups", *command], check=False).returncode != 0, command
    assert lab.host.run([*inside, "--init-groups", "touch", f"{HOME}/state/own"]).returncode == 0
    lab.host.run(["rm", f"{HOME}/state/own"])


def owner_of(host: LabHost, path: str) -> str:
    return host.run(["stat", "--format=%U", path]).stdout.strip()


@pytest.mark.usefixtures("installed")
def test_it_is_back_after_a_crash(lab: Lab) -> None:
    lab.host.run(["kill", "-KILL", main_pid(lab.host)])
    wait_until_it_answers(lab)


@pytest.mark.usefixtures("installed")
def test_the_next_request_works_after_a_restart_of_libvirtd(lab: Lab) -> None:
    before = main_pid(lab.host)
    lab.host.run("systemctl restart libvirtd")
    assert ask(lab.host, url_of(lab, lab.model["nodes"][0])) == "200"
    assert main_pid(lab.host) == before


@pytest.mark.usefixtures("installed")
def test_it_is_there_again_after_a_reboot(lab: Lab) -> None:
    lab.host.reboot()
    wait_until_it_answers(lab)


@pytest.fixture
def attacker(lab: Lab) -> Iterator[Callable[[str], Any]]:
    """What a neighbour on the machine network does who has the password of the first node."""
    mine, other = lab.model["nodes"][:2]
    stranger = {"vm_name": "stranger", "uuid": "0d6e7b8a-3c9c-4a0e-9a51-5d1f6ab0a001"}
    [endpoint] = [each for each in lab.model["bmc"]["endpoints"] if "." in each["address"]]
    plan = {**endpoint, "uuid": mine["uuid"], **json.loads(lab.host.read(f"{HOME}/credentials.json"))[mine["vm_name"]]}
    plan["others"] = [vm[key] for vm in (other, stranger) for key in ("vm_name", "uuid")]
    lab.host.write("/root/attacker.py", ATTACKER.read_text(encoding="utf-8"))
    lab.host.run(["sh", "-ec", NEIGHBOUR])
    lab.host.run(["virsh", "define", "/dev/stdin"], input=VM.replace("rehearsal", "another").format(**stranger))

    def attack(kind: str) -> Any:
        command = ["ip", "netns", "exec", "neighbour", "python3", "/root/attacker.py", kind, json.dumps(plan)]
        return json.loads(lab.host.run(command).stdout)

    yield attack
    lab.host.run("ip netns del neighbour; umount /run/netns; rmdir /run/netns; virsh undefine stranger")
    lab.host.run("rm /root/attacker.py")


def test_a_neighbour_with_one_password_gets_no_further(lab: Lab, attacker: Callable[[str], Any]) -> None:
    outcome = attacker("attack")
    assert outcome.pop("paths") > 10
    assert outcome.pop("MiB of an endless body") < 64
    assert outcome == {
        "without a login": [401],
        "with a wrong one": [401],
        "systems of others": [404, 405],
        "detours": [404, 405],
        "files as media": [400],
        "secrets or tracebacks": False,
    }
    wait_until_it_answers(lab)


def test_a_crowd_of_slow_connections_keeps_nobody_out(lab: Lab, attacker: Callable[[str], Any]) -> None:
    url = url_of(lab, lab.model["nodes"][0])
    with ThreadPoolExecutor() as threads:
        crowd = threads.submit(attacker, "crowd")
        there = f"test -e {CROWD_IS_THERE} && rm {CROWD_IS_THERE}"
        wait_until("the crowd is there", lambda: crowd.done() or lab.host.run(there, check=False).returncode == 0)
        answers = [ask(lab.host, url) for _again in range(6)]
        assert not crowd.done()
        lab.host.run(["touch", CROWD_MAY_GO])
        crowd.result()
    assert answers == ["200"] * 6


@pytest.mark.usefixtures("installed")
def test_a_node_less_reaches_the_running_service(lab: Lab) -> None:
    gone = lab.model["nodes"][-1]
    kept, before = passwords(lab.host), main_pid(lab.host)
    lab.specify(nodes={**specified_nodes(lab), "workers": {"count": 0}})
    assert gone["vm_name"] in play_bmc(lab)
    assert ask(lab.host, url_of(lab, gone)) == "200"  # as long as there is a VM to command
    assert passwords(lab.host) == kept
    definition = lab.host.run(["virsh", "dumpxml", gone["vm_name"]]).stdout
    lab.host.run(["virsh", "undefine", gone["vm_name"]])
    play_bmc(lab)
    assert main_pid(lab.host) == before
    assert ask(lab.host, url_of(lab, gone)) == "404"
    assert passwords(lab.host) == {name: password for name, password in kept.items() if name != gone["vm_name"]}
    lab.host.run(["virsh", "define", "/dev/stdin"], input=definition)


def specified_nodes(lab: Lab) -> dict[str, Any]:
    text = (lab.inventory / "group_vars/all/lab.yml").read_text(encoding="utf-8")
    nodes: dict[str, Any] = yaml.safe_load(text)["lab_spec"]["nodes"]
    return nodes


@pytest.mark.usefixtures("installed")
def test_the_firewall_follows_a_port_that_changes(lab: Lab) -> None:
    for port, former in ((8443, 8000), (8000, 8443)):
        lab.specify(nodes={**specified_nodes(lab), "workers": {"count": 0}}, bmc={"port": port})
        play_bmc(lab)
        wait_until_it_answers(lab)
        rules = lab.host.run("nft list ruleset; iptables-save").stdout
        assert f"dport {port}" in rules
        assert f"dport {former}" not in rules


@pytest.mark.full
@pytest.mark.usefixtures("installed")
def test_another_run_changes_nothing_after_a_port_was_changed(lab: Lab) -> None:
    for port in (8443, 8000):
        lab.specify(bmc={"port": port})
        play_bmc(lab)
        assert changed(play_bmc(lab)) == 0


@pytest.mark.usefixtures("installed")
def test_teardown_leaves_nothing(lab: Lab, before: Snapshot) -> None:
    for expected in (True, False):
        command = [*TEARDOWN, "--inventory", str(lab.inventory)]
        run = subprocess.run(command, check=False, text=True, capture_output=True)
        assert run.returncode == 0, run.stdout + run.stderr
        assert ("| CHANGED" in run.stdout) is expected, ending(run.stdout)
    left = snapshot.take(lab.host).diff(before, without=BY_OTHERS)
    assert not left, left
