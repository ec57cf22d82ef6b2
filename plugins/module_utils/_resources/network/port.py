# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A network in libvirt and on its host: read it, and carry out single steps on it."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._core import files
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.network_hook import RUNNING_NETWORKS, HookEntry
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run
from ansible_collections.nometal.ipi.plugins.module_utils._lab.network import AS_DEFINED, Health, Network
from ansible_collections.nometal.ipi.plugins.module_utils._observe import network_filter as packet_filter
from ansible_collections.nometal.ipi.plugins.module_utils._observe import network_health as health
from ansible_collections.nometal.ipi.plugins.module_utils._observe import network_leases as leases
from ansible_collections.nometal.ipi.plugins.module_utils._observe import network_xml as xml
from ansible_collections.nometal.ipi.plugins.module_utils._observe.links import read_links
from ansible_collections.nometal.ipi.plugins.module_utils._observe.network_ports import PortsNote, hook_text, reconnect
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network import conflicts
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.dnsmasq import KNOWN_ONLY
from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.state import LIVE_SECTIONS

try:
    import libvirt
except ImportError:  # connect() has said so by the time that anything here runs
    libvirt = None

if TYPE_CHECKING:
    from ansible_collections.nometal.ipi.plugins.module_utils._core.resource import Step
    from ansible_collections.nometal.ipi.plugins.module_utils._lab.network import Definition, Lease
    from ansible_collections.nometal.ipi.plugins.module_utils._resources.network.conflicts import Leaving


