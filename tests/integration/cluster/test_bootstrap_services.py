"""A bootstrap VM asked by SSH what has failed in it: a real sshd, systemd and journal, and a crictl that tells."""

from __future__ import annotations

import json

from support import host_program, lab_host
from support.waiting import wait_until

KEY = "/root/.ssh/cluster"
SCRIPT = f"""
useradd --create-home core
echo 'core ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/core
mkdir -p /run/sshd /root/.ssh && install -d -o core -m 0700 /home/core/.ssh
ssh-keygen -q -A && ssh-keygen -q -t ed25519 -N '' -f {KEY}
install -o core -m 0600 {KEY}.pub /home/core/.ssh/authorized_keys
/usr/sbin/sshd -o ListenAddress=127.0.0.1
systemctl daemon-reload && systemctl start --no-block bootkube
"""
UNIT = """[Service]
Type=oneshot
ExecStart=/bin/sh -c 'echo "Starting cluster-bootstrap..."; echo "Error: 7 of 9 checks have failed" >&2; exit 1'
Restart=on-failure
RestartSec=100ms
[Unit]
StartLimitIntervalSec=0
"""
CONTAINERS = {"containers": [{"metadata": {"name": "machine-config-server"}, "state": "CONTAINER_EXITED"}]}


def test_a_bootkube_that_fails_again_and_again() -> None:
    with lab_host.start(layer="peers") as host:
        host.write("/usr/local/bin/crictl", f"#!/bin/sh\n[ $(id -u) = 0 ] && echo '{json.dumps(CONTAINERS)}'\n", "0755")
        host.write("/etc/systemd/system/bootkube.service", UNIT)
        host.run(SCRIPT)
        restarts = "systemctl show --property=NRestarts --value bootkube"
        wait_until("bootkube was started again", lambda: int(host.run(restarts).stdout) > 0)
        asked = {"address": "127.0.0.1", "key": KEY}
        seen = host_program.run(host, "bootstrap_services_probe.py", asked)
        refused = host_program.run(host, "bootstrap_services_probe.py", {**asked, "key": None})
    [bootkube] = [unit for unit in seen["units"] if unit["name"] == "bootkube"]
    assert bootkube["restarts"] > 0
    assert bootkube["state"] == "activating"
    assert "Error: 7 of 9 checks have failed" in bootkube["said"]
    assert seen["exited"] == ["machine-config-server"]
    assert refused == {"units": [], "exited": []}
