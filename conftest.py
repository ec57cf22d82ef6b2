"""Fixtures for all tests. Those named `shared_` are for tests that leave things as they found them."""

from __future__ import annotations

import random
import resource
import signal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from support import kept_code, peers, sandbox
from support import lab_host as lab_hosts
from support import private_libvirtd as libvirtds
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.lab_host import LabHost
    from support.private_libvirtd import PrivateLibvirtd

# No time limits: a machine may be very busy.
hypothesis.settings.register_profile("busy", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("busy")


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
    kept_code.have_ansible_keep_modules()


ROOT = Path(__file__).parent
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


def unit_of(nodeid: str) -> str:
    """What stays together and in its order: the tests of a module that share a fixture, or a single test."""
    file = nodeid.partition("::")[0]
    return file if _shares_fixture(file) else nodeid


@cache
def _shares_fixture(file: str) -> bool:
    return 'scope="module"' in (ROOT / file).read_text(encoding="utf-8")


class UnitScheduling(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> UnitScheduling:
    config.option.loadscopereorder = False  # units of many tests would come first, and what takes longest last
    return UnitScheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """No test may need another one that ran before, unless they share a fixture: their order is drawn.

    Only what takes longest comes first, so that no core is left alone with it in the end.
    """
    units: dict[str, list[pytest.Item]] = {}
    for item in items:
        units.setdefault(unit_of(item.nodeid), []).append(item)
    order = list(units)
    random.Random(config.getoption("--order-seed")).shuffle(order)  # noqa: S311 - no secret
    order.sort(key=lambda unit: not any(item.get_closest_marker("long") for item in units[unit]))
    items[:] = [item for unit in order for item in units[unit]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--order-seed", type=int, default=11, help="draws the order of the tests")
    parser.addoption("--matrix-seed", type=int, default=peers.SEED, help="draws the mixtures of kinds of hosts")
    parser.addoption(
        "--record", action="store_true", help="record anew what is observed of broken labs and installations"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "host_kind" in metafunc.fixturenames:
        mixtures = peers.mixtures(metafunc.config.getoption("--matrix-seed"))
        sample = peers.sample(mixtures)
        every = [pytest.param(kind, marks=pytest.mark.full, id=str(kind)) for kind in (*peers.each_alone(), *mixtures)]
        metafunc.parametrize("host_kind", [pytest.param(sample, id=f"sample, {sample}"), *every])
