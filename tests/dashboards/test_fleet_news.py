from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from dash._utils import to_json

from dashboards.components.rows import rows
from dashboards.editions import MOST_KEPT, Edition, Editions
from dashboards.news import PARTS, FleetEdition, News, news
from service.fleet import FleetView

NOW = 1_800_000_003.0
MOST_TICK_BYTES = 5_000

Fleet = Callable[..., FleetView]


def edition(view: FleetView, name: str = "x.1") -> FleetEdition:
    return Edition(name, view, rows(view))


def size(told: News) -> int:
    return len(to_json({"parts": told.parts, "texts": told.texts}) or "")


def test_a_page_that_shows_nothing_is_sent_all_there_is(fleet_view: Fleet) -> None:
    told = news(edition(fleet_view(NOW)), None)
    assert set(told.parts) == set(PARTS)
    assert told.parts["rows"]["since"] is None
    assert len(told.parts["rows"]["rows"]) == 12


def test_what_stays_is_not_sent_again(fleet_view: Fleet) -> None:
    view = fleet_view(NOW)
    told = news(edition(view, "x.2"), edition(view))
    assert set(told.parts) == {"rows"}
    assert told.texts == {}
    assert (told.parts["rows"]["rows"], told.parts["rows"]["since"]) == ({}, "x.1")


def test_a_tick_of_a_demo_is_small_though_every_figure_moves(fleet_view: Fleet) -> None:
    moved = fleet_view(NOW + 5, moved=0.013, since=NOW)
    moved = replace(
        moved,
        status=(*moved.status[:2], "1.43 M verify steps in the last 15 min"),
        incidents=tuple(
            replace(one, figures=(("acc_len", "4.22 → 1.03"), *one.figures[1:])) for one in moved.incidents
        ),
    )
    told = news(edition(moved, "x.2"), edition(fleet_view(NOW)))
    assert set(told.parts) == {"rows"}
    assert told.texts == {
        "status-1": "1.43 M verify steps in the last 15 min",
        "incident-1-0": "4.22 → 1.03",
        "incident-2-0": "4.22 → 1.03",
        "kpi-0-value": "4.17",
    }
    assert size(told) < MOST_TICK_BYTES


@pytest.mark.parametrize("part", ["verdict", "incidents"])
def test_another_verdict_is_drawn_anew(part: str, fleet_view: Fleet) -> None:
    told = news(edition(fleet_view(NOW + 5, sick=False), "x.2"), edition(fleet_view(NOW)))
    assert part in told.parts


def test_a_view_that_is_no_longer_live_says_so(fleet_view: Fleet) -> None:
    old = replace(fleet_view(NOW), told_at=NOW - 600, status=("nothing was read for 10 min", "12 targets"))
    told = news(edition(old, "x.2"), edition(fleet_view(NOW)))
    assert "nothing was read for 10 min" in str(to_json(told.parts["status"]))


def test_a_target_that_is_gone_is_named(fleet_view: Fleet) -> None:
    told = news(edition(fleet_view(NOW, targets=11), "x.2"), edition(fleet_view(NOW)))
    assert told.parts["rows"]["gone"] == ["k3-11"]


def test_other_categories_are_other_columns_and_rows_of_before_say_nothing_about_them(fleet_view: Fleet) -> None:
    view = fleet_view(NOW)
    told = news(edition(replace(view, categories=view.categories[1:]), "x.2"), edition(view))
    assert "columns" in told.parts
    assert told.parts["rows"]["since"] is None


def test_an_edition_is_one_for_all_and_forgotten_in_time(fleet_view: Fleet) -> None:
    editions: Editions[FleetView, object] = Editions(rows)
    first = fleet_view(NOW)
    kept = editions.of(first)
    assert editions.of(first) is kept
    assert editions.known(kept.id) is kept
    for number in range(MOST_KEPT):
        editions.of(fleet_view(NOW + number, targets=1))
    assert editions.known(kept.id) is None
    assert editions.known(None) is None
    assert Editions(rows).of(first).id != kept.id
