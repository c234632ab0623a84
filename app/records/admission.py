"""What of posted records is let in: which targets, and how many names."""

from __future__ import annotations

from threading import Lock

from acceptance.categories import Categories, Request
from acceptance.facts import Subject
from acceptance.series import OTHER
from collectors.records import Contradiction
from service.catalog import Catalog

MOST_UNLISTED = 1_000
"""Targets that are not listed. Whoever posts names them, so anybody with a token could name a million."""
MOST_CATEGORIES = 200
"""Categories of one target beside those of the rules; further ones are ``other``."""


class Admission:
    """Any thread may ask."""

    def __init__(self, catalog: Catalog, categories: Categories, *, any_target: bool) -> None:
        self._catalog = catalog
        self._categories = categories
        self._any_target = any_target
        self._lock = Lock()
        self._unlisted: set[str] = set()
        self._named: dict[str, set[str]] = {}

    @property
    def prompts(self) -> bool:
        """Whether categories look at prompts."""
        return self._categories.reads_prompts

    def subject(self, name: str) -> Subject:
        """What is known of a target; raises ``Contradiction`` where none of it is taken."""
        status = self._catalog.get(name)
        if status is not None:
            return self._catalog.subject(status.target)
        if not self._any_target:
            raise Contradiction("no target of this name is listed (records.any_target takes others too)")
        with self._lock:
            if name not in self._unlisted and len(self._unlisted) >= MOST_UNLISTED:
                raise Contradiction(f"{MOST_UNLISTED} targets that are not listed have sent records already")
            self._unlisted.add(name)
        return Subject(name)

    def category(self, target: str, request: Request) -> str | None:
        """The category of a request to a target."""
        category = self._categories.of(request)
        if not category or category == OTHER or category in self._categories.names:
            return category
        with self._lock:
            named = self._named.setdefault(target, set())
            if category not in named and len(named) >= MOST_CATEGORIES:
                return OTHER
            named.add(category)
        return category
