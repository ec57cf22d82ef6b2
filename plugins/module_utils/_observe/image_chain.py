# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What disk images are based on, read from the images: libvirt knows it of running VMs only."""

from __future__ import annotations

import json
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._core.processes import run

if TYPE_CHECKING:
    from collections.abc import Iterator

RAW = "raw"
QCOW = b"QFI\xfb"
BY_QEMU = (b"QED\0", b"KDMV", b"COWD", b"# Di", b"vhdxfile", b"conectix", b"<<< ", b"WithoutFree", b"WithouFreSp")
"""How images of other formats begin that may be based on others; qemu-img reads them."""
HEADER, HEADER_LENGTH, LONGEST_HEADER = 72, 100, 4096
VERSION, NAME_AT, NAME_LENGTH = slice(4, 8), slice(8, 16), slice(16, 20)
LONGEST_NAME = 1023
WITH_EXTENSIONS = (2, 3)
END, BACKING_FORMAT, DATA_FILE = 0, 0xE2792ACA, 0x44415441
REMOTE = ("ftp", "ftps", "gluster", "http", "https", "iscsi", "nbd", "nfs", "rbd", "sheepdog", "ssh")
PROTOCOL = re.compile(r"([A-Za-z][A-Za-z0-9_.-]*)(\+[a-z]+)?:(.*)", re.DOTALL)


class UnreadableError(Exception):
    """It cannot be known what an image is based on; the text says why."""


@dataclass(frozen=True)
class Image:
    path: str
    format: str | None = None
    """As it is declared. Unless that is raw, the image itself tells."""


@dataclass
class Chain:
    """An image, and all that it is based on."""

    files: list[str] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)
    """Files of which it cannot be known what they are based on, with the reason."""
    missing: set[str] = field(default_factory=set)


def chain_of(image: Image) -> Chain:
    chain, ahead = Chain(), [image]
    while ahead:
        each = ahead.pop(0)
        if each.path in chain.files:
            continue
        chain.files.append(each.path)
        try:
            ahead += based_on(each)
        except FileNotFoundError:
            chain.unread[each.path] = "it is missing"
            chain.missing.add(each.path)
        except OSError as error:
            chain.unread[each.path] = str(error.strerror or error)
        except UnreadableError as error:
            chain.unread[each.path] = str(error)
    return chain


def based_on(image: Image) -> list[Image]:
    if image.format == RAW:
        return []
    kind = Path(image.path).stat().st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISBLK(kind)):
        raise UnreadableError("it is neither a file nor a block device")
    with Path(image.path).open("rb") as file:
        head = file.read(LONGEST_HEADER)
        if head.startswith(QCOW):
            return list(_of_qcow(file, head, image.path))
    if head.startswith(BY_QEMU):
        return list(_by_qemu(image.path))
    return []


def _of_qcow(file: BinaryIO, head: bytes, path: str) -> Iterator[Image]:
    if len(head) < HEADER:
        raise UnreadableError("its header is cut off")
    extensions = dict(_extensions(head)) if _number(head[VERSION]) in WITH_EXTENSIONS else {}
    length = _number(head[NAME_LENGTH])
    if _number(head[NAME_AT]) and length:
        file.seek(_number(head[NAME_AT]))
        name = file.read(min(length, LONGEST_NAME))
        if len(name) < length:
            raise UnreadableError("its header is cut off")
        kind = os.fsdecode(extensions.get(BACKING_FORMAT, b"")) or None
        yield from _named(os.fsdecode(name), kind, path)
    if DATA_FILE in extensions:
        yield from _named(os.fsdecode(extensions[DATA_FILE]), RAW, path)


def _extensions(head: bytes) -> Iterator[tuple[int, bytes]]:
    version = _number(head[VERSION])
    at = HEADER if version < WITH_EXTENSIONS[-1] else _number(head[HEADER_LENGTH : HEADER_LENGTH + 4])
    while at + 8 <= len(head):
        kind, length = _number(head[at : at + 4]), _number(head[at + 4 : at + 8])
        if kind == END:
            return
        yield kind, head[at + 8 : at + 8 + length]
        at += 8 + (length + 7) // 8 * 8


def _by_qemu(path: str) -> Iterator[Image]:
    try:
        told = json.loads(run("qemu-img", "info", "--force-share", "--output=json", path))
    except (OperatorError, ValueError) as error:
        raise UnreadableError(f"qemu-img cannot read it: {error}") from error
    name = told.get("full-backing-filename") or told.get("backing-filename")
    if name:
        yield from _named(name, told.get("backing-filename-format"), path)
    for extent in told.get("format-specific", {}).get("data", {}).get("extents", ()):
        if extent.get("filename") and extent["filename"] != path:
            yield from _named(extent["filename"], RAW, path)


def _named(name: str, kind: str | None, image: str) -> Iterator[Image]:
    """As qemu understands names: of files, by protocol, or as JSON."""
    if name.startswith("json:"):
        yield from _in_json(name[len("json:") :], image)
        return
    protocol = PROTOCOL.fullmatch(name) if ":" in name.partition("/")[0] else None
    if protocol is None:
        yield Image(str(Path(image).parent / name), kind)
    elif protocol[1] in ("file", "host_device", "host_cdrom"):
        yield from _named(protocol[3] if "/" in protocol[3] else f"./{protocol[3]}", kind, image)
    elif protocol[1] not in REMOTE:
        raise UnreadableError(f"it is based on {name}, which is of no known protocol")


def _in_json(text: str, image: str) -> Iterator[Image]:
    try:
        told = json.loads(text)
    except ValueError as error:
        raise UnreadableError(f"it is based on json:{text}, which is invalid JSON") from error
    found = list(_values(told))
    names = [value for key, value in found if key == "filename"]
    drivers = {value for key, value in found if key == "driver"}
    if not names and not drivers & set(REMOTE):
        raise UnreadableError(f"it is based on json:{text}, which names no file")
    kind = RAW if isinstance(told, dict) and told.get("driver") == RAW else None
    for name in names:
        yield from _named(name, kind, image)


def _values(told: Any) -> Iterator[tuple[str, str]]:
    """All that is said by name, however deep; `file.filename` is a filename, too."""
    if isinstance(told, list):
        for each in told:
            yield from _values(each)
    if isinstance(told, dict):
        for key, value in told.items():
            if isinstance(value, str):
                yield key.rpartition(".")[2], value
            else:
                yield from _values(value)


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")
