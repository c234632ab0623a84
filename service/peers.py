"""Peers: the healthy targets of a group, which show what is normal there now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from alerts.verdicts import as_severe, severity_of
from service.beats import Beat
from service.present import Present
from store.state import AlertRecord

_ALIKE = ("engine", "model", "drafter", "k")
"""Facts in which peers agree."""


def wants_somebody(alert: AlertRecord) -> bool:
    """Whether an alert fires (or is kept firing) at warning or above."""
    return alert.phase in ("firing", "recovering") and as_severe(severity_of(alert.severity), "warning")


def began(alert: AlertRecord) -> float:
    """When the fault began, as far as the alert knows. Its evidence reaches back only so far, so that alone slides."""
    since = alert.detail.get("since")
    return min(alert.active_since, since) if isinstance(since, int | float) else alert.active_since


class Peers:
    """Targets of which no alert fires, by what makes them comparable."""

    def __init__(self, presents: Iterable[Present]) -> None:
        self._alike: dict[tuple[object, ...], list[Present]] = defaultdict(list)
        for present in presents:
            if not any(map(wants_somebody, present.alerts)):
                self._alike[_place(present)].append(present)

    def of(self, present: Present) -> Iterator[Beat]:
        """Loads of the others of its group that run the same; none where it belongs to no group."""
        if present.status.target.group is not None:
            yield from (other.beat for other in self._alike.get(_place(present), ()) if other.name != present.name)


def _place(present: Present) -> tuple[object, ...]:
    return (present.status.target.group, *(present.status.fact(name) for name in _ALIKE))
