#!/usr/bin/python
# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: veth_pair
short_description: A veth pair that joins two bridges, now and after a reboot
version_added: 0.1.0
description:
  - Makes a pair of virtual Ethernet ends, each on its bridge, and the plain bridge of the nodes if it is missing.
    What was changed behind its back is repaired, and each step says what was wrong.
  - The pair is back after a reboot, and after a libvirt network was restarted by anyone, without Ansible. For that, an
    entry of the hook that M(nometal.ipi.libvirt_service) installs makes it anew when a libvirt network starts.
    If libvirt would not call the hook, the module warns.
  - An end that exists is this pair's if its peer is the other end, or if the pair's entry of the hook names it.
    What is not this pair's is neither changed nor removed.
  - NetworkManager and systemd-networkd, where the host has them, are told to leave these links alone.
  - A bridge that the module makes has no forwarding delay and no address, the host answers on it
    neither IPv6 nor ARP for its other addresses, and it bears the alias C(nometal.ipi).
    A bridge without it is somebody else's. It is used, but never changed or removed.
author:
  - nometal.ipi contributors (@nometal)
extends_documentation_fragment:
  - nometal.ipi.reconciled
requirements:
  - pyroute2 for the managed host's Python, as role nometal.ipi.host_prep installs it; to remove, C(ip) is enough
options:
  name:
    description:
      - Name of the pair, after which its files are called.
      - Letters, digits, dot, hyphen and underscore; 64 characters at most.
      - Required with O(state=present). Without it, O(state=absent) removes all pairs of O(owner).
    type: str
  owner:
    description:
      - Name of the lab whose pair it is. It is noted in the pair's entry of the hook.
      - By that the lab's pairs are known when O(name) is left out. One that is named after the lab is known anyway.
    type: str
  a:
    description: The end at a bridge that is there already, as a rule that of a libvirt network. Goes with O(name).
    type: dict
    suboptions:
      name:
        description: Name of the end, 15 characters at most. If it exists, it has to be this pair's.
        type: str
        required: true
      bridge:
        description: The bridge that it goes to. Without one, it goes to none.
        type: str
      make_bridge:
        description:
          - Whether the bridge is made if it is missing. If not, it must be there.
          - Do not say so for the bridge of a libvirt network. libvirt makes it, and does not start the network
            if somebody else has done so.
        type: bool
        default: false
  b:
    description:
      - The end at the plain bridge of the nodes, which is made if it is missing.
      - It cannot go to a bridge that another pair joins to another network, for the two networks would be one.
      - It cannot leave a bridge made by this module as long as machines are on that one.
      - Goes with O(name).
    type: dict
    suboptions:
      name:
        description: Name of the end, 15 characters at most. If it exists, it has to be this pair's.
        type: str
        required: true
      bridge:
        description: The bridge that it goes to. Without one, it goes to none.
        type: str
      make_bridge:
        description:
          - Whether the bridge is made if it is missing. If not, it must be there.
          - Set this to V(false) for the bridge of a libvirt network. libvirt makes it, and does not start the network
            if somebody else has done so.
        type: bool
        default: true
  shared:
    description:
      - Whether others may be on O(b.bridge), such as behind the host's uplink.
      - Without it, a bridge of others with other links on it is refused, for whoever serves DHCP at O(a) would serve
        the LAN of others. So is one with VMs on it, unless the pair has joined it already.
      - A bridge that this module has made is refused once it has an uplink. A veth or the tap of a VM is plugged into
        that one on purpose.
    type: bool
    default: false
  awaited:
    description:
      - Bridges that are there by the time that the pair is made, since others make them before, such as those of the
        lab's libvirt networks. In check mode, nobody is warned that they are missing.
    type: list
    elements: str
    default: []
  mtu:
    description: MTU of both ends and of a bridge that is made, from 68 to 65535.
    type: int
    default: 1500
  state:
    description:
      - V(present) has the pair there and working.
      - V(absent) removes it with its files, and bridges made by this module on which nothing else is and which
        no other pair is to join. An end of that name which is not this pair's is left alone.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Join the bridge of the nodes to the libvirt network
  nometal.ipi.veth_pair:
    name: nmn-demo
    a: {name: nmn-demo, bridge: nm-demo}
    b: {name: nmb-demo, bridge: baremetal}

- name: Remove the pair
  nometal.ipi.veth_pair:
    name: nmn-demo
    a: {name: nmn-demo, bridge: nm-demo}
    b: {name: nmb-demo, bridge: baremetal}
    state: absent

- name: Remove all pairs of a lab
  nometal.ipi.veth_pair:
    owner: demo
    state: absent
"""

RETURN = r"""
steps:
  description: What was done, or in check mode would be done, in order, and what was wrong before.
  returned: success
  type: list
  elements: str
  sample:
    - release nmb-demo (was on virbr0)
    - join nmb-demo (to baremetal)
    - up nmb-demo (was down)
