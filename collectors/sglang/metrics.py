"""SGLang's metrics page: counters of finished requests by category, and the acceptance gauge by rank.

The first token of a request comes from prefill, so tokens of verify steps are generated tokens less requests. The
counters move when a request finishes, and count what is left after end-of-text trimming: up to k tokens a request may
be missing (``trim_bound``). An abort before the first token, and the second prefill of a retracted request, each move
the emitted tokens by one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple

from acceptance.counts import Counts, Spread, total
from acceptance.facts import Fact, FactValue, Subject
from acceptance.health import Health
from acceptance.series import OTHER, Series
from acceptance.window import Source, Window, window_id
from collectors.deltas import Change, Seen, follow, kept
from collectors.reading import Reading, Rejected, State, Text
from collectors.sglang.gauges import Earlier, RankLook
from collectors.sglang.page import Group, Page, Rank, Worker, read

MOST_CATEGORIES = 200
"""Windows of one look; requests name their category themselves, so what is beyond is added up as ``other``."""

DECISIVE_TOKENS = 20.0
"""So many tokens beyond the first of each request without one verify call: speculation is off."""


class MetricsReader:
    """Counter windows by category (no rank: the tokenizer side counts) and gauge windows by data-parallel rank."""

    surface = "metrics"

    def feed(self, subject: Subject, state: State, text: Text) -> tuple[State, Reading]:
        """A whole page; begin with ``deltas.SINCE_START`` to take the first one as a window of its own."""
        page = read(text.body, subject)
        if page is None:
            return state, Reading(rejected=(Rejected("metrics", "no sglang: families on the page"),))
        facts = _facts(page, subject)
        subject = subject.knowing(facts)
        about = {"engine": "sglang", "category_label": subject.category_label}
        state = kept(state, about)
        seen = {address: _seen(worker, page, subject) for address, worker in page.workers.items()}
        after, changes = follow(state, seen, text.at)
        earlier = _earlier(state, after)
        spans_gauge = "at" in state and "realtime_tokens_total" in page.families
        windows: list[Window] = []
        ranks: list[tuple[str, str, tuple[float, float | None, float]]] = []
        for address, worker in page.workers.items():
            change = changes[address]
            looks = [
                RankLook(
                    name,
                    rank,
                    change,
                    earlier.get((address, name), Earlier()),
                    decoded=change.counters.get(("realtime", name, "decode"), 0.0) if spans_gauge else None,
                    seconds=text.at - change.start,
                )
                for name, rank in sorted(worker.ranks.items())
            ]
            ranks += [(address, look.name, astuple(look.remember(subject))) for look in looks]
            if change.known and worker.role != "prefill":
                windows += _counter_windows(address, worker, subject, change, text.at)
                windows += _gauge_windows(address, worker, subject, looks, text.at)
        return {**after, **about, "ranks": ranks}, Reading(
            windows=tuple(windows),
            facts=tuple(Fact(subject.target, name, value, "metrics", text.at) for name, value in facts.items()),
            health=(_health(page, changes, subject, text.at),),
            rejected=(*page.rejected, *_problems(page, changes), *_doubts(windows)),
        )


def _seen(worker: Worker, page: Page, subject: Subject) -> Seen:
    """No SGLang page tells when its process began; another document may, of the one server of a page."""
    started = subject.number("startup_time") if len(page.workers) == 1 else None
    return Seen(worker.counters, started, worker.token, complete=not page.rejected)


def _earlier(before: State, after: State) -> Mapping[tuple[str, str], Earlier]:
    """What the look before remembered of each worker's ranks; nothing after a restart."""
    if before.get("incarnation") != after["incarnation"]:
        return {}
    return {(address, name): Earlier(*remembered) for address, name, remembered in before.get("ranks", ())}


def _window(
    series: Series, source: Source, change: Change, at: float, counts: Counts, rank: Rank | None = None
) -> Window:
    return Window(
        id=window_id(series, change.incarnation, MetricsReader.surface, change.start, at),
        series=series,
        start=change.start,
        end=at,
        source=source,
        exact=source == "counter" and counts.requests is not None,
        counts=counts,
        busy=bool(counts.steps and counts.steps > 0 and counts.emitted and counts.emitted > 0),
        reported_length=None if rank is None else rank.gauge("spec_accept_length"),
        reported_rate=None if rank is None else rank.gauges.get("spec_accept_rate"),
    )


def _counter_windows(address: str, worker: Worker, subject: Subject, change: Change, at: float) -> Iterator[Window]:
    """One a model and category of which requests finished; none where the page never counted a verify call."""
    if not worker.counts("steps"):
        return
    found: list[tuple[Group, Counts]] = []
    k, draft_tokens = worker.k(subject), worker.draft_tokens(subject)
    for group in sorted(worker.groups, key=lambda group: (group.model, group.category or "")):
        counts = _request_counts(group, worker, change, k, draft_tokens)
        if counts is not None:
            found.append((group, counts))
    for group, counts in _fewer(found):
        series = subject.series(
            engine="sglang",
            role=worker.role,
            model=group.model or None,
            rank=address or None,
            category=group.category,
        )
        yield _window(series, "counter", change, at, counts)


