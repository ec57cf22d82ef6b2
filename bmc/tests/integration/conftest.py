"""What the tests of the BMC service share: one libvirtd and one service for as many tests as possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libvirt
import pytest
from support import bmc_lab, private_libvirtd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.bmc_lab import BmcLab, Vm
    from support.private_libvirtd import PrivateLibvirtd


@pytest.fixture(scope="session")
def libvirtd() -> Iterator[PrivateLibvirtd]:
    with private_libvirtd.start() as daemon:
        yield daemon


@pytest.fixture(scope="session")
def lab_of_all(libvirtd: PrivateLibvirtd) -> Iterator[BmcLab]:
    with bmc_lab.start(libvirtd) as lab:
        yield lab


@pytest.fixture(scope="module")
def running_lab(lab_of_all: BmcLab) -> Iterator[BmcLab]:
    """The lab, whose VMs are off afterwards."""
    yield lab_of_all
    for domain in lab_of_all.connection.listAllDomains(libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE):
        domain.destroy()


@pytest.fixture(scope="module")
def machine(running_lab: BmcLab) -> Vm:
    return running_lab.vm(firmware="bios", memory=64)


@pytest.fixture(scope="module")
def neighbour(running_lab: BmcLab) -> Vm:
    return running_lab.vm(firmware="bios", memory=64)


@pytest.fixture(scope="session")
def twenty(lab_of_all: BmcLab) -> list[Vm]:
    """For what is to be seen with many VMs only; they are off."""
    return [lab_of_all.vm(firmware="bios", memory=32) for _number in range(20)]


@pytest.fixture
def lab(running_lab: BmcLab) -> Iterator[BmcLab]:
    """The lab, from inside of its network."""
    with running_lab.network():
        yield running_lab
