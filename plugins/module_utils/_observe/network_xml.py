# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Between libvirt's XML and what the lab declares. Owned elements are edited in place; what others added stays."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, Callable

from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import USUAL_MTU
from ansible_collections.nometal.ipi.plugins.module_utils._lab.network import (
    Definition,
    DnsHost,
    Range,
    Reservation,
    Srv,
    Txt,
)
from ansible_collections.nometal.ipi.plugins.module_utils._lab.types import Forward

try:
    from lxml import etree
except ImportError:  # connect() has said so by the time that anything here runs
    etree = None  # type: ignore[assignment]  # mypy takes the name for the module alone

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

OWNER = "{urn:nometal:ipi}"
DNSMASQ = "{http://libvirt.org/schemas/network/dnsmasq/1.0}"
PREFIXES = {"nometal": OWNER[1:-1], "dnsmasq": DNSMASQ[1:-1]}


def owner_of(xml: str) -> str | None:
    mark = etree.fromstring(xml).find(f"metadata/{OWNER}network")
    return None if mark is None else mark.get("owner")


def has_dnsmasq(xml: str) -> bool:
    root = etree.fromstring(xml)
    dns_is_off = _attribute(root, "dns", "enable") == "no"
    return root.find("ip") is not None and (not dns_is_off or root.find("ip/dhcp/*") is not None)


def ports_of_guest(xml: str) -> list[str]:
    return [target.get("dev", "") for target in etree.fromstring(xml).iterfind("devices/interface/target")]


def definition_of(xml: str, ours: Collection[str] = ()) -> Definition:
    """`ours`: the lines for dnsmasq that are declared. Among others' lines, ours are also known by the owner's mark."""
    root = etree.fromstring(xml)
    noted = {element.get("value") for element in root.iterfind(f"metadata/{OWNER}network/{OWNER}option")}
    lines = [element.get("value", "") for element in root.iterfind(f"{DNSMASQ}options/{DNSMASQ}option")]
    return Definition(
        bridge=_attribute(root, "bridge", "name"),
        forward=_forward_of(root),
        routes_ipv6=_forward_of(root) == Forward.NAT and _has_ipv6(root) and not _translates_ipv6(root),
        mtu=int(_attribute(root, "mtu", "size") or USUAL_MTU),
        domain=_attribute(root, "domain", "name") or None,
        addresses=tuple(_address_of(element) for element in root.iterfind("ip")),
        forwarders=tuple(element.get("addr", "") for element in root.iterfind("dns/forwarder") if _is_ours(element)),
        options=tuple(line for line in lines if line in noted or line in ours),
        ranges=_sorted(_range_of, root.iterfind("ip/dhcp/range")),
        reservations=_sorted(_reservation_of, root.iterfind("ip/dhcp/host")),
        hosts=_sorted(_dns_host_of, root.iterfind("dns/host")),
        srv=_sorted(_srv_of, root.iterfind("dns/srv")),
        txt=_sorted(_txt_of, root.iterfind("dns/txt")),
    )


def edited(xml: str, owner: str, wanted: Definition) -> str:
    """The XML made to say what is wanted, and whose it is."""
    root = etree.fromstring(xml)
    noted = definition_of(xml, wanted.options).options
    _mark(root, owner, wanted.options)
    _edit_forward(root, wanted)
    # With the spanning tree protocol, which libvirt turns on, what is plugged in waits 4 seconds for its first packet.
    _child(root, "bridge", {"stp": "off", "delay": "0"}).set("name", wanted.bridge)
    _child(root, "mtu").set("size", str(wanted.mtu))
    _edit_domain(root, wanted.domain)
    _edit_dns(_child(root, "dns"), wanted)
    _edit_addresses(root, wanted)
    _edit_options(root, noted, wanted.options)
    etree.cleanup_namespaces(root, top_nsmap=PREFIXES)
    return etree.tostring(root, encoding="unicode")


def new(name: str, uuid: str | None) -> str:
    root = etree.Element("network")
    etree.SubElement(root, "name").text = name
    if uuid:
        etree.SubElement(root, "uuid").text = uuid
    return etree.tostring(root, encoding="unicode")


def item_xml(item: Any) -> str:
    """What `virsh net-update` takes."""
    return etree.tostring(_element_of(item), encoding="unicode")


def position_of(xml: str, item: Any) -> int:
    """Which of the <ip> elements the item belongs in: libvirt wants to be told. -1: in none."""
    if not isinstance(item, (Range, Reservation)):
        return -1
    ip = ipaddress.ip_address(item.start if isinstance(item, Range) else item.ip)
    addresses = map(_address_of, etree.fromstring(xml).iterfind("ip"))
    return next(index for index, own in enumerate(addresses) if ip in ipaddress.ip_interface(own).network)


def _mark(root: Any, owner: str, options: Iterable[str]) -> None:
    metadata = _child(root, "metadata")
    for element in metadata.findall(f"{OWNER}network"):
        metadata.remove(element)
    mark = etree.SubElement(metadata, f"{OWNER}network", owner=owner)
    for line in options:
        etree.SubElement(mark, f"{OWNER}option", value=line)


