"""What is normal: acceptance lengths that were published for a drafter, as ``published.yaml`` cites them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class Published:
    """One published acc_len, bonus token included.

    benchmark   what it was measured on
    setting     how, in the publisher's words; ``source`` is where it stands
    """

    drafter: str
    k: int
    benchmark: str
    acc_len: float
    setting: str
    source: str


@dataclass(frozen=True, slots=True)
class _Table:
    """``by_place``: (drafter, k, benchmark), drafters and benchmarks as ``_plain`` makes them.

    benchmarks   plain category or benchmark -> benchmarks that stand for it, first wins
    """

    by_place: Mapping[tuple[str, int, str], Published]
    benchmarks: Mapping[str, tuple[str, ...]]
    categories: tuple[str, ...]
    names: Mapping[str, str]


def expected(drafter: str | None, k: int | None, category: str | None) -> float | None:
    """The acc_len that was published for this drafter, this k and such traffic; None where nothing was.

    ``drafter`` is a repository name or a path that ends in one: a bare model name may be anybody's and matches nothing.
    """
    found = published(drafter, k, category)
    return None if found is None else found.acc_len


@lru_cache(maxsize=4096)
def published(drafter: str | None, k: int | None, category: str | None) -> Published | None:
    """As ``expected``, with what it was measured on and where it stands."""
    if drafter is None or k is None or not category:
        return None
    table = _table()
    repository = _repository(drafter)
    for benchmark in table.benchmarks.get(_plain(category), ()):
        found = table.by_place.get((repository, k, benchmark))
        if found is not None:
            return found
    return None


def plain_category(category: str) -> str:
    """The plain name of a category ("creative-writing" is "creative"); one that is not known stays as it is."""
    return _table().names.get(_plain(category), category)


def categories() -> tuple[str, ...]:
    """The plain categories, in the order in which they are shown."""
    return _table().categories


@cache
def _table() -> _Table:
    document: Any = yaml.load(files(__name__).joinpath("published.yaml").read_text("utf-8"), Loader=yaml.CSafeLoader)
    by_place: dict[tuple[str, int, str], Published] = {}
    for item in _published(document["published"]):
        place = item.drafter.casefold(), item.k, _plain(item.benchmark)
        if place not in by_place or item.acc_len < by_place[place].acc_len:
            by_place[place] = item
    benchmarks: dict[str, tuple[str, ...]] = {benchmark: (benchmark,) for _, _, benchmark in by_place}
    names: dict[str, str] = {}
    for name, stands in document["categories"].items():
        for spelling in (name, *stands["spellings"]):
            benchmarks[_plain(spelling)] = tuple(map(_plain, stands["benchmarks"]))
            names[_plain(spelling)] = name
        names |= {_plain(benchmark): name for benchmark in stands["benchmarks"]}
    return _Table(by_place, benchmarks, tuple(document["categories"]), names)


def _published(entries: Iterable[Mapping[str, Any]]) -> Iterable[Published]:
    for entry in entries:
        by_k: dict[str, dict[int, float]] = entry.get("acc_len_by_k") or {
            benchmark: {entry["k"]: acc_len} for benchmark, acc_len in entry["acc_len"].items()
        }
        for benchmark, values in by_k.items():
            for k, acc_len in values.items():
                yield Published(entry["drafter"], k, benchmark, acc_len, entry["setting"], entry["source"])


def _plain(name: str) -> str:
    """One spelling for "Creative-Writing", "creative_writing" and "creative writing"."""
    return re.sub(r"[\s_/-]+", " ", name).strip().casefold()


_CACHED = re.compile(r"models--(?P<owner>[^/]+?)--(?P<name>[^/]+)")
"""A directory of Hugging Face's cache: models--RadixArk--Kimi-K3-DSpark/snapshots/..."""


def _repository(drafter: str) -> str:
    """``owner/name`` of a repository, a path that ends in one, or a directory of the cache."""
    if cached := _CACHED.search(drafter):
        return f"{cached['owner']}/{cached['name']}".casefold()
    return "/".join(drafter.rstrip("/").split("/")[-2:]).casefold()
