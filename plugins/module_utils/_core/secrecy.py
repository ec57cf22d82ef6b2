# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recognise secrets where none may be."""

from __future__ import annotations

import re

SECRET_KEYS = ("pullsecret", "password", "token", "secret", "privatekey")
SECRET_TEXT = re.compile(r"PRIVATE KEY-----|://[^/\s@]*:[^/\s@]+@")


def is_secret_key(name: str) -> bool:
    return name.replace("_", "").lower() in SECRET_KEYS


def is_secret_text(value: str) -> bool:
    return SECRET_TEXT.search(value) is not None
