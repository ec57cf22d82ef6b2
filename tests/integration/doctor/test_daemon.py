# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from .conftest import LAB, NETWORK_UUID, Examine

SOCKET = "/run/libvirt/libvirt-sock"
BIND = f"""python3 -c '
import signal, socket
s = socket.socket(socket.AF_UNIX)
s.bind("{SOCKET}")
{{then}}
open("/run/bound", "w").close()
{{last}}' & until [ -e /run/bound ]; do sleep 0.02; done
"""
HUNG = BIND.format(then="s.listen(8)", last="signal.pause()")
STALE = BIND.format(then="", last="")
CLOSING = BIND.format(then="s.listen(8)", last="while True: s.accept()[0].close()")
HIDDEN = "for p in libvirtd virtqemud; do f=$(which $p) && mount --bind /dev/null $f || true; done;"
REAL = f"""mkdir -p /var/log/libvirt /etc/libvirt/nwfilter
mount -t tmpfs tmpfs /var/log/libvirt
printf 'unix_sock_group = "root"\\nauth_unix_rw = "none"\\n' > /etc/libvirt/libvirtd.conf
virtlogd -d; libvirtd -d
until [ -e {SOCKET} ]; do sleep 0.05; done
"""


def test_a_real_daemon(examine: Examine) -> None:
    answer = examine(REAL, prepared=True)
    assert answer["libvirt"][0] == "ok", answer["libvirt"]
    assert answer["libvirt_interfaces"][0] == "ok", answer["libvirt_interfaces"]


def test_a_bridge_that_the_installer_would_find(examine: Examine) -> None:
    bridge = """ip link add baremetal type bridge; ip link set baremetal up
    ip link add demo-veth type veth peer name far; ip link set demo-veth master baremetal up; ip link set far up
    """
    assert "list" in examine(bridge + REAL)["libvirt_interfaces"][1]


def test_the_labs_own_running_network_is_no_conflict(examine: Examine) -> None:
    network = """cat > /run/net.xml <<'END'
<network><name>demo</name><uuid>{uuid}</uuid><bridge name='demo-m'/><ip address='192.168.126.1' netmask='255.255.255.0'>
<dhcp><range start='192.168.126.10' end='192.168.126.20'/></dhcp></ip></network>
END
    virsh --quiet --connect qemu:///system net-define /run/net.xml >&2
    virsh --quiet --connect qemu:///system net-start demo >&2
    """
    mine = [{**LAB["networks"][0], "addresses": [{"cidr": "192.168.126.0/24", "gateway": "192.168.126.1"}]}]
    checks = ("subnets", "bridges", "libvirt_names", "ports")
    own = examine(REAL + network.format(uuid=NETWORK_UUID), networks=mine)
    assert [own[check][0] for check in checks] == ["ok"] * 4, own.result["table"]
    strange = examine(REAL + network.format(uuid=NETWORK_UUID.replace("1", "2")), networks=mine)
    assert [strange[check][0] for check in checks[:3]] == ["blocker"] * 3, strange.result["table"]


def test_no_daemon_yet(examine: Examine) -> None:
    assert examine(HIDDEN)["libvirt"] == ("ok", "libvirt is not installed yet; host_prep installs it ")
    assert examine()["libvirt"][0] == "warning"


def test_no_daemon_on_a_prepared_host(examine: Examine) -> None:
    assert examine(HIDDEN, prepared=True)["libvirt"][0] == "blocker"
    status, text = examine(prepared=True)["libvirt"]
    assert status == "blocker"
    assert "virtproxyd.socket" in text


def test_a_dead_daemon_that_left_its_socket(examine: Examine) -> None:
    assert examine(STALE)["libvirt"][0] == "warning"
    assert examine(STALE, prepared=True)["libvirt"][0] == "blocker"
    assert examine(CLOSING, prepared=True)["libvirt"][0] == "blocker"


def test_a_hung_daemon_does_not_hang_the_doctor(examine: Examine) -> None:
    """It never answers: only a doctor that does not wait for it comes to an end."""
    answer = examine(HUNG)
    assert answer["libvirt"][0] == "blocker"
    assert "hangs" in answer["libvirt"][1]
