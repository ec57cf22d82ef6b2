# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How secrets enter install-config.yaml, and how they leave it."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from unit.cluster.config_samples import AUTHS, Login, complete, config_of

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.config.secrets import with_secrets, without_secrets
from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError

FENCING = "nodes: {control_plane: {count: 2, fencing: true}}"


def test_every_bmc_gets_its_own_login() -> None:
    config = config_of(FENCING)
    before = copy.deepcopy(config)
    logins = {f"control-plane-{number}": Login(f"user-{number}", f"word-{number}") for number in (0, 1)}
    full = with_secrets(config, pull_secret=AUTHS, logins=logins, extra={})
    hosts, fences = full["platform"]["baremetal"]["hosts"], full["controlPlane"]["fencing"]["credentials"]
    for number in (0, 1):
        assert (hosts[number]["bmc"]["username"], hosts[number]["bmc"]["password"]) == (
            f"user-{number}",
            f"word-{number}",
        )
        assert (fences[number]["username"], fences[number]["password"]) == (f"user-{number}", f"word-{number}")
    assert full["pullSecret"] == AUTHS
    assert config == before


def test_the_vaulted_part_has_the_last_word() -> None:
    extra = {"proxy": {"httpsProxy": "http://me:hidden-word@proxy.example.test:3128"}}
    config = config_of("install: {proxy: {http: 'http://proxy.example.test:3128'}}")
    assert complete(config, extra)["proxy"] == {"httpProxy": "http://proxy.example.test:3128", **extra["proxy"]}


def test_the_vaulted_part_may_not_contradict_the_lab() -> None:
    with pytest.raises(
        OperatorError, match=r"^The secret part .* contradicts the lab:\nbaseDomain: must be .* \(got 'x'\)"
    ):
        complete(config_of(""), {"baseDomain": "x"})


def test_a_pull_secret_of_many_lines_becomes_one() -> None:
    full = with_secrets(
        config_of(FENCING), pull_secret=json.dumps(json.loads(AUTHS), indent=2), logins=LOGINS, extra={}
    )
    assert full["pullSecret"] == AUTHS


LOGINS = {f"control-plane-{number}": Login("admin", "hidden-word") for number in (0, 1)}


@pytest.mark.parametrize(
    "pull_secret", ["", "hidden-word", '"hidden-word"', "{}", '{"auths": {}}', '{"auths": "hidden-word"}']
)
def test_refuses_what_is_no_pull_secret_without_showing_it(pull_secret: str) -> None:
    with pytest.raises(OperatorError, match=r"^The pull secret ") as caught:
        with_secrets(config_of(FENCING), pull_secret=pull_secret, logins=LOGINS, extra={})
    assert "hidden-word" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_refuses_a_host_without_a_login() -> None:
    with pytest.raises(
        OperatorError, match=r"^The BMC of control-plane-1 has no login: run playbooks/bmc.yml, which makes one"
    ):
        with_secrets(config_of(FENCING), pull_secret=AUTHS, logins={"control-plane-0": Login("a", "b")}, extra={})


def test_what_is_shown_holds_no_secret() -> None:
    extra: dict[str, Any] = {
        "proxy": {"httpProxy": "http://me:hidden-word@proxy.example.test:3128"},
        "additionalTrustBundle": "-----BEGIN PRIVATE KEY-----\nhidden-word",
    }
    full = complete(config_of(FENCING), extra)
    shown = without_secrets(full)
    assert "hidden-word" not in json.dumps(shown)
    assert "aWQ6cGFzcwo" not in json.dumps(shown)
    assert (shown["pullSecret"], shown["platform"]["baremetal"]["hosts"][0]["bmc"]["password"]) == ("(hidden)",) * 2
    assert shown["networking"] == full["networking"]
