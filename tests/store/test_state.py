"""State in SQLite, in a file and in memory: facts, hits, alerts and the outbox."""

from __future__ import annotations

import math
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from acceptance.facts import Fact, FactValue
from acceptance.hits import Hit
from store.hits import MAX_CAPTURE, MAX_CAPTURES, MAX_PER_TARGET
from store.sql import MAX_FACT, SqlState
from store.state import AlertChange, AlertRecord, Attempt, Delivery, DeliveryStatus, Message

T0 = 1_796_094_000.0
HOSTILE = "\ud800 \0 \x1b[31m'; DROP TABLE alerts; -- \N{SNOWMAN}"
STORED = HOSTILE.replace("\ud800", "\ufffd")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/state.db"


@pytest.fixture(params=["file", "memory"])
def state(request: pytest.FixtureRequest, url: str) -> Iterator[SqlState]:
    store = SqlState(url if request.param == "file" else "sqlite://")
    yield store
    store.close()


def fact(value: FactValue, name: str = "k", at: float = T0, target: str = "a") -> Fact:
    return Fact(target, name, value, "server_info", at)


def hit(at: float = T0, excerpt: str = "a line", **changes: Any) -> Hit:
    return replace(Hit("a", "1", "triton-fallback", at, excerpt=excerpt, captures={"kernel": "fa3"}), **changes)


def record(key: str = "dead/a", **changes: Any) -> AlertRecord:
    return replace(AlertRecord(key, "dead-drafter", "critical", "a", "firing", T0, T0 + 60, episode=1), **changes)


def message(name: str, **changes: Any) -> Message:
    return replace(Message(name, "pager", "dead/a", "firing", {"title": "dead"}, T0), **changes)


def commit(state: SqlState, *messages: Message) -> None:
    state.apply([AlertChange(record(each.alert_key), [each]) for each in messages])


def names(deliveries: list[Delivery]) -> list[str]:
    return [delivery.message.id for delivery in deliveries]


# Facts


@pytest.mark.parametrize("value", ["eagle3", "", "5", 5, 5.0, 5.5, True, False, None, -0.0, 2**70, 1e300, math.inf])
def test_a_fact_comes_back_as_it_was_told(state: SqlState, value: FactValue) -> None:
    state.record([fact(value)], [])
    told = state.facts()["a"]["k"]
    assert told == fact(value)
    assert type(told.value) is type(value)


def test_the_newest_fact_of_a_name_is_kept(state: SqlState) -> None:
    state.record([fact(1), fact(2, at=T0 + 1), fact("x", "version")], [])
    state.record([fact(3, at=T0 - 1), fact("y", "version", target="b")], [])
    assert state.facts() == {
        "a": {"k": fact(2, at=T0 + 1), "version": fact("x", "version")},
        "b": {"version": fact("y", "version", target="b")},
    }
    state.record([fact(4, at=T0 + 1)], [])
    assert state.facts()["a"]["k"].value == 4


def test_hostile_facts_are_kept_as_text(state: SqlState) -> None:
    state.record([Fact(HOSTILE, HOSTILE, HOSTILE, HOSTILE, T0), fact("x" * 10**6, "model")], [])
    told = state.facts()
    assert told[STORED][STORED] == Fact(STORED, STORED, HOSTILE, STORED, T0)
    assert told["a"]["model"].value == "x" * MAX_FACT


# Hits


def test_a_hit_is_counted_and_shows_its_newest_line(state: SqlState) -> None:
    state.record([], [hit(T0, "first"), hit(T0 + 2, "third"), hit(T0 + 1, "second")])
    state.record([], [hit(T0 + 1, "late"), hit(rank="0"), hit(signature="eager"), hit(incarnation="2")])
    told = {(each.incarnation, each.signature, each.rank): each for each in state.hits()}
    assert len(told) == 4
    assert told["1", "triton-fallback", None] == hit(T0 + 2, "third", count=4)
    assert told["1", "triton-fallback", "0"].count == 1


