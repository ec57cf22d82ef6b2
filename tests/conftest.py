"""Fixtures for all tests. Those named `shared_` are for tests that leave things as they found them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support import lab_host as lab_hosts
from support import private_libvirtd as libvirtds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.lab_host import LabHost
    from support.private_libvirtd import PrivateLibvirtd


@pytest.fixture
def lab_host() -> Iterator[LabHost]:
    """A fresh Debian with systemd and the packages that the role host_prep installs."""
    with lab_hosts.start() as host:
        yield host


@pytest.fixture(scope="session")
def shared_lab_host() -> Iterator[LabHost]:
    with lab_hosts.start() as host:
        yield host


@pytest.fixture
def private_libvirtd() -> Iterator[PrivateLibvirtd]:
    """A libvirtd of its own beside this machine's files."""
    with libvirtds.start() as libvirtd:
        yield libvirtd


@pytest.fixture(scope="session")
def shared_private_libvirtd() -> Iterator[PrivateLibvirtd]:
    with libvirtds.start() as libvirtd:
        yield libvirtd
