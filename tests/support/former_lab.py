"""The BMCs of lab rehearsal as release 0.1.0 makes them: one process, which is in group libvirt and writes images."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.lab_host import LabHost

HOME = "/var/lib/nometal/bmc/rehearsal"
MEDIA = "/var/lib/libvirt/images/nometal-rehearsal-media"
UNIT, BROKER = "nometal-bmc-rehearsal.service", "nometal-broker-rehearsal.service"
IMAGE = f"{MEDIA}/by-hand.iso"
FORMER = f"""
systemctl disable --quiet --now {UNIT} {BROKER}
rm /etc/systemd/system/{BROKER}
sed -i '/^InaccessiblePaths/d; s/^User=.*/&\\nSupplementaryGroups=libvirt/' /etc/systemd/system/{UNIT}
sed -i 's/"broker": .*/"libvirt_uri": "qemu:\\/\\/\\/system",/' {HOME}/config.json
rm -r {HOME}/broker
usermod --append --groups libvirt nometal-bmc
echo 'an image' > {IMAGE}
chown nometal-bmc: {MEDIA} {IMAGE}
userdel nometal-bmc-broker
systemctl enable --quiet {UNIT}
"""


def plant(host: LabHost) -> None:
    """Put it in the place of what there is now; the service is off then."""
    host.run(["sh", "-ec", FORMER])