def test_recording_again_raises_no_count(state: SqlState) -> None:
    hits = [hit(T0 + second, f"line {number}") for second in range(100) for number in range(3)]
    state.record([], hits[:200])
    state.record([], hits)
    told = state.hits()
    assert [each.count for each in told] == [300]
    for since in (0, 150, 299):
        state.record([], hits[since:])
    assert state.hits() == told


def test_a_rank_that_is_not_told_is_none_of_the_ranks(state: SqlState) -> None:
    state.record([], [hit(rank=None), hit(rank=""), hit(rank="None")])
    assert {each.rank for each in state.hits()} == {None, "", "None"}


def test_hits_come_newest_first_and_by_target(state: SqlState) -> None:
    state.record([], [hit(T0 + at, signature=f"s{at}", target=target) for at in (2, 9, 4) for target in "ab"])
    assert [each.signature for each in state.hits("b")] == ["s9", "s4", "s2"]
    assert {each.target for each in state.hits("b")} == {"b"}
    assert len(state.hits()) == 6
    assert state.hits("nobody") == []


def test_hits_of_a_target_are_bounded(state: SqlState) -> None:
    many = MAX_PER_TARGET + 50
    state.record([], [hit(T0 + number, rank=str(number)) for number in range(many)])
    state.record([], [hit(target="b")])
    kept = state.hits("a")
    assert len(kept) == MAX_PER_TARGET
    assert {each.rank for each in kept} == {str(number) for number in range(50, many)}
    assert len(state.hits("b")) == 1


def test_hostile_hits_are_cut_to_size(state: SqlState) -> None:
    captures = {f"{number}{HOSTILE}" + "n" * 1000: "v" * 10**5 for number in range(100)}
    state.record([], [hit(T0, HOSTILE + "x" * 10**6, captures=captures, rank=HOSTILE, incarnation=HOSTILE)])
    [told] = state.hits()
    assert told.excerpt.startswith(STORED)
    assert len(told.excerpt) == 500
    assert (told.rank, told.incarnation) == (STORED, STORED)
    assert len(told.captures) == MAX_CAPTURES
    assert all(len(name) <= MAX_CAPTURE and len(value) <= MAX_CAPTURE for name, value in told.captures.items())


# Alerts


def test_an_alert_comes_back_as_it_was_applied(state: SqlState) -> None:
    whole = record(
        HOSTILE,
        true_seconds=12.5,
        fired_at=T0 + 30,
        clear_since=T0 + 40,
        detail={"why": HOSTILE, "value": 1.02, "lower": None, "series": {"target": "a"}, "big": "x" * 10**6},
    )
    state.apply([AlertChange(whole)])
    assert state.alerts() == [replace(whole, key=STORED)]
    changed = replace(whole, phase="pending", clear_since=None, detail={})
    state.apply([AlertChange(record("other")), AlertChange(record(HOSTILE)), AlertChange(changed)])
    assert {each.key: each for each in state.alerts()} == {
        STORED: replace(changed, key=STORED),
        "other": record("other"),
    }


def test_resolved_alerts_are_told_only_when_asked_for(state: SqlState) -> None:
    phases: list[tuple[str, Any, float | None]] = [
        ("p", "pending", None),
        ("f", "firing", None),
        ("r", "recovering", None),
        ("old", "resolved", T0),
        ("new", "resolved", T0 + 100),
    ]
    state.apply([AlertChange(record(key, phase=phase, resolved_at=at)) for key, phase, at in phases])
    assert {each.key for each in state.alerts()} == {"p", "f", "r"}
    assert {each.key for each in state.alerts(resolved_since=T0 + 100)} == {"p", "f", "r", "new"}
    assert {each.key for each in state.alerts(resolved_since=T0)} == {"p", "f", "r", "old", "new"}


