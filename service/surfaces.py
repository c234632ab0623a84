"""Surfaces and sources of one target: what was read, when, and what each source alone says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from acceptance.window import SOURCES, Source
from service.catalog import TargetStatus
from service.cells import Cell, cell
from service.present import Present, by_target


@dataclass(frozen=True, slots=True)
class SourceRow:
    """What one source alone says of the last 15 minutes. Sources are never added to each other.

    answers   it is the one that pages show
    last      end of its newest window
    """

    source: Source
    acc_len: Cell
    exact: bool
    windows: int
    last: float
    answers: bool


@dataclass(frozen=True, slots=True)
class SurfaceRow:
    """A surface and the newest look at it (``metrics``, ``server_info``, ``log:PATH``).

    read_at   when something was last read from it, None where nothing ever was
    seconds   how long the answer took
    """

    surface: str
    up: bool
    looked_at: float | None
    read_at: float | None
    error: str | None = None
    running: float | None = None
    queued: float | None = None
    speculating: bool | None = None
    seconds: float | None = None


def sources_of(present: Present) -> Iterator[SourceRow]:
    """Best first; those that told nothing lately are left out."""
    told = {item.source: item for item in by_target(present.sums)}
    shown = (present.source or "").split(",")
    for source in SOURCES:
        if source in told:
            item = told[source]
            yield SourceRow(
                source=source,
                acc_len=cell(item.counts, source, present.whole),
                exact=item.exact,
                windows=item.windows,
                last=item.last,
                answers=source in shown,
            )


def surfaces_of(status: TargetStatus) -> Iterator[SurfaceRow]:
    """Every surface that was looked at or read since the service began."""
    for surface in sorted({*status.looks, *status.read_at}):
        look, read_at = status.looks.get(surface), status.read_at.get(surface)
        if look is None:
            yield SurfaceRow(surface, up=True, looked_at=read_at, read_at=read_at)
        else:
            yield SurfaceRow(
                surface=surface,
                up=look.up,
                looked_at=look.at,
                read_at=read_at,
                error=look.error,
                running=look.running,
                queued=look.queued,
                speculating=look.speculating,
                seconds=look.seconds,
            )
