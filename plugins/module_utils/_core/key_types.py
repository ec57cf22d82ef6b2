# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The types that the keys of a lab_spec can have, for text."""

from __future__ import annotations

from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import must_be
from ansible_collections.nometal.ipi.plugins.module_utils._core.schema import Text
from ansible_collections.nometal.ipi.plugins.module_utils._core.types import (
    DOMAIN_PATTERN,
    INTERFACE_PATTERN,
    INVENTORY_NAME_PATTERN,
    LABEL_PATTERN,
    MAC_PATTERN,
    MAC_PREFIX_PATTERN,
    PATH_PATTERN,
    RECORD_PATTERN,
    SIZE_PATTERN,
    VERSION_PATTERN,
    absolute_path,
    cluster_name,
    device_name,
    dns_label,
    domain_name,
    file_name,
    interface_name,
    inventory_name,
    ip_address,
    mac_address,
    mac_prefix,
    record_name,
    serial,
    size,
    size_text,
    subnet,
    txt_record,
    uuid_text,
    version,
    words,
)


def size_between(low: int, high: int) -> Text:
    """Of so many bytes."""

    def convert(value: str) -> int:
        count = size(value)
        if not low <= count <= high:
            raise ValueError(must_be(f"{size_text(low)} to {size_text(high)}", value))
        return count

    return Text("size", convert, "16GiB", SIZE_PATTERN)


TEXT = Text("text", str, "some text")
IP = Text("IP address", ip_address, "192.168.126.1")
SUBNET = Text("network", subnet, "192.168.126.0/24")
CLUSTER_NAME = Text("name", cluster_name, "ha", LABEL_PATTERN)
LABEL = Text("name", dns_label, "printer", LABEL_PATTERN)
DOMAIN = Text("domain", domain_name, "lab.example.test", DOMAIN_PATTERN)
RECORD_NAME = Text("DNS name", record_name, "mirror.example.test", RECORD_PATTERN)
INTERFACE = Text("interface name", interface_name, "baremetal", INTERFACE_PATTERN)
MAC = Text("MAC address", mac_address, "52:54:00:12:34:56", MAC_PATTERN)
MAC_PREFIX = Text("MAC prefix", mac_prefix, "52:54:00", MAC_PREFIX_PATTERN)
SERIAL = Text("serial number", serial, "disk-0001", "[-A-Za-z0-9_]{1,20}")
UUID = Text("UUID", uuid_text, "8c0e3b1a-5f3c-4c8e-9d55-0d6a3f0a7b11")
VERSION = Text("version", version, "stable-4.20", VERSION_PATTERN)
FILE = Text("file name", file_name, "~/pull-secret.json")
DIRECTORY = Text("absolute path", absolute_path, "/srv/labs/demo", PATH_PATTERN)
INVENTORY_NAME = Text("inventory name", inventory_name, "hypervisor", INVENTORY_NAME_PATTERN)
WORDS = Text("text", words, "some text")
TXT = Text("text", txt_record, "some text")
DEVICE = Text("device name", device_name, "/dev/sda", "/dev/.+")
