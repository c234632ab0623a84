"""The address of a view: everything a page shows is in its URL, so that a link and the back button bring it back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import parse_qs, urlencode

from acceptance.query import AcceptanceQuery, BadQuery, parse_time
from acceptance.series import DIMENSIONS, Dimension

Theme = Literal["system", "light", "dark"]
THEMES: tuple[Theme, ...] = ("system", "light", "dark")
REFRESH_SECONDS: tuple[int, ...] = (0, 5, 15, 60)
"""Choices of the refresh interval; 0 is paused."""

DEFAULT_FROM, DEFAULT_TO, DEFAULT_REFRESH = "now-4h", "now", 5


@dataclass(frozen=True, slots=True)
class Address:
    """What the query string of a page says. ``start`` and ``end`` are as typed: ``now-4h``, ISO 8601 or unix seconds.

    where    dimension -> values, the filters
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
            sort=one("sort", None, "")[:40],
            refresh=int(refresh.removesuffix("s")),
            theme=_theme(one("theme", THEMES, "system")),
            opened=given["open"][-1] if "open" in given else None,
        )

    def search(self) -> str:
        """The query string, without what is as it would be anyway; "" where that is all."""
        parameters = [
            (name, value)
            for name, value, default in (
                ("from", self.start, DEFAULT_FROM),
                ("to", self.end, DEFAULT_TO),
                ("by", self.by, "category"),
                ("sort", self.sort, ""),
                ("refresh", f"{self.refresh}s", f"{DEFAULT_REFRESH}s"),
                ("theme", self.theme, "system"),
            )
            if value != default
        ]
        parameters += [(name, value) for name, values in self.where.items() for value in values]
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
