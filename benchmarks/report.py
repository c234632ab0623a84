"""What benchmarks print."""

from __future__ import annotations

from collections.abc import Sequence


def heading(text: str) -> None:
    """A benchmark begins."""
    print(f"\n## {text}\n", flush=True)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Rows as a Markdown table; numbers to the right, with three digits that count."""
    cells = [list(columns), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(columns))]
    right = [all(isinstance(row[at], int | float) for row in rows) for at in range(len(columns))]

    def line(row: Sequence[str]) -> str:
        padded = [
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(row, widths, right, strict=True)
        ]
        return f"| {' | '.join(padded)} |"

    rule = [
        ("-" * (width - 1) + ":") if to_right else "-" * width for width, to_right in zip(widths, right, strict=True)
    ]
    print("\n".join([line(cells[0]), line(rule), *map(line, cells[1:])]), flush=True)


def verdict(what: str, value: float, goal: float, *, at_least: bool) -> None:
    """A figure against its goal."""
    met = value >= goal if at_least else value <= goal
    limit = f"{'at least' if at_least else 'at most'} {_cell(goal)}"
    print(f"\n{what}: {_cell(value)} ({limit}: {'met' if met else 'NOT MET'})", flush=True)


def _cell(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
