# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A network with a hundred reservations: made, one added, looked at again; beside plain libvirt-python doing the same.

PYTHONPATH=playbooks/collections:tests python3 tests/bench/bench_libvirt_bridge_net.py
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any, Callable

MEASURE = "measure"
MANY, FEW = 100, 5
MOST_FOR_MANY = 0.1
NETWORK: dict[str, Any] = {
    "name": "bench",
    "owner": "bench",
    "bridge": "nm-bench",
    "addresses": [{"cidr": "192.168.126.0/24", "gateway": "192.168.126.1"}],
}
XML = """<network><name>bench</name><forward mode='nat'/><bridge name='nm-bench' stp='off' delay='0'/>
<ip address='192.168.126.1' prefix='24'><dhcp>{hosts}</dhcp></ip></network>"""
HOST = "<host mac='52:54:00:00:00:{at:02x}' name='n{at}' ip='192.168.126.{ip}'/>"


def seconds(action: Callable[[], object]) -> float:
    start = time.monotonic()
    action()
    return time.monotonic() - start


def ours() -> dict[str, float]:
    from ansible.module_utils.common.arg_spec import ArgumentSpecValidator  # noqa: PLC0415 - only inside the sandbox

    from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.resource import LabNetwork  # noqa: PLC0415
    from ansible_collections.nometal.ipi.plugins.modules import libvirt_bridge_net  # noqa: PLC0415 - as above

    def run(count: int, **others: Any) -> dict[str, Any]:
        machines = [
            {"name": f"n{at}", "mac": f"52:54:00:00:00:{at:02x}", "ips": [f"192.168.126.{at + 50}"]}
            for at in range(count)
        ]
        params = {**NETWORK, "dhcp": {"reservations": machines}, **others}
        checked = ArgumentSpecValidator(libvirt_bridge_net.ARGUMENTS).validate(params)
        return LabNetwork.run(checked.validated_parameters, check_mode=False)

    run(FEW)
    few = min(seconds(lambda: run(FEW)) for _round in range(5))
    run(FEW, state="absent")
    figures = {"create": seconds(lambda: run(MANY)), "add one": seconds(lambda: run(MANY + 1))}
    figures["rerun"] = min(seconds(lambda: run(MANY + 1)) for _round in range(5))
    run(MANY, state="absent")
    return {**figures, "rerun of few": few}


def plain() -> dict[str, float]:
    import libvirt  # noqa: PLC0415 - only inside the sandbox

    def create() -> None:
        connection = libvirt.open("qemu:///system")
        hosts = "".join(HOST.format(at=at, ip=at + 50) for at in range(MANY))
        network = connection.networkDefineXML(XML.format(hosts=hosts))
        network.create()
        network.setAutostart(1)

    def add_one() -> None:
        network = libvirt.open("qemu:///system").networkLookupByName("bench")
        section = libvirt.VIR_NETWORK_SECTION_IP_DHCP_HOST
        flags = libvirt.VIR_NETWORK_UPDATE_AFFECT_LIVE | libvirt.VIR_NETWORK_UPDATE_AFFECT_CONFIG
        host = HOST.format(at=MANY, ip=MANY + 50)
        network.update(libvirt.VIR_NETWORK_UPDATE_COMMAND_ADD_LAST, section, 0, host, flags)

    def look() -> None:
        network = libvirt.open("qemu:///system").networkLookupByName("bench")
        network.XMLDesc()
        network.XMLDesc(libvirt.VIR_NETWORK_XML_INACTIVE)
        network.DHCPLeases()

    figures = {"create": seconds(create), "add one": seconds(add_one)}
    figures["rerun"] = min(seconds(look) for _round in range(5))
    network = libvirt.open("qemu:///system").networkLookupByName("bench")
    network.destroy()
    network.undefine()
    return figures


def main() -> int:
    root = Path(__file__).parents[2]
    sys.path.append(str(root / "tests"))
    from support import private_libvirtd  # noqa: PLC0415 - its place is known only now

    with private_libvirtd.start() as libvirtd:
        places = f"PYTHONPATH={root}/playbooks/collections"
        answer = libvirtd.run(["env", places, sys.executable, str(Path(__file__).resolve()), MEASURE]).stdout
    figures, yardstick = json.loads(answer)
    for name, unit in yardstick.items():
        own = figures[name]
        sys.stdout.write(f"network, {MANY} reservations, {name}: {own * 1000:.0f} ms; plain libvirt-python: ")
        sys.stdout.write(f"{unit * 1000:.0f} ms; ratio {own / unit:.2f}\n")
    more = figures["rerun"] - figures["rerun of few"]
    sys.stdout.write(f"rerun with {MANY} beside {FEW}: {more * 1000:+.0f} ms (limit {MOST_FOR_MANY * 1000:.0f})\n")
    return 0 if more <= MOST_FOR_MANY else 1


if __name__ == "__main__":
    if MEASURE in sys.argv:
        sys.stdout.write(json.dumps([ours(), plain()]))
        sys.exit(0)
    sys.exit(main())
