# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How soon a guest has its lease, beside a plain libvirt network; for how long changes interrupt TCP connections.

And how soon the BMCs are back when their service was killed, beside a restart of it.

python3 tests/bench/bench_network.py
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from support.guest import Guest
    from support.guest_lab import Lab

ROUNDS, REST_SECONDS = 3, 10
MOST_LEASE = 2.0  # times what it takes in the plain network
MOST_GAPS = {"restart of libvirtd": 10, "live change": 10, "allowed restart": 25}  # times the longest gap at rest
MOST_TO_BE_BACK = 2.0
PLAIN_MAC, PRINTER_MAC = "52:54:00:77:00:01", "02:00:00:00:00:99"
PLAIN = f"""
<network><name>plain</name><bridge name='plain0' delay='0'/><ip address='192.168.150.1' prefix='24'>
<dhcp><range start='192.168.150.100' end='192.168.150.109'/><host mac='{PLAIN_MAC}' ip='192.168.150.20'/></dhcp></ip>
</network>
"""
ASK = """
import contextlib, ssl, sys, urllib.request
while True:
    with contextlib.suppress(OSError):
        urllib.request.urlopen(sys.argv[1], context=ssl._create_unverified_context(), timeout=5)
        break
"""


def seconds_to_lease(guest: Guest) -> float:
    def once() -> float:
        guest.rejoin()
        return guest.lease4.seconds

    return min(once() for _round in range(ROUNDS))


def longest_gap(near: Guest, far: Guest, change: Callable[[], object]) -> float:
    from support.guest_lab import ECHO_PORT  # noqa: PLC0415 - its place is known only now

    with far.stream(near.lease4.address, ECHO_PORT) as stream:
        stream.assert_goes_on()
        change()
        stream.assert_goes_on()
        return stream.longest_gap()


def bmcs_are_back(lab: Lab) -> float:
    lab.play("nodes")
    lab.play("bmc")
    unit = f"nometal-bmc-{lab.model['name']}"

    def seconds(change: str) -> float:
        start = time.monotonic()
        lab.host.run(change)
        lab.host.run(["python3", "-c", ASK, f"{lab.model['bmc']['url']}/redfish/v1/"])
        return time.monotonic() - start

    restart = seconds(f"systemctl restart {unit}")
    return seconds(f"systemctl kill --signal=KILL {unit}") / restart


def changes(lab: Lab) -> dict[str, Callable[[], object]]:
    networks = {"cidr": "192.168.126.0/24"}
    reservation = {"name": "printer", "mac": PRINTER_MAC, "ip": "192.168.126.210"}

    def change(*arguments: str, **more: object) -> None:
        lab.specify(machine_network={**networks, **more})
        lab.play("network", *arguments)

    return {
        "restart of libvirtd": lambda: lab.host.run("systemctl restart libvirtd"),
        "live change": lambda: change(reservations=[reservation]),
        "allowed restart": lambda: change("-e", "lab_network_restart=allowed", ntp_servers=["192.168.126.1"]),
    }


def main() -> int:
    root = Path(__file__).parents[2]
    sys.path[:0] = [str(root / "tests"), str(root / "playbooks/collections")]
    from support import guest, guest_lab, lab_host  # noqa: PLC0415 - as above

    with lab_host.start() as host, tempfile.TemporaryDirectory() as directory:
        lab = guest_lab.Lab(host, Path(directory))
        lab.specify()
        lab.make_network()
        host.run(["virsh", "net-create", "/dev/stdin"], input=PLAIN)
        near = lab.switch_on_node("control-plane-0", network=lab.network["name"])
        far = lab.switch_on_node("worker-0")
        with guest.start(host, name="plain", network="plain", mac=PLAIN_MAC) as plain:
            yardstick = seconds_to_lease(plain)
        ratio = seconds_to_lease(far) / yardstick
        sys.stdout.write(f"lease: plain libvirt network {yardstick:.1f} s; ratio {ratio:.2f} (limit {MOST_LEASE})\n")
        good = ratio <= MOST_LEASE
        near.echo(guest_lab.ECHO_PORT)
        rest = longest_gap(near, far, lambda: time.sleep(REST_SECONDS))
        for name, change in changes(lab).items():
            ratio = longest_gap(near, far, change) / rest
            sys.stdout.write(f"connection, {name}: at rest {rest:.2f} s; ratio {ratio:.1f} (limit {MOST_GAPS[name]})\n")
            good = good and ratio <= MOST_GAPS[name]
        lab.switch_off()
        ratio = bmcs_are_back(lab)
        sys.stdout.write(f"killed BMCs are back, beside a restart: ratio {ratio:.2f} (limit {MOST_TO_BE_BACK})\n")
    return 0 if good and ratio <= MOST_TO_BE_BACK else 1


if __name__ == "__main__":
    sys.exit(main())
