"""How a failed command is shown: by its end, where it says why. The rest would push that out of a CI's record."""

from __future__ import annotations

LAST_LINES = 60


class CommandFailed(Exception):  # noqa: N818 - reads as a sentence in `pytest.raises(CommandFailed)`
    """A command in a sandbox ended with an error."""

    def __init__(self, command: str, code: int, output: str) -> None:
        super().__init__(f"{command}\nended with {code}\n{ending(output)}")


def ending(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    left_out = len(lines) - LAST_LINES
    return "\n".join(lines if left_out <= 0 else [f"[{left_out} lines before]", *lines[-LAST_LINES:]])
