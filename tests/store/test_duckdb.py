"""What a history in a file does beyond the contract: it outlives its process, and says why it cannot be opened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from acceptance.counts import Counts, Spread
from acceptance.health import Health
from acceptance.query import AcceptanceQuery
from acceptance.series import Series
from acceptance.window import Window
from store.duckdb import DuckHistory
from store.errors import StoreUnusable
from store.history import Batch, Cursor

T0 = 1_796_094_000.0
HOUR = 3600
EVER = AcceptanceQuery(T0 - 1e6, T0 + 1e6, by=("target", "category"))


def window(number: int, end: float, target: str = "a", category: str | None = "code") -> Window:
    counts = Counts(steps=10.0, emitted=30.0, by_position=(12.0, 8.0), spread=Spread.of(30.0, 10.0))
    return Window(number, Series(target, category=category), end - 15, end, "counter", True, counts)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.duckdb"


@contextmanager
def opened(path: Path, **options: Any) -> Iterator[DuckHistory]:
    history = DuckHistory(path, **options)
    try:
        yield history
    finally:
        history.close()


def test_everything_is_there_after_a_restart(path: Path) -> None:
    windows = [window(1, T0), window(2, T0 + HOUR, category=None), window(3, T0 + 1, "b")]
    looks, cursors = [Health("a", "metrics", T0, True)], [Cursor("a", "metrics", {"offset": 7}, T0)]
    with opened(path, period_seconds=HOUR) as history:
        history.append(Batch(windows, looks, cursors))
        before = sorted(history.query(EVER), key=repr)
    with opened(path) as history:
        assert sorted(history.query(EVER), key=repr) == before
        assert history.health(T0 - 1, T0) == looks
        assert history.cursors() == cursors
        assert history.append(Batch(windows, looks, cursors)) == 0
        assert history.append(Batch([window(4, T0 + 2, "c"), window(5, T0 + 3)])) == 2
        assert sum(item.windows for item in history.query(EVER)) == 5
        assert {item.target: item.windows for item in history.query(AcceptanceQuery(T0, T0 + 9))} == {
            "a": 1,
            "b": 1,
            "c": 1,
        }


def test_a_file_keeps_the_periods_it_began_with(path: Path) -> None:
    with opened(path, period_seconds=HOUR) as history:
        history.append(Batch([window(1, T0)]))
    with opened(path, period_seconds=10 * HOUR) as history:
        history.append(Batch([window(2, T0 + HOUR)]))
        history.drop_before(T0 + HOUR)
        [left] = history.query(EVER)
        assert left.first == T0 + HOUR - 15


KILLED = """
import sys
from acceptance.health import Health
from acceptance.series import Series
from acceptance.window import Window
from acceptance.counts import Counts
from store.duckdb import DuckHistory
from store.history import Batch, Cursor

history = DuckHistory(sys.argv[1], period_seconds=3600)
for batch in range(1, 4):
    windows = [
        Window(100 * batch + number, Series(f"t{number % 7}"), 0.0, 1800.0 * batch, "log", True, Counts(steps=1.0))
        for number in range(50)
    ]
    looks = [Health("t0", "metrics", 1800.0 * batch, True)]
    history.append(Batch(windows, looks, [Cursor("t0", "metrics", {"batch": batch}, 1800.0 * batch)]))
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("failpoint", "committed"),
    [
        ("history.before_commit:1", 0),
        ("history.after_commit:1", 1),
        ("history.before_commit:3", 2),
        ("history.after_commit:3", 3),
    ],
)
def test_a_kill_leaves_all_of_a_batch_or_nothing(
    path: Path, run_python: Callable[..., int], failpoint: str, committed: int
) -> None:
    assert run_python(KILLED, str(path), failpoint=failpoint) == -signal.SIGKILL
    with opened(path) as history:
        sums = history.query(AcceptanceQuery(0, 1e6, by=()))
        assert sum(item.counts.steps or 0 for item in sums) == 50 * committed
        assert len(history.health(0, 1e6)) == committed
        assert [cursor.state for cursor in history.cursors()] == ([{"batch": committed}] if committed else [])
    assert run_python(KILLED, str(path)) == 0
    with opened(path) as history:
        assert sum(item.windows for item in history.query(AcceptanceQuery(0, 1e6, by=()))) == 150
        assert len(history.health(0, 1e6)) == 3