def test_an_alert_that_never_fired_is_forgotten(state: SqlState) -> None:
    state.apply([AlertChange(record(key, phase="pending", episode=0)) for key in ("x", HOSTILE, "stays")])
    state.forget_alerts(["x", HOSTILE, "unknown"])
    state.forget_alerts([])
    assert [each.key for each in state.alerts()] == ["stays"]


def test_one_that_fired_before_keeps_its_episode(state: SqlState) -> None:
    """Its next messages bear the next episode's ids: had they the old ones, they would never be sent."""
    state.apply([AlertChange(record(phase="pending", episode=3))])
    state.forget_alerts(["dead/a"])
    assert state.alerts() == []
    [kept] = state.alerts(resolved_since=0)
    assert (kept.phase, kept.episode, kept.resolved_at) == ("resolved", 3, kept.evaluated_at)


# The outbox


def test_an_alert_and_its_messages_come_and_stay_together(state: SqlState) -> None:
    told = message("m1", body={"title": HOSTILE, "big": "x" * 10**6})
    state.apply([AlertChange(record(), [told, replace(told, channel="slack")])])
    assert state.due(T0, 10) == [
        Delivery(told, "waiting", (), T0),
        Delivery(replace(told, channel="slack"), "waiting", (), T0),
    ]
    assert len(state.alerts()) == 1


def test_a_message_id_that_exists_is_left_as_it_is(state: SqlState) -> None:
    commit(state, message("m1"))
    state.attempted("m1", "pager", Attempt(T0, "delivered", "", 0.1), "delivered", None)
    commit(state, message("m1", body={"title": "again"}, created_at=T0 + 5))
    [delivery] = state.deliveries(10)
    assert (delivery.message, delivery.status) == (message("m1"), "delivered")
    assert state.due(T0 + 99, 10) == []


def test_due_are_those_whose_time_has_come_longest_due_first(state: SqlState) -> None:
    commit(state, *(message(f"m{number}", alert_key=f"k{number}", created_at=T0 + number) for number in (3, 1, 2)))
    assert names(state.due(T0 + 2, 10)) == ["m1", "m2"]
    assert names(state.due(T0 + 9, 2)) == ["m1", "m2"]
    state.attempted("m1", "pager", Attempt(T0 + 9, "retry", "429", 0.1), "waiting", T0 + 60)
    assert names(state.due(T0 + 59, 10)) == ["m2", "m3"]
    assert names(state.due(T0 + 60, 10)) == ["m2", "m3", "m1"]
    assert state.due(T0, 10) == []


def test_a_message_never_overtakes_an_earlier_one_of_its_alert(state: SqlState) -> None:
    commit(state, message("fire"), message("resolve", kind="resolved"), message("other", alert_key="k"))
    commit(state, message("resolve", kind="resolved", channel="slack"))
    assert names(state.due(T0 + 1, 10)) == ["fire", "other", "resolve"]
    state.attempted("fire", "pager", Attempt(T0, "retry", "500", 0.1), "waiting", T0 + 60)
    assert [(each.message.id, each.message.channel) for each in state.due(T0 + 1, 10)] == [
        ("other", "pager"),
        ("resolve", "slack"),
    ]
    state.attempted("fire", "pager", Attempt(T0 + 61, "refused", "404", 0.1), "refused", None)
    assert names(state.due(T0 + 61, 10)) == ["resolve", "other", "resolve"]


def test_channels_may_be_left_out(state: SqlState) -> None:
    commit(state, *(message(f"m{number}", alert_key=f"k{number}") for number in range(5)))
    commit(state, message("m9", channel="slack", created_at=T0 + 1))
    assert names(state.due(T0 + 1, 2, {"pager"})) == ["m9"]
    assert state.due(T0 + 1, 2, {"pager", "slack"}) == []


