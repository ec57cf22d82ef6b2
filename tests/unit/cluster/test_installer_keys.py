# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The script that compares the table of keys with an installer's Go types, by a few types in Go."""

from __future__ import annotations

import functools
from pathlib import Path

import installer_keys
import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.keys import KEYS

GO = {"text": "string", "number": "*int64", "boolean": "bool", "any": "map[string]string"}
BAREMETAL = ("platform.baremetal", "loadBalancer", "host", "bmc", "rootDeviceHints", "machinePool")
STRUCTS = {
    "install-config": "InstallConfig",
    "platform.baremetal": "baremetal.Platform",
    "machinePool": "baremetal.MachinePool",
}


def go_name(section: str) -> str:
    return STRUCTS.get(section, section[0].upper() + section[1:])


def go_type(kind: str) -> str:
    inner = kind.removesuffix("[]")
    return f"{'[]' if kind.endswith('[]') else ''}{GO.get(inner) or '*' + go_name(inner)}"


def checkout(directory: Path, changes: dict[str, str]) -> Path:
    """With the keys that are known of 4.20, each as Go has it. Changes: in the text."""
    texts = {"installconfig.go": "package types\n", "baremetal/platform.go": "package baremetal\n"}
    for section, keys in KEYS.items():
        own = {key: go_type(found.type) for key, found in keys.items() if found.since <= (4, 20)}
        fields = [f'\t// {key} is a key.\n\t{key.title()} {kind} `json:"{key},omitempty"`' for key, kind in own.items()]
        if section == "install-config":
            fields = ['\tmetav1.TypeMeta `json:",inline"`', *fields[2:]]
        file = "baremetal/platform.go" if section in BAREMETAL else "installconfig.go"
        texts[file] += "\n".join([f"\ntype {go_name(section).rpartition('.')[2]} struct {{", *fields, "}\n"])
    for file, text in texts.items():
        path = directory / "pkg/types" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(functools.reduce(lambda changed, change: changed.replace(*change), changes.items(), text))
    return directory


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        (
            {'Sshkey string `json:"sshKey,omitempty"`': 'Speed PublishingStrategy `json:"speed"`'},
            [
                "install-config: speed of the installer is not known here",
                "install-config: sshKey is known here, and InstallConfig of the installer does not have it",
            ],
        ),
        (
            {'Fips bool `json:"fips,omitempty"`': 'FIPS string `json:"fips,omitempty"`'},
            ["install-config: fips is boolean here, and string in the installer"],
        ),
        (
            {"Apivips []string": "APIVIPs string"},
            ["platform.baremetal: apiVIPs is text[] here, and string in the installer"],
        ),
        ({"Role string": "Role Kind", "package": "type Kind string\n\npackage"}, []),
        (
            {'Role string `json:"role,omitempty"`': 'Role string `json:"part"`'},
            [
                "host: part of the installer is not known here",
                "host: role is known here, and Host of the installer does not have it",
            ],
        ),
    ],
)
def test_differences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, str], expected: list[str]
) -> None:
    code = installer_keys.main([str(checkout(tmp_path, changes)), "4.20"])
    assert (capsys.readouterr().out.splitlines(), code) == (expected, 1 if expected else 0)


def test_the_next_release_has_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert installer_keys.main([str(checkout(tmp_path, {})), "4.21"]) == 1
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["bmcVerifyCA", "dnsRecordsType"]


@pytest.mark.parametrize("arguments", [["/nowhere", "4.20"], ["/nowhere", "new"]])
def test_what_it_needs(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        installer_keys.main(arguments)
    assert "must have pkg/types/installconfig.go" in capsys.readouterr().err