def _request_counts(
    group: Group, worker: Worker, change: Change, k: int | None, draft_tokens: float | None
) -> Counts | None:
    """What the finished requests of a group did; None where nothing changed, or a change is unknown.

    A page without num_requests_total (filtered by somebody) leaves the first tokens in: not exact then.
    """
    steps, tokens, requests = (
        change.counters.get(group.key(name), None if group.key(name) in worker.counters else 0.0)
        for name in ("steps", "tokens", "requests")
    )
    if steps is None or tokens is None or requests is None or not any((steps, tokens, requests)):
        return None
    counted = worker.counts("requests")
    emitted = tokens - requests
    return Counts(
        steps=steps,
        emitted=emitted,
        proposed=None if draft_tokens is None else (draft_tokens - 1) * steps,
        requests=requests if counted else None,
        slots=None if k is None else k * steps,
        trim_bound=None if k is None or not counted else k * requests,
        spread=Spread.of(emitted, steps),
    )


def _fewer(found: list[tuple[Group, Counts]]) -> Iterator[tuple[Group, Counts]]:
    """At most ``MOST_CATEGORIES``, those with most steps; the rest as ``other``, by model."""
    if len(found) <= MOST_CATEGORIES:
        yield from found
        return
    ordered = sorted(found, key=lambda item: (item[0].category == OTHER, -(item[1].steps or 0.0), item[0].category))
    yield from ordered[: MOST_CATEGORIES - 1]
    rest: dict[str, list[Counts]] = defaultdict(list)
    for group, counts in ordered[MOST_CATEGORIES - 1 :]:
        rest[group.model].append(counts)
    for model, counts in rest.items():
        yield Group(model, OTHER), total(counts)


def _gauge_windows(
    address: str, worker: Worker, subject: Subject, looks: Iterable[RankLook], at: float
) -> Iterator[Window]:
    """One a rank whose gauge is evidence."""
    for look in looks:
        counts = look.counts(subject)
        if counts is not None:
            series = subject.series(
                engine="sglang",
                role=worker.role,
                model=look.rank.model or None,
                rank=f"{address}/{look.name}" if address else look.name,
            )
            yield _window(series, "gauge", look.change, at, counts, look.rank)


def _problems(page: Page, changes: Mapping[str, Change]) -> Iterator[Rejected]:
    for problem in sorted({change.problem for change in changes.values() if change.problem is not None}):
        yield Rejected("metrics", problem)
    for worker in page.workers.values():
        if worker.counts("steps") and not worker.counts("requests"):
            yield Rejected("metrics", "no num_requests_total: the first token of each request counts as verified")


def _doubts(windows: list[Window]) -> Iterator[Rejected]:
    """What cannot be so. It is told as it is, never clipped; aborts and retractions move a token a request."""
    for window in windows:
        steps, emitted = window.counts.steps or 0.0, window.counts.emitted or 0.0
        slots, slack = window.counts.slots, (window.counts.requests or 0.0) + 1e-6 * steps
        where = f"{window.source} rank={window.series.rank} category={window.series.category}"
        if emitted + slack < steps:
            yield Rejected(where, f"data-quality: {emitted:g} tokens from {steps:g} steps: fewer than one a step")
        if slots is not None and emitted > slots + steps + slack:
            yield Rejected(where, f"data-quality: {emitted:g} tokens from {steps:g} steps: more than k + 1 a step")


def _speculating(page: Page) -> bool | None:
    """The gauges are 0.0 without speculation and before the first decode report, so that zeros alone do not tell."""
    ranks = [rank for worker in page.workers.values() for rank in worker.ranks.values()]
    steps = sum(worker.total("steps") for worker in page.workers.values())
    if steps or any(rank.gauge(name) for rank in ranks for name in ("spec_num_draft_tokens", "spec_accept_length")):
        return True
    unverified = sum(worker.total("tokens") - worker.total("requests") for worker in page.workers.values())
    return False if "spec_num_draft_tokens" in page.families and unverified >= DECISIVE_TOKENS else None


def _facts(page: Page, subject: Subject) -> Mapping[str, FactValue]:
    """What the page tells that was not known. Speculation asked for elsewhere stays asked for where it is off."""
    facts: dict[str, FactValue] = {"engine": "sglang"}
    workers = page.workers.values()
    ranks = [rank for worker in workers for rank in worker.ranks.values()]
    models = {group.model for worker in workers for group in worker.groups} | {rank.model for rank in ranks}
    for name, values in (
        ("model", models - {""}),
        ("role", {worker.role for worker in workers}),
        ("k", {worker.k(subject) for worker in workers}),
    ):
        if len(values) == 1 and None not in values:
            (facts[name],) = values
    speculating = _speculating(page)
    if speculating or (speculating is False and subject.facts.get("speculative") is not True):
        facts["speculative"] = speculating
    if subject.facts.get("verify_mode") is None and any(rank.gauge("spec_cap_length") for rank in ranks):
        blocks = any(rank.gauge("spec_block_accept_length") for rank in ranks)
        facts["verify_mode"] = "cap-accept" if blocks else "compact"
    return {name: value for name, value in facts.items() if subject.facts.get(name) != value}


def _health(page: Page, changes: Mapping[str, Change], subject: Subject, at: float) -> Health:
    ranks = [rank for worker in page.workers.values() for rank in worker.ranks.values()]
    counter = "realtime" if "realtime_tokens_total" in page.families else "tokens"
    tokens = [
        value
        for change in changes.values()
        if change.known
        for key, value in change.counters.items()
        if key[0] == counter and (counter == "tokens" or key[-1] == "decode")
    ]
    return Health(
        subject.target,
        MetricsReader.surface,
        at,
        up=True,
        running=_sum(rank.gauges.get("num_running_reqs") for rank in ranks),
        queued=_sum(rank.gauges.get("num_queue_reqs") for rank in ranks),
        speculating=_speculating(page),
        decode_tokens=_sum(tokens),
    )


def _sum(values: Iterable[float | None]) -> float | None:
    """The sum of what is told; None where nothing is."""
    told = [value for value in values if value is not None]
    return sum(told) if told else None
