"""Make what tests need of package mirrors before any of them runs: `python -m support.fill_caches`

Tests make it themselves where it is missing, but there a mirror that is out for a moment would fail one of them.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from support import (
    ansible_package,
    controller,
    guest_image,
    ironic,
    kept_code,
    kubectl,
    lab_host,
    lab_trees,
    redfish_images,
    wheels,
)

if TYPE_CHECKING:
    from typing import Callable

ATTEMPTS = 5
PAUSE_SECONDS = 60


def fill() -> None:
    for suite in lab_trees.SUITES:
        for layer in lab_trees.LAYERS:
            _made(lab_trees.tree, suite, layer)
        _made(lab_host.trees, suite)
        _made(kubectl.program, suite)
        _made(wheels.directory, suite, partial(lab_host.start, suite=suite, mirror=True))
    _made(guest_image.image)
    _made(redfish_images.cd, "signed", signed=True)
    _made(ironic.environment)
    for name in ansible_package.PARTS:
        _made(ansible_package.collections, name)
    _made(controller.environment)


def _made(make: Callable[..., object], *arguments: Any, **options: Any) -> None:
    for _attempt in range(1, ATTEMPTS):
        if _is_made(partial(make, *arguments, **options)):
            return
        time.sleep(PAUSE_SECONDS)
    make(*arguments, **options)


def _is_made(make: Callable[[], object]) -> bool:
    try:
        make()
    except Exception as error:  # each of them fails in its own way
        sys.stderr.write(f"{make}: {error}\n")
        return False
    return True


if __name__ == "__main__":
    kept_code.forget_old()
    fill()
