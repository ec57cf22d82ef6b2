# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of text that a lab_spec holds: names, sizes, MACs. Each refuses with what would be right."""

from __future__ import annotations

import re
import uuid

from ansible_collections.nometal.ipi.plugins.module_utils._core.normalize import show

LONGEST_CLUSTER_NAME = 54
LONGEST_LABEL = 63
LONGEST_DOMAIN = 253
LONGEST_INTERFACE_NAME = 15
LONGEST_SERIAL = 20
LONGEST_TXT = 255
MIB = 1024**2
NOBODYS_DIGITS = {"0": "zeros", "f": "ones"}
"""Firmware says by them that a machine has no UUID."""
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
VERSION_PATTERN = f"{RELEASE_PATTERN}|{CHANNEL_PATTERN}"


def dns_label(value: str) -> str:
    if not re.fullmatch(LABEL_PATTERN, value):
        raise ValueError(f"is {show(value)}; lower case letters, digits and inner hyphens are right, with no dot")
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
        raise ValueError(f"is {show(value)}; a domain in lower case is right, such as lab.example.test")
    return _no_longer_than(LONGEST_DOMAIN, value)


def record_name(value: str) -> str:
    if not re.fullmatch(RECORD_PATTERN, value) or any(len(label) > LONGEST_LABEL for label in value.split(".")):
        raise ValueError(f"is {show(value)}; a DNS name in lower case is right, such as mirror.example.test")
    return _no_longer_than(LONGEST_DOMAIN, value)


def interface_name(value: str) -> str:
    if len(value) > LONGEST_INTERFACE_NAME:
        raise ValueError(
            f"has {len(value)} characters; {LONGEST_INTERFACE_NAME} at most are right, which is Linux's limit"
        )
    if not re.fullmatch(INTERFACE_PATTERN, value) or value in ("lo", "all", "default"):
        raise ValueError(f"is {show(value)}; an interface name is right: letters, digits, dot, hyphen, underscore")
    return value


def mac_address(value: str) -> str:
    if not re.fullmatch(MAC_PATTERN, value):
        raise ValueError(f"is {show(value)}; six pairs of hex digits are right, such as 52:54:00:12:34:56")
    if not value.strip("0:"):
        raise ValueError(f"is {value}, which no machine may have; 52:54:00:12:34:56 would be right")
    return _unicast(value.lower())


def mac_prefix(value: str) -> str:
    if not re.fullmatch(MAC_PREFIX_PATTERN, value):
        raise ValueError(f"is {show(value)}; one to five pairs of hex digits are right, such as 52:54:00")
    return _unicast(value.lower())


def size(value: str) -> int:
    """Bytes."""
    match = re.fullmatch(SIZE_PATTERN, value)
    if not match:
        raise ValueError(f"is {show(value)}; {_size_hint(value)}")
    whole, fraction, unit = match.groups()
    scale = 10 ** len((fraction or ".")[1:])
    count, rest = divmod((int(whole) * scale + int((fraction or ".0")[1:] or 0)) * UNITS[unit], scale)
    if rest or count % MIB:
        raise ValueError(f"is {show(value)}; a whole number of MiB is right, such as 512MiB")
    return count


def serial(value: str) -> str:
    if not re.fullmatch("[-A-Za-z0-9_]+", value) or len(value) > LONGEST_SERIAL:
        raise ValueError(f"is {show(value)}; 1 to {LONGEST_SERIAL} letters, digits, hyphens, underscores are right")
    return value


def uuid_text(value: str) -> str:
    try:
        text = str(uuid.UUID(value))
    except ValueError:
        raise ValueError(f"is {show(value)}; a UUID is right, such as 8c0e3b1a-5f3c-4c8e-9d55-0d6a3f0a7b11") from None
    for digit, called in NOBODYS_DIGITS.items():
        if not text.strip(f"-{digit}"):
            raise ValueError(f"is all {called}, which is nobody's; a UUID is right that no other machine has")
    return text


def version(value: str) -> str:
    if not re.fullmatch(VERSION_PATTERN, value):
        near = re.search(rf"(?P<minor>{MINOR_PATTERN})(\.[0-9]+)?", value)
        minor, release = (near["minor"], near[0]) if near else ("4.20", "4.20")
        release = f"{minor}.3" if release == minor else release
        raise ValueError(f"is {show(value)}; a release ({release}) or a channel (stable-{minor}) is right")
    return value


def file_name(value: str) -> str:
    if value.lstrip().startswith(("{", "ssh-", "-----", "ecdsa-", "sk-")):
        raise ValueError("holds the content itself; the path of a file that holds it is right")
    return words(value)


def absolute_path(value: str) -> str:
    if not value.startswith("/"):
        raise ValueError(f"is {show(value)}; an absolute path is right, such as /srv/labs/demo")
    if not re.fullmatch(PATH_PATTERN, value):
        raise ValueError(
            f"is {show(value)}; a path with no '.', '..' or needless slash is right, such as /srv/labs/demo"
        )
    return words(value)


def inventory_name(value: str) -> str:
    if not re.fullmatch(INVENTORY_NAME_PATTERN, value):
        raise ValueError(f"is {show(value)}; the name of a host in the inventory is right, such as hypervisor")
    return value


def words(value: str) -> str:
    if not value.strip() or not value.isprintable():
        raise ValueError(f"is {show(value)}; one line of printable text is right")
    return value


def txt_record(value: str) -> str:
    return _no_longer_than(LONGEST_TXT, words(value))


def device_name(value: str) -> str:
    if not re.fullmatch(r"/dev/[^/\s]+|/dev/disk/by-path/[^/\s]+", value):
        raise ValueError(f"is {show(value)}; /dev/<name> or /dev/disk/by-path/<name> is right")
    return value


def _unicast(value: str) -> str:
    if int(value[:2], 16) & 1:
        raise ValueError(f"is {value}, a multicast address; the first pair has to be an even number, such as 52")
    return value


def _no_longer_than(limit: int, value: str) -> str:
    if len(value) > limit:
        raise ValueError(f"has {len(value)} characters; {limit} at most are right")
    return value


def _size_hint(value: str) -> str:
    match = re.fullmatch(r"\s*([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([kKmMgGtT])?i?[bB]?\s*", value)
    if match and match[2]:
        return f"a size in binary units is right: {match[1]}{match[2].upper()}iB"
    if match:
        return f"it lacks a unit: {match[1]}GiB or {match[1]}MiB would be right"
    return "a number with KiB, MiB, GiB or TiB is right, such as 16GiB"
