"""Editions of the fleet: what was shown before is remembered for a while, so that a page is sent what changed since."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from uuid import uuid4

from dashboards.components.rows import Row, rows
from service.fleet import FleetView

MOST_KEPT = 32
"""Enough for a page that looks once a minute beside one that looks every five seconds; whoever is behind gets all."""


@dataclass(frozen=True, slots=True)
class Edition:
    """A view as it was made known. ``rows``: target -> its row as it travels."""

    id: str
    view: FleetView
    rows: dict[str, Row]


class Editions:
    """The newest editions, by their ids. Ids of another process are unknown here."""

    def __init__(self) -> None:
        self._process = uuid4().hex[:8]
        self._kept: OrderedDict[str, Edition] = OrderedDict()
        self._count = 0

    def of(self, view: FleetView) -> Edition:
        """The edition of a view: the same one for everybody who is shown the same view."""
        for edition in reversed(self._kept.values()):
            if edition.view is view:
                return edition
        self._count += 1
        edition = Edition(f"{self._process}.{self._count}", view, rows(view))
        self._kept[edition.id] = edition
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return edition

    def known(self, edition_id: str | None) -> Edition | None:
        """The edition that a page has, None where it has none or one that is forgotten."""
        return None if edition_id is None else self._kept.get(edition_id)
