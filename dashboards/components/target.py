"""The details of a target: what it is in, what was found and what to do, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from dash import html
from dash.development.base_component import Component

from acceptance.facts import Unseen
from acceptance.hits import Hit
from dashboards.components.icons import SEVERITY_ICONS, icon
from dashboards.components.kpis import kpis
from dashboards.components.remedies import remedies
from dashboards.components.times import age, clock
from service import copy
from service.cards import FindingCard
from service.cells import Cell
from service.fact_groups import FactGroup
from service.ranks import RankRow
from service.surfaces import SourceRow, SurfaceRow
from service.target import TargetPage

_PHASES: Mapping[str, str] = {"firing": "firing", "pending": "pending", "recovering": "recovering, firing"}


def drawer() -> Component:
    """The panel; assets/shell.js opens it for the target that the address names."""
    return html.Aside(
        [
            html.Div(
                [
                    html.H2(id="target-name", tabIndex=-1),
                    html.Button(
                        icon("x"), className="plain", title="Close", **{"data-go": "open=", "aria-label": "Close"}
                    ),
                ],
                className="drawer-head",
            ),
            *(html.Div(id=f"target-{section}", className=f"target-{section}") for section in SECTIONS),
        ],
        id="target",
        className="drawer",
        **{"aria-label": "Target"},
    )


def unknown(name: str) -> dict[str, Any]:
    """All sections for a target that is not there."""
    return {**{section: [] for section in SECTIONS}, "verdict": f"There is no target {name}."}


def values(page: TargetPage) -> dict[str, Any]:
    """What each section shows, to be compared with what it showed."""
    return {section: value(page) for section, (value, _) in _SECTIONS.items()}


def draw(section: str, value: Any) -> Any:
    """Children of a section."""
    return _SECTIONS[section][1](value)


def _status(shown: tuple[str, str, tuple[str, ...], str | None]) -> list[Component]:
    name, label, parts, group = shown
    return [
        html.Span(label, className="target-label"),
        *(html.Span(part) for part in parts),
        *([html.Span(f"group {group}")] if group else []),
        html.Button("Trends", className="link", **{"data-to": "/trends", "data-go": urlencode({"target": name})}),
    ]


def _findings(cards: Sequence[FindingCard]) -> list[Component]:
    return [_finding(card) for card in cards]


def _finding(card: FindingCard) -> Component:
    return html.Article(
        [
            html.H3([icon(SEVERITY_ICONS[card.severity]), card.title]),
            html.P(
                [
                    f"{card.severity.capitalize()}, {_PHASES.get(card.phase, card.phase)} ",
                    *(["for ", age(card.since)] if card.phase == "pending" else [age(card.since)]),
                    ", since ",
                    clock(card.since),
                    *([f"; told: {', '.join(card.told)}"] if card.told else []),
                ],
                className="meta",
            ),
            *([html.P(card.why, className="why")] if card.why else []),
            *([html.P(card.cause)] if card.cause else []),
            remedies(card.remedy, card.flag_verb, card.flag),
            html.A("Runbook", href=f"/runbook#{card.finding}", target="_blank", className="link"),
        ],
        className=f"finding finding-{card.severity}",
    )


def _recent(cards: Sequence[FindingCard]) -> list[Component]:
    lines = [
        html.Li([card.title, ", ", clock(card.since), *([" – ", clock(card.ended)] if card.ended else [])])
        for card in cards
    ]
    return _section("Resolved in the last day", html.Ul(lines)) if lines else []


def _unseen(gaps: Sequence[Unseen]) -> list[Component]:
    lines = [html.Li([html.B(copy.sentence(gap.what)), f": needs {gap.needs}"]) for gap in gaps]
    return _section("What cannot be seen", html.Ul(lines, className="unseen")) if lines else []


def _categories(cells: Mapping[str, Cell]) -> list[Component]:
    rows = [[name or "unlabelled", *_cell(cell)] for name, cell in cells.items()]
    return _section("By category", _table(("Category", "acc_len", "95 %", "Expected", "Steps"), rows)) if rows else []


def _ranks(shown: tuple[Sequence[RankRow], str]) -> list[Component]:
    ranks, note = shown
    rows = [[f"DP{row.rank}", *_cell(row.acc_len)] for row in ranks]
    table = _table(("Rank", "acc_len", "95 %", "Expected", "Steps"), rows)
    return _section("Ranks side by side", table, note) if rows else []


def _cell(cell: Cell) -> list[str]:
    bounds = "" if cell.lower is None or cell.upper is None else f"{cell.lower:.2f}–{cell.upper:.2f}"
    expected = "" if cell.expected is None else f"{cell.expected:.1f}"
    return [copy.length(cell.acc_len), bounds, expected, copy.whole(cell.steps)]


def _facts(groups: Sequence[FactGroup]) -> list[Component]:
    return [
        html.Details(
            [
                html.Summary([html.B(group.title), html.Small(copy.counted(len(group.facts), "fact", "facts"))]),
                html.Table(
                    html.Tbody(
                        [
                            html.Tr(
                                [
                                    html.Th(fact.name, scope="row", title=fact.meaning),
                                    html.Td(fact.value),
                                    html.Td(fact.source, className="from"),
                                ]
                            )
                            for fact in group.facts
                        ]
                    )
                ),
            ],
            open=number == 0,
        )
        for number, group in enumerate(groups)
    ]


def _sources(rows: Sequence[SourceRow]) -> list[Component]:
    shown = [
        [f"{row.source}{', shown' if row.answers else ''}", *_cell(row.acc_len), "exact" if row.exact else "estimate"]
        for row in rows
    ]
    heads = ("Source", "acc_len", "95 %", "Expected", "Steps", "Counts")
    return _section("What each source alone says", _table(heads, shown)) if shown else []


def _surfaces(rows: Sequence[SurfaceRow]) -> list[Component]:
    lines = [
        html.Li(
            [
                html.B(row.surface),
                ": ",
                *(["read ", age(row.read_at), " ago"] if row.read_at is not None else ["never read"]),
                *([f"; {row.error}"] if row.error else []),
            ]
        )
        for row in rows
    ]
    return _section("What was read", html.Ul(lines)) if lines else []


def _hits(hits: Sequence[Hit]) -> list[Component]:
    lines = [
        html.Li(
            [
                html.Span([clock(hit.at), f" {hit.signature}", f" ×{hit.count}" if hit.count > 1 else ""]),
                html.Code(hit.excerpt),
            ]
        )
        for hit in hits
    ]
    return _section("Seen in its log", html.Ul(lines, className="hits")) if lines else []


def _section(title: str, content: Component, note: str = "") -> list[Component]:
    return [html.H3([title, *([html.Small(note)] if note else [])]), content]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Component:
    return html.Table(
        [
            html.Thead(html.Tr([html.Th(head, scope="col") for head in heads])),
            html.Tbody([html.Tr([html.Td(value) for value in row]) for row in rows]),
        ]
    )


Value, Draw = Callable[[TargetPage], Any], Callable[[Any], Any]

_SECTIONS: Mapping[str, tuple[Value, Draw]] = {
    "status": (lambda page: (page.target, page.label, page.status, page.group), _status),
    "verdict": (lambda page: page.verdict, lambda verdict: verdict),
    "figures": (lambda page: page.figures, kpis),
    "findings": (lambda page: page.findings, _findings),
    "unseen": (lambda page: page.unseen, _unseen),
    "categories": (lambda page: page.categories, _categories),
    "ranks": (lambda page: (page.ranks, page.ranks_note), _ranks),
    "facts": (lambda page: page.facts, _facts),
    "sources": (lambda page: page.sources, _sources),
    "surfaces": (lambda page: page.surfaces, _surfaces),
    "hits": (lambda page: page.hits, _hits),
    "recent": (lambda page: page.recent, _recent),
}
"""Section -> what of a page it shows, and how that is drawn."""

SECTIONS = tuple(_SECTIONS)