"""

from contextlib import nullcontext
from typing import TYPE_CHECKING

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.nometal.ipi.plugins.module_utils._core import network_hook
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import (
    NotThereYetError,
    OperatorError,
    operator_errors,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.lock import one_at_a_time
from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Reconciler
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import is_lab_name
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import (
    lacks_netlink,
    may_change_links,
    read_links,
    read_links_by_ip,
)
from ansible_collections.nometal.ipi.plugins.module_utils._observe.veth_entries import plugged_by_entries, wirings_of
from ansible_collections.nometal.ipi.plugins.module_utils._observe.wiring import Plug, Wiring
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth.conflicts import refuse_conflicts
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth.declared import refuse_nonsense
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth.port import VethPairPort
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth.site import Site
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth.state import plan

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import Link

NEEDED = ("name", "a", "b")
PLUG = {"name": {"type": "str", "required": True}, "bridge": {"type": "str"}}
ARGUMENTS = {
    "name": {"type": "str"},
    "owner": {"type": "str"},
    "a": {"type": "dict", "options": {**PLUG, "make_bridge": {"type": "bool", "default": False}}},
    "b": {"type": "dict", "options": {**PLUG, "make_bridge": {"type": "bool", "default": True}}},
    "mtu": {"type": "int", "default": 1500},
    "shared": {"type": "bool", "default": False},
    "awaited": {"type": "list", "elements": "str", "default": []},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


def wiring_from(params: dict[str, Any]) -> Wiring:
    wiring = Wiring(
        name=params["name"],
        a=Plug(key="a", **params["a"]),
        b=Plug(key="b", **params["b"]),
        mtu=params["mtu"],
        shared=params["shared"],
        owner=params.get("owner") or "",
    )
    refuse_nonsense(wiring)
    return wiring


def run(params: dict[str, Any], *, check_mode: bool) -> dict[str, Any]:
    refuse_bad_owner(params.get("owner"))
    if params["name"] is None:
        return joined([act(wiring, wanted=False, check_mode=check_mode) for wiring in wirings_of(params["owner"])])
    return act(wiring_from(params), wanted=params["state"] == "present", check_mode=check_mode)


def refuse_bad_owner(owner: str | None) -> None:
    if owner is not None and not is_lab_name(owner):
        raise OperatorError(f"owner: {owner!r} is not the name of a lab: lower case letters, digits, inner hyphens.")


def joined(results: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "changed": any(result["changed"] for result in results),
        "steps": [step for result in results for step in result["steps"]],
        "diff": [result["diff"] for result in results],
    }


def act(wiring: Wiring, *, wanted: bool, check_mode: bool) -> dict[str, Any]:
    result = reconcile(wiring, wanted=wanted, check_mode=check_mode)
    if result["changed"] and not check_mode:
        # A link manager that was told to let go of the links may have put them down since they were read.
        result["steps"] += reconcile(wiring, wanted=wanted, check_mode=False)["steps"]
    return result


def reconcile(wiring: Wiring, *, wanted: bool, check_mode: bool) -> dict[str, Any]:
    links = links_found(foreseeing=check_mode, removing=not wanted)
    site = Site(wiring, links, plugged_by_entries())
    if wanted:
        refuse_conflicts(site, foreseeing=check_mode)
    port = VethPairPort(site, wanted=wanted)
    return Reconciler(lambda: nullcontext(port), plan).run(port.wanted() if wanted else None, check_mode=check_mode)


def links_found(*, foreseeing: bool, removing: bool = False) -> dict[str, Link]:
    if not may_change_links():
        raise OperatorError("This process may not change network links: run as root, with `become: true`.")
    try:
        # Enough to see what is in the way before there are packages, and to remove what is ours after they are gone.
        return read_links_by_ip() if (foreseeing or removing) and lacks_netlink() else read_links()
    except NotThereYetError:
        if foreseeing or removing:
            return {}  # on an empty host there is nothing of ours; its files are seen all the same
        raise


def warnings(params: dict[str, Any], *, check_mode: bool) -> list[str]:
    if params["state"] == "absent":
        return []
    return bridges_awaited(wiring_from(params), params["awaited"]) if check_mode else silence_of_hook(params["name"])


def bridges_awaited(wiring: Wiring, awaited: Collection[str]) -> list[str]:
    return [
        f"{plug.key}.bridge: there is no bridge {plug.bridge} yet. The run needs it by then: "
        "if nothing before it makes that bridge, it will be refused."
        for plug in wiring.bridges_missing(links_found(foreseeing=True))
        if plug.bridge not in awaited
    ]


def silence_of_hook(pair: str) -> list[str]:
    silence = network_hook.silence()
    remedy = "Run module nometal.ipi.libvirt_service, as role nometal.ipi.host_prep does."
    return [f"{pair} will not be back after a reboot: {silence}. {remedy}"] if silence else []


def main() -> None:
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        required_if=[("state", "present", NEEDED)],
        required_one_of=[("name", "owner")],
        required_together=[NEEDED],
        supports_check_mode=True,
    )
    with operator_errors(module):
        with one_at_a_time("veth_pair", check_mode=module.check_mode):
            result = run(module.params, check_mode=module.check_mode)
        for warning in warnings(module.params, check_mode=module.check_mode):
            module.warn(warning)
        module.exit_json(**result)


if __name__ == "__main__":
    main()
