"""Trends: lines, gaps, marks and floors; and what their verdict says, from pasts that were written by hand."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta, timezone
from typing import Any

import pytest

from acceptance.query import AcceptanceQuery
from acceptance.series import Dimension
from alerts.rules import Override
from service.trends import Gap, TrendsReads, TrendsView, dimension_of

RADIX = {
    "engine": "sglang",
    "version": "0.5.23",
    "model": "moonshotai/Kimi-K3",
    "drafter": "RadixArk/Kimi-K3-DSpark",
    "k": 7,
}
NORMAL = {"code": 5.5, "math": 5.4, "long context": 4.3, "chat": 3.9, "reasoning": 3.0, "creative": 2.6}
N = "\N{NARROW NO-BREAK SPACE}"
HOUR = 3600.0


def reads(world: Any) -> TrendsReads:
    return TrendsReads(world.history, world.state, world.catalog, world.rulebook)


def view(
    world: Any,
    *,
    start: float = -HOUR,
    end: float = 0.0,
    by: tuple[Dimension, ...] = ("category",),
    where: Mapping[Dimension, tuple[str, ...]] | None = None,
    **options: Any,
) -> TrendsView:
    query = AcceptanceQuery(world.now + start, world.now + end, by=by, where=where or {}, **options)
    return reads(world).view(query, world.now)


def served(
    world: Any, *, facts: Mapping[str, Any] = RADIX, fall: Mapping[str, tuple[float, float]] | None = None
) -> None:
    """Six categories for an hour; ``fall``: category -> when it fell and to what."""
    world.target("a", facts=facts)
    world.looks("a", -HOUR, 0)
    for category, acc_len in NORMAL.items():
        at, to = (fall or {}).get(category, (0.0, acc_len))
        world.traffic("a", -HOUR, at, acc_len, category=category)
        world.traffic("a", at, 0, to, category=category)


def test_all_categories_fell_together(world: Any) -> None:
    # NOW is 12:05: 25 minutes ago it was 11:40.
    served(world, fall=dict.fromkeys(NORMAL, (-1500.0, 1.02)))
    assert view(world).verdict == "All 6 categories fell together at 11:40: the drafter, not the prompts."


def test_a_fall_is_told_in_the_readers_time(world: Any) -> None:
    served(world, fall=dict.fromkeys(NORMAL, (-1500.0, 1.02)))
    query = AcceptanceQuery(world.now - HOUR, world.now, by=("category",))
    told = reads(world).view(query, world.now, timezone(timedelta(hours=9))).verdict
    assert told == "All 6 categories fell together at 20:40: the drafter, not the prompts."


@pytest.mark.parametrize(
    ("fall", "verdict"),
    [
        (
            {"long context": (-1500.0, 2.9)},
            "Only long context fell, at 11:40: look at prompts, template or context length.",
        ),
        (
            {"code": (-1500.0, 3.5), "chat": (-1440.0, 2.0)},
            "2 of 6 categories fell at 11:40: chat and code.",
        ),
        (
            dict.fromkeys(list(NORMAL)[:5], (-1500.0, 1.5)),
            "5 of 6 categories fell at 11:40: chat, code, long context and 2 more.",
        ),
        (
            {name: (-2400.0 + 300 * place, 1.5) for place, name in enumerate(NORMAL)},
            "All 6 categories fell, between 11:25 and 11:50.",
        ),
        (
            {"code": (-2400.0, 3.5), "chat": (-600.0, 2.0)},
            "2 of 6 categories fell between 11:25 and 11:55: chat and code.",
        ),
        ({}, "All 6 categories are as expected."),
        # A tenth less is what traffic does by itself.
        ({"code": (-1500.0, 5.0)}, "All 6 categories are as expected."),
        # From 5.50 to 4.60 is not a fall of a fifth, but it is a sixth below what was published.
        ({"code": (-1500.0, 4.6)}, "1 of 6 categories are below what was published: code."),
    ],
)
def test_what_the_categories_say_together(world: Any, fall: dict[str, tuple[float, float]], verdict: str) -> None:
    served(world, fall=fall)
    assert view(world).verdict == verdict


def test_without_published_values_nothing_is_as_expected(world: Any) -> None:
    served(world, facts={"engine": "sglang"})
    assert view(world).verdict == "None of the 6 categories fell."
    assert {line.expected for line in view(world).lines} == {None}


def test_a_fall_that_was_recovered_from_is_none(world: Any) -> None:
    world.target("a", facts=RADIX)
    world.looks("a", -HOUR, 0)
    for start, end, acc_len in ((-HOUR, -2400, 5.5), (-2400, -1500, 1.1), (-1500, 0, 5.5)):
        world.traffic("a", start, end, acc_len, category="code")
    assert view(world).verdict == "Code is as expected."


def test_what_was_dead_all_the_time_did_not_fall_and_is_not_as_expected(world: Any) -> None:
    world.target("a", facts=RADIX)
    world.looks("a", -HOUR, 0)
    for category in NORMAL:
        world.traffic("a", -HOUR, 0, 1.02, category=category)
    assert view(world).verdict == "All 6 categories are at 1.02 or less: the drafter, not the prompts."
    one = view(world, where={"category": ("code",)})
    assert one.verdict == "Code is at 1.02: next to no draft token is accepted."


def test_some_dead(world: Any) -> None:
    world.target("a", facts=RADIX)
    world.looks("a", -HOUR, 0)
    for category, acc_len in {**NORMAL, "code": 1.01, "math": 1.03}.items():
        world.traffic("a", -HOUR, 0, acc_len, category=category)
    assert view(world).verdict == "2 of 6 categories are at 1.03 or less: code and math."


def test_noise_is_no_fall(world: Any) -> None:
    """Half of the windows far below and half far above: the mean of neither half is beyond the other's bounds."""
    world.target("a")
    world.looks("a", -600, 0)
    world.traffic("a", -600, 0, 4.0, category="code", steps=15, scatter=2.5)
    assert view(world, start=-600).verdict == "Code is steady at 4.00."