@pytest.mark.parametrize("status", ["delivered", "refused", "expired"])
def test_a_final_message_is_not_due_and_keeps_its_attempts(state: SqlState, status: DeliveryStatus) -> None:
    commit(state, message("m1"), message("m2", alert_key="k"))
    tries = [Attempt(T0 + number, "retry", f"{number} {HOSTILE}", 0.25) for number in range(3)]
    for attempt in tries:
        state.attempted("m1", "pager", attempt, "waiting", attempt.at + 1)
    [delivery] = [each for each in state.due(T0 + 9, 10) if each.message.id == "m1"]
    assert delivery.attempts == tuple(
        Attempt(each.at, each.outcome, f"{n} {STORED}", 0.25) for n, each in enumerate(tries)
    )
    state.attempted("m1", "pager", Attempt(T0 + 9, "retry", "x" * 10**6, 0.1), status, T0 + 99)
    assert names(state.due(T0 + 999, 10)) == ["m2"]
    [final] = state.deliveries(10, "dead/a")
    assert (final.status, final.next_at, len(final.attempts)) == (status, None, 4)
    assert len(final.attempts[-1].detail) == 1000


def test_an_attempt_at_a_message_that_is_not_there_is_an_error(state: SqlState) -> None:
    commit(state, message("m1"))
    with pytest.raises(LookupError, match=r"m1.*slack"):
        state.attempted("m1", "slack", Attempt(T0, "delivered", "", 0.1), "delivered", None)


def test_deliveries_come_newest_first(state: SqlState) -> None:
    commit(state, *(message(f"m{number}", alert_key=f"k{number % 2}", created_at=T0 + number) for number in range(6)))
    commit(state, message("same second", created_at=T0 + 5))
    assert names(state.deliveries(3)) == ["same second", "m5", "m4"]
    assert names(state.deliveries(9, "k1")) == ["m5", "m3", "m1"]
    assert state.deliveries(9, "nobody") == []


def test_what_is_over_and_old_is_forgotten(state: SqlState) -> None:
    over = {"phase": "resolved", "resolved_at": T0 + 10}
    state.apply(
        [
            AlertChange(record("over", **over), [message("of over", alert_key="over")]),
            AlertChange(record("unsent", **over), [message("waiting", alert_key="unsent")]),
            AlertChange(record("lately", **(over | {"resolved_at": T0 + 100})), [message("old", alert_key="lately")]),
            AlertChange(record("open"), [message("of open", alert_key="open")]),
            AlertChange(record("open"), [message("of an earlier episode", alert_key="open", created_at=T0 - 50)]),
            AlertChange(record("young", **over), [message("young", alert_key="young", created_at=T0 + 100)]),
        ]
    )
    for delivery in state.deliveries(10):
        if delivery.message.id != "waiting":
            state.attempted(delivery.message.id, "pager", Attempt(T0, "delivered", "", 0.1), "delivered", None)
    state.forget_before(T0 + 50)
    assert set(names(state.deliveries(10))) == {"waiting", "of open", "young"}
    assert {each.key for each in state.alerts(resolved_since=0)} == {"unsent", "lately", "open", "young"}
    state.attempted("waiting", "pager", Attempt(T0, "refused", "", 0.1), "refused", None)
    state.forget_before(T0 + 1000)
    assert names(state.deliveries(10)) == ["of open"]
    assert [each.key for each in state.alerts(resolved_since=0)] == ["open"]


# Threads, restarts, kills


def test_threads_write_and_read_at_once(state: SqlState) -> None:
    rounds = 25
    done = threading.Event()

    def record_hits(thread: int) -> None:
        for number in range(rounds):
            state.record([fact(number, f"name {thread}", T0 + number)], [hit(T0 + number, f"{thread} {number}")])

    def fire(thread: int) -> None:
        for number in range(rounds):
            key = f"{thread}/{number}"
            state.apply(
                [AlertChange(record(key), [message(key, alert_key=key), message(key, alert_key=key, channel="s")])]
            )
            state.attempted(key, "s", Attempt(T0, "delivered", "", 0.1), "delivered", None)

    def read() -> int:
        reads = 0
        while not done.is_set():
            alerts = {each.key for each in state.alerts()}
            deliveries = state.deliveries(1000)
            assert alerts <= {each.message.alert_key for each in deliveries}
            assert len(deliveries) % 2 == 0
            state.due(T0, 10)
            state.hits()
            reads += 1
        return reads

    with ThreadPoolExecutor(5) as threads:
        reader = threads.submit(read)
        writers = [threads.submit(work, thread) for work in (record_hits, fire) for thread in (0, 1)]
        try:
            for writer in writers:
                writer.result(60)
        finally:
            done.set()
        assert reader.result(60) > 0
    assert [each.count for each in state.hits()] == [2 * rounds]
    assert len(state.due(T0, 1000)) == 2 * rounds
    assert {each.value for each in state.facts()["a"].values()} == {rounds - 1}


