# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VM's definition as libvirt writes it."""

from __future__ import annotations

from typing import cast

from lxml import etree

from nometal_bmc.answers import not_found

DRIVE = "devices/disk[@device='cdrom']"
PARSER = etree.XMLParser(remove_blank_text=True, resolve_entities=False)


def parse(xml: str) -> etree._Element:
    return etree.fromstring(xml, PARSER)


def text_of(root: etree._Element) -> str:
    return etree.tostring(root, encoding="unicode", with_tail=False)


def part(element: etree._Element, path: str) -> etree._Element:
    """A part that every definition has."""
    found = element.find(path)
    if found is None:
        raise LookupError(f"libvirt's <{element.tag}> has no {path}")
    return found


def child(parent: etree._Element, tag: str) -> etree._Element:
    """The part with this name, made if need be."""
    found = parent.find(tag)
    return etree.SubElement(parent, tag) if found is None else found


def remove(parent: etree._Element, *tags: str) -> None:
    for tag in tags:
        for found in parent.findall(tag):
            parent.remove(found)


def values(element: etree._Element, path: str) -> list[str]:
    """What an XPath of attributes or texts finds."""
    return [str(value) for value in cast("list[str]", element.xpath(path))]


def attributes(element: etree._Element) -> dict[str, str]:
    return {str(name): str(value) for name, value in element.attrib.items()}


def running(root: etree._Element) -> etree._Element | None:
    """What was read of the present machine, if it runs."""
    return root if root.get("id") else None


def drive_of(root: etree._Element) -> etree._Element:
    """The CD-ROM drive."""
    drive = root.find(DRIVE)
    if drive is None:
        raise not_found(f"A CD-ROM drive in {root.findtext('name')}")
    return drive
