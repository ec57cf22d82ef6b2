"""Which means a host's own way of resolving calls for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._core.errors import OperatorError
from ansible_collections.nometal.ipi.plugins.module_utils._resources.resolver.choice import (
    Resolution,
    choose,
    names_resolve,
)

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = Resolution(
    nameservers=("198.51.100.1", "198.51.100.2"),
    resolv_conf="/etc/resolv.conf",
    nss_resolve=False,
    resolved_runs=False,
    manager_has_dnsmasq=False,
)
STUB = replace(
    PLAIN, nameservers=("127.0.0.53",), resolv_conf="/run/systemd/resolve/stub-resolv.conf", resolved_runs=True
)
UPLINK = replace(PLAIN, resolv_conf="/run/systemd/resolve/resolv.conf", resolved_runs=True)
MANAGER = replace(PLAIN, nameservers=("127.0.0.1",), manager_has_dnsmasq=True)


@pytest.mark.parametrize(
    ("host", "means"),
    [
        (PLAIN, "resolv.conf"),
        (replace(PLAIN, nameservers=()), "resolv.conf"),
        (replace(PLAIN, nameservers=("127.0.0.1",)), "resolv.conf"),  # unbound, or a dnsmasq of the user's own
        (replace(PLAIN, resolv_conf="/run/resolvconf/resolv.conf"), "resolv.conf"),
        (replace(PLAIN, manager_has_dnsmasq=True), "resolv.conf"),  # which is not asked
        # systemd-resolved reads this file too, so what stands in it serves those who ask by nss-resolve as well.
        (replace(PLAIN, nss_resolve=True, resolved_runs=True), "resolv.conf"),
        (STUB, "systemd-resolved"),
        (replace(STUB, resolv_conf="/usr/lib/systemd/resolv.conf"), "systemd-resolved"),
        (replace(STUB, resolv_conf="/etc/resolv.conf", manager_has_dnsmasq=True), "systemd-resolved"),
        (replace(UPLINK, nss_resolve=True), "systemd-resolved"),
        (MANAGER, "NetworkManager"),
        (replace(MANAGER, resolv_conf="/run/NetworkManager/resolv.conf"), "NetworkManager"),
    ],
)
def test_what_is_asked_first_decides(host: Resolution, means: str) -> None:
    assert choose(host) == means


@pytest.mark.parametrize(
    ("host", "said"),
    [
        (replace(STUB, resolved_runs=False), "systemd-resolved, which does not run"),
        (UPLINK, "let it lead to /run/systemd/resolve/stub-resolv.conf"),
    ],
)
def test_what_cannot_work_is_refused(host: Resolution, said: str) -> None:
    with pytest.raises(OperatorError, match=said):
        choose(host)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("hosts: files mymachines resolve [!UNAVAIL=return] dns\n", True),
        ("passwd: files\nhosts:  files dns\n", False),
        ("hosts: files dns\n# hosts: resolve\n", False),
        (None, False),
    ],
)
def test_nsswitch(tmp_path: Path, text: str | None, found: bool) -> None:
    if text is not None:
        (tmp_path / "nsswitch.conf").write_text(text)
    assert names_resolve(tmp_path / "nsswitch.conf") is found
