"""Categories in the configuration: as rules, and refused with the place and the reason."""

from __future__ import annotations

from typing import Any

import pytest

from acceptance.categories import Request
from app.config import ConfigError
from app.records.settings import categories_of

RULES = """\
categories:
  - {name: agents, where: {header: {X-Team: [agents, "swe-*"]}}}
  - {name: json, where: {structured: true}}
  - {name: long, where: {prompt_tokens: {at_least: 32768}, tools: false}}
  - {name: sql, where: {prompt: '(?i)\\bselect\\b'}}
  - {name: cold, where: {temperature: {below: 0.3}, model: "kimi-*", route: /v1/*, api_key: a, lora: b}}
"""


@pytest.mark.parametrize(
    ("request_", "category"),
    [
        (Request(headers={"x-team": "swe-1"}, structured=True), "agents"),
        (Request(structured=True, prompt="SELECT"), "json"),
        (Request(prompt_tokens=40_000, tools=False), "long"),
        (Request(prompt="please select"), "sql"),
        (Request(temperature=0, model="kimi-k3", route="/v1/chat", api_key="a", lora="b"), "cold"),
        (Request(temperature=0, model="kimi-k3", route="/v1/chat", api_key="a"), "other"),
    ],
)
def test_rules_hold_in_the_order_of_the_file(config_of: Any, request_: Request, category: str) -> None:
    assert categories_of(config_of(RULES).categories).of(request_) == category


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("{where: {tools: true}}", "categories[0].name: is missing"),
        ('{name: ""}', "categories[0].name: "),
        ("{name: a, where: {headers: {x: y}}}", "categories[0].where.headers: unknown key (do you mean header?)"),
        ("{name: a, where: {prompt: '(?=a)'}}", "categories[0].where.prompt: is not a pattern of RE2: invalid perl"),
        ("{name: a, where: {temperature: 0}}", "categories[0].where.temperature: must be keys and values"),
        (
            "{name: a, where: {temperature: {below: 0, at_least: 1}}}",
            "categories[0].where.temperature: holds no number",
        ),
        ("{name: a, where: {header: {X: a, x: b}}}", "categories[0].where.header: names a header twice"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused_with_its_place(config_of: Any, entry: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_of(f"categories:\n  - {entry}\n")
    assert told in str(caught.value)
