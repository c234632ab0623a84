"""Evidence gathered from history: scopes, merging, revisions, lives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from acceptance.counts import Counts, Spread
from acceptance.facts import Subject
from acceptance.health import Health
from acceptance.hits import Hit
from acceptance.query import AcceptanceQuery, Sum
from acceptance.series import Series
from acceptance.window import Source, Window
from alerts.evidence import Beside, Evidence, from_windows, gather
from store.history import Batch
from store.memory import MemoryHistory

NOW = 1_796_000_000.0
SUBJECT = Subject("decode-1", "prod", facts={"engine": "sglang", "k": 7})


def window(at: float, acc_len: float = 3.0, source: Source = "counter", steps: float = 100.0, **series: Any) -> Window:
    counts = Counts(steps=steps, emitted=acc_len * steps, spread=Spread.of(acc_len * steps, steps))
    identity = Series(**{"target": "decode-1", **series})
    number = hash((at, acc_len, source, identity)) & 0x7FFFFFFFFFFFFFFF
    return Window(number, identity, NOW + at - 15, NOW + at, source, True, counts)


def gathered(*windows: Window, beside: Beside | None = None, looks: tuple[Health, ...] = ()) -> list[Evidence]:
    history = MemoryHistory()
    history.append(Batch(windows, looks))
    return gather(history, [SUBJECT], beside or Beside(), NOW)


def scopes(evidence: list[Evidence]) -> set[tuple[Source | None, str | None, str | None]]:
    return {(item.source, item.series.rank, item.series.category) for item in evidence}


def one(evidence: list[Evidence], source: Source | None, rank: str | None = None, category: str | None = None) -> Any:
    return next(
        item for item in evidence if (item.source, item.series.rank, item.series.category) == (source, rank, category)
    )


def test_every_source_is_evidence_of_its_own_and_sees_the_others() -> None:
    evidence = gathered(window(-60), window(-30, source="log"), window(-15, source="log"))
    assert scopes(evidence) == {(None, None, None), ("counter", None, None), ("log", None, None)}
    assert len(one(evidence, "log").windows) == 2
    assert set(one(evidence, "log").others) == {"counter"}
    assert set(one(evidence, None).others) == {"counter", "log"}


def test_a_target_of_which_nothing_is_known_has_its_own_evidence() -> None:
    (only,) = gathered()
    assert (only.series.target, only.source, only.windows, only.others) == ("decode-1", None, (), {})


def test_ranks_are_told_apart_where_there_are_several() -> None:
    assert scopes(gathered(window(-30, rank="0"))) == {(None, None, None), ("counter", None, None)}
    evidence = gathered(window(-30, 3.0, rank="0"), window(-30, 1.0, rank="1"))
    assert ("counter", "1", None) in scopes(evidence)
    assert one(evidence, "counter", rank="1").windows[0].counts.acc_len == 1.0
    whole = one(evidence, "counter").windows
    assert [(item.counts.acc_len, item.windows) for item in whole] == [(2.0, 1)]


def test_ranks_at_one_moment_are_not_samples_one_after_the_other() -> None:
    evidence = gathered(*[window(-30, rank=str(rank)) for rank in range(4)], window(-40, rank="3"))
    assert sum(item.windows for item in one(evidence, "counter").windows) == 2


def test_categories_are_told_apart_where_requests_name_one() -> None:
    assert scopes(gathered(window(-30, category=""))) == {(None, None, None), ("counter", None, None)}
    evidence = gathered(window(-30, category=""), window(-30, category="code"))
    assert scopes(evidence) >= {("counter", None, "code"), ("counter", None, "")}


def test_figures_of_another_configuration_are_left_out() -> None:
    evidence = gathered(window(-90, 1.0, revision="old"), window(-30, 3.0, revision="new"))
    assert [item.counts.acc_len for item in one(evidence, "counter").windows] == [3.0]


def test_windows_are_in_the_order_of_time_and_no_older_than_asked_for() -> None:
    evidence = gathered(window(-30), window(-600), window(-2000), window(-45))
    lasts = [item.last for item in one(evidence, "counter").windows]
    assert lasts == sorted(lasts)
    assert lasts[0] == NOW - 600


def test_targets_that_are_not_watched_are_not_judged() -> None:
    assert {item.series.target for item in gathered(window(-30, target="other"))} == {"decode-1"}


def test_a_baseline_belongs_to_a_series() -> None:
    def baseline(series: Series) -> float | None:
        return 4.7 if series.category == "code" else None

    evidence = gathered(window(-30, category="code"), beside=Beside(baseline=baseline))
    assert one(evidence, "counter", category="code").baseline == 4.7
    assert one(evidence, "counter").baseline is None


def hit(incarnation: str, at: float, signature: str = "SG-X") -> Hit:
    return Hit("decode-1", incarnation, signature, NOW + at)


@pytest.mark.parametrize(
    ("lives", "expected"),
    [({}, ["2"]), ({"decode-1": {"2"}}, ["2"]), ({"decode-1": {"3"}}, []), ({"decode-1": {"1", "2"}}, ["1", "2"])],
    ids=["unknown: the last that spoke", "known", "a new process without a hit", "two logs"],
)
def test_hits_of_earlier_processes_do_not_count(lives: dict[str, set[str]], expected: list[str]) -> None:
    beside = Beside(hits=[hit("1", -500), hit("2", -100)], lives=lives)
    assert [item.incarnation for item in one(gathered(beside=beside), None).hits] == expected


def test_looks_are_those_of_the_last_minutes() -> None:
    looks = tuple(Health("decode-1", "metrics", NOW + at, up=True) for at in (-600, -30, -15))
    assert [look.at - NOW for look in one(gathered(looks=looks), None).health] == [-30, -15]


def test_history_is_asked_once_for_windows_and_once_for_looks() -> None:
    asked: list[str] = []

    class Counting(MemoryHistory):
        def query(self, query: AcceptanceQuery) -> list[Sum]:
            asked.append("query")
            return super().query(query)

        def health(self, start: float, end: float, target: str | None = None, **more: Any) -> list[Health]:
            asked.append("health")
            return super().health(start, end, target, **more)

    history = Counting()
    gather(history, [replace(SUBJECT, target=f"t{number}") for number in range(20)], Beside(), NOW)
    assert sorted(asked) == ["health", "query"]


def test_windows_that_no_history_holds_keep_their_number() -> None:
    """Decode lines have whole seconds: several windows of one rank may end at the same time, and all count."""
    lines = [replace(window(0, source="log", rank="0"), id=number) for number in range(3)]
    idle = replace(window(0, source="log", rank="0"), id=9, busy=False)
    evidence = from_windows([*lines, idle], [SUBJECT], [], Beside(), NOW)
    (merged,) = one(evidence, "log").windows
    assert (merged.windows, merged.counts.steps) == (3, 300.0)
