"""Has ansible keep the modules that it packs where other runs find them. For support/kept_code.py."""

from __future__ import annotations

import os
from pathlib import Path

from ansible import constants
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: kept_modules
type: aggregate
short_description: Keep packed modules
description:
  - Has a run find the modules that it packs, and keep them, in the directory named by KEPT_MODULES.
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "kept_modules"

    def __init__(self) -> None:
        super().__init__()
        if kept := os.environ.get("KEPT_MODULES"):
            (Path(constants.DEFAULT_LOCAL_TMP) / "ansiballz_cache").symlink_to(kept)
