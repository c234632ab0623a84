"""One source answers for a target in a bucket: the best that carries what was asked for."""

from __future__ import annotations

from collections import defaultdict
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from acceptance.counts import Counts, total
from acceptance.query import AcceptanceQuery, Sum
from acceptance.series import Dimension
from acceptance.sources import choose
from acceptance.window import SOURCES, Source

BY_CATEGORY = AcceptanceQuery(0, 600, 60, by=("category",))


def told(
    source: Source, *key: str | None, steps: float = 100.0, target: str = "a", bucket: float = 0.0, exact: bool = True
) -> Sum:
    counts = Counts(steps=steps, emitted=3 * steps)
    return Sum(target, source, bucket, key, counts, windows=1, exact=exact, first=bucket, last=bucket + 15)


def answering(*sums: Sum, by: tuple[Dimension, ...] = ("category",)) -> list[tuple[Source, ...]]:
    return [answer.sources for answer in choose(sums, AcceptanceQuery(0, 600, 60, by=by))]


def test_the_better_source_answers_alone() -> None:
    answers = choose([told("log", "code", steps=40), told("counter", "code", steps=100)], BY_CATEGORY)
    assert [(answer.sources, answer.counts.steps, answer.note) for answer in answers] == [(("counter",), 100, None)]


def test_a_source_that_carries_what_is_asked_goes_before_a_better_one_that_does_not() -> None:
    assert answering(told("counter", None), told("request", "code"), told("request", "chat")) == [("request",)] * 2


def test_where_none_carries_all_the_one_that_carries_most_answers() -> None:
    sums = [told("counter", None, None), told("log", None, "0"), told("request", None, None)]
    assert answering(*sums, by=("category", "rank")) == [("log",)]


def test_unlabelled_is_a_label() -> None:
    assert answering(told("counter", None), told("request", "")) == [("request",)]


def test_a_source_without_steps_gives_way_and_says_so() -> None:
    sums = [
        told("counter", "code", bucket=0),
        told("log", None, bucket=0),
        told("log", None, bucket=60),
        told("gauge", None, bucket=60),
    ]
    answers = choose(sums, BY_CATEGORY)
    assert {(answer.bucket, answer.sources, answer.key) for answer in answers} == {
        (0, ("counter",), ("code",)),
        (60, ("log",), (None,)),
    }
    assert {answer.bucket: answer.note for answer in answers} == {0: None, 60: "counters did not move in this bucket"}


def test_idle_counters_leave_the_bucket_to_whoever_saw_steps() -> None:
    assert answering(told("counter", "code", steps=0), told("log", None)) == [("log",)]


def test_a_source_that_was_asked_for_is_no_lesser_one() -> None:
    query = AcceptanceQuery(0, 600, 60, by=("category",), source="log")
    sums = [told("counter", "code", bucket=0), told("log", None, bucket=60)]
    assert [answer.note for answer in choose(sums, query)] == [None, None]


def test_targets_choose_for_themselves_and_are_added_up() -> None:
    sums = [
        told("counter", "code", target="a"),
        told("log", "code", target="a"),
        told("request", "code", target="b", exact=False),
    ]
    [answer] = choose(sums, BY_CATEGORY)
    assert (answer.sources, answer.counts.steps, answer.windows) == (("counter", "request"), 200, 2)
    assert not answer.exact


def test_answers_come_in_the_order_of_key_and_bucket_with_unknown_before_unlabelled() -> None:
    keys: list[str | None] = ["code", "", None]
    sums = [told("counter", key, target=f"of {key}", bucket=bucket) for bucket in (60.0, 0.0) for key in keys]
    order = [(answer.key[0], answer.bucket) for answer in choose(sums, BY_CATEGORY)]
    assert order == [(key, bucket) for key in (None, "", "code") for bucket in (0.0, 60.0)]


KEYS = st.tuples(st.none() | st.sampled_from(["", "code"]), st.none() | st.sampled_from(["0", "1"]))


@st.composite
def many_sums(draw: st.DrawFn) -> list[Sum]:
    places = st.tuples(st.sampled_from(SOURCES), st.sampled_from("ab"), st.sampled_from([0.0, 60.0]), KEYS)
    return [
        told(source, *key, steps=float(draw(st.integers(0, 50))), target=target, bucket=bucket)
        for source, target, bucket, key in draw(st.lists(places, unique=True, max_size=24))
    ]


@given(many_sums())
def test_every_answer_is_what_one_source_of_each_target_told(sums: list[Sum]) -> None:
    by_place: dict[tuple[str, float], dict[Source, list[Sum]]] = defaultdict(lambda: defaultdict(list))
    for item in sums:
        by_place[item.target, item.bucket][item.source].append(item)
    expected: dict[tuple[tuple[str | None, ...], float], list[Sum]] = defaultdict(list)
    for (_, bucket), sources in by_place.items():
        ranked = sorted(
            sources,
            key=lambda source: (
                all(not item.counts.steps for item in sources[source]),
                max(item.key.count(None) for item in sources[source]),
                SOURCES.index(source),
            ),
        )
        for item in sources[ranked[0]]:
            expected[item.key, bucket].append(item)
    answers = choose(sums, AcceptanceQuery(0, 120, 60, by=("category", "rank")))
    assert {(answer.key, answer.bucket): (answer.counts, answer.windows) for answer in answers} == {
        place: (total(item.counts for item in items), len(items)) for place, items in expected.items()
    }
    assert len(answers) == len(expected)


@given(many_sums(), st.randoms())
def test_the_order_of_the_sums_does_not_matter(sums: list[Sum], random: Random) -> None:
    query = AcceptanceQuery(0, 120, 60, by=("category", "rank"))
    shuffled = list(sums)
    random.shuffle(shuffled)
    assert choose(shuffled, query) == choose(sums, query)
