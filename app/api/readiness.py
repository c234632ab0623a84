"""Whether the service is ready to be asked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Readiness:
    """Set by the runtime as it starts and stops. On the loop only."""

    stores_open: bool = False
    evaluated: bool = False
    stopping: bool = False

    def missing(self) -> tuple[str, ...]:
        """Why it is not ready; empty when it is."""
        reasons = (
            (not self.stores_open, "the stores are not open yet"),
            (not self.evaluated, "alerts were not evaluated yet"),
            (self.stopping, "it is shutting down"),
        )
        return tuple(reason for holds, reason in reasons if holds)