def test_lines_with_few_steps_are_not_judged(world: Any) -> None:
    served(world, fall=dict.fromkeys(NORMAL, (-1500.0, 1.02)))
    world.traffic("a", -120, 0, 5.0, category="rare", steps=10)
    told = view(world)
    assert told.verdict.startswith("All 6 categories fell together")
    assert [line.name for line in told.lines][-1] == "rare"


def test_nothing_to_judge(world: Any) -> None:
    assert view(world).verdict == "No data in this range."
    world.target("a")
    world.traffic("a", -60, 0, 4.0, category="code", steps=35)
    assert view(world).verdict == "Too few steps to judge: 140 of 200."


def test_one_line(world: Any) -> None:
    world.target("a")
    world.looks("a", -HOUR, 0)
    world.traffic("a", -HOUR, -1500, 4.2)
    world.traffic("a", -1500, 0, 1.9)
    told = view(world)
    assert [line.name for line in told.lines] == ["all traffic"]
    assert told.verdict == "All traffic fell at 11:40, from 4.20 to 1.90."


def test_only_one_rank_fell(world: Any) -> None:
    world.target("a", facts=RADIX)
    world.looks("a", -HOUR, 0)
    for rank in "0123":
        world.traffic("a", -HOUR, -1500, 4.2, rank=rank)
        world.traffic("a", -1500, 0, 1.9 if rank == "3" else 4.2, rank=rank)
    told = view(world, by=("rank",))
    assert told.verdict == "Only DP3 fell: one GPU or its link."
    assert (told.by, sorted(line.name for line in told.lines)) == ("rank", ["0", "1", "2", "3"])


def test_all_ranks_fell(world: Any) -> None:
    world.target("a")
    for rank in "01":
        world.traffic("a", -HOUR, -1500, 4.2, rank=rank)
        world.traffic("a", -1500, 0, 1.9, rank=rank)
    assert view(world, by=("rank",)).verdict == "All 2 ranks fell together at 11:40: the whole server, not one GPU."


