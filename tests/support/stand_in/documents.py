"""YAML, or where Python has none its part that is JSON."""

from __future__ import annotations

import json
from typing import Any

try:
    import yaml
except ImportError:  # a host that the packages for it are not on yet
    yaml = None  # type: ignore[assignment]  # mypy takes the name for the module alone


class Unreadable(ValueError):  # noqa: N818 - reads as what it is
    """With the parser's own words."""


def load_all(text: str) -> list[Any]:
    try:
        return list(yaml.safe_load_all(text)) if yaml else [json.loads(text)]
    except ValueError as error:
        raise Unreadable(str(error)) from error
    except Exception as error:
        if yaml and isinstance(error, yaml.YAMLError):
            raise Unreadable(" ".join(str(error).split())) from error
        raise


def load(text: str) -> Any:
    found = load_all(text)
    return found[0] if found else None


def dump(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True) if yaml else json.dumps(value, indent=2) + "\n"
