"""Editions of a view: what was shown before is remembered for a while, so that a page is sent what changed since."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import uuid4

MOST_KEPT = 32
"""Enough for a page that looks once a minute beside one that looks every five seconds; whoever is behind gets all."""

View = TypeVar("View")
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Edition(Generic[View, Made]):
    """A view as it was made known, and what was ``made`` of it to be compared with."""

    id: str
    view: View
    made: Made


class Editions(Generic[View, Made]):
    """The newest editions, by their ids. Ids of another process are unknown here."""

    def __init__(self, make: Callable[[View], Made]) -> None:
        self._make = make
        self._process = uuid4().hex[:8]
        self._kept: OrderedDict[str, Edition[View, Made]] = OrderedDict()
        self._count = 0

    def of(self, view: View) -> Edition[View, Made]:
        """The edition of a view: the same one for everybody who is shown the same view."""
        for edition in reversed(self._kept.values()):
            if edition.view is view:
                return edition
        self._count += 1
        edition = Edition(f"{self._process}.{self._count}", view, self._make(view))
        self._kept[edition.id] = edition
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return edition

    def known(self, edition_id: str | None) -> Edition[View, Made] | None:
        """The edition that a page has, None where it has none or one that is forgotten."""
        return None if edition_id is None else self._kept.get(edition_id)
