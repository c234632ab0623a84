"""Colours of the charts, which cannot read the style sheet's, and the two Plotly templates made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal
from zlib import crc32

Scheme = Literal["light", "dark"]

FONT = '"Inter Variable", system-ui, sans-serif'


@dataclass(frozen=True, slots=True)
class Palette:
    """The tokens of assets/tokens.css that charts use, in one colour scheme.

    floor_opacity   of the band in which acceptance is a notice
    series          colours that lines can have; a known category has its own, by name
    """

    canvas: str
    surface: str
    line: str
    line2: str
    ink: str
    ink2: str
    ink3: str
    notice: str
    notice_solid: str
    warn: str
    warn_solid: str
    crit: str
    crit_solid: str
    floor_opacity: float
    series: Mapping[str, str]


LIGHT = Palette(
    canvas="#fbfbfc",
    surface="#ffffff",
    line="#e6e8ec",
    line2="#d0d4db",
    ink="#14171c",
    ink2="#4a515d",
    ink3="#666e7b",
    notice="#7a5b00",
    notice_solid="#dda100",
    warn="#a8450c",
    warn_solid="#e8702a",
    crit="#b3261e",
    crit_solid="#c8321f",
    floor_opacity=0.13,
    series=MappingProxyType(
        {
            "code": "#0652ac",
            "chat": "#191b1d",
            "math": "#4ea1a2",
            "reasoning": "#666e7b",
            "long context": "#947ae6",
            "creative": "#6d275c",
        }
    ),
)
DARK = Palette(
    canvas="#0c0e12",
    surface="#12151a",
    line="#232831",
    line2="#3a424e",
    ink="#eceef2",
    ink2="#afb7c3",
    ink3="#8a93a1",
    notice="#e7c04a",
    notice_solid="#efc940",
    warn="#ff9f60",
    warn_solid="#e9722e",
    crit="#ff8a7c",
    crit_solid="#d6402e",
    floor_opacity=0.10,
    series=MappingProxyType(
        {
            "code": "#7fa4fa",
            "chat": "#eceff4",
            "math": "#9bd4d5",
            "reasoning": "#a3a8b0",
            "long context": "#9c72d0",
            "creative": "#b0678f",
        }
    ),
)
PALETTES: Mapping[Scheme, Palette] = MappingProxyType({"light": LIGHT, "dark": DARK})
SERIES = tuple(LIGHT.series)
"""Names of the colours that lines can have; more than so many lines cannot be told apart by colour."""


def rgba(colour: str, opacity: float) -> str:
    """``#0652ac`` as Plotly takes it where it shall be seen through."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"


def series_colours(names: Iterable[str]) -> Mapping[str, str]:
    """Name of a line -> name of its colour, for the first ``len(SERIES)`` of ``names``, those that matter most.

    A category of a known name has the colour of that name. Others start at a place told by their name, so that they
    keep their colour on every page and after most filters, and take the next one that is free.
    """
    chosen = list(dict.fromkeys(names))[: len(SERIES)]
    given = {name: colour for name in chosen if (colour := _known(name)) is not None}
    free = [colour for colour in SERIES if colour not in given.values()]
    for name in sorted(set(chosen) - set(given)):
        at = crc32(name.encode(errors="replace")) % len(SERIES)
        turned = SERIES[at:] + SERIES[:at]
        given[name] = next(colour for colour in turned if colour in free)
        free.remove(given[name])
    return given


def _known(name: str) -> str | None:
    plain = name.lower().replace("_", " ").replace("-", " ")
    return plain if plain in SERIES else None


def template(palette: Palette) -> dict[str, Any]:
    """The ground every chart stands on.

    The canvas is opaque: on a transparent one Plotly gives the line under the cursor a white halo.
    """
    axis = {
        "showline": False,
        "zeroline": False,
        "ticks": "",
        "tickfont": {"size": 11, "color": palette.ink3},
        "gridcolor": palette.line,
        "gridwidth": 1,
    }
    return {
        "layout": {
            "paper_bgcolor": palette.canvas,
            "plot_bgcolor": palette.canvas,
            "font": {"family": FONT, "size": 11, "color": palette.ink3},
            "colorway": [palette.series[name] for name in SERIES],
            "showlegend": False,
            "xaxis": {**axis, "showgrid": False},
            "yaxis": {**axis, "showgrid": True},
            "hoverlabel": {
                "bgcolor": palette.surface,
                "bordercolor": palette.line2,
                "font": {"family": FONT, "size": 12, "color": palette.ink},
                "align": "left",
                "namelength": -1,
            },
        }
    }


TEMPLATES: Mapping[str, dict[str, Any]] = MappingProxyType({"dg_light": template(LIGHT), "dg_dark": template(DARK)})
