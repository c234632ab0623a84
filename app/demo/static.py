"""A page whose values move evenly: for benchmarks of those who read it, at next to no cost of its own."""

from __future__ import annotations

from app.demo.exposition import number


class StaticPage:
    """Two pages of one engine, continued for ever.

    After n seconds a counter stands at what it was on the later page and n times its change between the two; a gauge
    shows its two values in turn. Sums over series hold, since each of them is linear.
    """

    def __init__(self, early: bytes, late: bytes) -> None:
        before = dict(_split(line) for line in early.decode().splitlines() if not line.startswith("#"))
        self._parts: list[str | tuple[float, float, bool, bool]] = []
        kind, fixed = "", ""
        for line in late.decode().splitlines():
            if line.startswith("# TYPE"):
                kind = line.rsplit(" ", 1)[1]
            head, value = ("", "") if line.startswith("#") else _split(line)
            earlier = before.get(head, value)
            if earlier == value:
                fixed += line + "\n"
                continue
            gauge, whole = kind == "gauge", "." not in value
            self._parts += (f"{fixed}{head} ", (float(earlier), float(value), gauge, whole))
            fixed = "\n"
        self._parts.append(fixed)
        self._shown = (-1, b"")

    def after(self, seconds: float) -> bytes:
        """The page at ``seconds`` since the later one. Made once a second, however many engines show it."""
        times = int(seconds)
        if self._shown[0] != times:
            parts = [part if isinstance(part, str) else _moved(part, times) for part in self._parts]
            self._shown = (times, "".join(parts).encode())
        return self._shown[1]


def _split(line: str) -> tuple[str, str]:
    head, _, value = line.rpartition(" ")
    return head, value


def _moved(part: tuple[float, float, bool, bool], times: int) -> str:
    earlier, later, gauge, whole = part
    value = (earlier if times % 2 else later) if gauge else later + times * (later - earlier)
    return str(int(value)) if whole else number(value)
