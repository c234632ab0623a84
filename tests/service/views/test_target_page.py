"""The page of one target: its verdict, findings with what to do, facts, ranks, sources, and what cannot be seen."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta, timezone
from typing import Any

import pytest

from acceptance.facts import Fact, Unseen
from acceptance.health import Health
from acceptance.hits import Hit
from alerts.findings import findings
from service.cells import Cell
from service.fact_groups import fact_groups
from service.ranks import RankRow, ranks_note
from service.target import TargetPage, TargetReads
from store.history import Batch

RADIX = {
    "engine": "sglang",
    "version": "0.5.23",
    "model": "moonshotai/Kimi-K3",
    "drafter": "RadixArk/Kimi-K3-DSpark",
    "k": 7,
    "tensor_parallel": 8,
    "role": "unified",
}
N = "\N{NARROW NO-BREAK SPACE}"


def page(world: Any, name: str = "a", **options: Any) -> TargetPage:
    told = TargetReads(world.history, world.state, world.catalog, world.rulebook).page(name, world.now, **options)
    assert told is not None
    return told


def as_expected(world: Any) -> None:
    world.target("a", facts=RADIX)
    world.healthy("a", start=-900, acc_len=3.9, category="chat")


def below_expected(world: Any) -> None:
    world.target("a", facts=RADIX)
    world.healthy("a", start=-900, acc_len=2.9, category="chat")


def nothing_expected(world: Any) -> None:
    world.healthy("a", start=-900, acc_len=3.9)


def dead(world: Any) -> None:
    world.target("a", facts=RADIX)
    world.looks("a", -3600, 0)
    world.traffic("a", -3600, -600, 3.9, category="chat")
    world.traffic("a", -600, 0, 1.02, category="chat")
    world.alert("dead-drafter", "a", since=-580, value=1.02, series={"engine": "sglang"})


def slow(world: Any) -> None:
    world.target("a", facts=RADIX)
    world.traffic("a", -3600, -600, 4.3, source="log", step_time=0.0416)
    world.traffic("a", -600, 0, 4.3, source="log", step_time=0.0969)
    world.looks("a", -3600, 0, running=30.0)
    world.alert("draft-attention-backend-fallback", "a", severity="warning", since=-590, series={"engine": "sglang"})


def low_rank(world: Any) -> None:
    as_expected(world)
    world.alert("low-acceptance", "a", severity="warning", since=-600, value=1.7, series={"rank": "3"})


def pending(world: Any) -> None:
    as_expected(world)
    world.alert("dead-drafter", "a", phase="pending", since=-65)


def notice(world: Any) -> None:
    as_expected(world)
    world.alert("low-acceptance", "a", severity="notice", phase="pending", since=-65)


def idle(world: Any) -> None:
    world.target("a")
    world.look("a", running=0.0)


def down(world: Any) -> None:
    world.target("a")
    world.look("a", up=False, error="connection refused")


def unreadable(world: Any) -> None:
    world.target("a")
    world.look("a", up=False, error="Unreadable: not a metrics page")


def unread(world: Any) -> None:
    world.target("a")


def few(world: Any) -> None:
    world.target("a")
    world.look("a")
    world.traffic("a", -60, 0, 4.0, steps=35)


def stale(world: Any) -> None:
    world.target("a")
    world.look("a", at=-700)


def prefill(world: Any) -> None:
    world.target("a", facts={"role": "prefill"})
    world.look("a")


def off(world: Any) -> None:
    world.target("a", facts={"speculative": False})
    world.look("a")


@pytest.mark.parametrize(
    ("past", "verdict"),
    [
        (as_expected, "acc_len is as expected: 3.90 of 3.90."),
        (below_expected, f"acc_len 2.90 is 26{N}% below what was published."),
        (nothing_expected, "acc_len is 3.90."),
        # NOW is 12:05: it fires since two minutes after 11:55.
        (dead, "Drafter is dead, since 11:57; acc_len 3.90 → 1.02."),
        (
            slow,
            (
                "Drafter fell back to another attention backend, since 11:57. "
                "Steps take 2.3 times longer; acc_len is normal."
            ),
        ),
        (low_rank, "Acceptance is low, rank 3, since 11:57; acc_len 1.70."),
        (pending, "Drafter is dead, it seems: seen for 1 min, and not yet for long enough."),
        (notice, "acc_len is as expected: 3.90 of 3.90."),
        (idle, "No request is running."),
        (down, "Does not answer: connection refused."),
        (unreadable, "Answers, and cannot be read: Unreadable: not a metrics page."),
        (unread, "Nothing was read of it yet."),
        (few, "Too few steps to judge: 140 of 200."),
        (stale, "Nothing new for 12 min."),
        (prefill, "Verifies nothing: it only prefills."),
        (off, "Speculation is off: it was started without speculation."),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_the_verdict(world: Any, past: Callable[[Any], None], verdict: str) -> None:
    past(world)
    assert page(world).verdict == verdict


def test_times_are_the_readers(world: Any) -> None:
    dead(world)
    assert "since 20:57" in page(world, zone=timezone(timedelta(hours=9))).verdict


def test_nobody_of_this_name(world: Any) -> None:
    reads = TargetReads(world.history, world.state, world.catalog, world.rulebook)
    assert reads.page("nobody", world.now) is None


def test_findings_with_what_to_do(world: Any) -> None:
    slow(world)
    world.alert("config-cuda-graph-disabled", "a", severity="notice", since=-800, series={"engine": "sglang"})
    world.alert("low-acceptance", "a", severity="warning", phase="pending", since=-30)
    world.alert("dead-drafter", "a", since=-9000, resolved=-8000, phase="resolved", why="acc_len 1.01")
    world.alert("acceptance-drop", "a", severity="warning", since=-9e4, resolved=-8.8e4, phase="resolved")
    world.alert("dead-drafter", "b")
    told = page(world)
    assert [(card.finding, card.phase) for card in told.findings] == [
        ("draft-attention-backend-fallback", "firing"),
        ("config-cuda-graph-disabled", "firing"),
        ("low-acceptance", "pending"),
    ]
    card = told.findings[0]
    entry = findings()["draft-attention-backend-fallback"]
    assert card.remedy == entry.remedy.sglang
    assert (card.flag_verb, card.flag) == ("Remove", "--speculative-draft-attention-backend")
    assert (card.cause, card.severity, card.since) == (entry.cause, "warning", world.now - 470)
    assert ("Step time", "41.6 → 96.9 ms ×2.3") in card.figures
    # A day back, and no further.
    (resolved,) = told.recent
    assert (resolved.finding, resolved.why, resolved.ended) == ("dead-drafter", "acc_len 1.01", world.now - 8000)
    assert (told.label, told.severity, told.pending) == ("Slow kernel", "warning", False)


def test_figures(world: Any) -> None:
    slow(world)
    world.looks("a", -300, 0, running=30.0, rate=2210.0)
    told = page(world)
    assert [(item.label, item.value, item.unit, item.note) for item in told.figures] == [
        ("Step time", "96.9", "ms", "usually 41.6 at like load"),
        ("acc_len", "4.30", "", "2,400 steps"),
        ("Yield", "47.1", "%", "(acc_len − 1) / k"),
    ]


def test_output_is_a_figure_where_it_is_told(world: Any) -> None:
    world.target("a", facts=RADIX)
    world.traffic("a", -900, 0, 3.9, category="chat")
    world.looks("a", -900, 0, running=30.0, rate=2210.0)
    told = {item.label: (item.value, item.note) for item in page(world).figures}
    assert told["Output"] == ("2,210", "at 30 running")
    assert told["acc_len"] == ("3.90", "expected 3.90, 2,400 steps")
    assert "Step time" not in told


def test_the_status_line(world: Any) -> None:
    world.target("a", facts={**RADIX, "startup_time": world.now - 1440.0})
    assert page(world).status == ("SGLang 0.5.23", "Kimi-K3 + Kimi-K3-DSpark, k = 7", "TP8", "unified", "up 24 min")
    world.target("b")
    assert page(world, "b").status == ()


def test_facts_in_groups(world: Any) -> None:
    world.target("a", facts={**RADIX, "speculative": True, "startup_time": world.now - 60, "house_colour": "red"})
    groups = {group.title: group.facts for group in page(world).facts}
    assert [line.name for line in groups["Speculation"]] == ["speculative", "drafter", "k"]
    assert [line.value for line in groups["Speculation"]] == ["yes", "RadixArk/Kimi-K3-DSpark", "7"]
    assert groups["Speculation"][1].meaning == "draft model"
    assert groups["Speculation"][1].source == "server_info"
    assert {line.name: line.value for line in groups["Server"]}["startup_time"] == "12:04, 1 min ago"
    assert [(line.name, line.value, line.meaning) for line in groups["Others"]] == [("house_colour", "red", "")]
    assert "Kernels" not in groups


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("cuda_graph_disabled", False, "no"),
        ("drafter", None, "unset"),
        ("lifetime_acc_len", 4.1573, "4.16"),
        ("max_running_requests", 48, "48"),
        ("something", 0.9, "0.9"),
        ("drafter", "<b>x</b>", "<b>x</b>"),
    ],
)
def test_the_value_of_a_fact(name: str, value: Any, text: str) -> None:
    ((line,),) = (group.facts for group in fact_groups([Fact("a", name, value, "log", 0.0)], 0.0))
    assert line.value == text


def test_what_cannot_be_seen_is_said(world: Any) -> None:
    as_expected(world)
    assert page(world).unseen == (
        Unseen("draft backend unknown", "the start-up log"),
        Unseen("fallback messages not seen", "the server's log, from its start"),
    )
    world.look("a", surface="log:/var/log/a.log")
    world.target("b", facts=RADIX)
    assert "categories unknown" in [item.what for item in page(world, "b").unseen]


def test_ranks_side_by_side(world: Any) -> None:
    world.target("a", facts=RADIX)
    world.looks("a", -900, 0)
    for rank in ("0", "1", "2", "10"):
        world.traffic("a", -900, 0, 1.9 if rank == "2" else 4.2, rank=rank, source="log")
    told = page(world)
    assert [(row.rank, round(row.acc_len.acc_len or 0.0, 1)) for row in told.ranks] == [
        ("0", 4.2),
        ("1", 4.2),
        ("2", 1.9),
        ("10", 4.2),
    ]
    assert told.ranks_note == "only DP2 is low: one GPU or its link"


def test_without_ranks_nothing_is_said_of_them(world: Any) -> None:
    as_expected(world)
    assert (page(world).ranks, page(world).ranks_note) == ((), "")


@pytest.mark.parametrize(
    ("lengths", "note"),
    [
        ({"0": 4.2, "1": 4.1}, "all 2 alike"),
        ({"0": 4.2, "1": 1.1}, "only DP1 is low: one GPU or its link"),
        ({"0": 4.2, "1": 4.2, "2": 4.2, "3": 1.1, "a/0": 1.0}, "2 of 5 are low: DP3 and rank a/0"),
        ({"0": 1.0, "1": 1.0}, "all 2 alike"),
        ({"0": 4.2}, ""),
        ({}, ""),
    ],
)
def test_what_ranks_say_together(lengths: dict[str, float], note: str) -> None:
    rows = [RankRow(rank, Cell(acc_len=value, trusted=True)) for rank, value in lengths.items()]
    assert ranks_note(rows) == note
    untrusted = [RankRow(row.rank, Cell(acc_len=row.acc_len.acc_len)) for row in rows]
    assert ranks_note(untrusted) == ""


def test_every_source_speaks_for_itself(world: Any) -> None:
    world.target("a", facts=RADIX)
    world.looks("a", -900, 0)
    world.traffic("a", -900, -60, 4.0, category="code")
    world.traffic("a", -900, 0, 3.0, source="log", rank="0")
    told = page(world).sources
    assert [(row.source, round(row.acc_len.acc_len or 0.0, 1), row.windows, row.answers) for row in told] == [
        ("counter", 4.0, 56, True),
        ("log", 3.0, 60, False),
    ]
    assert told[0].last == world.now - 60


def test_surfaces_with_the_newest_look(world: Any) -> None:
    world.target("a")
    world.look("a", at=-20, queued=2.0, seconds=0.04)
    world.look("a", at=-5, up=False, error="<b>refused</b>", running=None)
    world.look("a", at=-3, surface="log:/var/log/a.log", running=None)
    told = page(world).surfaces
    assert [row.surface for row in told] == ["log:/var/log/a.log", "metrics", "server_info"]
    metrics = told[1]
    assert (metrics.up, metrics.error, metrics.looked_at) == (False, "<b>refused</b>", world.now - 5)
    assert metrics.read_at == world.now - 20
    assert told[0].up


def test_lines_of_the_log_and_what_could_not_be_read(world: Any) -> None:
    world.target("a")
    hit = Hit("a", "1", "SG-X", world.now - 60, rank="0", excerpt="Falling back to 'flashinfer'.")
    world.state.record([], [hit, Hit("b", "1", "SG-X", world.now - 60)])
    told = page(world)
    assert [item.excerpt for item in told.hits] == ["Falling back to 'flashinfer'."]
    assert told.rejected == 0


def test_only_its_own_group_is_what_it_is_held_against(world: Any) -> None:
    for name, group in (("a", "blue"), ("b", "blue"), ("c", "blue"), ("d", "blue"), ("e", "red")):
        world.target(name, group=group, facts=RADIX)
        world.traffic(name, -120, 0, 4.2, source="log", step_time=0.09 if name == "a" else 0.03)
        world.looks(name, -120, 0)
    assert page(world).figures[0].note == "usually 30.0 at like load"
    assert page(world, "e").figures[0].note == ""


def test_health_of_another_target_is_not_its_own(world: Any) -> None:
    world.target("a")
    world.history.append(
        Batch(
            health=[Health("other", "metrics", world.now - at, True, running=9.0, decode_tokens=9.0) for at in (5, 20)]
        )
    )
    assert page(world).figures == ()
