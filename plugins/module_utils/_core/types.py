# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The types of text in a lab_spec: names, sizes, MACs. Each refuses invalid text with what it must be."""

from __future__ import annotations

import ipaddress
import re
import uuid

from ansible_collections.nometal.ipi.plugins.module_utils._core.ip import Network
from ansible_collections.nometal.ipi.plugins.module_utils._core.limits import (
    LONGEST_CLUSTER_NAME,
    LONGEST_DOMAIN,
    LONGEST_INTERFACE_NAME,
    LONGEST_LABEL,
    LONGEST_SERIAL,
    LONGEST_TXT,
    RESERVED_INTERFACES,
)
from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import must_be

MIB = 1024**2
NO_UUID_DIGITS = "0f"
"""A UUID of one of these alone means to firmware that a machine has none."""
UNITS = {"KiB": 1024, "MiB": MIB, "GiB": 1024**3, "TiB": 1024**4}

LABEL_PATTERN = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
DOMAIN_PATTERN = rf"{LABEL_PATTERN}(\.{LABEL_PATTERN})*"
RECORD_PATTERN = r"(\*\.)?[a-z0-9_]([-a-z0-9_]*[a-z0-9])?(\.[a-z0-9_]([-a-z0-9_]*[a-z0-9])?)*"
INTERFACE_PATTERN = "[A-Za-z0-9][-A-Za-z0-9_.]*"
MAC_PATTERN = "[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}"
MAC_PREFIX_PATTERN = "[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){0,4}"
INVENTORY_NAME_PATTERN = "[A-Za-z0-9_][-A-Za-z0-9_.]*"
PATH_PATTERN = r"(/(?!\.{1,2}(/|$))[^/]+)+"
SIZE_PATTERN = r"([0-9]{1,12})(\.[0-9]{1,6})?[ ]?(KiB|MiB|GiB|TiB)"
MINOR_PATTERN = r"[0-9]{1,3}\.[0-9]{1,3}"
RELEASE_PATTERN = rf"{MINOR_PATTERN}\.[0-9]+(-[0-9A-Za-z]+([.-][0-9A-Za-z]+)*)?"
CHANNEL_PATTERN = rf"(stable|fast|candidate|eus|latest)-{MINOR_PATTERN}"
BUILD_PATTERN = rf"(unreleased|{MINOR_PATTERN})(-[0-9A-Za-z.]+)*-[0-9]+-g[0-9a-f]{{7,40}}(-dirty)?"
"""The name of a build that was never released: its last tag, the number of commits since, and the last commit."""
VERSION_PATTERN = f"{RELEASE_PATTERN}|{CHANNEL_PATTERN}|{BUILD_PATTERN}"


def dns_label(value: str) -> str:
    if not re.fullmatch(LABEL_PATTERN, value):
        raise ValueError(must_be("lower case letters, digits and inner hyphens, without a dot", value))
    return _no_longer_than(LONGEST_LABEL, value)


def cluster_name(value: str) -> str:
    return _no_longer_than(LONGEST_CLUSTER_NAME, dns_label(value))


def is_lab_name(value: str) -> bool:
    try:
        return cluster_name(value) == value
    except ValueError:
        return False


def domain_name(value: str) -> str:
    if not re.fullmatch(DOMAIN_PATTERN, value) or any(len(label) > LONGEST_LABEL for label in value.split(".")):
        raise ValueError(must_be("a domain in lower case, such as lab.example.test", value))
    return _no_longer_than(LONGEST_DOMAIN, value)


def record_name(value: str) -> str:
    if not re.fullmatch(RECORD_PATTERN, value) or any(len(label) > LONGEST_LABEL for label in value.split(".")):
        raise ValueError(must_be("a DNS name in lower case, such as mirror.example.test", value))
    return _no_longer_than(LONGEST_DOMAIN, value)


def interface_name(value: str) -> str:
    if len(value) > LONGEST_INTERFACE_NAME:
        raise ValueError(must_be(f"at most {LONGEST_INTERFACE_NAME} characters long, the limit of Linux", value))
    if value in RESERVED_INTERFACES:
        raise ValueError(must_be(f"another name than {', '.join(RESERVED_INTERFACES)}, which Linux reserves", value))
    if not re.fullmatch(INTERFACE_PATTERN, value):
        raise ValueError(must_be("an interface name: letters, digits, dot, hyphen, underscore", value))
    return value


def mac_address(value: str) -> str:
    if not re.fullmatch(MAC_PATTERN, value):
        raise ValueError(must_be("six pairs of hex digits, such as 52:54:00:12:34:56", value))
    if not value.strip("0:"):
        raise ValueError(must_be("a MAC address that a machine may have, such as 52:54:00:12:34:56", value))
    return _unicast(value.lower())