def test_readers_see_whole_batches_while_periods_come_and_go(path: Path) -> None:
    """Every batch adds one window to each of two targets: who sees them differ saw half of one."""
    batches, periods = 60, 6
    done = threading.Event()

    def read(history: DuckHistory) -> set[float]:
        seen: set[float] = set()
        while not done.is_set():
            told = {item.target: item.counts.steps or 0.0 for item in history.query(EVER)}
            assert told.get("a", 0.0) == told.get("b", 0.0)
            newest = {item.target: item.bucket for item in history.latest({}, T0 + 1e6, 1e6)}
            assert newest.get("a") == newest.get("b")
            assert len(history.cursors()) <= 1
            history.health(T0 - 1, T0 + 1e6)
            seen.add(told.get("a", 0.0))
        return seen

    with opened(path, period_seconds=HOUR) as history, ThreadPoolExecutor(3) as threads:
        readers = [threads.submit(read, history) for _ in range(3)]
        try:
            for batch in range(batches):
                end = T0 + HOUR * periods * batch / batches
                windows = [window(2 * batch + number, end, target) for number, target in enumerate("ab")]
                looks, cursors = [Health("a", "metrics", end, True)], [Cursor("a", "m", {"n": batch}, end)]
                history.append(Batch(windows, looks, cursors))
            for period in range(1, periods):
                history.drop_before(T0 + period * HOUR)
        finally:
            done.set()
        assert len(set().union(*(reader.result(30) for reader in readers))) > 3
        assert {item.counts.steps for item in history.query(EVER)} == {10.0 * batches / periods}


def test_two_threads_may_write(path: Path) -> None:
    with opened(path, period_seconds=HOUR) as history:

        def write(first: int) -> None:
            for number in range(first, first + 30):
                history.append(Batch([window(number, T0 + number * 600, f"t{number % 5}")]))

        with ThreadPoolExecutor(2) as threads:
            list(threads.map(write, (0, 20)))
        told = {item.key[0]: item.windows for item in history.query(EVER)}
        assert told == {f"t{number}": 10 for number in range(5)}


def test_a_batch_that_cannot_be_stored_changes_nothing(path: Path) -> None:
    with opened(path) as history:
        history.append(Batch([window(1, T0)]))
        broken: Any = "many"
        bad = Window(2, Series("new"), T0, T0 + 15, "log", True, Counts(steps=broken))
        with pytest.raises(ValueError, match="many"):
            history.append(Batch([window(3, T0 + 90_000), bad], [Health("a", "m", T0, True)]))
        assert history.health(T0 - 1, T0 + 1) == []
        assert history.append(Batch([window(3, T0 + 90_000, "new")])) == 1
        assert {item.target for item in history.query(EVER)} == {"a", "new"}


def test_text_that_is_no_text_is_stored_as_far_as_it_can_be(path: Path) -> None:
    hostile = "co\ud800de\0'; DROP TABLE series; --" + "x" * 100_000
    with opened(path) as history:
        history.append(
            Batch(
                [window(1, T0, "\udcff", hostile)],
                [Health("\udcff", "m", T0, False, error=hostile)],
                [Cursor("\udcff", "m", {hostile: hostile}, T0)],
            )
        )
        shown = hostile.replace("\ud800", "\ufffd")
        [told] = history.query(AcceptanceQuery(T0 - 1, T0, by=("category",), where={"category": (hostile,)}))
        assert told.key == (shown,)
        assert [look.error for look in history.health(T0 - 1, T0, "\udcff")] == [shown]
        assert [cursor.state for cursor in history.cursors()] == [{hostile: hostile}]


def test_what_the_engine_reported_is_kept_beside_the_counts(path: Path) -> None:
    with opened(path) as history:
        told = Window(1, Series("a"), T0 - 10, T0, "log", True, Counts(), True, 2.75, 0.44)
        history.append(Batch([told]))
    with duckdb.connect(str(path), read_only=True) as connection:
        rows = connection.execute("SELECT reported_length, reported_rate FROM windows").fetchall()
    assert rows == [(2.75, 0.44)]


