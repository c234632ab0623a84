"""What a chart of trends is drawn from: a view without the bucket that still fills, and who looks at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import cast

from dashboards.figures.templates import PALETTES, Palette, Scheme, series_colours
from service.trends import Line, TrendsView

SETTLED_SECONDS = 5.0
"""What ended so long ago was committed: its bucket is drawn once, and does not move under the reader's eyes."""


@dataclass(frozen=True, slots=True)
class Look:
    """Who looks: colour scheme, width of the drawing in pixels, and how many minutes east of UTC their clock is."""

    scheme: Scheme = "light"
    width: int = 1100
    minutes_east: int = 0

    @staticmethod
    def of(scheme: object, screen: object) -> Look:
        """From what the browser says, which may be anything."""
        said: Mapping[str, object] = cast("Mapping[str, object]", screen) if isinstance(screen, Mapping) else {}
        width, east = said.get("width"), said.get("zone")
        return Look(
            scheme="dark" if scheme == "dark" else "light",
            width=min(max(width, 200), 8000) if isinstance(width, int) else 1100,
            minutes_east=min(max(east, -1439), 1439) if isinstance(east, int) else 0,
        )

    @property
    def zone(self) -> timezone:
        return timezone(timedelta(minutes=self.minutes_east))

    @property
    def palette(self) -> Palette:
        return PALETTES[self.scheme]

    def moment(self, at: float) -> str:
        """A place on the time axis, which knows no zones: the reader's local time.

        Plotly would take a number to the browser's zone by itself, but each with what is summer time then: lines, whose
        points it counts from the first, would part from what lies under them.
        """
        text = f"{datetime.fromtimestamp(at, self.zone):%Y-%m-%d %H:%M:%S.%f}"[:-3]
        return text.removesuffix(".000").removesuffix(":00")


@dataclass(frozen=True, slots=True)
class Chart:
    """A view as it is drawn: settled buckets, and which lines have a colour.

    colours   line -> name of its colour, for those that have one
    """

    view: TrendsView
    colours: Mapping[str, str]

    @staticmethod
    def of(view: TrendsView, now: float) -> Chart:
        settled = sum(at <= now - SETTLED_SECONDS for at in view.times)
        lines = tuple(_until(line, settled) for line in view.lines)
        return Chart(
            view=replace(view, times=view.times[:settled], steps=view.steps[:settled], lines=lines),
            colours=series_colours(line.name for line in lines),
        )

    @property
    def is_empty(self) -> bool:
        """Nothing was verified in any settled bucket."""
        return all(value is None for line in self.view.lines for value in line.acc_len)

    def coloured(self) -> list[Line]:
        return [line for line in self.view.lines if line.name in self.colours]

    def thin(self) -> list[Line]:
        return [line for line in self.view.lines if line.name not in self.colours]


def segments(values: Sequence[object]) -> list[tuple[int, int]]:
    """First and last place of every run of values without a gap."""
    runs: list[tuple[int, int]] = []
    for at, value in enumerate(values):
        if value is None:
            continue
        if runs and runs[-1][1] == at - 1:
            runs[-1] = (runs[-1][0], at)
        else:
            runs.append((at, at))
    return runs


def _until(line: Line, settled: int) -> Line:
    return replace(
        line,
        acc_len=line.acc_len[:settled],
        lower=line.lower[:settled],
        upper=line.upper[:settled],
        steps=line.steps[:settled],
    )
