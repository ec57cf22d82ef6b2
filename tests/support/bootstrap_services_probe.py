"""What the diagnosis sees inside of a bootstrap VM: {"address": ..., "key": ...} on standard input."""

from __future__ import annotations

import dataclasses
import json
import sys

from ansible_collections.nometal.ipi.plugins.module_utils._cluster.diagnosis.bootstrap_services import look

json.dump(dataclasses.asdict(look(**json.load(sys.stdin))), sys.stdout)
