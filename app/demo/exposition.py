"""Metrics pages as the engines' client libraries print them: three dialects of one content."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
import orjson

Labels = tuple[tuple[str, str], ...]
"""Label names and values in the order in which they are printed."""


@dataclass(frozen=True, slots=True)
class Family:
    """What a page says of a family: its HELP and TYPE, the bounds of its buckets and whose labels its series carry.

    Families of scope "process" come from the client library itself, which does not tell when it made them.
    """

    name: str
    kind: str
    help: str
    bounds: tuple[float, ...] = ()
    scope: str = "server"


class Histogram:
    """Observations in buckets, not yet cumulated. Without bounds it is a summary.

    ``billionths`` is the sum of the observations, as an integer: the order of additions must not show on a page.
    """

    __slots__ = ("billionths", "bounds", "counts")

    def __init__(self, bounds: Sequence[float] = ()) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.billionths = 0

    def observe(self, value: float, times: int = 1) -> None:
        """``times`` observations of ``value``."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.billionths += round(value * 1e9) * times

    def add(self, counts: Sequence[int], billionths: int) -> None:
        """Observations that were counted elsewhere, by the same bounds."""
        self.counts = [mine + other for mine, other in zip(self.counts, counts, strict=True)]
        self.billionths += billionths

    @property
    def total(self) -> float:
        """The sum of the observations."""
        return self.billionths / 1e9

    @property
    def count(self) -> int:
        """Observations."""
        return sum(self.counts)


Value = float | Histogram
Samples = Mapping[str, Sequence[tuple[Labels, Value]]]
"""Family name -> its series."""


class Dialect(Protocol):
    """How a client library prints a page."""

    @property
    def content_type(self) -> str:
        """Of the page."""
        ...

    def render(self, families: Iterable[Family], samples: Samples) -> bytes:
        """The page: families without series are left out."""
        ...


def surface(name: str) -> Any:
    """A file of ``surfaces/``: what an engine's surface looks like, as data."""
    return orjson.loads(files("app.demo.surfaces").joinpath(f"{name}.json").read_bytes())


def families(name: str, longest: int = 1) -> tuple[Family, ...]:
    """The families of an engine's page, in its order. Buckets "1-2-5" go up to ``longest`` tokens, a model's length."""
    return tuple(
        Family(
            row["name"],
            row["type"],
            row["help"],
            one_two_five(longest) if row.get("buckets") == "1-2-5" else tuple(row.get("buckets", ())),
            row.get("scope", "server"),
        )
        for row in surface(name)
    )


def one_two_five(longest: int) -> tuple[float, ...]:
    """1, 2, 5, 10, ... up to ``longest``."""
    steps = (mantissa * 10.0**exponent for exponent in range(9) for mantissa in (1, 2, 5))
    return tuple(step for step in steps if step <= longest)


def counted(values: np.ndarray, weights: np.ndarray, groups: np.ndarray, bounds: np.ndarray, size: int) -> np.ndarray:
    """Observations by group and bucket, (size, len(bounds) + 1): ``weights`` of them at each of ``values``."""
    buckets = len(bounds) + 1
    cells = groups * buckets + np.searchsorted(bounds, values)
    return np.bincount(cells.ravel(), weights.ravel(), size * buckets).reshape(size, buckets).astype(int)


def billionths(values: np.ndarray) -> int:
    """The sum of values, each rounded to a billionth: exact, whatever the order."""
    return int(np.rint(values * 1e9).astype(np.int64).sum())


def number(value: float) -> str:
    """A float as prometheus_client prints it: like Go, so with an exponent from a million on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    text = repr(float(value))
    point = text.find(".")
    if value > 0 and point > 6:
        mantissa = f"{text[0]}.{text[1:point]}{text[point + 1 :]}".rstrip("0.")
        return f"{mantissa}e+{point - 1:02d}"
    return text


@dataclass(frozen=True, slots=True)
class PrometheusText:
    """Text format 0.0.4 of Python's prometheus_client.

    ``created`` is when the process registered its metrics; None for a page put together from several processes, which
    has no ``_created`` series and prints histograms in another order.
    """

    created: float | None = None
    content_type: str = "text/plain; version=0.0.4; charset=utf-8"

    def render(self, families: Iterable[Family], samples: Samples) -> bytes:
        lines: list[str] = []
        for family in families:
            series = samples.get(family.name, ())
            if not series:
                continue
            lines += (f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}")
            for labels, value in series:
                if isinstance(value, Histogram):
                    lines += self._histogram(family, labels, value)
                else:
                    lines.append(_head(family.name, labels) + number(value))
            if self.created is not None and family.kind != "gauge" and family.scope != "process":
                lines += self._created(family, [labels for labels, _ in series])
        lines.append("")
        return "\n".join(lines).encode()

    def _histogram(self, family: Family, labels: Labels, value: Histogram) -> list[str]:
        total = _head(family.name + "_sum", labels) + number(value.total)
        count = _head(family.name + "_count", labels) + number(value.count)
        if family.kind == "summary":
            return [count, total]
        heads = _buckets(family.name, labels, family.bounds, le_first=False)
        buckets = [f"{head}{n}.0" for head, n in zip(heads, _cumulated(value.counts), strict=True)]
        return [total, *buckets, count] if self.created is None else [*buckets, count, total]

    def _created(self, family: Family, series: list[Labels]) -> list[str]:
        name = family.name.removesuffix("_total") if family.kind == "counter" else family.name
        name += "_created"
        lines = [f"# HELP {name} {family.help}", f"# TYPE {name} gauge"]
        lines += [_head(name, labels) + number(self.created or 0.0) for labels in series]
        return lines


@dataclass(frozen=True, slots=True)
class OpenMetrics:
    """OpenMetrics 1.0.0 of Rust's prometheus-client: counters are integers, ``le`` is the first label."""

    content_type: str = "application/openmetrics-text; version=1.0.0; charset=utf-8"

    def render(self, families: Iterable[Family], samples: Samples) -> bytes:
        lines: list[str] = []
        for family in families:
            series = samples.get(family.name, ())
            if not series:
                continue
            lines += (f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}")
            name = family.name + "_total" if family.kind == "counter" else family.name
            for labels, value in series:
                if isinstance(value, Histogram):
                    lines += (
                        f"{_head(name + '_sum', labels)}{value.total!r}",
                        f"{_head(name + '_count', labels)}{value.count}",
                    )
                    heads = _buckets(name, labels, family.bounds, le_first=True)
                    lines += [f"{head}{n}" for head, n in zip(heads, _cumulated(value.counts), strict=True)]
                else:
                    lines.append(f"{_head(name, labels)}{value!r}")
        lines += ("# EOF", "")
        return "\n".join(lines).encode()


def _cumulated(counts: Iterable[int]) -> list[int]:
    return list(accumulate(counts))


@lru_cache(maxsize=65536)
def _head(name: str, labels: Labels) -> str:
    """A sample's line up to its value."""
    if not labels:
        return f"{name} "
    inner = ",".join(f'{label}="{_escaped(value)}"' for label, value in labels)
    return f"{name}{{{inner}}} "


@lru_cache(maxsize=16384)
def _buckets(name: str, labels: Labels, bounds: tuple[float, ...], le_first: bool) -> tuple[str, ...]:
    texts = [repr(bound) if le_first else number(bound) for bound in bounds] + ["+Inf"]
    rows = ((("le", text), *labels) for text in texts)
    return tuple(_head(f"{name}_bucket", row if le_first else tuple(sorted(row))) for row in rows)


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