def mac_prefix(value: str) -> str:
    if not re.fullmatch(MAC_PREFIX_PATTERN, value):
        raise ValueError(must_be("one to five pairs of hex digits, such as 52:54:00", value))
    return _unicast(value.lower())


def ip_address(value: str) -> str:
    """Of any host, in canonical spelling."""
    try:
        return str(ipaddress.ip_address(value))
    except ValueError:
        raise ValueError(must_be("an IP address, such as 192.168.126.1", value)) from None


def subnet(value: str) -> Network:
    """Of the network itself, or of an address in it."""
    try:
        return ipaddress.ip_network(value, strict=False)
    except ValueError:
        raise ValueError(must_be("a network, such as 192.168.126.0/24", value)) from None


def size(value: str) -> int:
    """Bytes."""
    match = re.fullmatch(SIZE_PATTERN, value)
    if not match:
        raise ValueError(must_be(_size_hint(value), value))
    whole, fraction, unit = match.groups()
    scale = 10 ** len((fraction or ".")[1:])
    count, rest = divmod((int(whole) * scale + int((fraction or ".0")[1:] or 0)) * UNITS[unit], scale)
    if rest or count % MIB:
        raise ValueError(must_be("a whole number of MiB, such as 512MiB", value))
    return count


def size_text(count: int) -> str:
    unit = next(unit for unit in reversed(UNITS) if count % UNITS[unit] == 0)
    return f"{count // UNITS[unit]}{unit}"


def serial(value: str) -> str:
    if not re.fullmatch("[-A-Za-z0-9_]+", value) or len(value) > LONGEST_SERIAL:
        raise ValueError(must_be(f"1 to {LONGEST_SERIAL} letters, digits, hyphens, underscores", value))
    return value


def uuid_text(value: str) -> str:
    try:
        text = str(uuid.UUID(value))
    except ValueError:
        raise ValueError(must_be("a UUID, such as 8c0e3b1a-5f3c-4c8e-9d55-0d6a3f0a7b11", value)) from None
    if set(text) - {"-"} in [{digit} for digit in NO_UUID_DIGITS]:
        raise ValueError(must_be("a UUID of a machine, not all zeros or all ones", value))
    return text


def version(value: str) -> str:
    if not re.fullmatch(VERSION_PATTERN, value):
        near = re.search(rf"(?P<minor>{MINOR_PATTERN})(\.[0-9]+)?", value)
        minor, release = (near["minor"], near[0]) if near else ("4.20", "4.20")
        release = f"{minor}.3" if release == minor else release
        raise ValueError(must_be(f"a release ({release}) or a channel (stable-{minor})", value))
    return value


def file_name(value: str) -> str:
    if value.lstrip().startswith(("{", "ssh-", "-----", "ecdsa-", "sk-")):
        raise ValueError("must be the path of a file that holds the content, not the content")
    return words(value)


def absolute_path(value: str) -> str:
    if not value.startswith("/"):
        raise ValueError(must_be("an absolute path, such as /srv/labs/demo", value))
    if not re.fullmatch(PATH_PATTERN, value):
        raise ValueError(must_be("a path without '.', '..' and extra slashes, such as /srv/labs/demo", value))
    return words(value)


def inventory_name(value: str) -> str:
    if not re.fullmatch(INVENTORY_NAME_PATTERN, value):
        raise ValueError(must_be("the name of a host in the inventory, such as hypervisor", value))
    return value


def words(value: str) -> str:
    if not value.strip() or not value.isprintable():
        raise ValueError(must_be("one line of printable text", value))
    return value


def txt_record(value: str) -> str:
    return _no_longer_than(LONGEST_TXT, words(value))


def device_name(value: str) -> str:
    if not re.fullmatch(r"/dev/[^/\s]+|/dev/disk/by-path/[^/\s]+", value):
        raise ValueError(must_be("/dev/<name> or /dev/disk/by-path/<name>", value))
    return value


def _unicast(value: str) -> str:
    if int(value[:2], 16) & 1:
        raise ValueError(must_be("a unicast address, whose first pair is an even number such as 52", value))
    return value


def _no_longer_than(limit: int, value: str) -> str:
    if len(value) > limit:
        raise ValueError(must_be(f"at most {limit} characters long", value))
    return value


def _size_hint(value: str) -> str:
    match = re.fullmatch(r"\s*([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([kKmMgGtT])?i?[bB]?\s*", value)
    if match and match[2]:
        return f"a size in binary units: {match[1]}{match[2].upper()}iB"
    if match:
        return f"a size with a unit: {match[1]}GiB or {match[1]}MiB"
    return "a number with KiB, MiB, GiB or TiB, such as 16GiB"