def test_only_one_target_fell(world: Any) -> None:
    for name in ("a", "b", "c"):
        world.target(name, facts=RADIX)
        world.traffic(name, -HOUR, -1500, 4.2)
        world.traffic(name, -1500, 0, 1.9 if name == "b" else 4.2)
    assert view(world, by=("target",)).verdict == "Only b fell, at 11:40: look at what changed on it."


@pytest.mark.parametrize(
    ("by", "where", "dimension"),
    [
        (("category",), {}, "category"),
        (("target",), {}, "target"),
        ((), {}, "category"),
        (("target",), {"target": ("a",)}, "category"),
        (("target",), {"target": ("a", "b")}, "target"),
        (("target", "rank"), {"target": ("a",)}, "rank"),
        (("target", "category"), {"target": ("a",), "category": ("code",)}, "category"),
    ],
)
def test_the_dimension_broken_down_by(by: Any, where: Any, dimension: str) -> None:
    assert dimension_of(AcceptanceQuery(0, 1, by=by, where=where)) == dimension


def test_lines_hold_a_value_a_bucket(world: Any) -> None:
    world.target("a", facts=RADIX)
    world.looks("a", -HOUR, 0)
    world.traffic("a", -HOUR, -1800, 5.5, category="code")
    world.traffic("a", -1800, 0, 5.0, category="code")
    world.traffic("a", -HOUR, -900, 2.6, category="creative", steps=10)
    told = view(world)
    # An hour in at most 240 buckets, each with two scrapes: half-minutes.
    assert (told.step, len(told.times)) == (30.0, 120)
    assert (told.times[0], told.times[-1]) == (world.now - HOUR + 30, world.now)
    code, creative = told.lines
    assert (code.name, creative.name) == ("code", "creative")
    assert {len(values) for values in (code.acc_len, code.lower, code.upper, code.steps, told.steps)} == {120}
    assert code.acc_len[0] == pytest.approx(5.5)
    assert code.steps[0] == 80
    assert told.steps[0] == 100
    assert told.steps[-1] == 80
    assert (creative.acc_len[-1], creative.steps[-1], creative.now) == (None, None, None)
    assert (code.first, code.now) == (pytest.approx(5.5), pytest.approx(5.0))
    assert (code.expected, creative.expected) == (5.5, 2.6)
    assert told.sources == ("counter",)


def test_bounds_come_with_enough_windows(world: Any) -> None:
    world.target("a")
    world.traffic("a", -12 * HOUR, 0, 4.0, category="code")
    told = view(world, start=-12 * HOUR)
    assert told.step == 300.0
    (code,) = told.lines
    assert code.lower[0] is not None
    assert code.upper[0] is not None
    assert code.lower[0] < 4.0 < code.upper[0]


@pytest.mark.parametrize(
    ("seconds", "step"),
    [
        *((300, 30), (900, 30), (HOUR, 30), (3 * HOUR, 60), (4 * HOUR, 60), (6 * HOUR, 120), (24 * HOUR, 600)),
        *((2 * 86400, 900), (7 * 86400, 3600), (30 * 86400, 10800), (300 * 86400, 2 * 86400)),
    ],
)
def test_the_width_of_buckets(world: Any, seconds: float, step: float) -> None:
    world.target("a")
    told = view(world, start=-seconds)
    assert told.step == step
    assert len(told.times) <= 241


def test_a_width_of_ones_own(world: Any) -> None:
    world.target("a")
    assert view(world, step=900.0).step == 900.0
    # Too many buckets: the width is chosen as if none had been given.
    assert view(world, step=1.0).step == 30.0


def test_a_slow_scrape_makes_buckets_wider(world: Any) -> None:
    world.target("a", interval=60.0)
    assert view(world).step == 120.0


