"""The installer's running on a host, with a small program in its place that does as it is told: whatever is killed."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support import modules, private_libvirtd, processes
from support.checkout import ROOT
from support.small_installer import API, COMPLETE, INITIALIZES, INSTALLER
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.private_libvirtd import PrivateLibvirtd

PASSWORD, TOKEN, PROXY = "pAsSw0rdOfTheBmc", "t0kenOfTheRegistry", "pr0xyPassword"
VAULTED, KUBEADMIN = "v4ultedValue", "AbCdE-fGhIj-KlMnO-pQrSt"
AUTH = base64.b64encode(f"robot:{TOKEN}".encode()).decode()
PULL_SECRET = json.dumps({"auths": {"registry.example.test": {"auth": AUTH}}})
MANIFEST = "mAnifestValue"
SECRETS = (PASSWORD, TOKEN, PROXY, VAULTED, AUTH, KUBEADMIN, MANIFEST)
SECRET_MANIFEST = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"conf": MANIFEST}}
# Of a small lab on a slow disk: words and numbers that are everywhere.
PRESETS = {
    "a.yaml": {
        "apiVersion": "v1",
        "kind": "IngressController",
        "metadata": {"name": "default"},
        "spec": {"replicas": 1},
    },
    "b.yaml": {"apiVersion": "v1", "kind": "Etcd", "metadata": {"name": "cluster"}, "spec": {"mode": "installed"}},
}
OURS = ("/var/lib/nometal", "/var/cache/nometal", "/run/nometal")
BOOTSTRAP = "ha-abcde-bootstrap"
POOLS = "/var/lib/libvirt/openshift-images"
BEGINNING = ["create manifests", "create cluster"]
DOMAIN = f"""
<domain type='qemu'><name>{BOOTSTRAP}</name><memory unit='MiB'>32</memory><os><type machine='pc'>hvm</type></os>
<devices><emulator>/usr/bin/qemu-system-x86_64</emulator></devices></domain>"""
# Runs the module's own function as the host's Python would, without the second that Ansible takes: each call in a
# process of its own, which may be killed.
SERVER = """
import json, os, sys, traceback
from pathlib import Path
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.removal import leftovers
from ansible_collections.nometal.ipi.plugins.module_utils._cluster.run import prepare, run
from ansible_collections.nometal.ipi.plugins.modules import cluster_install
defaults = {name: known.get("default") for name, known in cluster_install.ARGUMENTS.items()}
def answer(given, params):
    exec(given["first"], globals())
    try:
        return cluster_install.run({**defaults, **params}, check_mode=given["check_mode"])
    except OperatorError as error:
        return {"msg": str(error)}
def begin(given, params):
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, os.fdopen(reading)
    try:
        with os.fdopen(writing, "w") as told:
            json.dump(answer(given, params), told)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)
def end(pid, told):
    with told:
        text = told.read()
    os.waitpid(pid, 0)
    return json.loads(text or "{}")
for line in sys.stdin:
    given = json.loads(line)
    begun = (begin(given, params) for params in given["calls"])
    print(json.dumps([end(*each) for each in (list(begun) if given["at_once"] else begun)]), flush=True)