class NetworkPort:
    """Nothing is done to a network that is not the owner's, unless it is to be adopted."""

    def __init__(  # noqa: PLR0913 - each is an argument of the module, and none goes with another
        self,
        connection: Any,
        name: str,
        owner: str,
        desired: Network | None,
        *,
        uuid: str | None = None,
        adopt: bool = False,
    ) -> None:
        self._connection = connection
        self._name = name
        self._owner = owner
        self._desired = desired
        self._uuid = uuid
        self._adopt = adopt
        self._hook = HookEntry(f"{name}.ports")
        self._note = PortsNote(name)
        self._ran_as = ""

    def read(self) -> Network | None:
        network = self._find()
        if network is not None:
            return self._state_of(network)
        hook, noted = self._has_hook(), self._note.read()
        if not hook and not noted:
            return None
        # The network was removed by other means.
        return Network(self._name, self._owner, None, None, autostart=False, hook=hook, noted_ports=noted)

    def refuse_conflicts(self, leaving: Leaving) -> None:
        """Say what stands in the way of the desired network, before anything is changed."""
        refuse_without_root()
        if self._desired is not None:
            conflicts.refuse(self._connection, self.read(), self._desired, self._uuid, leaving)

    def apply(self, step: Step) -> None:
        {
            "define": self._define,
            "install hook of": self._install_hook,
            "remove hook of": self._hook.remove,
            "destroy": self._destroy,
            "start": self._start,
            "restore packet filter rules of": self._restore_rules,
            "forward packets of": lambda: health.forward_packets(self._wanted()),
            "bring up": lambda: health.bring_up(step.target),
            "add address": lambda: health.add_address(step.target, self._wanted().bridge),
            "start dnsmasq of": lambda: health.start_dnsmasq(self._network()),
            "update": lambda: self._update(step.target),
            "reconnect ports of": self._reconnect_ports,
            "forget ports of": self._note.forget,
            "autostart": lambda: self._network().setAutostart(1),
            "disable autostart of": lambda: self._network().setAutostart(0),
            "forget": lambda: leases.forget(self._network().bridgeName(), step.target),
            "release": lambda: self._release(step.target),
            "undefine": self._undefine,
        }[step.verb]()

    def _undefine(self) -> None:
        network = self._network()
        bridge = network.bridgeName()
        network.undefine()
        # What libvirt leaves: the process number of dnsmasq, and the bridge in a zone of firewalld.
        files.remove(RUNNING_NETWORKS / f"{self._name}.pid")
        if bridge not in read_links():
            with suppress(OperatorError):  # there is no firewalld, it does not run, or the bridge is in no zone
                zone = run("firewall-cmd", f"--get-zone-of-interface={bridge}").strip()
                run("firewall-cmd", f"--zone={zone}", f"--remove-interface={bridge}")

    def _find(self) -> Any:
        return next((found for found in self._connection.listAllNetworks() if found.name() == self._name), None)

    def _network(self) -> Any:
        return self._connection.networkLookupByName(self._name)

    def _wanted(self) -> Definition:
        if self._desired is None or self._desired.definition is None:
            raise ValueError(f"{self._name} is to be gone")
        return self._desired.definition

    def _state_of(self, network: Any) -> Network:
        live, saved = _descriptions(network)
        owner = xml.owner_of(saved or live)
        self._refuse_strangers(owner)
        ours = self._desired.definition.options if self._desired and self._desired.definition else ()
        definition = xml.definition_of(saved, ours) if saved else None
        running = xml.definition_of(live, ours) if live else None
        return Network(
            name=self._name,
            owner=owner,
            definition=definition,
            live=AS_DEFINED if running and running == definition else running,
            autostart=bool(network.isPersistent() and network.autostart()),
            hook=self._has_hook(),
            noted_ports=self._note.read(),
            stale_leases=self._stale_leases(network, running),
            health=self._health(live) if live and self._desired else Health(),
        )

    def _health(self, live: str) -> Health:
        found = health.health_of(self._name, live)
        running = xml.definition_of(live)
        return found if found.bridge == "gone" else replace(found, lost_rules=packet_filter.lost_of(running))

    def _restore_rules(self) -> None:
        wanted = self._wanted()
        self._have_rules_written(lambda: not packet_filter.lost_of(wanted))
        packet_filter.refuse_loss(wanted)

    def _have_rules_written(self, are_there: Callable[[], bool]) -> None:
        uri = self._connection.getURI()
        if packet_filter.restore(are_there):
            self._connection = libvirt.open(uri)

    def _refuse_strangers(self, owner: str | None) -> None:
        if owner == self._owner or self._adopt:
            return
        raise OperatorError(
            f"network {self._name} is owned by {owner or 'others'}, not by {self._owner}, so it is neither changed nor "
            "removed: choose another name, remove it yourself, or make it this lab's with `adopt: true`."
        )

    def _has_hook(self) -> bool:
        text = self._hook.read()
        return text is not None if self._desired is None else text == self._hook_text()

    def _stale_leases(self, network: Any, running: Definition | None) -> tuple[Lease, ...]:
        if self._desired is None:
            return ()
        wanted, there = self._wanted(), leases.leases_of(network)
        outside = leases.outside(there, wanted.addresses)
        stale = {lease for lease in leases.stale(there, wanted.reservations) if lease not in outside}
        stays = running is not None and running.addresses == wanted.addresses
        return tuple(sorted(stale if stays else stale.union(outside)))

    def _define(self) -> None:
        network = self._find()
        live, saved = _descriptions(network) if network else ("", "")
        before = saved or live or xml.new(self._name, self._uuid)
        self._connection.networkDefineXML(xml.edited(before, self._owner, self._wanted()))

    def _install_hook(self) -> None:
        self._hook.write(self._hook_text())

    def _hook_text(self) -> str:
        wanted = self._wanted()
        return hook_text(self._name, wanted.bridge, shares_lan=KNOWN_ONLY in wanted.options)

    def _destroy(self) -> None:
        network = self._network()
        if self._desired is not None:
            self._note.take(network.bridgeName())
        self._ran_as = network.XMLDesc()
        network.destroy()

    def _start(self) -> None:
        try:
            self._create(self._network())
        except libvirt.libvirtError as error:
            if not self._ran_as:
                raise
            self._run_as_before()
            raise OperatorError(
                f"network {self._name} cannot run as declared, so it runs as before: {error.get_error_message()}"
            ) from error

    def _run_as_before(self) -> None:
        network = self._connection.networkDefineXML(self._ran_as)
        self._create(network)
        reconnect(self._note.read(), network.bridgeName())
        self._note.forget()

    def _create(self, network: Any) -> None:
        try:
            network.create()
        except libvirt.libvirtError:
            if packet_filter.has_chains():
                raise
            # libvirt makes its chains with its first network, and does not look whether they are there still.
            self._have_rules_written(packet_filter.has_chains)
            if not self._network().isActive():  # libvirt was restarted, and has
                self._network().create()
        run(str(self._hook.path), self._name, "started")  # which libvirt has done, unless it does not know the hook

    def _reconnect_ports(self) -> None:
        reconnect(self._note.read(), self._wanted().bridge)
        self._note.forget()

    def _update(self, name: str) -> None:
        """Only what runs: what is written down has been redefined as a whole."""
        network = self._network()
        live = network.XMLDesc()
        running, wanted = getattr(xml.definition_of(live), name), getattr(self._wanted(), name)
        section = getattr(libvirt, f"VIR_NETWORK_SECTION_{LIVE_SECTIONS[name]}")
        changes = {
            libvirt.VIR_NETWORK_UPDATE_COMMAND_DELETE: [item for item in running if item not in wanted],
            libvirt.VIR_NETWORK_UPDATE_COMMAND_ADD_LAST: [item for item in wanted if item not in running],
        }
        for command, items in changes.items():
            for item in items:
                place = xml.position_of(live, item)
                network.update(command, section, place, xml.item_xml(item), libvirt.VIR_NETWORK_UPDATE_AFFECT_LIVE)

    def _release(self, ips: tuple[str, ...]) -> None:
        network = self._network()
        there = leases.leases_of(network)
        leases.release(network, [item for item in leases.stale(there, self._wanted().reservations) if item.ip in ips])


def names_owned_by(connection: Any, owner: str) -> list[str]:
    return sorted(found.name() for found in connection.listAllNetworks() if _owner_of(found) == owner)


def refuse_without_root() -> None:
    if os.geteuid():
        raise OperatorError(
            "The network's hook and the ports of its bridge are root's: run as root, with `become: true`."
        )


def _owner_of(network: Any) -> str | None:
    live, saved = _descriptions(network)
    return xml.owner_of(saved or live)


def _descriptions(network: Any) -> tuple[str, str]:
    """What runs and what is written down; empty if it does not, or is not."""
    live = network.XMLDesc() if network.isActive() else ""
    if not network.isPersistent():
        return live, ""
    return live, network.XMLDesc(libvirt.VIR_NETWORK_XML_INACTIVE) if live else network.XMLDesc()
