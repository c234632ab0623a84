"""The address of a view: everything a page shows is in its URL, so that a link and the back button bring it back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal
from urllib.parse import parse_qs, urlencode

from acceptance.query import AcceptanceQuery, BadQuery, parse_time
from acceptance.series import DIMENSIONS, Dimension

Theme = Literal["system", "light", "dark"]
THEMES: tuple[Theme, ...] = ("system", "light", "dark")
REFRESH_SECONDS: tuple[int, ...] = (0, 5, 15, 60)
"""Choices of the refresh interval; 0 is paused."""

MOST_CHARACTERS = 200

DEFAULT_FROM, DEFAULT_TO, DEFAULT_REFRESH = "now-4h", "now", 5

DEFAULTS: Mapping[str, str] = MappingProxyType(
    {
        "from": DEFAULT_FROM,
        "to": DEFAULT_TO,
        "by": "category",
        "sort": "",
        "find": "",
        "refresh": f"{DEFAULT_REFRESH}s",
        "theme": "system",
    }
)
"""What an address means that says nothing: such parameters are left out of it, here and in assets/shell.js."""


@dataclass(frozen=True, slots=True)
class Address:
    """What the query string of a page says. ``start`` and ``end`` are as typed: ``now-4h``, ISO 8601 or unix seconds.

    where    dimension -> values, the filters
    states   the states that the fleet table shows, () for all
    find     text that the names of the targets shown have in common
    sort     how the fleet table is sorted: "" for worst first
    opened   the target whose details are open, None where none is
    """

    start: str = DEFAULT_FROM
    end: str = DEFAULT_TO
    by: Dimension = "category"
    where: dict[Dimension, tuple[str, ...]] = field(default_factory=dict[Dimension, tuple[str, ...]])
    sort: str = ""
    refresh: int = DEFAULT_REFRESH
    theme: Theme = "system"
    opened: str | None = None
    states: tuple[str, ...] = ()
    find: str = ""

    @staticmethod
    def parse(search: str | None) -> Address:
        """Of ``?from=now-3h&target=a``; what cannot be understood is as if it were not there."""
        given = parse_qs((search or "").lstrip("?"), keep_blank_values=True)

        def one(name: str, choices: Iterable[str] | None, default: str) -> str:
            value = given.get(name, [default])[-1]
            return value if choices is None or value in choices else default

        refresh = one("refresh", [f"{seconds}s" for seconds in REFRESH_SECONDS], f"{DEFAULT_REFRESH}s")
        return Address(
            start=_time(one("from", None, DEFAULT_FROM), DEFAULT_FROM),
            end=_time(one("to", None, DEFAULT_TO), DEFAULT_TO),
            by=_dimension(one("by", DIMENSIONS, "category")),
            where={name: tuple(given[name]) for name in DIMENSIONS if name in given},
            sort=one("sort", None, "")[:MOST_CHARACTERS],
            refresh=int(refresh.removesuffix("s")),
            theme=_theme(one("theme", THEMES, "system")),
            opened=given["open"][-1] if "open" in given else None,
            states=tuple(given.get("state", ())),
            find=one("find", None, "")[:MOST_CHARACTERS],
        )

    def search(self) -> str:
        """The query string, without what is as it would be anyway; "" where that is all."""
        said = {
            "from": self.start,
            "to": self.end,
            "by": self.by,
            "sort": self.sort,
            "find": self.find,
            "refresh": f"{self.refresh}s",
            "theme": self.theme,
        }
        parameters = [(name, value) for name, value in said.items() if value != DEFAULTS[name]]
        parameters += [(name, value) for name, values in self.where.items() for value in values]
        parameters += [("state", state) for state in self.states]
        if self.opened is not None:
            parameters.append(("open", self.opened))
        return f"?{urlencode(parameters)}" if parameters else ""

    def with_filter(self, dimension: Dimension, value: str) -> Address:
        """With a filter added, or taken away where it was set."""
        values = self.where.get(dimension, ())
        changed = tuple(item for item in values if item != value) if value in values else (*values, value)
        where = {**self.where, dimension: changed}
        return replace(self, where={name: kept for name, kept in where.items() if kept})

    def query(self, now: float) -> AcceptanceQuery:
        """The question this view asks; an impossible range becomes the default one."""
        start, end = parse_time("from", self.start, now), parse_time("to", self.end, now)
        if start >= end:
            start, end = parse_time("from", DEFAULT_FROM, now), now
        return AcceptanceQuery(start=start, end=end, by=(self.by,), where=self.where)

    def span_seconds(self, now: float) -> float:
        """How much time this view shows."""
        query = self.query(now)
        return float(round(query.end - query.start))


def _time(text: str, default: str) -> str:
    try:
        parse_time("", text, 1e9)
    except BadQuery:
        return default
    return text


def _dimension(text: str) -> Dimension:
    return next(name for name in DIMENSIONS if name == text)


def _theme(text: str) -> Theme:
    return next(name for name in THEMES if name == text)
