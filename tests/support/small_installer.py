"""A program in the installer's place that does as the file scenario.json beside it says, for tests of what runs it.

By command: `log`, what it logs; `says`, what it prints; `waits` for the file `go`, and is `stubborn` meanwhile if asked
to end; `late`, what it logs then; `exit`, its exit code; `provisioning`, whether there is such a manifest. The file
`calls` tells which commands were run.
"""

from __future__ import annotations

INSTALLER = """#!/usr/bin/python3
import json, os, signal, sys, time
from pathlib import Path
here = Path(__file__).parent
if sys.argv[1] == "version":
    print("openshift-install 4.20.3\\nbuilt from commit abc\\nrelease image quay.example.test/x@sha256:abc")
    sys.exit()
command, directory = " ".join(sys.argv[1:3]), Path(sys.argv[4])
told = json.loads((here / "scenario.json").read_text()).get(command, {})
with (here / "calls").open("a") as calls:
    calls.write(command + "\\n")
if command == "create cluster":
    (directory / "install-config.yaml").unlink(missing_ok=True)
    (directory / "metadata.json").write_text('{"infraID": "ha-abcde"}')
    (Path(os.environ["TMPDIR"]) / "bootstrap.ign").write_text("{}")
if command == "create manifests":
    (directory / "install-config.yaml").unlink()
    (directory / "openshift").mkdir()
    (directory / "manifests").mkdir()
    if told.get("provisioning", True):
        (directory / "openshift/99_p.yaml").write_text(
            "apiVersion: metal3.io/v1alpha1\\nkind: Provisioning\\nspec: {}\\n"
        )
with (directory / ".openshift_install.log").open("a") as log:
    for message in told.get("log", []):
        log.write('time="2026-11-19T05:00:00Z" level=info msg=' + json.dumps(message) + "\\n")
sys.stderr.write(told.get("says", ""))
sys.stderr.flush()
signal.signal(signal.SIGINT, signal.SIG_IGN if "stubborn" in told else lambda *_: sys.exit(8))
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while told.get("waits") and not (here / "go").exists():
    time.sleep(0.01)
if (here / "go").exists() and "late" in told:
    with (directory / ".openshift_install.log").open("a") as log:
        log.write('time="2026-11-19T05:00:01Z" level=info msg="' + told["late"] + '"\\n')
sys.exit(told.get("exit", 0))
"""
MADE = ["OpenShift Installer 4.20.3", "Creating infrastructure resources..."]
API = [*MADE, "Waiting up to 20m0s (until 5:20AM UTC) for the Kubernetes API at https://api.ha.example.test:6443..."]
INITIALIZES = [
    *API,
    "Waiting up to 1h0m0s (until 6:20AM UTC) for the cluster at https://api.ha.example.test:6443 to initialize...",
]
COMPLETE = [*INITIALIZES, "Install complete!"]
