"""Times without year or zone resolve against the clock that read them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.logtime import LineClock, full_time, yearless_time


def unix(*parts: int) -> float:
    return datetime(*parts, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-12-01 07:07:29", unix(2026, 12, 1, 7, 7, 29)),
        ("2026-12-01 07:07:29 TP0", unix(2026, 12, 1, 7, 7, 29)),
        ("2026-12-01 07:07:29.250", unix(2026, 12, 1, 7, 7, 29) + 0.25),
        ("2026-12-01 07:07:29,250", unix(2026, 12, 1, 7, 7, 29) + 0.25),
        ("2026-12-01T07:07:29.123456789Z", unix(2026, 12, 1, 7, 7, 29) + 0.123456789),
        ("2026-12-01T07:07:29+02:00", unix(2026, 12, 1, 5, 7, 29)),
        ("2026-12-01T07:07:29-0530", unix(2026, 12, 1, 12, 37, 29)),
        ("2026-13-01 07:07:29", None),
        ("12-01 07:07:29", None),
        ("", None),
    ],
)
def test_full_times(text: str, seconds: float | None) -> None:
    assert full_time(text) == (None if seconds is None else pytest.approx(seconds, abs=1e-6))


@pytest.mark.parametrize(
    ("text", "now", "expected"),
    [
        ("12-01 06:50:12", unix(2026, 12, 1, 6, 50, 13), unix(2026, 12, 1, 6, 50, 12)),
        ("12-31 23:59:59", unix(2027, 1, 1, 0, 0, 5), unix(2026, 12, 31, 23, 59, 59)),
        ("01-01 00:00:05", unix(2026, 12, 31, 23, 59, 59), unix(2027, 1, 1, 0, 0, 5)),  # its clock is ahead
        ("12-02 06:50:12", unix(2026, 12, 1, 6, 50, 13), unix(2026, 12, 2, 6, 50, 12)),  # or its zone is
        ("12-03 06:50:12", unix(2026, 12, 1, 6, 50, 13), unix(2025, 12, 3, 6, 50, 12)),
        ("02-29 12:00:00", unix(2027, 3, 1), unix(2024, 2, 29, 12)),
        ("02-29 12:00:00", unix(2103, 3, 1), unix(2096, 2, 29, 12)),
        ("02-30 12:00:00", unix(2027, 3, 1), None),
    ],
)
def test_times_without_a_year(text: str, now: float, expected: float | None) -> None:
    assert yearless_time(text, now) == expected


@given(
    written=st.integers(int(unix(2024, 1, 1)), int(unix(2040, 1, 1))),
    read_after=st.integers(-14 * 3600, 300 * 86400),
)
def test_a_log_read_within_months_gets_its_year_back(written: int, read_after: int) -> None:
    text = f"{datetime.fromtimestamp(written, UTC):%m-%d %H:%M:%S}"
    assert yearless_time(text, written + read_after) == written


def test_a_line_without_a_time_takes_the_last_seen() -> None:
    clock = LineClock(None, read_at=9.0)
    assert [clock.at(None), clock.at(5.0), clock.at(None), clock.at(7.0)] == [9.0, 5.0, 5.0, 7.0]
    assert LineClock(clock.seen, read_at=9.0).at(None) == 7.0
