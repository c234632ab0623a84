"""What was checked, as a table that people read."""

from __future__ import annotations

from dataclasses import dataclass, field

NEWLINE = "\n"


@dataclass(slots=True)
class Checks:
    """Prints a line for every check as it is made."""

    made: list[str] = field(default_factory=list[str])
    failed: list[str] = field(default_factory=list[str])

    def equal(self, what: str, got: object, wanted: object) -> None:
        """Printed as wanted where they are equal: 12.0 of the store is the 12 of the responses, and 12.3 is not."""
        self._told(what, got == wanted, f"{wanted}" if got == wanted else f"{got}, not {wanted}")

    def between(self, what: str, got: float | None, low: float, high: float) -> None:
        self._told(what, got is not None and low <= got <= high, f"{got} in [{low}, {high}]")

    def holds(self, what: str, true: bool, shown: object = "") -> None:
        self._told(what, true, f"{shown}")

    def _told(self, what: str, true: bool, shown: str) -> None:
        self.made.append(what)
        print(f"{'ok  ' if true else 'FAIL'}  {what:<68}  {shown.partition(NEWLINE)[0]}", flush=True)
        if not true:
            self.failed.append(what)
