"""How the log calls what an IPMI client asks for."""

from __future__ import annotations

import pytest

from nometal_bmc.ipmi.wishes import described


@pytest.mark.parametrize(
    ("function", "command", "data", "text"),
    [
        (0, 1, b"", "chassis status"),
        (0, 2, b"\x00", "power off"),
        (0, 2, b"\x05", "soft power off"),
        (0, 2, b"\x09", "chassis control"),
        (0, 2, b"", "chassis control"),
        (0, 8, b"\x05\x80\x04\x00\x00\x00", "boot from network once"),
        (0, 8, b"\x05\xc0\x08\x00\x00\x00", "boot from disk always"),
        (0, 8, b"\x05\x80\x18\x00\x00\x00", "boot from device 6 once"),
        (0, 8, b"\x05\x00\x00\x00\x00\x00", "boot as usual"),
        (0, 8, b"\x05\x80", "set boot options"),
        (0, 8, b"\x03\x00", "set boot options"),
        (6, 0x3B, b"\x04", ""),
        (6, 0x3C, b"", ""),
        (0x2C, 0x3E, b"", "command 0x2c 0x3e"),
    ],
)
def test_wishes_have_names(function: int, command: int, data: bytes, text: str) -> None:
    assert described(function, command, data) == text
