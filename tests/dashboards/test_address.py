from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptance.series import DIMENSIONS
from dashboards.address import DEFAULTS, MOST_CHARACTERS, REFRESH_SECONDS, THEMES, Address

words = st.text(min_size=1, max_size=20)
addresses = st.builds(
    Address,
    start=st.sampled_from(["now-4h", "now-30d", "2026-12-01T10:00:00Z", "1796120000"]),
    end=st.sampled_from(["now", "now-5m", "1796123600"]),
    by=st.sampled_from(DIMENSIONS),
    where=st.dictionaries(st.sampled_from(DIMENSIONS), st.lists(words, min_size=1, max_size=3).map(tuple)),
    sort=st.sampled_from(["", "model", "-c0"]),
    refresh=st.sampled_from(REFRESH_SECONDS),
    theme=st.sampled_from(THEMES),
    opened=st.none() | words,
    states=st.lists(words, max_size=3).map(tuple),
    find=st.text(max_size=20),
)


@given(addresses)
def test_what_an_address_says_is_understood_again(address: Address) -> None:
    assert Address.parse(address.search()) == address


def test_what_is_as_it_would_be_anyway_is_left_out() -> None:
    assert Address().search() == ""
    assert Address.parse("") == Address.parse(None) == Address()
    assert Address.parse("?" + "&".join(f"{name}={value}" for name, value in DEFAULTS.items())) == Address()


@given(st.text(max_size=200))
def test_no_query_string_is_refused(text: str) -> None:
    address = Address.parse(f"?{text}")
    assert address.span_seconds(1.8e9) > 0


@pytest.mark.parametrize(
    ("search", "wrong"),
    [
        ("?from=yesterday", "start"),
        ("?to=%3Cscript%3E", "end"),
        ("?by=colour", "by"),
        ("?refresh=1s", "refresh"),
        ("?theme=pink", "theme"),
        ("?colour=red", "where"),
    ],
)
def test_what_cannot_be_understood_is_as_if_it_were_not_there(search: str, wrong: str) -> None:
    assert getattr(Address.parse(search), wrong) == getattr(Address(), wrong)


def test_what_is_looked_for_is_cut_to_a_length() -> None:
    assert len(Address.parse(f"?find={'x' * 5000}").find) == MOST_CHARACTERS


def test_a_filter_is_added_and_taken_away_again() -> None:
    one = Address().with_filter("target", "a")
    both = one.with_filter("target", "b")
    assert both.where == {"target": ("a", "b")}
    assert both.with_filter("target", "a").where == {"target": ("b",)}
    assert both.with_filter("target", "a").with_filter("target", "b") == Address()


def test_an_impossible_range_is_the_usual_one() -> None:
    assert Address(start="now-1h", end="now-2h").span_seconds(1.8e9) == 4 * 3600
    assert Address(start="now-1d").span_seconds(1.8e9 + 0.123) == 86400
