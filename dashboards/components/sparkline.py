"""A line as small as a word, in the colour of the text around it; it breaks where there is no data."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from dash import html

WIDTH, HEIGHT = 100, 24
_SMALLEST_SPAN = 0.08
"""A trend fills the height only where it moves by this share of its level: noise must not look like news."""


def sparkline(values: Sequence[float | None]) -> html.Span | None:
    """None where fewer than two values are known. It says nothing that the words beside it do not say."""
    line = path(values)
    if not line:
        return None
    # A mask takes the colour of the text; a picture would keep its own in either theme.
    image = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none">'
        f'<path d="{line}" fill="none" stroke="#000" stroke-width="1.5" vector-effect="non-scaling-stroke"/></svg>'
    )
    return html.Span(
        className="sparkline",
        style={"--line": f"url('data:image/svg+xml,{quote(image, safe=_UNQUOTED)}')"},
        **{"aria-hidden": "true"},
    )


def path(values: Sequence[float | None]) -> str:
    """The line as SVG path data in ``WIDTH`` x ``HEIGHT``, whole numbers; "" where fewer than two values are known."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return ""
    middle = (max(known) + min(known)) / 2
    span = max(max(known) - min(known), abs(middle) * _SMALLEST_SPAN, 1e-9)
    steps = max(len(values) - 1, 1)
    commands: list[str] = []
    pen = "M"
    for index, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        x, y = round(index * WIDTH / steps), round(HEIGHT / 2 - (value - middle) / span * (HEIGHT - 4))
        commands.append(f"{pen}{x} {y}")
        pen = "L"
    return "".join(commands)


_UNQUOTED = ' =:/,;"()-'