def test_everything_is_there_after_a_restart(url: str) -> None:
    def told(state: SqlState) -> list[Any]:
        return [state.facts(), state.hits(), state.alerts(resolved_since=0), state.deliveries(9), state.due(T0 + 9, 9)]

    first = SqlState(url)
    first.record([fact(5)], [hit()])
    commit(first, message("m1"), message("m2", alert_key="k"))
    first.attempted("m1", "pager", Attempt(T0, "retry", "500", 0.1), "waiting", T0 + 5)
    before = told(first)
    first.close()
    second = SqlState(url)
    assert told(second) == before
    second.record([], [hit()])
    assert told(second) == before
    second.close()


def test_commits_are_on_disk_before_they_return(url: str) -> None:
    state = SqlState(url)
    with state._engine.connect() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("synchronous", "journal_mode")
        }
        enforced = connection.exec_driver_sql("PRAGMA foreign_keys").scalar()
    state.close()
    assert pragmas == {"synchronous": 2, "journal_mode": "wal"}
    assert enforced == 1


KILLED = """
import sys
from acceptance.facts import Fact
from acceptance.hits import Hit
from store.sql import SqlState
from store.state import AlertChange, AlertRecord, Message

state = SqlState(sys.argv[1])
for number in (1, 2):
    state.record([Fact("a", "k", number, "log", float(number))], [Hit("a", "1", "s", float(number), excerpt="x")])
    alert = AlertRecord(f"k{number}", "dead-drafter", "critical", "a", "firing", 0.0, 0.0)
    told = [Message(f"m{number}", channel, f"k{number}", "firing", {}, 0.0) for channel in ("pager", "slack")]
    state.apply([AlertChange(alert, told)])
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("failpoint", "recorded", "applied"),
    [
        ("facts.before_commit:1", 0, 0),
        ("facts.after_commit:1", 1, 0),
        ("alerts.before_commit:1", 1, 0),
        ("alerts.after_commit:1", 1, 1),
        ("alerts.before_commit:2", 2, 1),
    ],
)
def test_a_kill_leaves_all_of_a_transaction_or_nothing(
    url: str, run_python: Callable[..., int], failpoint: str, recorded: int, applied: int
) -> None:
    assert run_python(KILLED, url, failpoint=failpoint) == -9
    state = SqlState(url)
    assert [each.value for facts in state.facts().values() for each in facts.values()] == (
        [recorded] if recorded else []
    )
    assert sum(each.count for each in state.hits()) == recorded
    assert len(state.alerts()) == applied
    assert len(state.deliveries(10)) == 2 * applied
    assert run_python(KILLED, url) == 0
    assert [each.count for each in state.hits()] == [2]
    assert (len(state.alerts()), len(state.deliveries(10))) == (2, 4)
    state.close()


def test_another_process_that_writes_is_waited_for(url: str, tmp_path: Path) -> None:
    state = SqlState(url)
    other = sqlite3.connect(tmp_path / "state.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as threads:
        write = threads.submit(state.record, [fact(1)], [])
        assert state.facts() == {}
        with pytest.raises(TimeoutError):
            write.result(0.3)
        other.execute("COMMIT")
        write.result(30)
    assert state.facts()["a"]["k"].value == 1
    other.close()
    state.close()
