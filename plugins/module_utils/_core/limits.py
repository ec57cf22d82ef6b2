# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How large, small and long values may be, and who says so. Each limit is spelled here and nowhere else."""

from __future__ import annotations

# Ports and other numbers of 16 bits
LARGEST_16_BIT_NUMBER = 2**16 - 1
HIGHEST_PORT = LARGEST_16_BIT_NUMBER
LOWEST_UNPRIVILEGED_PORT = 1024
"""Services run unprivileged."""

# MTU
SMALLEST_MTU, LARGEST_MTU = 68, 65535
"""Linux, for a veth pair and a bridge."""
SMALLEST_NETWORK_MTU, LARGEST_NETWORK_MTU = 576, 65521
"""A DHCP message without fragments; Linux, for a tap, which is what a guest is plugged in by."""
LARGEST_LAB_MTU = 9216
"""Jumbo frames of physical networks, which a lab stands for."""
SMALLEST_IPV6_MTU = 1280
USUAL_MTU = 1500

# Names
LONGEST_CLUSTER_NAME = 54
"""OpenShift."""
LONGEST_INFRA_NAME = 21
"""What the installer keeps of a cluster's name, before the five random letters of an infrastructure ID."""
LONGEST_LABEL, LONGEST_DOMAIN = 63, 253
LONGEST_TXT = 255
LONGEST_INTERFACE_NAME = 15
"""Linux."""
RESERVED_INTERFACES = ("lo", "all", "default")
"""Linux has a meaning of its own for them."""
LONGEST_SERIAL = 20
"""QEMU, for a virtio disk."""
LONGEST_FILE_NAME = 255
LONGEST_VM_NAME = 200
"""Of files that are named after it, with their endings."""
LONGEST_CHECKPOINT_NAME = 60
"""Ours: it is a directory, and a part of the name of each disk's snapshot, of which qcow2 keeps 255 bytes."""
LONGEST_IPMI_PASSWORD = 20
"""Bytes, IPMI 2.0."""

# VMs
LEAST_MEMORY_MIB, MOST_MEMORY_MIB = 128, 16 * 1024**2
"""A Linux kernel with the initramfs that it boots from."""
LEAST_DISK, MOST_DISK = 1024**2, 64 * 1024**4
DISK_SECTOR = 512
MOST_VCPUS = 255
"""More need an IOMMU in the VM."""
MOST_DISKS = 20
MOST_NICS = 32
"""Far more do not find a slot."""
MOST_RESTART_SECONDS = 60 * 60
"""Ours: who waits longer for a graceful restart has forgotten it."""

# Networks
LARGEST_DHCP_RANGE = 65535
"""libvirt."""
