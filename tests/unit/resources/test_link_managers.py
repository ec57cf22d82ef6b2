from __future__ import annotations

import pytest

from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth import link_managers
from ansible_collections.nometal.ipi.plugins.module_utils._resources.veth.link_managers import (
    LINK_MANAGERS,
    UnmanagedFile,
)

NETWORK_MANAGER, NETWORKD = LINK_MANAGERS
NMCLI = """\
host0:connected (externally)
lo:unmanaged
other:disconnected
baremetal:connecting (getting IP configuration)
nmn-demo:unmanaged
"""
# With and without the dots with which some versions begin a line.
NETWORKCTL = """\
  1 lo        loopback carrier  unmanaged
● 2 host0     ether    routable configured
  3 baremetal bridge   carrier  configuring
"""


@pytest.mark.parametrize(
    ("manager", "printed"), [(NETWORK_MANAGER, NMCLI), (NETWORKD, NETWORKCTL)], ids=["NetworkManager", "networkd"]
)
def test_what_it_holds(monkeypatch: pytest.MonkeyPatch, manager: link_managers.LinkManager, printed: str) -> None:
    monkeypatch.setattr(link_managers, "run", lambda *_command: printed)
    assert manager.held() == {"host0", "baremetal"}


def test_each_pair_has_files_of_its_own() -> None:
    links = ("nmn-demo", "nmb-demo", "baremetal")
    files = [UnmanagedFile(manager, "nmn-demo", links) for manager in LINK_MANAGERS]
    assert [str(file.path) for file in files] == [
        "/etc/NetworkManager/conf.d/nometal-nmn-demo.conf",
        "/etc/systemd/network/0-0-nometal-nmn-demo.network",
    ]
    assert (
        "\nunmanaged-devices+=interface-name:nmn-demo,interface-name:nmb-demo,interface-name:baremetal\n"
        in files[0].text()
    )
    assert "\nName=nmn-demo nmb-demo baremetal\n" in files[1].text()
