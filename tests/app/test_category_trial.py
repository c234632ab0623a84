"""``draftgauge categories test``: counts and examples, and no prompt in any of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.cli import main

RULES = 'categories: [{name: tools, where: {tools: true}}, {name: sql, where: {prompt: "(?i)select"}}]\n'
REQUESTS = [
    {"model": "kimi", "messages": [{"role": "user", "content": "SELECT my-secret"}], "temperature": 0.5},
    {"model": "kimi", "messages": [{"role": "user", "content": "hello my-secret"}], "tools": [{"name": "f"}]},
    *[{"request": {"prompt": "select my-secret"}, "headers": {"Authorization": "my-secret"}}] * 4,
    {"category": "chat"},
    {"request": {"prompt": "my-secret"}},
]


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    (tmp_path / "draftgauge.yaml").write_text(RULES)
    (tmp_path / "requests.jsonl").write_text("\n".join(map(json.dumps, REQUESTS)) + "\nmy-secret\n")
    return ["categories", "test", str(tmp_path / "requests.jsonl"), "--config", str(tmp_path / "draftgauge.yaml")]


def test_as_json(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "--json"]) == 1
    told = capsys.readouterr().out
    assert "my-secret" not in told
    document = json.loads(told)
    assert [(each["category"], each["requests"]) for each in document["categories"]] == [
        ("sql", 5),
        ("chat", 1),
        ("other", 1),
        ("tools", 1),
    ]
    sql = document["categories"][0]["examples"]
    assert [example["line"] for example in sql] == [1, 3, 4]
    assert sql[0] == {"line": 1, "model": "kimi", "structured": False, "tools": False, "temperature": 0.5}
    assert sql[1]["headers"] == ["authorization"]
    assert document["rejected"] == [9]


def test_for_people(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    main(arguments)
    told = capsys.readouterr().out
    assert "my-secret" not in told
    assert "        5  sql\n           line 1: model 'kimi'" in told
    assert "        1  not a JSON object (line 9)" in told


def test_without_rules_there_is_no_category(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "requests.json").write_text('[{"prompt": "a"}, {"prompt": "b"}]')
    assert main(["categories", "test", str(tmp_path / "requests.json")]) == 0
    assert "        2  (none)" in capsys.readouterr().out


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["categories", "test", "/nowhere.jsonl"]) == 2
    assert "cannot be read" in capsys.readouterr().err