def test_gaps_tell_idle_from_no_data(world: Any) -> None:
    world.target("a")
    world.traffic("a", -HOUR, -3000, 4.0)
    world.looks("a", -HOUR, -3000)
    world.looks("a", -3000, -2400, running=0.0)  # idle for ten minutes
    world.traffic("a", -2400, -1800, 4.0)
    world.looks("a", -2400, -1800)  # then nobody looked for ten
    world.traffic("a", -1200, -600, 4.0)
    world.looks("a", -1200, -600)
    world.looks("a", -600, -300, up=False, running=None)  # did not answer
    world.traffic("a", -300, 0, 4.0)
    world.looks("a", -300, 0)
    assert [(gap.start - world.now, gap.end - world.now, gap.why) for gap in view(world).gaps] == [
        (-3000, -2400, "idle"),
        (-1800, -1200, "no data"),
        (-600, -300, "no data"),
    ]


def test_idle_turns_into_no_data_where_the_target_went(world: Any) -> None:
    world.target("a")
    world.traffic("a", -HOUR, -2400, 4.0)
    world.looks("a", -2400, -1200, running=0.0)
    gaps = view(world).gaps
    assert [(gap.start - world.now, gap.end - world.now, gap.why) for gap in gaps] == [
        (-2400, -1200, "idle"),
        (-1200, -60, "no data"),
    ]


def test_requests_that_run_and_verify_nothing_are_not_idle(world: Any) -> None:
    world.target("a")
    world.traffic("a", -HOUR, -1200, 4.0)
    world.looks("a", -1200, 0, running=3.0)
    assert [gap.why for gap in view(world).gaps] == ["no data"]


def test_what_may_only_not_have_been_told_yet_is_no_gap(world: Any) -> None:
    world.target("a")
    world.traffic("a", -HOUR, -60, 4.0)
    assert view(world).gaps == ()


def test_a_short_pause_breaks_lines_and_gets_no_band(world: Any) -> None:
    world.target("a")
    world.traffic("a", -HOUR, -1800, 4.0)
    world.traffic("a", -1770, 0, 4.0)
    told = view(world)
    assert told.gaps == ()
    assert told.lines[0].acc_len.count(None) == 1


def test_another_target_that_serves_is_no_gap(world: Any) -> None:
    for name in "ab":
        world.target(name)
    world.traffic("a", -HOUR, -1800, 4.0)
    world.traffic("b", -HOUR, 0, 4.0)
    assert view(world).gaps == ()
    assert view(world, where={"target": ("a",)}).gaps == (Gap(world.now - 1800, world.now - 60, "no data"),)


def test_alerts_are_marked_within_the_range(world: Any) -> None:
    served(world)
    world.target("b")
    world.alert("dead-drafter", "a", since=-700, fired=-600)
    world.alert("acceptance-drop", "a", severity="warning", since=-9000, fired=-8000, resolved=-3000, phase="resolved")
    world.alert("acceptance-decay", "a", severity="warning", since=-9999, fired=-9900, resolved=-9000, phase="resolved")
    world.alert("data-quality", "a", severity="notice", since=-700)
    world.alert("low-acceptance", "a", severity="warning", phase="pending", since=-30)
    world.alert("dead-drafter", "b", since=-500)
    told = view(world, where={"target": ("a",)}).marks
    assert [
        (mark.title, mark.start - world.now, mark.end and mark.end - world.now, mark.severity) for mark in told
    ] == [
        ("Acceptance dropped on a", -3600, -3000, "warning"),
        ("Drafter is dead on a", -600, None, "critical"),
    ]
    assert {mark.target for mark in view(world).marks} == {"a", "b"}


def test_marks_of_another_category_are_left_out(world: Any) -> None:
    served(world)
    world.alert("acceptance-drop", "a", severity="warning", since=-700, series={"category": "code"})
    assert len(view(world, where={"category": ("code",)}).marks) == 1
    assert view(world, where={"category": ("chat",)}).marks == ()


@pytest.mark.parametrize(
    ("k", "floor"),
    [(7, (2.0, 3.0)), (4, (2.0, 3.0)), (3, (2.0, 2.0)), (2, (1.7, 1.7)), (None, (2.0, 3.0))],
)
def test_floors(world: Any, k: int | None, floor: tuple[float, float]) -> None:
    world.target("a", facts={} if k is None else {"k": k})
    told = view(world)
    assert (told.k, told.dead, told.floor) == (k, 1.1, pytest.approx(floor))