"""
OFF = f"""
virsh pool-define-as $1 dir --target {POOLS}/$1; virsh pool-build $1; virsh pool-autostart $1
echo >{POOLS}/$1/$1.ign; echo "$2" | virsh define /dev/stdin"""
NODE = """
<domain type='qemu'><name>{name}</name><memory unit='MiB'>32</memory><os><type machine='pc'>hvm</type></os>
<metadata><vm xmlns='urn:nometal:ipi' owner='ha'><disk name='{name}.qcow2'/></vm></metadata><devices>
<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='/var/lib/nometal/{name}.qcow2'/>
<target dev='vda'/></disk></devices></domain>"""
NEW_DISK = """
qemu-img create -q -f qcow2 $1 1M; qemu-io -c "write -P 7 0 $2" $1; echo "$3" | virsh define /dev/stdin"""
KILLED = """
left, real = [{count}], {what}
def killed(*args, **options):
    result = real(*args, **options)
    left[0] -= 1
    return result if left[0] else os.kill(os.getpid(), 9)
{what} = killed
"""
WITH_PASSWORD = f'level=info msg="Login to the console with user: kubeadmin, and password: {KUBEADMIN}"\n'
CONFIG: dict[str, Any] = {
    "apiVersion": "v1",
    "metadata": {"name": "ha"},
    "platform": {"baremetal": {"hosts": [{"name": "master-0", "bmc": {"address": "redfish://192.0.2.1/1"}}]}},
}
MISSING_IMAGE = f"http://127.0.0.1:1/rhcos.qcow2.gz?sha256={'0a' * 32}"
PLATFORM = CONFIG["platform"]["baremetal"]
WITHOUT_IMAGE = {**CONFIG, "platform": {"baremetal": {**PLATFORM, "clusterOSImage": MISSING_IMAGE}}}


@dataclass
class Host:
    """One lab on a host of its own, whose directories are fresh."""

    libvirtd: PrivateLibvirtd
    server: subprocess.Popen[str]

    @property
    def tools(self) -> Path:
        return self.libvirtd.path("/var/cache/nometal/tools")

    @property
    def directory(self) -> Path:
        return self.libvirtd.path("/var/lib/nometal/install/ha")

    @property
    def run(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.directory / "run.json").read_text())
        return found

    @property
    def calls(self) -> list[str]:
        return (self.tools / "calls").read_text().splitlines()

    def make(self) -> None:
        for directory in OURS:
            self.libvirtd.run(["sh", "-ec", f"mkdir -p {directory}; mount -t tmpfs -o mode=755 tmpfs {directory}"])
        self.tools.mkdir()
        (self.tools / "openshift-install").write_text(INSTALLER)
        (self.tools / "openshift-install").chmod(0o755)
        self.scenario({})
        bmc = self.libvirtd.path("/var/lib/nometal/bmc/ha")
        bmc.mkdir(parents=True)
        login = {"username": "ha-master-0", "password": PASSWORD}
        (bmc / "credentials.json").write_text(json.dumps({"ha-master-0": login}))
        (bmc / "credentials.json").chmod(0o600)

    def clear(self) -> None:
        for pid in self.pids("openshift-install", "runner.py"):
            os.kill(pid, signal.SIGKILL)
        self.libvirtd.run(["virsh", "destroy", BOOTSTRAP], check=False)
        for directory in reversed(OURS):
            self.libvirtd.run(["umount", "--lazy", directory])

    def scenario(self, told: dict[str, Any]) -> None:
        (self.tools / "scenario.json").write_text(json.dumps(told))

    def let_go(self) -> None:
        (self.tools / "go").touch()

    def call(self, *, check_mode: bool = False, first: str = "", **changed: Any) -> dict[str, Any]:
        """First: what is done to the module before, in its own process."""
        [answer] = self.call_each([changed], check_mode=check_mode, first=first)
        return answer

    def call_each(
        self, changes: list[dict[str, Any]], *, check_mode: bool = False, first: str = "", at_once: bool = False
    ) -> list[dict[str, Any]]:
        """Nothing is answered by one that is killed."""
        calls = [{**params(), **changed} for changed in changes]
        assert self.server.stdin
        assert self.server.stdout
        asked = {"calls": calls, "check_mode": check_mode, "first": first, "at_once": at_once}
        print(json.dumps(asked), file=self.server.stdin, flush=True)
        answers: list[dict[str, Any]] = json.loads(self.server.stdout.readline())
        return answers

    def call_until_ended(self, **changed: Any) -> dict[str, Any]:
        answer = self.call(**changed)
        wait_until("the installer and its runner have ended", lambda: not self.pids("openshift-install", "runner.py"))
        return answer

    def pids(self, *names: str) -> list[int]:
        own = processes.descendants(self.libvirtd.sandbox.init)
        return [pid for pid in own if any(word.endswith(names) for word in processes.command_line(pid))]

    def kill(self, name: str) -> None:
        [pid] = self.pids(name) if name == "runner.py" else set(self.pids(name)) - set(self.pids("runner.py"))
        os.kill(pid, signal.SIGKILL)
        wait_until(f"{name} has ended", lambda: pid not in self.pids(name))

    def start_bootstrap(self) -> None:
        self.libvirtd.run(["virsh", "create", "/dev/stdin"], input=DOMAIN)


def params() -> dict[str, Any]:
    return {
        "lab": "ha",
        "version": "4.20.3",
        "tools": "/var/cache/nometal/tools",
        "config": CONFIG,
        "pull_secret": PULL_SECRET,
        "secret_config": {"proxy": {"httpProxy": f"http://u:{VAULTED}@proxy.example.test"}},
        "environment": {"HTTP_PROXY": f"http://u:{PROXY}@proxy.example.test"},
    }


def contents(directory: Path) -> dict[str, str]:
    return {str(path): path.read_text() for path in directory.rglob("*") if path.is_file()}


def open_to_others(directory: Path) -> list[str]:
    return [str(path) for path in directory.rglob("*") if not path.is_symlink() and path.stat().st_mode & 0o077]


@pytest.fixture(scope="module")
def libvirtd() -> Iterator[PrivateLibvirtd]:
    with private_libvirtd.start() as started:
        started.run(["sh", "-c", "[ ! -d /run/systemd ] || mount -t tmpfs tmpfs /run/systemd"])
        yield started


@pytest.fixture(scope="module")
def server(libvirtd: PrivateLibvirtd) -> Iterator[subprocess.Popen[str]]:
    path = f"{ROOT}/playbooks/collections:{sysconfig.get_path('purelib')}"
    command = libvirtd.command(["env", f"PYTHONPATH={path}", "/usr/bin/python3", "-c", SERVER])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        yield started


@pytest.fixture
def host(libvirtd: PrivateLibvirtd, server: subprocess.Popen[str]) -> Iterator[Host]:
    made = Host(libvirtd, server)
    made.make()
    yield made
    made.clear()


def test_it_runs_on_by_itself_and_then_nothing_changes_any_more(host: Host) -> None:
    host.scenario({"create cluster": {"log": INITIALIZES, "late": "Install complete!", "waits": True}})
    assert host.call(check_mode=True)["decision"] == "fresh"
    assert not host.directory.exists()
    begun = host.call()
    assert (begun["changed"], begun["decision"], begun["commands"]) == (True, "fresh", ["create cluster"])
    written = yaml.safe_load((host.directory / "install-config.yaml").read_text())
    assert written["pullSecret"] == json.dumps(json.loads(PULL_SECRET), separators=(",", ":"))
    assert written["platform"]["baremetal"]["hosts"][0]["bmc"]["password"] == PASSWORD
    assert written["proxy"]["httpProxy"].startswith("http://u:")
    again = host.call()
    assert (again["changed"], again["decision"]) == (False, "attach")
    host.let_go()
    wait_until("the runner has ended", lambda: not host.pids("runner.py"))
    assert (host.run["exit_code"], host.run["current"], host.run["version"]) == (0, "create cluster", "4.20.3")
    changed = {**CONFIG, "baseDomain": "other.test"}
    done = host.call(tools="/nowhere", config=changed, libvirt_uri="test:///nowhere", pull_secret=None)
    assert (done["changed"], done["decision"], done["commands"]) == (False, "done", [])
    assert "not done by reinstalling" in done["note"]
    again = host.call(tools="/nowhere", restart=True, pull_secret=None)
    assert (again["changed"], again["decision"]) == (False, "done")
    assert "A finished cluster is not reinstalled" in again["note"]
    assert host.calls == BEGINNING


def test_an_installer_whose_runner_is_killed_is_attached_to_and_judged_by_its_log(host: Host) -> None:
    host.scenario({"create cluster": {"log": INITIALIZES, "late": "Install complete!", "waits": True}})
    host.call()
    host.kill("runner.py")
    assert "what had started it was killed" in host.call()["why"]
    host.let_go()
    wait_until("the installer has ended", lambda: not host.pids("openshift-install"))
    assert host.run["ended"] is None
    assert host.call()["decision"] == "done"


def test_a_killed_installer_is_gone_on_with_where_the_bootstrap_vm_is_at_work(host: Host) -> None:
    host.scenario({"create cluster": {"log": API, "waits": True}, "wait-for install-complete": {"log": COMPLETE}})
    host.call()
    wait_until(
        "it waits for the API",
        lambda: "Kubernetes API" in (host.directory / "cluster/.openshift_install.log").read_text(),
    )
    host.start_bootstrap()
    host.kill("openshift-install")
    wait_until("the runner has ended", lambda: not host.pids("runner.py"))
    assert host.run["signal"] == signal.SIGKILL
    answer = host.call_until_ended(pull_secret=None)
    assert (answer["changed"], answer["decision"]) == (True, "resume")
    expected = ["wait-for bootstrap-complete", "destroy bootstrap", "wait-for install-complete"]
    assert (answer["commands"], host.calls) == (expected, [*BEGINNING, *expected])
    assert host.call()["decision"] == "done"


def test_where_the_bootstrap_vm_was_lost_it_starts_over_on_demand(host: Host) -> None:
    host.scenario({"create cluster": {"log": API, "exit": 5}})
    host.call_until_ended()
    refused = host.call()
    assert (refused["decision"], refused["changed"]) == ("must_restart", False)
    assert "exit code 5" in refused["why"]
    assert "ipi_install_restart=true" in refused["why"]
    host.scenario({"create cluster": {"log": COMPLETE}})
    answer = host.call_until_ended(restart=True)
    assert answer["decision"] == "fresh"
    assert any("/var/lib/nometal/install/ha/cluster" in step for step in answer["removed"])
    assert host.call()["decision"] == "done"


def test_a_failed_installer(host: Host) -> None:
    """What is decided after other ends is shown by recorded logs: tests/unit/cluster/test_recorded_logs.py."""
    host.scenario({"create cluster": {"log": INITIALIZES, "exit": 6}})
    host.call_until_ended()
    assert (host.run["exit_code"], host.run["signal"]) == (6, None)
    assert host.call(check_mode=True)["decision"] == "resume"


def test_a_restart_leaves_alone_what_runs(host: Host) -> None:
    host.scenario({"create cluster": {"log": API, "waits": True}})
    host.call()
    before = host.run
    answer = host.call(restart=True)
    assert (answer["changed"], answer["decision"]) == (False, "attach")
    assert "not restarted, because the installer is running" in answer["note"]
    assert "playbooks/teardown.yml -e teardown_scope=cluster" in answer["note"]
    assert host.run == before


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"pull_secret": {}}, "pull secret"),
        ({"manifests": {"a.yaml": "x"}}, "apiVersion"),
        ({}, "refuses"),
        ({"media_tls": False}, "no manifest of kind Provisioning"),
        ({"config": WITHOUT_IMAGE}, f"clusterOSImage: {MISSING_IMAGE} is not available on this host"),
    ],
)
def test_nothing_is_removed_for_what_cannot_begin(host: Host, changed: dict[str, Any], told: str) -> None:
    host.scenario({"create cluster": {"log": API, "exit": 5}})
    host.call_until_ended()
    broken = 'level=error msg="invalid \\"install-config.yaml\\" file: baseDomain: Required value: missing"\n'
    host.scenario({"create manifests": {"says": broken, "exit": 3} if told == "refuses" else {"provisioning": False}})
    before = contents(host.directory)
    assert told in host.call(restart=True, **changed)["msg"]
    assert contents(host.directory) == before


def test_of_two_restarts_one_restarts(host: Host) -> None:
    host.scenario({"create cluster": {"log": API, "exit": 5}})
    host.call_until_ended()
    host.scenario({"create cluster": {"log": API, "waits": True}})
    answers = host.call_each([{"restart": True}] * 2, at_once=True)
    assert sorted(answer.get("decision", str(answer)) for answer in answers) == ["attach", "fresh"]
    wait_until("it goes on", lambda: len(host.calls) > 3)
    assert host.calls == [*BEGINNING, *BEGINNING]


def test_a_restart_that_is_killed_anywhere_is_completed_by_the_next(host: Host) -> None:
    host.scenario({"create cluster": {"log": API, "exit": 5}})
    host.call_until_ended()
    host.start_bootstrap()

    def killed(what: str, count: int = 1) -> str:
        assert host.call(restart=True, first=KILLED.format(what=what, count=count)) == {}, what
        return str(host.call(check_mode=True)["decision"])

    before = contents(host.directory / "cluster")
    assert killed("prepare._create_manifests") == "resume"
    assert contents(host.directory / "cluster") == before
    removed = [killed("leftovers.RemovalPort.apply", count) for count in (1, 1, 2)]
    assert removed[0] == "must_restart"
    assert {*removed[1:]} <= {"must_restart", "fresh"}
    moved = [killed("prepare._clear"), killed("prepare.make_directories", 2)]
    moved += [killed("Path.replace", count) for count in (4, 5, 6)]
    assert {*moved} == {"fresh"}
    host.scenario({"create cluster": {"log": COMPLETE}})
    assert host.call_until_ended(restart=True)["decision"] == "fresh"
    assert host.calls.count("create cluster") == 2
    assert host.call()["decision"] == "done"
    assert not (host.directory / "draft").exists()


def test_a_bootstrap_vm_that_is_off_and_has_done_its_part_is_removed_by_us(host: Host) -> None:
    """The installer fails at one that is off."""
    host.scenario({"create cluster": {"log": [*API, "Destroying the bootstrap resources..."], "exit": 1}})
    host.call_until_ended()
    host.libvirtd.run(["sh", "-ec", OFF, "sh", BOOTSTRAP, DOMAIN])
    host.scenario({"wait-for install-complete": {"log": COMPLETE}})
    answer = host.call_until_ended()
    assert (answer["decision"], answer["commands"]) == ("resume", ["wait-for install-complete"])
    assert answer["removed"][:2] == [f"undefine {BOOTSTRAP}", f"undefine pool {BOOTSTRAP}"]
    left = host.libvirtd.run(["sh", "-ec", f"virsh list --all --name; virsh pool-list --all --name; ls {POOLS} || :"])
    assert BOOTSTRAP not in left.stdout
    assert host.call()["decision"] == "done"


def test_nodes_in_use_are_not_installed_over_unless_told(host: Host) -> None:
    nodes = [{"vm_name": f"ha-{name}", "installer": name != "spare"} for name in ("written", "blank", "spare")]
    for node in nodes:
        name = str(node["vm_name"])
        disk, domain = f"/var/lib/nometal/{name}.qcow2", NODE.format(name=name)
        host.libvirtd.run(["sh", "-ec", NEW_DISK, "sh", disk, "0" if name == "ha-blank" else "64k", domain])
    refused = host.call(nodes=nodes)
    assert (refused["decision"], refused["changed"]) == ("must_restart", False)
    assert "came so far: ha-written. A cluster may be living there." in refused["why"]
    assert not host.directory.exists()
    answer = host.call_until_ended(nodes=nodes, restart=True)
    assert "blank /var/lib/nometal/ha-written.qcow2" in answer["removed"]
    for node in nodes:
        host.libvirtd.run(["virsh", "undefine", str(node["vm_name"])])


def test_another_version_is_told_and_another_certificate_of_the_bmcs_is_not(host: Host) -> None:
    host.scenario({"create cluster": {"log": COMPLETE}})
    renewed = [{**CONFIG, "platform": {"baremetal": {"bmcVerifyCA": text}}} for text in ("one", "two")]
    host.call_until_ended(config=renewed[0], wanted_version="stable-4.20")
    assert host.call(config=renewed[1], wanted_version="stable-4.20")["note"] == ""
    assert "4.20.4 is asked for, and 4.20.3 was" in host.call(config=renewed[1], wanted_version="4.20.4")["note"]


def test_manifests_come_between(host: Host) -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"password": VAULTED}}
    answer = host.call_until_ended(media_tls=False, manifests={"own.yaml": manifest, "99_p.yaml": manifest})
    assert host.calls == BEGINNING
    assert "99_p.yaml" in answer["note"]
    assert yaml.safe_load((host.directory / "cluster/manifests/own.yaml").read_text()) == manifest


def test_virtual_media_without_tls(host: Host) -> None:
    host.call_until_ended(media_tls=False)
    text = (host.directory / "cluster/openshift/99_p.yaml").read_text()
    assert yaml.safe_load(text)["spec"] == {"disableVirtualMediaTLS": True}


def test_mistakes_are_told_without_secrets_and_leave_nothing(host: Host) -> None:
    message = (
        'failed to fetch X: invalid "install-config.yaml" file: [baseDomain: Required value: missing, pullSecret: '
        f'Invalid value: {json.dumps(PULL_SECRET)}: wrong, metadata.name: Invalid value: "{PASSWORD}": odd]'
    )
    host.scenario({"create manifests": {"says": f"level=error msg={json.dumps(message)}\n", "exit": 3}})
    told = host.call(media_tls=False)["msg"].splitlines()
    assert told[0] == "The installer refuses the lab's install-config.yaml:"
    assert told[1] == "baseDomain: Required value: missing"
    assert len(told) == 4
    assert not [secret for secret in SECRETS if secret in str(told)]
    assert not host.directory.exists()


def test_a_play_that_is_killed_before_it_starts_is_made_good_for(host: Host) -> None:
    killed = "run.start = lambda *_: os.kill(os.getpid(), 9)"
    assert host.call(first=killed) == {}
    assert (host.directory / "cluster/manifests").exists()
    assert host.call_until_ended()["decision"] == "fresh"
    assert host.calls == ["create manifests", *BEGINNING]


def test_of_two_plays_one_begins_it(host: Host) -> None:
    host.scenario({"create manifests": {}, "create cluster": {"waits": True}})
    answers = host.call_each([{}, {}], at_once=True)
    assert sorted(answer.get("decision", str(answer)) for answer in answers) == ["attach", "fresh"]
    wait_until("it creates the cluster", lambda: len(host.calls) > 1)
    assert host.calls == BEGINNING


def test_one_that_does_not_listen_is_killed(host: Host) -> None:
    host.scenario({"create cluster": {"log": API, "waits": True, "stubborn": True}})
    host.call()
    wait_until("it creates the cluster", lambda: "create cluster" in host.calls)
    stop = "run.KILLING_SECONDS = 0.2; run.stop(prepare.Paths('ha'), 0.2)"
    assert host.call(check_mode=True, first=stop)["decision"] == "must_restart"
    assert host.pids("openshift-install", "runner.py") == []


def test_what_cannot_begin_leaves_nothing(host: Host) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"tools": "/nowhere"}, "installer_tools"),
        ({"version": "4.20.4"}, "4.20.4"),
        ({"pull_secret": "no json"}, "pull secret must be JSON"),
        ({"lab": "../etc"}, "lab: must be "),
        ({"credentials": "/nowhere"}, "master-0"),
        ({"manifests": {"a/b.yaml": "x"}}, "plain file name"),
    ]
    answers = host.call_each([changed for changed, _words in cases])
    assert [words for (_changed, words), answer in zip(cases, answers) if words not in answer["msg"]] == []
    assert not host.directory.exists()


def test_a_program_that_may_not_run(host: Host) -> None:
    (host.tools / "openshift-install").chmod(0o644)
    assert "is not executable" in host.call()["msg"]


def test_a_full_disk(host: Host) -> None:
    place = "/var/lib/nometal/install"
    host.libvirtd.run(["sh", "-ec", f"mkdir {place}; mount -t tmpfs -o size=4k tmpfs {place}"])
    assert "No space left on device" in host.call()["msg"]


def test_no_secret_is_anywhere_but_in_the_directory_of_root(host: Host) -> None:
    host.scenario({"create cluster": {"log": API, "says": WITH_PASSWORD, "waits": True}})
    given = {**params(), **{name: json.dumps(params()[name]) for name in ("secret_config", "environment")}}
    given["manifests"] = json.dumps({**PRESETS, "own.yaml": SECRET_MANIFEST})
    ansible = [str(Path(sys.executable).with_name("ansible")), *modules.HERE, "--playbook-dir", str(ROOT / "playbooks")]
    module = ["-m", "nometal.ipi.cluster_install", "--args", json.dumps(given), "--diff", "-vvv"]
    answer = host.libvirtd.run([*ansible, *module])
    wait_until("it has printed the password", lambda: KUBEADMIN in (host.directory / "output.log").read_text())
    assert "CHANGED" in answer.stdout
    assert '"directory": "/var/lib/nometal/install/ha/cluster"' in answer.stdout
    assert '"why": "Nothing of this cluster is installed yet."' in answer.stdout
    shown = answer.stdout + answer.stderr + (host.directory / "run.json").read_text()
    running = [Path(f"/proc/{pid}") for pid in processes.descendants(host.libvirtd.sandbox.init)]
    shown += "".join((process / "cmdline").read_text() for process in running)
    shown += "".join((process / "environ").read_text().replace(PROXY, "") for process in running)
    assert not [secret for secret in SECRETS if secret in shown]
    assert host.directory.stat().st_mode & 0o777 == 0o700
    assert not open_to_others(host.directory)
