"""Fixtures for all tests. Those named `shared_` are for tests that leave things as they found them."""

from __future__ import annotations

import resource
import signal
from typing import TYPE_CHECKING

import pytest
from support import lab_host as lab_hosts
from support import peers, sandbox
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


_cpu_seconds_at_start = pytest.StashKey[float]()


def _cpu_seconds() -> float:
    """Of this process, of all that it has waited for, and of the sandboxes that it has ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sandbox.cpu_seconds[0] + sum(usage.ru_utime + usage.ru_stime for usage in usages)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    item.stash[_cpu_seconds_at_start] = _cpu_seconds()
    yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """What a test cost is in its record; tests/summary.py tells of the dearest."""
    try:
        yield
    finally:
        spent = _cpu_seconds() - item.stash[_cpu_seconds_at_start]
        item.user_properties.append(("cpu_seconds", f"{spent:.2f}"))


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
