"""What somebody else has, or has done, on a host that a lab comes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.lab_host import LabHost

VM = """
<domain type='qemu'><name>{name}</name><memory unit='MiB'>64</memory>
<os><type arch='x86_64'>hvm</type></os><devices>{devices}</devices></domain>
"""
NIC = "<interface type='{kind}'><source {source}/></interface>"


def define_vm(host: LabHost, name: str = "mine", plugged_into: str = "") -> None:
    """Plugged into such as `bridge='baremetal'`."""
    nic = NIC.format(kind=plugged_into.partition("=")[0], source=plugged_into) if plugged_into else ""
    host.run(["virsh", "define", "/dev/stdin"], input=VM.format(name=name, devices=nic))


def stop_libvirt(host: LabHost) -> None:
    host.run("systemctl stop libvirtd.service libvirtd.socket libvirtd-ro.socket libvirtd-admin.socket")


def use_libvirt(host: LabHost, network: str = "default") -> None:
    """Run a network for a moment: libvirt leaves chains for its firewall rules behind, and a directory for dnsmasq.

    And be someone who is not root: polkit, which libvirt asks about them, runs from then on.
    """
    if network:
        host.run(f"virsh net-start {network} && virsh net-destroy {network} && sysctl -q net.ipv4.ip_forward=0")
        host.run(f"rm -f /run/libvirt/network/{network}.pid")  # which libvirt leaves, until the host boots
    host.run("runuser -u nobody -- virsh --connect qemu:///system list", check=False)
