from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from dash._utils import to_json
from hypothesis import given
from hypothesis import strategies as st

from dashboards.components.filters import choices, filters
from dashboards.components.incidents import FIRST_SHOWN, MOST_SHOWN, incident_texts, incidents
from dashboards.components.kpis import kpi_texts, kpis
from dashboards.components.remedies import remedies, remedy
from dashboards.components.sparkline import HEIGHT, WIDTH, path, sparkline
from dashboards.components.table import columns, table
from dashboards.components.verdict import status, verdict
from service.fleet import FleetView, Incident, Kpi

NOW = 1.8e9


def text(component: Any) -> str:
    return to_json(component) or ""


@given(st.lists(st.none() | st.floats(-1e6, 1e6), max_size=60))
def test_a_sparkline_stays_in_its_box_and_breaks_where_there_is_no_data(values: list[float | None]) -> None:
    line = path(values)
    known = [value for value in values if value is not None]
    assert (line == "") == (len(known) < 2)
    points = [(int(x), int(y)) for x, y in re.findall(r"[ML](\d+) (\d+)", line)]
    assert len(points) == (len(known) if line else 0)
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)
    runs = sum(
        1 for before, value in zip([None, *values], values, strict=False) if value is not None and before is None
    )
    assert line.count("M") == (runs if line else 0)


def test_noise_does_not_look_like_news() -> None:
    heights = {int(y) for y in re.findall(r" (\d+)", path([4.20, 4.21, 4.19, 4.20]))}
    assert max(heights) - min(heights) <= 2


def test_a_sparkline_is_a_picture_in_the_colour_of_the_text() -> None:
    drawn = sparkline([1.0, 2.0])
    assert drawn is not None
    assert drawn.style["--line"].startswith("url('data:image/svg+xml,%3Csvg")
    assert sparkline([1.0, None]) is None


def test_tiles_change_by_their_texts_and_are_drawn_anew_for_another_line() -> None:
    before = (Kpi("Yield", "45.1", "%", "k = 7", (1.0, 2.0)),)
    assert kpi_texts(before, (Kpi("Yield", "45.2", "%", "k = 8", (1.0, 2.0)),)) == {
        "kpi-0-value": "45.2",
        "kpi-0-note": "k = 8",
    }
    assert kpi_texts(before, (Kpi("Yield", "45.1", "%", "k = 7", (2.0, 3.0)),)) is None
    assert kpi_texts(before, ()) is None
    assert 'id":"kpi-0-value"' in text(kpis(before))


def test_figures_of_an_incident_change_by_their_texts(an_incident: Callable[..., Incident]) -> None:
    before = an_incident("a", "t", NOW)
    moved = replace(before, figures=(("acc_len", "4.31 normal"), *before.figures[1:]))
    assert incident_texts((before,), (moved,)) == {"incident-1-0": "4.31", "incident-1-0-means": "normal"}
    assert incident_texts((before,), (replace(before, recovering=True),)) is None
    assert incident_texts((before,), ()) is None


@pytest.mark.parametrize(("count", "late"), [(1, 0), (MOST_SHOWN, 0), (MOST_SHOWN + 3, MOST_SHOWN + 3 - FIRST_SHOWN)])
def test_many_incidents_do_not_push_the_table_off_the_screen(
    count: int, late: int, an_incident: Callable[..., Incident]
) -> None:
    drawn = text(incidents([an_incident(str(number), "t", NOW) for number in range(count)]))
    assert drawn.count("incident-critical late") == late
    assert (f"{late} more incidents" in drawn) == bool(late)


def test_a_remedy_is_a_flag_to_copy_a_line_or_said_to_be_unknown() -> None:
    assert '"data-copy":"--x 1"' in text(remedy("Set --x 1", "Set", "--x 1"))
    assert "data-copy" not in text(remedy("Look around.", "", None))
    assert "No known remedy." in text(remedy("", "", None))
    assert "No known remedy." in text(remedies((), "", None))
    assert text(remedies(("Set --x 1", "Then wait."), "Set", "--x 1")).count('"type":"Li"') == 2


def test_a_verdict_is_one_sentence_or_two() -> None:
    assert verdict("All is well.") == ["All is well."]
    assert "alarm-critical" in text(verdict("Pays on 11 of 12.", "One needs you.", "critical"))
    assert "status-0" in text(status(NOW, ["12 targets"]))


def test_there_is_a_column_for_every_category_and_the_unlabelled_have_a_name(
    fleet_view: Callable[..., FleetView],
) -> None:
    view = replace(fleet_view(NOW), categories=(("code", 5.5), ("", None)))
    found = {column["colId"]: column for column in columns(view)}
    assert found["c0"]["headerComponentParams"] == {
        "title": "code",
        "below": "exp. 5.5",
        "align": "right",
        "value": "code",
    }
    assert (found["c1"]["headerName"], found["c1"]["headerComponentParams"]["value"]) == ("unlabelled", "")
    assert (found["strip"]["headerName"], found["strip"]["headerComponentParams"]["below"]) == (
        "Last 4 hours",
        "5 min a tick",
    )


def test_only_what_differs_can_be_filtered_by(fleet_view: Callable[..., FleetView]) -> None:
    found = choices(fleet_view(NOW))
    assert found == {"engine": ("sglang", "vllm"), "group": ("kimi-a", "kimi-b")}
    assert '"data-toggle":"engine=sglang"' in text(filters(found))


def test_names_from_outside_are_text(fleet_view: Callable[..., FleetView], made: dict[str, Any]) -> None:
    view = fleet_view(NOW)
    sick = replace(view.incidents[0], target=made["HOSTILE"], title=made["HOSTILE"], told=(made["HOSTILE"],))
    drawn = text([incidents([sick]), columns(replace(view, categories=((made["HOSTILE"], 1.0),))), table()])
    assert "dangerously" not in drawn.lower().replace('"dangerously_allow_code":false', "")
    # What goes into an address is escaped: an ampersand in a name must not become another parameter.
    assert '"data-go":"open=%3Cimg+src' in drawn
