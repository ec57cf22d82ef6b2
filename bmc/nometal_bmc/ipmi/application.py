# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands about the BMC itself, and those that clients give before they have logged in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nometal_bmc.ipmi.commands import APPLICATION, Code, Command, Declined, Level, Request, Table, named
from nometal_bmc.ipmi.suites import SUITES

if TYPE_CHECKING:
    import uuid

LAN_CHANNEL, THIS_CHANNEL = 1, 0xE
IPMI_MESSAGES = 0
RECORDS_LENGTH = 16
"""Of cipher suites, in one answer."""

DEVICE_ID = bytes([0x20, 0x01, 0x01, 0x00, 0x02])  # device, revision, firmware 1.0, IPMI 2.0
DEVICES = 0x80 | 0x08 | 0x04 | 0x02  # chassis, FRU inventory, event log, repository of sensor data
NO_MAKER = bytes(5)
DEVICE = DEVICE_ID + bytes([DEVICES]) + NO_MAKER
IPMI_2_ONLY = bytes([LAN_CHANNEL, 0b1000_0000, 0b0000_0100, 0b0000_0010, 0, 0, 0, 0])
"""The channel has RMCP+ with names of accounts, and no logins of IPMI 1.5."""
LAN = bytes([LAN_CHANNEL, 0x04, 0x01, 0x80, 0xF2, 0x1B, 0x00, 0x00, 0x00])  # 802.3, IPMB messages, with sessions
ALWAYS_ON = bytes([0b0010_0010, Level.ADMINISTRATOR])
SELF_TEST_PASSED = bytes([0x55, 0x00])


class Application:
    """Which BMC this is, and how it can be talked to."""

    def __init__(self, guid: uuid.UUID) -> None:
        self._guid = guid

    def table(self) -> Table:
        user, none = Level.USER, Level.NONE
        return {
            (APPLICATION, 0x01): Command(user, lambda _request: DEVICE),
            (APPLICATION, 0x04): Command(user, lambda _request: SELF_TEST_PASSED, named("self test")),
            (APPLICATION, 0x08): Command(user, self._system_guid, named("device GUID")),
            (APPLICATION, 0x37): Command(none, self._system_guid, named("system GUID")),
            (APPLICATION, 0x38): Command(none, _login_kinds, least=2),
            (APPLICATION, 0x41): Command(user, _channel_access, least=2),
            (APPLICATION, 0x42): Command(user, _channel, least=1),
            (APPLICATION, 0x54): Command(none, _cipher_suites, least=3),
        }

    def _system_guid(self, _request: Request) -> bytes:
        return self._guid.bytes_le


def _login_kinds(request: Request) -> bytes:
    _of_ours(request.data[0] & 0b1111)
    return IPMI_2_ONLY


def _channel_access(request: Request) -> bytes:
    _of_ours(request.data[0] & 0b1111)
    return ALWAYS_ON


def _channel(request: Request) -> bytes:
    _of_ours(request.data[0] & 0b1111)
    return LAN


def _cipher_suites(request: Request) -> bytes:
    channel, payload, index = request.data[:3]
    _of_ours(channel & 0b1111)
    if payload != IPMI_MESSAGES:
        raise Declined(Code.INVALID_FIELD)
    records = b"".join(suite.record() for suite in SUITES)
    start = (index & 0b11_1111) * RECORDS_LENGTH
    return bytes([LAN_CHANNEL]) + records[start : start + RECORDS_LENGTH]


def _of_ours(channel: int) -> None:
    if channel not in (LAN_CHANNEL, THIS_CHANNEL):
        raise Declined(Code.INVALID_FIELD)