def _edit_forward(root: Any, wanted: Definition) -> None:
    forward, mode = root.find("forward"), wanted.forward
    if mode == Forward.ISOLATED:
        if forward is not None:
            root.remove(forward)
        return
    forward = _child(root, "forward")
    forward.set("mode", mode)
    if mode == Forward.NAT and any(":" in address for address in wanted.addresses):
        _child(forward, "nat").set("ipv6", "yes")
    for nat in forward.findall("nat") if mode != Forward.NAT else []:
        forward.remove(nat)


def _edit_domain(root: Any, domain: str | None) -> None:
    if domain:
        # Others are not asked for names that only this network can know.
        _child(root, "domain", {"localOnly": "yes"}).set("name", domain)
    elif root.find("domain") is not None:
        root.remove(root.find("domain"))


def _edit_dns(dns: Any, wanted: Definition) -> None:
    dns.attrib.pop("enable", None)
    _sync(dns, "txt", _txt_of, wanted.txt)
    _sync(dns, "host", _dns_host_of, wanted.hosts)
    _sync(dns, "srv", _srv_of, wanted.srv)
    for element in filter(_is_ours, dns.findall("forwarder")):
        dns.remove(element)
    for address in wanted.forwarders:
        etree.SubElement(dns, "forwarder", addr=address)


def _edit_addresses(root: Any, wanted: Definition) -> None:
    there = {_address_of(element): element for element in root.findall("ip")}
    for element in there.values():
        root.remove(element)
    for address in wanted.addresses:
        interface = ipaddress.ip_interface(address)
        element = there.get(address)
        if element is None:
            prefix = str(interface.network.prefixlen)
            element = etree.Element("ip", family=f"ipv{interface.version}", address=str(interface.ip), prefix=prefix)
        root.append(element)
        _edit_dhcp(element, _within(interface, wanted.ranges, "start"), _within(interface, wanted.reservations, "ip"))


def _edit_dhcp(ip: Any, ranges: list[Range], reservations: list[Reservation]) -> None:
    dhcp = _child(ip, "dhcp")
    _sync(dhcp, "range", _range_of, ranges)
    _sync(dhcp, "host", _reservation_of, reservations)
    if not len(dhcp):
        ip.remove(dhcp)


def _within(interface: Any, items: Iterable[Any], key: str) -> list[Any]:
    return [item for item in items if ipaddress.ip_address(getattr(item, key)) in interface.network]


def _edit_options(root: Any, noted: Collection[str], wanted: Iterable[str]) -> None:
    options = _child(root, f"{DNSMASQ}options")
    for element in options.findall(f"{DNSMASQ}option"):
        if element.get("value") in noted:
            options.remove(element)
    for line in wanted:
        etree.SubElement(options, f"{DNSMASQ}option", value=line)
    if not len(options):
        root.remove(options)


def _sync(parent: Any, tag: str, read: Callable[[Any], Any], wanted: Iterable[Any]) -> None:
    there = {}
    for element in parent.findall(tag):
        item = read(element)
        if item in there or item not in wanted:
            parent.remove(element)
        else:
            there[item] = element
    for item in wanted:
        if item not in there:
            parent.append(_element_of(item))


def _child(parent: Any, tag: str, attributes: dict[str, str] | None = None) -> Any:
    found = parent.find(tag)
    return etree.SubElement(parent, tag, attributes) if found is None else found


def _attribute(root: Any, path: str, name: str) -> str:
    element = root.find(path)
    return "" if element is None else element.get(name, "")


def _is_ours(forwarder: Any) -> bool:
    return forwarder.get("domain") is None


def _sorted(read: Callable[[Any], Any], elements: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(sorted(map(read, elements)))


def _forward_of(root: Any) -> str:
    forward = root.find("forward")
    return Forward.ISOLATED if forward is None else forward.get("mode", Forward.NAT.value)


def _has_ipv6(root: Any) -> bool:
    return root.find("ip[@family='ipv6']") is not None


def _translates_ipv6(root: Any) -> bool:
    return _attribute(root, "forward/nat", "ipv6") == "yes"


def _address_of(element: Any) -> str:
    mask = element.get("prefix") or element.get("netmask") or ""
    return str(ipaddress.ip_interface(f"{element.get('address')}/{mask}".rstrip("/")))


def _range_of(element: Any) -> Range:
    return Range(element.get("start"), element.get("end"))


def _reservation_of(element: Any) -> Reservation:
    machine = element.get("id") or element.get("mac") or ""
    return Reservation(element.get("ip"), machine.lower(), element.get("name", ""))


def _dns_host_of(element: Any) -> DnsHost:
    return DnsHost(element.get("ip"), tuple(name.text for name in element.iterfind("hostname")))


def _srv_of(element: Any) -> Srv:
    words = (element.get(key, "") for key in ("domain", "service", "protocol", "target"))
    numbers = (int(element.get(key, 0)) for key in ("port", "priority", "weight"))
    return Srv(*words, *numbers)


def _txt_of(element: Any) -> Txt:
    return Txt(element.get("name"), element.get("value"))


def _element_of(item: Any) -> Any:
    if isinstance(item, DnsHost):
        element = etree.Element("host", ip=item.ip)
        for name in item.names:
            etree.SubElement(element, "hostname").text = name
        return element
    if isinstance(item, Reservation):
        kind = "id" if ":" in item.ip else "mac"
        return etree.Element("host", {kind: item.id, "name": item.name, "ip": item.ip})
    tag = {Range: "range", Srv: "srv", Txt: "txt"}[type(item)]
    return etree.Element(tag, {key: str(value) for key, value in vars(item).items()})
