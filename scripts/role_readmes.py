"""Write each role's README.md from its argument specs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
ROLES = ROOT / "roles"
# What the playbooks hand to the roles, so that it is known to work.
STAGES = yaml.safe_load((ROOT / "playbooks" / "vars" / "stages.yml").read_text(encoding="utf-8"))


def readme(role: Path) -> str:
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]
    lines = [f"# nometal.ipi.{role.name}", "", "<!-- Made by `make docs` from meta/argument_specs.yml. -->", ""]
    for entry_point, spec in specs.items():
        lines += [*_entry_point(role.name, entry_point, spec), ""]
    return "\n".join(lines).rstrip() + "\n"


def _entry_point(role: str, name: str, spec: dict[str, Any]) -> list[str]:
    call = ["- ansible.builtin.import_role:", f"    name: nometal.ipi.{role}"]
    call += [] if name == "main" else [f"    tasks_from: {name}"]
    given = [option for option, about in spec["options"].items() if about.get("required") or option in STAGES]
    call += ["  vars:", *(f'    {option}: "{STAGES[option]}"' for option in given)]
    return [
        f"## {name}: {spec['short_description'][0].lower()}{spec['short_description'][1:]}",
        "",
        *(line for text in spec["description"] for line in (_markdown(text), "")),
        "```yaml",
        *spec.get("examples", "\n".join(call)).splitlines(),
        "```",
        "",
        "| variable | type | default | |",
        "| --- | --- | --- | --- |",
        *_rows(spec["options"]),
    ]


def _rows(options: dict[str, Any], prefix: str = "") -> list[str]:
    rows = []
    for name, option in options.items():
        default = "required" if option.get("required") else f"`{_yaml(option['default'])}`"
        kind = f"list of {option['elements']}" if option["type"] == "list" else option["type"]
        rows.append(f"| `{prefix}{name}` | {kind} | {default} | {_markdown(option['description'])} |")
        rows += _rows(option.get("options", {}), f"{prefix}{name}.")
    return rows


def _yaml(value: Any) -> str:
    return '""' if value == "" else yaml.safe_dump(value, default_flow_style=True).splitlines()[0]


def _markdown(text: str) -> str:
    return re.sub(r"C\(([^)]*)\)", r"`\1`", text)


if __name__ == "__main__":
    for role in ROLES.iterdir():
        (role / "README.md").write_text(readme(role), encoding="utf-8")
