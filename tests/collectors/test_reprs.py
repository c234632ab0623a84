"""Python reprs are read field by field, and nothing in them is evaluated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.reprs import read_fields


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("path='m', tp_size=8, x=None, y=True, z=1.5)", {"path": "m", "tp_size": 8, "x": None, "y": True, "z": 1.5}),
        ("'a': 'x, y', 'b': \"it's\", 'c': 3}", {"a": "x, y", "b": "it's", "c": 3}),
        ("'a': [1, {'b': 2}], 'c': (3, 4)}", {"a": "[1, {'b': 2}]", "c": "(3, 4)"}),
        ("'a': {'b': {'c': 1}}, 'd': 2}", {"a": {"b": {"c": 1}}, "d": 2}),
        ("mode=<CompilationMode.NONE: 0>, dtype=torch.bfloat16, f=Config(a=1, b=2))",
         {"mode": "<CompilationMode.NONE: 0>", "dtype": "torch.bfloat16", "f": "Config(a=1, b=2)"}),
        ("a='it\\'s', b='tp_size=9')", {"a": "it's", "b": "tp_size=9"}),
        ("a=1, b='cut off here", {"a": 1}),
        ("a=1, b=2", {"a": 1}),  # whether b ends there cannot be told
        ("a=1, ...)", {"a": 1}),
        ("a=__import__('os').system('true'))", {"a": "__import__('os').system('true')"}),
        ("n=" + "9" * 400 + ")", {"n": "9" * 400}),
    ],
)  # fmt: skip
def test_fields(text: str, fields: dict[str, object]) -> None:
    assert read_fields(text) == fields


WORDS = st.text(st.characters(codec="ascii", categories=("L", "N", "P", "Zs"), exclude_characters="\\"), max_size=12)
SCALARS = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | WORDS
NAMES = st.from_regex(r"[a-z_]{1,9}", fullmatch=True)
DICTS = st.dictionaries(NAMES, SCALARS | st.dictionaries(NAMES, SCALARS, max_size=3), min_size=1, max_size=6)


@given(DICTS)
def test_what_python_prints_is_read_back(value: dict[str, object]) -> None:
    assert read_fields(repr(value)[1:]) == value
    call = ", ".join(f"{name}={item!r}" for name, item in value.items())
    assert read_fields(f"{call})") == value


@given(st.text(alphabet="ab'\"\\{}[]()=:, 1", max_size=200))
def test_no_text_makes_it_fail(text: str) -> None:
    read_fields(text)
