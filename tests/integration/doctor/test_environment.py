# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from .conftest import Examine

HOSTS = "printf '{0}' | as_file /etc/hosts;"
RESOLV = "printf 'nameserver {0}\\n' | as_file /etc/resolv.conf;"
NSS = "echo 'hosts: files dns' | as_file /etc/nsswitch.conf;"
GOOD_HOSTS = HOSTS.format("127.0.0.1 localhost\\n127.0.1.1 box\\n")
# Neither libvirt nor qemu ever ends.
ALL_HANGS = """cp -a /dev/null /dev/kvm; printf '#!/bin/sh\\nexec sleep infinity' > /run/qemu
    chmod +x /run/qemu
    python3 -c 'import signal, socket
s = socket.socket(socket.AF_UNIX); s.bind("/run/libvirt/libvirt-sock"); s.listen(8)
open("/run/bound", "w").close(); signal.pause()' & until [ -e /run/bound ]; do sleep 0.02; done
    """
BOX = "unshare --uts bash -c 'hostname box; exec \"$@\"' --"


@pytest.mark.parametrize(
    ("setup", "status", "text"),
    [
        (GOOD_HOSTS + RESOLV.format("192.0.2.53"), "ok", "box and localhost are known; name servers: 192.0.2.53"),
        (
            HOSTS.format("") + RESOLV.format("192.0.2.53") + NSS,
            "warning",
            "localhost is not in /etc/hosts; the host's own",
        ),
        (GOOD_HOSTS + RESOLV.format("127.0.0.53"), "warning", "nothing listens on name server 127.0.0.53"),
        (GOOD_HOSTS + RESOLV.format("::1"), "warning", "nothing listens on name server ::1"),
        (GOOD_HOSTS + RESOLV.format("192.168.126.1"), "warning", "the lab's range"),
        (GOOD_HOSTS + "printf '' | as_file /etc/resolv.conf;", "warning", "names no name server"),
        (
            HOSTS.format("127.0.0.1 localhost box api.demo.example.test\\n") + RESOLV.format("192.0.2.53"),
            "warning",
            "shadows the lab's DNS",
        ),
    ],
)
def test_resolver(examine: Examine, setup: str, status: str, text: str) -> None:
    found = examine(setup, wrapper=BOX)["resolver"]
    assert found[0] == status, found
    assert text in found[1]


def test_a_local_name_server_that_listens(examine: Examine) -> None:
    server = """python3 -c '
import signal, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("127.0.0.53", 53))
open("/run/bound", "w").close(); signal.pause()' & until [ -e /run/bound ]; do sleep 0.02; done
"""
    assert examine(GOOD_HOSTS + RESOLV.format("127.0.0.53") + server, wrapper=BOX)["resolver"][0] == "ok"


@pytest.mark.parametrize(
    ("release", "status"),
    [
        ('ID=ubuntu\\nVERSION_ID="24.04"\\n', "ok"),
        ("ID=debian\\nVERSION_ID=11\\n", "warning"),
        ("ID=void\\n", "blocker"),
    ],
)
def test_distribution(examine: Examine, release: str, status: str) -> None:
    assert examine(f"printf '{release}' | as_file /etc/os-release")["distribution"][0] == status


@pytest.mark.parametrize("mark", ["/run/systemd/container", "/run/host/container-manager", "/run/.containerenv"])
def test_a_container_leaves_the_clock_to_its_host(examine: Examine, mark: str) -> None:
    assert examine(f"mkdir -p $(dirname {mark}); touch {mark}")["clock"][0] == "ok"


def test_security_modules(examine: Examine) -> None:
    enforcing = "mount -t tmpfs tmpfs /sys/fs; mkdir /sys/fs/selinux; echo 1 > /sys/fs/selinux/enforce;"
    elsewhere = {"name": "nometal-demo", "uuid": "p", "path": "/srv/pool"}
    assert examine(enforcing)["confinement"] == ("ok", "SELinux on, which the lab supports ")
    assert examine(enforcing, storage_pool=elsewhere)["confinement"][0] == "warning"
    assert examine("mount -t tmpfs tmpfs /sys/fs", storage_pool=elsewhere)["confinement"][0] == "ok"


def test_an_ordinary_user_is_told_to_become_root(examine: Examine) -> None:
    # Only the search of directories stays allowed, so that the test's own Python can be reached.
    setpriv = "setpriv --reuid 65534 --clear-groups --inh-caps +dac_read_search --ambient-caps +dac_read_search"
    answer = examine("chmod 700 /etc/libvirt/qemu", wrapper=setpriv)
    assert answer["root"][0] == "blocker"
    assert "become: true" in answer["root"][1]


def test_a_fresh_host_with_nothing_installed(examine: Examine) -> None:
    programs = "qemu-system-x86_64 libvirtd virtqemud nft iptables iptables-nft iptables-legacy ip firewall-cmd"
    bare = f"""rm -rf /etc/libvirt/* /run/libvirt
    for p in {programs}; do f=$(readlink -f $(which $p)) && mount --bind /dev/null $f || true; done
    """
    answer = examine(bare)
    assert answer.result["blockers"] == []
    assert "could not be measured" not in str(answer.result["table"])


def test_everything_bad_at_once_is_still_answered(examine: Examine) -> None:
    answer = examine(ALL_HANGS, install=True, qemu="/run/qemu", memory_mib=1 << 24)
    assert {"kvm", "libvirt", "memory"} <= set(answer.result["blockers"])


def test_the_module_runs_in_check_mode(examine: Examine) -> None:
    assert examine(_ansible_check_mode=True).result["changed"] is False
