"""Labels at the ends of lines: where they stand beside the figure, so that none covers another."""

from __future__ import annotations

from collections.abc import Sequence

from dashboards.figures.chart import Chart
from dashboards.figures.trends import ACC_LEN_PANE, HEIGHT, MARGIN, acc_len_range, anchor, in_order
from service.trends import Line

LABEL_PIXELS = 18.0
MOST_LABELS = 24


def placed(chart: Chart) -> list[tuple[Line, int]]:
    """Lines that have a label, from the top down, with the middle of it in pixels from the top of the figure.

    A label stands where its line is while all is well, so that it does not move when the line falls. Lines without a
    colour have theirs after all others, as far as there is room.
    """
    lines = in_order(chart.coloured()) + in_order(chart.thin())
    lines = in_order(lines[:MOST_LABELS])
    drawing = HEIGHT - MARGIN["t"] - MARGIN["b"]
    pane = (ACC_LEN_PANE[1] - ACC_LEN_PANE[0]) * drawing
    low, high = acc_len_range(chart)
    wanted = [MARGIN["t"] + (high - min(max(anchor(line), low), high)) / (high - low) * pane for line in lines]
    tops = spread(wanted, LABEL_PIXELS, MARGIN["t"], MARGIN["t"] + drawing)
    return [(line, round(top)) for line, top in zip(lines, tops, strict=True)]


def spread(wanted: Sequence[float], apart: float, first: float, last: float) -> list[float]:
    """Ascending places at least ``apart``, within ``first`` and ``last``, as near to ``wanted`` (ascending) as can be.

    Least squares: places that would overlap become a block around the mean of what they want. Where all of them do not
    fit they begin at ``first``.
    """
    blocks: list[tuple[float, int]] = []
    for index, place in enumerate(wanted):
        # Without the distances kept between them, what is left must only not descend.
        mean, size = place - index * apart, 1
        while blocks and blocks[-1][0] > mean:
            other, count = blocks.pop()
            mean, size = (mean * size + other * count) / (size + count), size + count
        blocks.append((mean, size))
    flat = [mean for mean, size in blocks for _ in range(size)]
    most = max(last - (len(flat) - 1) * apart, first)
    return [min(max(mean, first), most) + index * apart for index, mean in enumerate(flat)]
