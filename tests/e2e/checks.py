"""What was checked, as a table that people read."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Checks:
    """Prints a line for every check as it is made."""

    failed: list[str] = field(default_factory=list[str])

    def equal(self, what: str, got: object, wanted: object) -> None:
        """Integers and what they say elsewhere are equal, or something is wrong."""
        self._told(what, got == wanted, f"{got}" if got == wanted else f"{got}, not {wanted}")

    def between(self, what: str, got: float | None, low: float, high: float) -> None:
        self._told(what, got is not None and low <= got <= high, f"{got} in [{low}, {high}]")

    def holds(self, what: str, true: bool, shown: object = "") -> None:
        self._told(what, true, f"{shown}")

    def _told(self, what: str, true: bool, shown: str) -> None:
        print(f"{'ok  ' if true else 'FAIL'}  {what:<68}  {shown}", flush=True)
        if not true:
            self.failed.append(what)
