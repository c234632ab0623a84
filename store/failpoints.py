"""Places at which a test may kill the process: ``DRAFTGAUGE_FAILPOINT=NAME[:N]`` kills at the N-th pass of NAME.

Nothing happens unless the variable is set. The names are the commit boundaries of the service; the crash tests visit
every one of them.
"""

from __future__ import annotations

import os
import signal

NAMES = (
    "facts.before_commit",
    "facts.after_commit",
    "history.before_commit",
    "history.after_commit",
    "alerts.before_commit",
    "alerts.after_commit",
    "delivery.before_send",
    "delivery.after_send",
    "delivery.after_commit",
)

_name, _, _count = os.environ.get("DRAFTGAUGE_FAILPOINT", "").partition(":")
_left = int(_count or 1)


def failpoint(name: str) -> None:
    """Kill this process at once (as ``kill -9``) if it was asked to die here."""
    global _left
    if name != _name:
        return
    _left -= 1
    if _left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)
