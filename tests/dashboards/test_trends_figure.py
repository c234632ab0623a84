"""The trends figure, without a browser: what is drawn, where, with which words, and how little a tick adds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
from dash._utils import to_json
from hypothesis import given
from hypothesis import strategies as st

import dashboards
from dashboards.address import Address
from dashboards.components import trends_controls, trends_labels, trends_table
from dashboards.figures.chart import Chart, Look, segments
from dashboards.figures.labels import LABEL_PIXELS, placed, spread
from dashboards.figures.live import Drawings, news, patch
from dashboards.figures.templates import DARK, LIGHT, SERIES, series_colours
from dashboards.figures.trends import HEIGHT, drawn, figure, hover_texts
from dashboards.figures.words import zone_words
from dashboards.pages.trends import OUTPUTS, legend, newer, said
from service.trends import Gap, Line, Mark, TrendsView

START = 1_796_115_900.0
"""09:05 UTC on the first of December 2026."""
STEP = 60.0
EXPECTED = {"code": 5.5, "math": 5.4, "long context": 4.3, "chat": 3.9, "reasoning": 3.0, "creative": 2.6}
LOOK = Look()

Values = Sequence[float | None]


def line(name: str, acc_len: Values, *, expected: float | None = None, steps: float = 1005.0) -> Line:
    known = [value for value in acc_len if value is not None]
    return Line(
        name=name,
        acc_len=tuple(acc_len),
        lower=tuple(None if value is None else max(value - 0.24, 1.0) for value in acc_len),
        upper=tuple(None if value is None else value + 0.25 for value in acc_len),
        steps=tuple(None if value is None else steps for value in acc_len),
        expected=expected,
        first=known[0] if known else None,
        now=known[-1] if known else None,
    )


def view(lines: Sequence[Line], *, first: float = START, **changes: Any) -> TrendsView:
    """As many minutes as the lines have values, the last of them just over."""
    count = len(lines[0].acc_len) if lines else 60
    times = tuple(first + STEP * (place + 1) for place in range(count))
    told = [[line.steps[place] for line in lines if line.steps[place] is not None] for place in range(count)]
    plain = TrendsView(
        verdict="All 6 categories are as expected.",
        status=("k3-h200-03", "214 k verify steps", "1-minute windows"),
        start=first,
        end=times[-1] + 20,
        step=STEP,
        times=times,
        lines=tuple(lines),
        steps=tuple(sum(steps) if steps else None for steps in told),
        gaps=(),
        marks=(),
        k=7,
        dead=1.10,
        floor=(2.0, 3.0),
        sources=("counter",),
    )
    return replace(plain, **changes)


def chart(shown: TrendsView) -> Chart:
    return Chart.of(shown, shown.end)


def healthy(count: int = 60, first: float = START, **changes: Any) -> TrendsView:
    def values(name: str) -> Values:
        return [EXPECTED[name] + 0.01 * (round((first + STEP * place) / STEP) % 7) for place in range(count)]

    return view([line(name, values(name), expected=EXPECTED[name]) for name in EXPECTED], first=first, **changes)


def traces(shown: TrendsView, look: Look = LOOK) -> list[tuple[str, str, dict[str, Any]]]:
    made = chart(shown)
    data = figure(made, look)["data"]
    return [(kind, line.name if line else "", trace) for (kind, line), trace in zip(drawn(made), data, strict=True)]


def words(shown: TrendsView, look: Look = LOOK) -> list[str]:
    return [note["text"] for note in figure(chart(shown), look)["layout"]["annotations"]]


def json_size(value: Any) -> int:
    return len(to_json(value).encode())


# ---- what is drawn


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_plotly_knows_all_of_the_figure(scheme: Any) -> None:
    mark = Mark(START + 600, None, "Drafter is dead", "critical", "a")
    shown = healthy(gaps=(Gap(START + 60, START + 480, "no data"),), marks=(mark,))
    made = go.Figure(figure(chart(shown), Look(scheme=scheme)))
    assert made.layout.hovermode == "x unified"
    assert made.layout.hoversubplots == "axis"
    assert made.layout.height == HEIGHT == 556


def test_one_time_axis_carries_both_panes() -> None:
    layout = figure(chart(healthy()), LOOK)["layout"]
    assert [name for name in layout if name.startswith("xaxis")] == ["xaxis"]
    top, bottom = layout["yaxis"]["domain"], layout["yaxis2"]["domain"]
    assert top[1] - top[0] == pytest.approx(0.735)
    assert bottom[1] - bottom[0] == pytest.approx(0.195)
    assert {trace.get("yaxis", "y") for _, _, trace in traces(healthy())} == {"y", "y2"}


def test_no_data_is_null_and_breaks_the_line() -> None:
    shown = view([line("code", [5.0, None, 5.2, 5.3])])
    _, _, drawn_line = next(item for item in traces(shown) if item[0] == "line")
    assert drawn_line["connectgaps"] is False
    assert '"y":[5.0,null,5.2,5.3]' in to_json(drawn_line)
    assert drawn_line["hovertext"][1] is None
    _, _, bars = traces(shown)[-1]
    assert '"y":[1005.0,null,1005.0,1005.0]' in to_json(bars)
    assert bars["hovertext"][1] is None


def test_an_idle_bucket_is_a_zero_of_steps_and_no_acc_len() -> None:
    idle = replace(line("code", [5.0, None, 5.2]), steps=(1005.0, 0.0, 1005.0))
    shown = view([idle], steps=(1005.0, 0.0, 1005.0))
    bars = traces(shown)[-1][2]
    assert (bars["hovertext"][1], bars["hovertemplate"]) == ("0", "<b>%{hovertext}</b> per minute")


def test_a_ribbon_is_closed_in_every_segment_and_bridges_no_gap() -> None:
    shown = view([line("code", [5.0, 5.1, None, 5.2, 5.3, None, 5.4])])
    _, _, ribbon = next(item for item in traces(shown) if item[0] == "ribbon")
    assert ribbon["fill"] == "toself"
    assert ribbon["mode"] == "lines"
    outlines = to_json(list(ribbon["x"])).strip("[]").split("null")
    assert [outline.count(":") for outline in outlines] == [0, 4, 4]
    assert ribbon["x"][1] == ribbon["x"][4] == "2026-12-01 09:06"
    assert ribbon["y"][1:5].tolist() == [5.25, 5.35, 4.86, 4.76]


def test_a_value_between_two_gaps_is_a_point() -> None:
    shown = view([line("code", [5.0, 5.1, None, 5.2, None])])
    _, _, points = next(item for item in traces(shown) if item[0] == "lone")
    assert (points["x"], points["y"]) == (["2026-12-01 09:09"], [5.2])
    assert points["mode"] == "markers"


def test_a_bucket_that_still_fills_is_not_drawn() -> None:
    shown = healthy(60)
    made = Chart.of(shown, shown.times[-1] + 1)
    assert len(made.view.times) == 59
    assert {len(line.acc_len) for line in made.view.lines} == {59}
    assert len(Chart.of(shown, shown.times[-1] + 5).view.times) == 60


def test_at_most_six_lines_have_a_colour() -> None:
    lines = [line(f"tenant-{number}", [3.0, 3.1]) for number in range(9)]
    kinds = [kind for kind, _, _ in traces(view(lines))]
    assert kinds.count("line") == 6
    assert kinds.count("thin") == 3
    assert kinds.count("ribbon") == 6


@given(st.lists(st.text(max_size=12), max_size=30))
def test_no_two_lines_share_a_colour(names: list[str]) -> None:
    colours = series_colours(names)
    assert len(set(colours.values())) == len(colours) == min(len(set(names)), len(SERIES))
    assert set(colours.values()) <= set(SERIES)


def test_a_category_keeps_its_colour_under_every_filter() -> None:
    whole = series_colours(["tools", "code", "long_context", "chat"])
    assert (whole["code"], whole["chat"], whole["long_context"]) == ("code", "chat", "long context")
    assert series_colours(["tools"])["tools"] == whole["tools"]


def test_the_axis_begins_at_0_8_and_ends_at_k_plus_1_at_most() -> None:
    near = view([line("code", [3.9, 4.0], expected=3.9)], k=3)
    assert figure(chart(near), LOOK)["layout"]["yaxis"]["range"] == [0.8, 4.0]
    assert figure(chart(healthy()), LOOK)["layout"]["yaxis"]["range"] == [0.8, 6.0]


def test_a_length_that_cannot_be_stays_in_sight() -> None:
    impossible = view([line("code", [3.9, 4.6])], k=3)
    assert figure(chart(impossible), LOOK)["layout"]["yaxis"]["range"][1] >= 4.6


def test_floors_and_what_is_expected_lie_under_the_lines() -> None:
    shapes = figure(chart(healthy()), LOOK)["layout"]["shapes"]
    assert all(shape["layer"] == "below" for shape in shapes)
    band = next(shape for shape in shapes if shape["type"] == "rect")
    assert (band["y0"], band["y1"], band["yref"]) == (2.0, 3.0, "y")
    dashes = {shape["line"]["dash"]: shape["y0"] for shape in shapes if shape["type"] == "line"}
    assert dashes["4px,3px"] == 1.10
    assert {shape["y0"] for shape in shapes if shape["line"].get("dash") == "5px,4px"} == set(EXPECTED.values())


def test_a_floor_without_height_is_no_band() -> None:
    shapes = figure(chart(healthy(floor=(1.7, 1.7))), LOOK)["layout"]["shapes"]
    assert [shape for shape in shapes if shape["type"] == "rect"] == []


def test_the_canvas_is_opaque_in_both_templates() -> None:
    for scheme, palette in (("light", LIGHT), ("dark", DARK)):
        look = figure(chart(healthy()), Look(scheme=scheme))["layout"]["template"]["layout"]
        assert look["paper_bgcolor"] == look["plot_bgcolor"] == palette.canvas


def test_charts_have_the_colours_of_the_style_sheets() -> None:
    assets = Path(dashboards.__file__).parent / "assets"
    tokens = (assets / "tokens.css").read_text()
    series = (assets / "trends.css").read_text()
    for palette, selector in ((LIGHT, ":root"), (DARK, '[data-mantine-color-scheme="dark"]')):
        known = _declared(tokens, selector) | _declared(series, selector)
        for name in ("canvas", "surface", "line", "line2", "ink", "ink2", "ink3", "notice", "warn", "crit"):
            assert getattr(palette, name) == known[name], name
        for name in ("notice", "warn", "crit"):
            assert getattr(palette, f"{name}_solid") == known[f"{name}-solid"], name
        for name, colour in palette.series.items():
            assert colour == known[f"series-{name.replace(' ', '-')}"], name


def _declared(css: str, selector: str) -> dict[str, str]:
    block = re.search(re.escape(selector) + r"\s*\{(.*?)\}", css, re.DOTALL)
    assert block is not None
    return dict(re.findall(r"--([\w-]+):\s*([^;]+);", block[1]))


# ---- words


def test_the_hover_tells_what_a_figure_rests_on() -> None:
    told_by = line("code", [5.65], expected=5.5)
    assert hover_texts(told_by) == ["5.41–5.90, expected 5.5, 1,005 steps"]
    assert traces(view([told_by]))[1][2]["hovertemplate"] == "<b>%{y:.2f}</b>  %{hovertext}"
    unknown = replace(told_by, lower=(None,), upper=(None,), expected=None)
    assert hover_texts(unknown) == ["1,005 steps"]


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        (600, 960, "no data, 6 min"),
        (-600, 960, "no data until 09:21"),
        (2400, 3600, "no data since 09:45"),
        (-600, 3600, "no data"),
    ],
)
def test_a_gap_says_how_long_it_is_or_what_is_known_of_its_ends(start: float, end: float, text: str) -> None:
    acc_len = [None if start < STEP * (place + 1) <= end else 5.0 for place in range(60)]
    shown = view([line("code", acc_len)], gaps=(Gap(START + max(start, 0), START + end, "no data"),))
    assert text in words(shown)
    bands = [shape for shape in figure(chart(shown), LOOK)["layout"]["shapes"] if "domain" in shape["yref"]]
    assert [band["yref"] for band in bands] == ["y domain", "y2 domain"]


def test_a_gap_too_narrow_for_words_has_none() -> None:
    shown = healthy(gaps=(Gap(START + 600, START + 660, "idle"),))
    assert any("idle" in text for text in words(shown, Look(width=1400)))
    assert not any("idle" in text for text in words(shown, Look(width=500)))


def test_a_gap_of_one_line_is_named() -> None:
    acc_len = [2.6 if place < 10 or place > 40 else None for place in range(60)]
    shown = view([line("code", [5.5] * 60), line("creative", acc_len)])
    assert "creative: no traffic" in words(shown)


def test_an_alert_is_told_above_the_plot_for_as_long_as_it_fires() -> None:
    firing = Mark(START + 1200, None, "Drafter is dead on a", "critical", "a")
    shown = healthy(marks=(firing,))
    assert "● alert: Drafter is dead on a, firing" in words(shown)
    bar = next(shape for shape in figure(chart(shown), LOOK)["layout"]["shapes"] if shape["layer"] == "above")
    assert (bar["yref"], bar["x0"]) == ("paper", "2026-12-01 09:25")
    assert bar["x1"] > LOOK.moment(shown.end), "a bar that lasts need not be drawn again when time goes on"
    over = replace(firing, end=START + 1500)
    assert "● alert: Drafter is dead on a, 5 min" in words(healthy(marks=(over,)))


def test_alerts_without_room_are_points_that_tell_on_hover() -> None:
    marks = tuple(
        Mark(START + 1200 + 60 * n, None, f"Drafter is dead on k3-{n}", "critical", f"k3-{n}") for n in range(5)
    )
    notes = [note for note in figure(chart(healthy(marks=marks)), LOOK)["layout"]["annotations"] if "hovertext" in note]
    assert [note["text"] for note in notes].count("●") == 4
    assert all(f"k3-{n}" in note["hovertext"] for n, note in enumerate(notes))


def test_the_words_of_an_alert_that_began_just_now_end_with_the_plot() -> None:
    shown = healthy(marks=(Mark(START + 3500, None, "Drafter is dead on a", "critical", "a"),))
    note = next(note for note in figure(chart(shown), LOOK)["layout"]["annotations"] if "hovertext" in note)
    left = LOOK.width * 3500 / (shown.end - START)
    assert note["text"] == "● alert: Drafter is dead on a, firing"
    assert 0 < left + note["xshift"] < LOOK.width - 150


def test_hostile_names_are_shown_literally() -> None:
    name = '<a href="javascript:1">%{x} & <b>x</b>'
    mark = Mark(START + 1200, None, name, "warning", name)
    shown = view([line(name, [3.0] * 60)], marks=(mark,))
    made = figure(chart(shown), LOOK)
    texts = [trace["name"] for trace in made["data"] if "name" in trace]
    texts += [note[key] for note in made["layout"]["annotations"] for key in ("text", "hovertext") if key in note]
    assert not any("<a" in text or "<b>x" in text for text in texts)
    assert any("&lt;a href" in text for text in texts)


def test_times_are_those_of_the_reader() -> None:
    east = Look(minutes_east=330)
    made = figure(chart(healthy(gaps=(Gap(START, START + 600, "no data"),))), east)
    assert made["layout"]["xaxis"]["range"][0] == "2026-12-01 14:35"
    assert "no data until 14:45" in [note["text"] for note in made["layout"]["annotations"]]
    assert [zone_words(minutes) for minutes in (0, 60, 330, -210)] == ["UTC", "UTC+1", "UTC+5:30", "UTC−3:30"]


@pytest.mark.parametrize("screen", [None, [], {"width": "x", "zone": None}, {"width": 10**9, "zone": -(10**9)}])
def test_whatever_a_browser_says_is_a_look(screen: object) -> None:
    look = Look.of("neon", screen)
    assert look.scheme == "light"
    assert 200 <= look.width <= 8000
    assert look.zone.utcoffset(None) is not None


# ---- labels


@given(
    st.lists(st.floats(0, 600), max_size=20).map(sorted),
    st.floats(1, 20),
)
def test_labels_never_overlap_and_move_no_more_than_they_must(wanted: list[float], apart: float) -> None:
    places = spread(wanted, apart, 0.0, 600.0)
    gaps = [later - earlier for earlier, later in pairwise(places)]
    assert all(gap >= apart - 1e-6 for gap in gaps)
    assert all(-1e-6 <= place <= 600 + 1e-6 for place in places)
    distances = [later - earlier for earlier, later in pairwise(wanted)]
    if all(distance >= apart for distance in distances) and (not wanted or apart * len(wanted) < 600):
        assert places == pytest.approx(wanted)


def test_labels_stand_where_lines_are_while_all_is_well() -> None:
    fallen = view([line(name, [value, 1.04], expected=value) for name, value in EXPECTED.items()])
    tops = placed(chart(fallen))
    assert [item.name for item, _ in tops] == list(EXPECTED)
    assert tops[1][1] - tops[0][1] == LABEL_PIXELS
    words_of_first = to_json(trends_labels.labels(chart(fallen), Address())[0])
    assert all(part in words_of_first for part in ('"code"', "5.5 →", '"1.04"'))


def test_a_label_isolates_its_line() -> None:
    shown = chart(healthy())
    label = trends_labels.labels(shown, Address())[2]
    assert label.to_plotly_json()["props"]["data-toggle"] == "category=long+context"
    unlabelled = trends_labels.labels(chart(view([line("", [3.0, 3.1])])), Address())[0]
    assert "data-toggle" not in unlabelled.to_plotly_json()["props"]


# ---- controls and table


def test_the_figures_can_be_had_as_csv_in_the_same_buckets() -> None:
    address = Address.parse("?from=now-3h&target=a%26b&by=category")
    link = next(part for part in trends_controls.controls(address, chart(healthy())) if hasattr(part, "href"))
    assert link.href == "/api/acceptance?from=now-3h&to=now&step=60.0s&by=category&target=a%26b&format=csv"


def test_the_table_has_the_figures_of_the_chart() -> None:
    shown = chart(view([line("code", [5.65, None], expected=5.5)]))
    rows = trends_table.rows(shown, LOOK)
    cells = [[cell.children for cell in row.children] for row in rows]
    assert cells == [["09:07", "no data", "no data"], ["09:06", "5.65 (5.41–5.90, 1,005 steps)", "1,005"]]


def test_buckets_of_seconds_are_told_apart() -> None:
    shown = chart(view([line("code", [5.0, 5.1])], step=30.0, times=(START + 30, START + 60)))
    assert [row.children[0].children for row in trends_table.rows(shown, LOOK)] == ["09:06:00", "09:05:30"]
    assert figure(shown, LOOK)["layout"]["xaxis"]["hoverformat"] == "%H:%M:%S"


def test_the_legend_explains_what_is_drawn() -> None:
    plain = replace(line("code", [5.0, 5.1]), lower=(None, None), upper=(None, None))
    assert legend(chart(view([plain]))) == []
    assert len(legend(chart(healthy()))) == 2


# ---- live


def moved(minutes: int, **changes: Any) -> TrendsView:
    """The healthy chart of an hour, so many minutes later."""
    return healthy(first=START + 60 * minutes, **changes)


def test_a_tick_adds_the_new_buckets_and_no_more() -> None:
    before, after = chart(healthy()), chart(moved(2))
    drawing = Drawings().keep("key", before, before.view.times[0])
    since = news(drawing, after, LOOK)
    assert since == 58
    operations = patch(before, after, LOOK, since).to_plotly_json()["operations"]
    added = {tuple(item["location"]): item["params"]["value"] for item in operations if item["operation"] == "Extend"}
    place = next(index for index, (kind, item) in enumerate(drawn(after)) if kind == "line" and item.name == "code")
    assert added["data", place, "y"] == [round(value, 2) for value in after.view.lines[0].acc_len[58:]]
    assert added["data", place, "hovertext"] == hover_texts(after.view.lines[0], 58)
    assert [item["params"]["value"] for item in operations if item["location"] == ["layout", "xaxis", "range"]] == [
        ["2026-12-01 09:07", "2026-12-01 10:07:20"]
    ]


def test_a_tick_is_small() -> None:
    before, after = chart(healthy(240)), chart(healthy(240, first=START + 60))
    whole = json_size(figure(after, LOOK))
    at = after.view.end
    parts = {**said(after, at, before), **newer(before, after, LOOK, 239), "drawing": "12345678.12"}
    answer = json_size({f"trends-{name}": {OUTPUTS[name]: part} for name, part in parts.items()})
    assert answer <= 5_000 < whole
    assert json_size(said(after, at, before)) <= 1_500


@pytest.mark.parametrize(
    "change",
    [
        {"marks": (Mark(START + 1200, None, "Drafter is dead", "critical", "a"),)},
        {"gaps": (Gap(START + 600, START + 960, "no data"),)},
        {"step": 30.0},
        {"k": 3},
        {"lines": healthy().lines[:5]},
        {"floor": (1.5, 3.0)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_a_tick_cannot_add_is_drawn_anew(change: dict[str, Any]) -> None:
    before = chart(healthy())
    drawing = Drawings().keep("key", before, before.view.times[0])
    assert news(drawing, chart(healthy()), LOOK) == 60
    assert news(drawing, chart(replace(healthy(), **change)), LOOK) is None


def test_what_came_late_is_drawn_anew() -> None:
    shown = healthy()
    before = chart(shown)
    drawing = Drawings().keep("key", before, before.view.times[0])
    late = replace(shown.lines[0], acc_len=(5.0, *shown.lines[0].acc_len[1:]))
    assert news(drawing, chart(replace(shown, lines=(late, *shown.lines[1:]))), LOOK) is None


def test_what_has_left_the_range_is_dropped_at_last() -> None:
    before = chart(healthy())
    drawing = Drawings().keep("key", before, before.view.times[0])
    assert news(drawing, chart(moved(14)), LOOK) == 46
    assert news(drawing, chart(moved(16)), LOOK) is None


def test_a_gap_that_lasts_needs_no_drawing_anew() -> None:
    def shown(minutes: int) -> Chart:
        acc_len = [5.0 if place < 40 else None for place in range(60 + minutes)]
        ends = START + 60 * (60 + minutes)
        return chart(view([line("code", acc_len)], gaps=(Gap(START + 2400, ends, "no data"),)))

    before, after = shown(0), shown(1)
    assert news(Drawings().keep("key", before, before.view.times[0]), after, LOOK) == 60


def test_patches_add_up_to_the_figure_drawn_at_once() -> None:
    acc_len: list[float | None] = [5.0, 5.1, None, 5.2, 5.3, None, 5.4, 5.5, 5.6, None, 5.7, None]
    lines = [line("code", acc_len), line("", [3.0 + place / 100 for place in range(12)])]
    whole = view(lines)
    charts = [Chart.of(whole, whole.times[count - 1] + 5) for count in range(3, 13)]
    data = _plain(figure(charts[0], LOOK))["data"]
    for before, after in pairwise(charts):
        drawing = Drawings().keep("key", before, before.view.times[0])
        since = news(drawing, after, LOOK)
        assert since == len(before.view.times)
        for item in _plain(patch(before, after, LOOK, since).to_plotly_json())["operations"]:
            kind, (area, *place) = item["operation"], item["location"]
            if area == "data":
                _apply(data, kind, place, item["params"]["value"])
    once = _plain(figure(charts[-1], LOOK))["data"]
    for patched, trace, (kind, item) in zip(data, once, drawn(charts[-1]), strict=True):
        if kind == "ribbon":
            assert _area(patched) == pytest.approx(_area(trace)), item
        else:
            assert patched == trace, kind


def _plain(value: Any) -> Any:
    import json

    return json.loads(to_json(value))


def _apply(data: Any, kind: str, place: list[Any], value: Any) -> None:
    *path, last = place
    for key in path:
        data = data[key]
    if kind == "Extend":
        data[last].extend(value)
    else:
        data[last] = value


def _area(trace: dict[str, Any]) -> float:
    """Of all outlines: an outline in parts has the same."""
    area = 0.0
    minutes = [None if at is None else datetime.fromisoformat(at).timestamp() / 60 for at in trace["x"]]
    for first, last in segments(minutes):
        xs, ys = [at - START / 60 for at in minutes[first : last + 1]], trace["y"][first : last + 1]
        turned = zip(xs, ys, [*xs[1:], xs[0]], [*ys[1:], ys[0]], strict=True)
        area += abs(sum(x * b - a * y for x, y, a, b in turned)) / 2
    return area


def test_only_what_a_page_was_drawn_is_known() -> None:
    drawings, made = Drawings(), chart(healthy())
    kept = drawings.keep("key", made, 0.0)
    assert drawings.known(kept.id, "key") is kept
    assert drawings.keep("key", made, 0.0) is kept
    assert [drawings.known(asked, "key") for asked in ("elsewhere.1", None, 7)] == [None, None, None]
    assert drawings.known(kept.id, "other") is None
