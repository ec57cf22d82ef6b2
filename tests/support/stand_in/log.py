"""The installer's log: all of it in the file, what matters on stderr, in the form of logrus."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path

LEVELS = ("debug", "info", "warning", "error", "fatal")
NAME = ".openshift_install.log"
PLAIN = re.compile(r"[A-Za-z0-9\-._/@^+]+")


class Log:
    def __init__(self, directory: Path, level: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._file = os.open(directory / NAME, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
        self._shown = LEVELS[LEVELS.index({"warn": "warning"}.get(level, level)) :]

    def debug(self, message: str) -> None:
        self._write("debug", message)

    def info(self, message: str) -> None:
        self._write("info", message)

    def warning(self, message: str) -> None:
        self._write("warning", message)

    def error(self, message: str) -> None:
        self._write("error", message)

    def fatal(self, message: str) -> None:
        self._write("fatal", message)

    def _write(self, level: str, message: str) -> None:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        for line in message.split("\n"):
            entry = f"level={level} msg={_quoted(line)}\n"
            os.write(self._file, f'time="{at}" {entry}'.encode())
            if level in self._shown:
                sys.stderr.write(entry)
                sys.stderr.flush()


def _quoted(text: str) -> str:
    return text if PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