def test_series_are_forgotten_with_their_last_period(path: Path) -> None:
    with opened(path, period_seconds=HOUR) as history:
        pods = [window(number, T0 + number, f"pod-{number}") for number in range(100)]
        history.append(Batch([*pods, window(100, T0, "stays"), window(101, T0 + HOUR, "stays")]))
        history.drop_before(T0 + HOUR)
        history.append(Batch([window(102, T0 + HOUR + 1, "pod-7"), window(103, T0 + HOUR + 1, "stays")]))
        assert {item.target: item.windows for item in history.query(EVER)} == {"stays": 2, "pod-7": 1}
    with duckdb.connect(str(path), read_only=True) as connection:
        assert connection.execute("SELECT target FROM series ORDER BY target").fetchall() == [("pod-7",), ("stays",)]


def test_cursors_written_over_and_over_do_not_grow_the_file(path: Path) -> None:
    def write(history: DuckHistory, first: int, ticks: int) -> None:
        for tick in range(first, first + ticks):
            state = {"values": [tick * 1.5] * 50}
            history.append(Batch(cursors=[Cursor(f"t{number}", "metrics", state, T0) for number in range(300)]))

    def size_closed() -> int:
        return path.stat().st_size

    with opened(path) as history:
        write(history, 0, 10)
    before = size_closed()
    with opened(path) as history:
        write(history, 10, 60)
        assert len(history.cursors()) == 300
    assert size_closed() < 3 * before + 2_000_000


def test_what_is_dropped_is_used_again(path: Path) -> None:
    def fill(hour: int) -> None:
        windows = [window(hour * 100_000 + number, T0 + hour * HOUR + number / 10) for number in range(20_000)]
        with opened(path, period_seconds=HOUR) as history:
            history.append(Batch(windows))
            history.drop_before(T0 + hour * HOUR)

    fill(0)
    fill(1)
    two_hours = path.stat().st_size
    for hour in range(2, 6):
        fill(hour)
    assert path.stat().st_size < 2 * two_hours


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(StoreUnusable) as refused:
        DuckHistory(path, **options)
    assert refused.value.where == str(path)
    assert str(refused.value) == f"{path}: {refused.value.reason}"
    return refused.value.reason


@pytest.mark.parametrize("content", [b"", b"DUCK", b"\x00" * 20_000, b"SQLite format 3\x00" * 300])
def test_a_file_that_is_none_of_ours_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert "not a valid DuckDB database file" in refusal(path)
    assert path.read_bytes() == content


def test_a_damaged_file_is_refused(path: Path) -> None:
    with opened(path) as history:
        history.append(Batch([window(number, T0 + number) for number in range(1000)]))
    whole = bytearray(path.read_bytes())
    whole[4096:8192] = b"\xff" * 4096
    whole[8192:12288] = b"\xff" * 4096
    path.write_bytes(whole)
    assert "orrupt" in refusal(path)


def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    assert "No such file or directory" in refusal(tmp_path / "nowhere" / "history.duckdb")
    assert "directory" in refusal(tmp_path)


def test_a_bad_memory_limit_is_refused(path: Path) -> None:
    assert "Memory" in refusal(path, memory_limit="lots")


def test_another_kind_of_duckdb_file_is_refused_and_left_alone(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE sales (amount INTEGER)")
    assert "not one of Draftgauge's" in refusal(path)
    with duckdb.connect(str(path)) as connection:
        assert connection.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("sales",)]


def test_a_file_of_a_newer_version_is_refused(path: Path) -> None:
    with opened(path):
        pass
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE about SET version = 99")
    assert "newer Draftgauge" in refusal(path)
    assert "99" in refusal(path)


@pytest.mark.process
def test_a_file_that_another_process_has_open_is_refused(path: Path) -> None:
    program = (
        "import sys; from store.duckdb import DuckHistory; h = DuckHistory(sys.argv[1]); print(1, flush=True); input()"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"1\n"
        reason = refusal(path)
        other.communicate(b"\n", timeout=30)
    assert "lock" in reason
    assert str(other.pid) in reason
    with opened(path) as history:
        assert history.cursors() == []


def test_a_second_instance_in_the_same_process_is_refused(path: Path) -> None:
    with opened(path):
        assert "existing connections" in refusal(path)
    with opened(path) as history:
        assert history.cursors() == []
