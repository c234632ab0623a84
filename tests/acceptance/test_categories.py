"""Categories: the first rule that matches, the own word of a request before all, nothing guessed from the untold."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acceptance.categories import Categories, Request, Rule, Span
from acceptance.contexts import CONTEXTS, context_of

RUNS = int(os.environ.get("DRAFTGAUGE_TEST_RUNS", "50"))


@pytest.mark.parametrize(
    ("rule", "matches", "does_not"),
    [
        ({"headers": {"x-task": ("code*", "chat")}}, {"headers": {"x-task": "coder"}}, {"headers": {"x-task": "Code"}}),
        ({"headers": {"x-a": ("1",), "x-b": ("2",)}}, {"headers": {"x-a": "1", "x-b": "2"}}, {"headers": {"x-a": "1"}}),
        ({"model": ("kimi-*", "glm-?")}, {"model": "glm-5"}, {"model": "glm-50"}),
        ({"api_key": ("team-a",)}, {"api_key": "team-a"}, {"api_key": "team-ab"}),
        ({"lora": ("*",)}, {"lora": "sql"}, {"model": "sql"}),
        ({"route": ("/v1/chat/*",)}, {"route": "/v1/chat/completions"}, {"route": "/v1/completions"}),
        ({"structured": True}, {"structured": True}, {"structured": False}),
        ({"structured": False}, {"structured": False}, {}),
        ({"tools": True}, {"tools": True}, {}),
        ({"temperature": Span(below=0.3)}, {"temperature": 0.0}, {"temperature": 0.3}),
        ({"temperature": Span(0.3, 0.7)}, {"temperature": 0.3}, {"temperature": 0.7}),
        ({"prompt_tokens": Span(32_768)}, {"prompt_tokens": 32_768}, {"prompt_tokens": 32_767}),
        ({"prompt": r"(?i)\bselect\b"}, {"prompt": "please SELECT *"}, {"prompt": "selected"}),
        ({"prompt": "^a$"}, {"prompt": "a"}, {}),
        ({"model": ("m",), "tools": True}, {"model": "m", "tools": True}, {"model": "m", "tools": False}),
        ({}, {}, None),
    ],
)
def test_a_rule_holds_where_everything_in_it_does(
    rule: dict[str, Any], matches: dict[str, Any], does_not: dict[str, Any] | None
) -> None:
    categories = Categories([Rule("mine", **rule)])
    assert categories.of(Request(**matches)) == "mine"
    if does_not is not None:
        assert categories.of(Request(**does_not)) == "other"


def test_what_a_request_says_of_itself_comes_first() -> None:
    categories = Categories([Rule("tools", tools=True)])
    assert categories.of(Request(category="chat", tools=True)) == "chat"
    assert categories.of(Request(category="", tools=True)) == "tools"
    assert categories.of(Request(category="")) == "other"


@pytest.mark.parametrize("said", [None, "", "chat"])
def test_without_rules_nothing_is_added_to_what_a_request_says(said: str | None) -> None:
    assert Categories().of(Request(category=said, tools=True)) == said


RULES = st.builds(
    Rule,
    name=st.sampled_from("abcdef"),
    model=st.sampled_from([(), ("m1",), ("m*",), ("m1", "m2")]),
    tools=st.sampled_from([None, True, False]),
    temperature=st.sampled_from([None, Span(below=0.5), Span(at_least=0.5), Span()]),
    prompt=st.sampled_from([None, "x", "^y"]),
)
REQUESTS = st.builds(
    Request,
    model=st.sampled_from([None, "m1", "m2", "n"]),
    tools=st.sampled_from([None, True, False]),
    temperature=st.sampled_from([None, 0.0, 0.5, 1.0]),
    prompt=st.sampled_from([None, "", "x", "y", "zy"]),
)


@settings(max_examples=RUNS)
@given(st.lists(RULES, min_size=1, max_size=6), REQUESTS)
def test_the_first_rule_that_matches_names_it_and_always_the_same(rules: list[Rule], request: Request) -> None:
    told = Categories(rules).of(request)
    alone = [name for rule in rules if (name := Categories([rule]).of(request)) != "other"]
    assert told == (alone[0] if alone else "other")
    assert Categories(list(rules)).of(request) == told
    # A rule behind one that matched is never asked.
    assert not alone or Categories([*rules, Rule("last")]).of(request) == told


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(a", r"is not a pattern of RE2: missing \)"),
        ("(?=a)", "invalid perl operator"),
        (r"(a)\1", "invalid escape"),
        ("((a{100}){100}){10}", "is not a pattern of RE2"),
        ("a" * 1001, "longer than 1000"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_refused_with_the_reason(pattern: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Categories([Rule("a", prompt=pattern)])


def test_a_hostile_prompt_takes_no_longer_than_it_is_long() -> None:
    categories = Categories([Rule("a", prompt=r"(a+)+$")])
    began = time.process_time()
    assert categories.of(Request(prompt="a" * 100_000 + "b")) == "other"
    assert time.process_time() - began < 1.0


def test_a_prompt_is_not_shown() -> None:
    assert "secret" not in repr(Request(prompt="secret"))


def test_the_buckets_of_context() -> None:
    expected = {0: "<8k", 8191: "<8k", 8192: "8-32k", 32_767: "8-32k", 32_768: "32-128k", 131_071: "32-128k"}
    assert {tokens: context_of(tokens) for tokens in expected} == expected
    assert context_of(131_072) == context_of(10**9) == CONTEXTS[-1] == ">128k"
