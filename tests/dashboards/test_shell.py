from __future__ import annotations

import re
from pathlib import Path

import pytest
from dash._utils import to_json

import dashboards
from acceptance.query import parse_time
from dashboards.components.rows import STATES, TICKS
from dashboards.pages import PAGES
from dashboards.shell import KEYS, RANGES, shell

ASSETS = Path(dashboards.__file__).parent / "assets"


def drawn(*, demo: bool = False) -> str:
    return to_json(shell(PAGES, mark="x.1", demo=demo)) or ""


def test_navigation_shows_the_pages_there_are_and_no_more() -> None:
    places = set(re.findall(r'"nav":"([^"]+)"', drawn()))
    assert places == {page.path.replace("/", r"\u002f") for page in PAGES} | {r"\u002f"}


def test_a_demo_says_that_it_is_one() -> None:
    assert "demo-badge" in drawn(demo=True)
    assert "demo-badge" not in drawn()


@pytest.mark.parametrize("start", [start for start, _ in RANGES])
def test_every_range_can_be_asked_for(start: str) -> None:
    assert parse_time("from", start, 1e9) < 1e9
    assert f"from={start}&to=" in drawn()


def test_whatever_a_button_does_is_done_by_the_script() -> None:
    script = (ASSETS / "shell.js").read_text()
    actions = script[script.index("const actions = {") : script.index("};", script.index("const actions = {"))]
    for action in set(re.findall(r'"data-act":"([^"]+)"', drawn())):
        assert re.search(rf'^    "?{action}"?: ', actions, re.MULTILINE), action


def test_keys_that_are_listed_are_listened_to() -> None:
    script = (ASSETS / "shell.js").read_text()
    for key in ("/", "p", "j", "k", "g f", "g t", "d r", "t z"):
        assert any(key in keys for keys, _ in KEYS)
        assert re.search(rf'^    "?{re.escape(key)}"?: ', script, re.MULTILINE), key


def test_every_callback_of_the_browser_is_there() -> None:
    scripts = "".join(path.read_text() for path in ASSETS.glob("*.js"))
    python = "".join(path.read_text() for path in Path(dashboards.__file__).parent.rglob("*.py"))
    named = re.findall(r'in_browser\(\s*"(\w+)"|ClientsideFunction\("draftgauge", "(\w+)"\)', python)
    names = {one or other for one, other in named}
    assert {"theme", "heard", "fleet"} <= names
    for name in names:
        assert re.search(rf"\b{name}(\(|:|,)", scripts), name


def test_states_and_ticks_have_their_looks() -> None:
    css = (ASSETS / "fleet.css").read_text() + (ASSETS / "icons.css").read_text()
    for state in STATES.values():
        assert f".icon-{state.icon} " in css
    cells = (ASSETS / "cells.js").read_text()
    for name, letter in TICKS.items():
        assert f".tick-{name}" in css
        assert re.search(rf'"?{re.escape(letter)}"?: {{ name: "{name}"', cells)
