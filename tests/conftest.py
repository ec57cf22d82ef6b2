"""Fixtures for all tests. Those named `shared_` are for tests that leave things as they found them."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from support import lab_host as lab_hosts
from support import peers
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


def pytest_configure() -> None:
    """What a shell puts into the background ignores these, and would hand that down to what the tests start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--matrix", choices=("sample", "full"), default="sample", help="how many kinds of hosts (support/peers.py)"
    )
    parser.addoption("--matrix-seed", type=int, default=peers.SEED, help="draws the mixtures of kinds of hosts")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "host_kind" in metafunc.fixturenames:
        kinds = peers.mixtures(metafunc.config.getoption("--matrix-seed"))
        if metafunc.config.getoption("--matrix") == "full":
            kinds = [*peers.each_alone(), *kinds]
        metafunc.parametrize("host_kind", kinds, ids=str)


@pytest.fixture
def is_full(request: pytest.FixtureRequest) -> bool:
    """Every host, and a rehearsal on each."""
    return bool(request.config.getoption("--matrix") == "full")
