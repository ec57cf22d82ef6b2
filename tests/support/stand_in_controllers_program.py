"""What `stand_in_controllers` starts: a store and the controllers. Each line that it reads is a call of the store."""

from __future__ import annotations

import json
import subprocess
import sys
import threading

from support.stand_in import pki, servers
from support.stand_in.controllers.cluster import Cluster
from support.stand_in.controllers.manager import Manager
from support.stand_in.controllers.vms import Vms
from support.stand_in.kubernetes.store import Store

ADDRESS, NETWORK = "192.168.77.5", "192.168.77.0/24"
STEP = 0.02


def main(infra_id: str, major: str, minor: str) -> None:
    subprocess.run(["ip", "address", "replace", f"{ADDRESS}/32", "dev", "lo"], check=True)
    servers.serve_media(ADDRESS, None)
    store, stop = Store(), threading.Event()
    machines = Vms(f"http://{ADDRESS}:{servers.MEDIA}", NETWORK)
    cluster = Cluster(store, machines, infra_id, (int(major), int(minor)), step=lambda: STEP)
    manager = Manager(cluster, pki.authority("kube-csr-signer"), "v1.33.5", _report)
    running = threading.Thread(target=manager.run, args=(stop,))
    running.start()
    for line in sys.stdin:
        method, arguments = json.loads(line)
        sys.stdout.write(json.dumps(getattr(store, method)(*arguments)) + "\n")
        sys.stdout.flush()
    stop.set()
    running.join()


def _report(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
