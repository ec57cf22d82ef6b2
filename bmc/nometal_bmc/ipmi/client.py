# Copyright: nometal.ipi contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks IPMI BMCs for the power of their VMs, or changes it: `python -m nometal_bmc.ipmi.client status|on|soft|off`.

On standard input, a JSON list of BMCs: address, port, username, password. Printed is a list in the same order, of
{"power": "on"}, {"power": "off"} or {"trouble": "..."}. It is a program of its own, as lab hosts need no ipmitool.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from pyghmi.exceptions import PyghmiException
from pyghmi.ipmi.private.session import Session

if TYPE_CHECKING:
    from collections.abc import Mapping

CHASSIS, STATUS, CONTROL = 0x00, 0x01, 0x02
IS_ON = 0x01
DESTINATION_UNAVAILABLE = 0xD3
GONE = "There is no such VM."
CONTROLS = {"off": 0, "on": 1, "soft": 5}
NEEDLESS = {"off": "off", "on": "on"}
"""In which state nothing has to be done. A VM that is off may be about to be switched on: "soft" keeps it off."""


def main() -> None:
    wish = sys.argv[1]
    json.dump([_answer(bmc, wish) for bmc in json.load(sys.stdin)], sys.stdout)


def _answer(bmc: Mapping[str, Any], wish: str) -> dict[str, str]:
    try:
        session = Session(bmc["address"], bmc["username"], bmc["password"], port=bmc["port"], keepalive=False)
        try:
            return {"power": done(session, wish)}
        finally:
            session.logout()
    except (PyghmiException, OSError, KeyError) as error:
        return {"trouble": str(error) or type(error).__name__}


def done(session: Any, wish: str) -> str:
    """The power before what was asked for, which a BMC does only after its answer."""
    power = "on" if _asked(session, STATUS)[0] & IS_ON else "off"
    if wish in CONTROLS and power != NEEDLESS.get(wish):
        _asked(session, CONTROL, CONTROLS[wish])
    return power


def _asked(session: Any, command: int, *data: int) -> Any:
    answer = session.raw_command(netfn=CHASSIS, command=command, data=data)
    if answer.get("code") == DESTINATION_UNAVAILABLE:
        raise PyghmiException(GONE)
    if "error" in answer:
        raise PyghmiException(answer["error"])
    return answer["data"]


if __name__ == "__main__":
    main()
