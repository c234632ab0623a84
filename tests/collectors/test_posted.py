"""Posted records: counts from the engines' own shapes, identity from target and id, prompts nowhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptance.categories import Categories, Request, Rule
from acceptance.facts import Subject
from acceptance.window import Window
from collectors.posted import MOST_RECORDS, Posted, Refusal, Surroundings, TooMany, Unreadable, read_posted
from collectors.records import Contradiction
from collectors.requested import request_of

NOW = 1_800_000_000.0
Read = Callable[[str], bytes]


def subject(target: str) -> Subject:
    if target == "nobody":
        raise Contradiction("no target is called 'nobody'")
    return Subject(target, "g")


def read(body: bytes | list[dict[str, Any]], *rules: Rule, at: float = NOW) -> list[Posted | Refusal]:
    raw = body if isinstance(body, bytes) else b"\n".join(json.dumps(record).encode() for record in body)
    categories = Categories(rules)
    around = Surroundings(subject, lambda _, request: categories.of(request), prompts=True)
    return list(read_posted(raw, around, at))


def only(told: list[Posted | Refusal]) -> Window:
    (posted,) = told
    assert isinstance(posted, Posted), posted
    (window,) = posted.windows
    return window


def vllm(**more: Any) -> dict[str, Any]:
    spec = {"num_spec_steps": 10, "num_accepted_draft_tokens": 30, "num_draft_tokens": 70}
    return {"id": "r1", "target": "t", "metrics": {"speculative_decoding": spec}, **more}


def sglang(**more: Any) -> dict[str, Any]:
    return {"target": "t", "meta_info": {"id": "r1", "spec_verify_ct": 10, "spec_num_correct_drafts": 30}, **more}


@pytest.mark.parametrize(
    ("name", "engine", "steps", "accepted", "context"),
    [
        ("vllm/response_per_request_v0.33.0.json", "vllm", 88, 180, None),
        ("sglang/chat_completion_sglext_v0.5.23.json", "sglang", 172, 718, None),
        ("real/sglang/ngram/generate-response.json", "sglang", 11, 13, "<8k"),
        ("real/vllm/noisy1/one-chat-response.json", "vllm", 8, 18, "<8k"),
    ],
)
def test_results_as_engines_give_them(
    fixture_bytes: Read, name: str, engine: str, steps: int, accepted: int, context: str | None
) -> None:
    document = {"id": "r", **json.loads(fixture_bytes(name)), "target": "t", "at": NOW}
    window = only(read([document]))
    assert (window.source, window.exact, window.end, window.series.engine) == ("request", True, NOW, engine)
    assert (window.counts.steps, window.counts.accepted, window.counts.requests) == (steps, accepted, 1)
    assert window.counts.spread is not None
    assert window.counts.spread.clusters == 1
    if context is not None:
        assert window.series.context == context


@pytest.mark.parametrize("name", ["request_log_v0.5.23.json.log", "request_metrics_file_v0.5.23.log"])
def test_lines_as_sglang_writes_them(fixture_bytes: Read, name: str) -> None:
    lines = [json.loads(line[line.index(b"{") :]) for line in fixture_bytes(f"sglang/{name}").splitlines()]
    told = read([{**line, "target": "t", "at": NOW} for line in lines])
    windows = [window for posted in told if isinstance(posted, Posted) for window in posted.windows]
    assert [(window.counts.steps, window.series.category) for window in windows] == [(172, "code")]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"{", "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b"{}", "target is missing, or is no name"),
        (vllm(target="a\nb"), "target is missing, or is no name"),
        (vllm(target="nobody"), "no target is called 'nobody'"),
        (vllm(at="yesterday"), "at is not a time"),
        (vllm(id=""), "has no id: it could not be told from others when it is sent again"),
        (vllm(id="x" * 201), "id is longer than 200 characters"),
        ({"target": "t", "id": "r"}, "tells no verify steps, in the shape of either engine"),
        (vllm(metrics={"speculative_decoding": {"num_spec_steps": -1}}), "num_spec_steps is not a count"),
        (
            vllm(metrics={"speculative_decoding": {"num_spec_steps": 2, "acceptance_histogram": [1]}}),
            "the histogram does not add up to the counts",
        ),
    ],
)
def test_a_bad_record_is_refused_with_line_and_reason_and_the_rest_stays(record: Any, reason: str) -> None:
    raw = record if isinstance(record, bytes) else json.dumps(record).encode()
    good = [json.dumps(vllm(id=name)).encode() for name in "ab"]
    told = read(b"\n".join([good[0], b"", raw, good[1], b""]))
    assert [type(each) for each in told] == [Posted, Refusal, Posted]
    assert told[1] == Refusal(3, reason)
    assert [each.line for each in told] == [1, 3, 4]


def test_an_array_is_read_as_lines_are() -> None:
    told = read(json.dumps([vllm(), 1, sglang()], indent=1).encode())
    assert [each.line for each in told] == [1, 2, 3]
    assert told[1] == Refusal(2, "not a JSON object")


def test_a_broken_array_and_too_many_records_are_refused_whole() -> None:
    with pytest.raises(Unreadable, match="not a JSON array"):
        read(b'[{"target": 1},')
    for body in (b"1\n" * (MOST_RECORDS + 1), b"[" + b"1," * MOST_RECORDS + b"1]"):
        with pytest.raises(TooMany):
            read(body)
    assert len(read(b"1\n" * MOST_RECORDS)) == MOST_RECORDS


def test_a_record_is_the_same_whatever_was_learned_since() -> None:
    first = only(read([vllm()], at=NOW))
    again = only(read([vllm(category="chat", at=NOW + 5)], Rule("a"), at=NOW + 9))
    assert first.id == again.id
    others = [vllm(id="r2"), vllm(target="t2"), vllm(target="t", id="r1:0")]
    assert len({first.id, *(only(read([other])).id for other in others)}) == 4


def test_every_result_of_a_request_counts_once() -> None:
    out = {"meta_info": {"id": "x", "spec_verify_ct": 4, "spec_num_correct_drafts": 4}}
    (posted,) = read([{"target": "t", "id": "r", "out": [out, out]}])
    assert isinstance(posted, Posted)
    assert len({window.id for window in posted.windows}) == 2


@pytest.mark.parametrize(
    ("record", "category"),
    [
        (vllm(category="chat", request={"tools": [{}]}), "chat"),
        (vllm(request={"tools": [{}]}), "tools"),
        (vllm(request={"tools": []}), "other"),
        (sglang(custom_labels={"category": "code"}), "code"),
        (sglang(custom_labels={}, request={"tools": [1]}), "tools"),
        (vllm(request={"messages": [{"role": "user", "content": "please SELECT"}]}), "sql"),
    ],
)
def test_the_own_category_comes_first_then_the_rules(record: dict[str, Any], category: str) -> None:
    rules = (Rule("tools", tools=True), Rule("sql", prompt="SELECT"))
    assert only(read([record], *rules)).series.category == category


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, Request()),
        ({"request": {}}, Request(structured=False, tools=False)),
        (
            {"model": "m", "messages": [{"content": [{"type": "text", "text": "a"}, {"type": "image"}]}], "tools": [1]},
            Request(model="m", structured=False, tools=True, prompt="a"),
        ),
        (
            {"request": {"response_format": {"type": "json_object"}, "temperature": 0, "prompt": ["a", "b"]}},
            Request(structured=True, tools=False, temperature=0.0, prompt="a\nb"),
        ),
        ({"request": {"response_format": {"type": "text"}}}, Request(structured=False, tools=False)),
        (
            {"obj": {"text": "a", "sampling_params": {"temperature": 0.5, "regex": "x"}, "lora_path": "l"}},
            Request(structured=True, tools=False, temperature=0.5, lora="l", prompt="a"),
        ),
        (
            {"request_parameters": '{"text": "p", "sampling_params": {}}', "api_key_alias": "k", "route": "/r"},
            Request(structured=False, tools=False, api_key="k", route="/r", prompt="p"),
        ),
        (
            {"headers": {"X-A": "1", "x-b": 2}, "usage": {"prompt_tokens": 7}, "lora": "l"},
            Request(headers={"x-a": "1"}, prompt_tokens=7.0, lora="l"),
        ),
        ({"text": "output", "meta_info": {"prompt_tokens": 9}}, Request(prompt_tokens=9.0)),
    ],
)
def test_what_is_told_of_a_request(document: dict[str, Any], expected: Request) -> None:
    told = request_of(document, with_prompt=True)
    if told.prompt == "":
        told = request_of(document, with_prompt=False)
    assert told == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["target", "id", "at", "meta_info", "metrics", "out", "request", "headers", "messages", "usage"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=4), st.binary(max_size=30))
def test_nothing_that_is_posted_raises(records: list[Any], noise: bytes) -> None:
    lines = [json.dumps(record).encode() for record in records]
    told = read(b"x\n" + b"\n".join([*lines, noise.replace(b"[", b"")]))
    assert all(isinstance(each, Refusal | Posted) for each in told)