def test_a_category_has_its_own_floor(world: Any) -> None:
    world.target("a", facts=RADIX)
    world.overrides.append(Override("low-acceptance", {"category": ("creative",)}, thresholds={"acc_len": 1.6}))
    world.overrides.append(Override("dead-drafter", {"group": ("blue",)}, thresholds={"acc_len": 1.05}))
    assert view(world, where={"category": ("creative",)}).floor == (1.6, 3.0)
    assert view(world).floor == (2.0, 3.0)
    world.target("a", group="blue", facts=RADIX)
    assert view(world).dead == 1.05


def test_targets_that_differ_in_k_have_none(world: Any) -> None:
    world.target("a", facts={"k": 7})
    world.target("b", facts={"k": 5})
    assert view(world).k is None
    assert view(world, where={"target": ("b",)}).k == 5


def test_the_status_line(world: Any) -> None:
    served(world)
    world.traffic("a", -HOUR, 0, 3.0, category="", steps=40)
    assert view(world).status == (
        "a · SGLang 0.5.23 · Kimi-K3 + Kimi-K3-DSpark, k = 7",
        f"67.2 k verify steps, 85.7{N}% with a category",
        "30-second windows",
    )
    world.target("b")
    assert view(world).status[0] == "2 targets"
    assert view(world, by=("target",)).status[1] == "67.2 k verify steps"
    assert view(world, where={"engine": ("sglang",)}).status[0].startswith("a · ")


def test_what_no_source_tells_apart_is_no_line_beside_categories(world: Any) -> None:
    served(world)
    world.target("b")
    world.traffic("b", -HOUR, 0, 1.5, steps=500)
    told = view(world)
    assert sorted(line.name for line in told.lines) == sorted(NORMAL)
    assert told.steps[0] == 6 * 80 + 1000


def test_unlabelled_requests_are_a_line(world: Any) -> None:
    world.target("a")
    for category in ("", "code"):
        world.traffic("a", -HOUR, -1500, 4.0, category=category)
        world.traffic("a", -1500, 0, 4.0 if category else 2.0, category=category)
    told = view(world)
    assert {line.name for line in told.lines} == {"", "code"}
    assert told.verdict.startswith("Only unlabelled traffic fell, at 11:40")


def test_a_page_of_hostile_categories_is_bounded(world: Any) -> None:
    world.target("a")
    for number in range(60):
        world.traffic("a", -60, 0, 4.0, category=f"<b>{number}</b>", steps=number + 1)
    told = view(world)
    assert (len(told.lines), told.hidden) == (40, 20)
    assert told.lines[0].name == "<b>59</b>"


def test_an_earlier_time(world: Any) -> None:
    world.target("a")
    world.traffic("a", -2 * HOUR, -HOUR, 3.0, category="code")
    told = view(world, offset=HOUR)
    assert told.end == world.now - HOUR
    assert told.lines[0].acc_len[0] == pytest.approx(3.0)


def test_a_range_into_the_future_ends_now(world: Any) -> None:
    world.target("a")
    world.traffic("a", -HOUR, 0, 3.0)
    assert view(world, end=HOUR).end == world.now


def test_the_next_tick_reads_only_the_newest_buckets(world: Any) -> None:
    world.target("a")
    world.traffic("a", -HOUR, 0, 4.0, category="code")
    asked: list[tuple[float, float]] = []
    query = world.history.query

    def watched(question: Any) -> Any:
        asked.append((question.start - world.now, question.end - world.now))
        return query(question)

    world.history.query = watched
    trends = reads(world)
    question = AcceptanceQuery(world.now - HOUR, world.now, by=("category",))
    trends.view(question, world.now)
    world.traffic("a", 0, 15, 2.0, category="code")
    told = trends.view(AcceptanceQuery(world.now - HOUR + 5, world.now + 15, by=("category",)), world.now + 15)
    assert asked[0] == (-HOUR, 0)
    assert asked[1] == (-90, 15)
    assert told.lines[0].acc_len[-1] == pytest.approx(2.1)
    assert told.lines[0].acc_len[0] == pytest.approx(4.0)
