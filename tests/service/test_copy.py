from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from service import copy

N = "\N{NARROW NO-BREAK SPACE}"
NOON = datetime(2026, 12, 1, 12, 0, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (copy.length(4.157), "4.16"),
        (copy.length(1.0), "1.00"),
        (copy.length(None), "no data"),
        (copy.step_time(0.04164), "41.6 ms"),
        (copy.step_time(None), "no data"),
        (copy.milliseconds(0.0969), "96.9"),
        (copy.percent(0.4512), f"45.1{N}%"),
        (copy.percent(None), "no data"),
        (copy.percent(-0.026, signed=True), f"−2.6{N}%"),
        (copy.percent(0.026, signed=True), f"+2.6{N}%"),
        (copy.percent(-0.0001, signed=True), f"0.0{N}%"),
        (copy.whole_percent(0.324), f"32{N}%"),
        (copy.ratio(2.329), "×2.3"),
        (copy.rate(2940.4), "2,940"),
        (copy.rate(9999.4), "9,999"),
        (copy.rate(9999.6), "10.0 k"),
        (copy.rate(53_123, signed=True), "+53.1 k"),
        (copy.rate(-2940, signed=True), "−2,940"),
        (copy.rate(0, signed=True), "0"),
        (copy.rate(None), "no data"),
        (copy.whole(1424.0), "1,424"),
        (copy.whole(None), "no data"),
        (copy.amount(412), "412"),
        (copy.amount(38_420), "38.4 k"),
        (copy.amount(214_000), "214 k"),
        (copy.amount(999_600), "1.00 M"),
        (copy.amount(1_417_000), "1.42 M"),
        (copy.amount(None), "no data"),
        (copy.age(2.9), "2 s"),
        (copy.age(60), "1 min"),
        (copy.age(23 * 60 + 59), "23 min"),
        (copy.age(3840), "1 h 4 min"),
        (copy.age(7200), "2 h"),
        (copy.age(3 * 86400 + 7200), "3 d 2 h"),
        (copy.age(-5), "0 s"),
        (copy.clock(NOON - 18 * 60, NOON), "11:42"),
        (copy.clock(NOON - 28 * 86400, NOON), "3 Nov 12:00"),
        (copy.clock(NOON - 400 * 86400, NOON), "27 Oct 2025 12:00"),
        (copy.clock(NOON, NOON, timezone(timedelta(hours=1))), "13:00"),
        # Yesterday there, though today here.
        (copy.clock(NOON - 12 * 3600, NOON, timezone(timedelta(hours=-1))), "30 Nov 23:00"),
        (copy.width(30), "30-second"),
        (copy.width(60), "1-minute"),
        (copy.width(90), "90-second"),
        (copy.width(10800), "3-hour"),
        (copy.width(86400), "1-day"),
        (copy.number(0), "none"),
        (copy.number(9), "nine"),
        (copy.number(10), "10"),
        (copy.number(1234), "1,234"),
        (copy.counted(1, "target", "targets"), "1 target"),
        (copy.counted(24, "target", "targets"), "24 targets"),
        (copy.listed(["code"]), "code"),
        (copy.listed(["code", "math", "chat"]), "code, math and chat"),
        (copy.listed([]), ""),
        (copy.sentence("two need you."), "Two need you."),
    ],
)
def test_as_people_read_it(said: str, text: str) -> None:
    assert said == text
