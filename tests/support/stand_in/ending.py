"""How the installer ends other than well."""

from __future__ import annotations

FATAL, CONFIG, INFRASTRUCTURE, BOOTSTRAP, INSTALL, OPERATORS, INTERRUPTED = 1, 3, 4, 5, 6, 7, 8
API_IS_NOT_UP = (
    "Failed waiting for Kubernetes API. This error usually happens when there is a problem on the bootstrap host that "
    "prevents creating a temporary control plane."
)
NOT_BOOTSTRAPPED = (
    "Failed to wait for bootstrapping to complete. This error usually happens when there is a problem with control "
    "plane hosts that prevents the control plane operators from creating the control plane."
)
TROUBLESHOOTING = """\
Cluster initialization failed because one or more operators are not functioning properly.
The cluster should be accessible for troubleshooting as detailed in the documentation linked below,
https://docs.openshift.com/container-platform/latest/support/troubleshooting/troubleshooting-installations.html
The 'wait-for install-complete' subcommand can then be used to continue the installation"""


class Failed(Exception):  # noqa: N818 - reads as a sentence
    """Ends it with this code; the text is the last line, a fatal one."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Stuck(Exception):  # noqa: N818 - reads as a sentence
    """What was waited for at a stage did not come; `why` is the last that was heard."""

    def __init__(self, stage: str, why: str) -> None:
        super().__init__(f"{stage}: {why}")
        self.stage = stage
        self.why = why


class Interrupted(BaseException):
    """By SIGINT; past everything that handles errors."""
