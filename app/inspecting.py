"""``draftgauge inspect``: what an inspection prints, for people and as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from acceptance.query import format_time
from alerts.findings import findings
from alerts.verdicts import SEVERITIES, Finding
from service.bundle import bundles
from service.inspect import Inspection, Sample, inspect


def report(paths: Sequence[Path], *, as_json: bool) -> int:
    """Inspect and print; 2 where a path does not exist."""
    try:
        inspections = [inspect(bundle) for bundle in bundles(paths)]
    except FileNotFoundError as error:
        sys.stderr.write(f"draftgauge: {error}\n")
        return 2
    if as_json:
        document = orjson.dumps(as_document(inspections), option=orjson.OPT_INDENT_2)
        sys.stdout.write(document.decode() + "\n")
    else:
        for inspection in inspections:
            sys.stdout.writelines(f"{line}\n" for line in as_text(inspection))
    return 0


def as_document(inspections: Sequence[Inspection]) -> dict[str, Any]:
    """The JSON of one or several inspections."""
    return {
        "samples": [
            _sample(inspection.name, sample)
            for inspection in inspections
            for sample in inspection.samples
            if sample.window.counts.steps is not None
        ],
        "findings": [_finding(finding) for inspection in inspections for finding in inspection.findings],
        "bundles": [
            {
                "name": inspection.name,
                "facts": dict(inspection.facts),
                "unseen": [{"what": gap.what, "needs": gap.needs} for gap in inspection.unseen],
                "rejected": inspection.rejected,
                "unknown_files": list(inspection.unknown),
                "problems": list(inspection.problems),
            }
            for inspection in inspections
        ],
    }


def as_text(inspection: Inspection) -> Iterator[str]:
    """Lines for people: what is wrong first, then what it rests on, then what cannot be seen."""
    yield f"{inspection.name}: {_verdict(inspection)}"
    for finding in sorted(inspection.findings, key=lambda item: -SEVERITIES.index(item.severity)):
        yield f"  {finding.severity.upper()} {_title(finding)}{' (over)' if finding.resolved else ''}: {finding.why}"
        yield from (f"    -> {line}" for line in _remedy(finding))
    yield from (f"  unseen: {gap.what}; needs {gap.needs}" for gap in inspection.unseen)
    yield from (f"  left out of {file}: {reason} ({count} x)" for file, reason, count in _left_out(inspection))
    yield from (f"  not recognised: {name}" for name in inspection.unknown)
    yield from (f"  {problem}" for problem in inspection.problems)


def _verdict(inspection: Inspection) -> str:
    busy = [sample.window for sample in inspection.samples if sample.window.busy and sample.window.counts.steps]
    seen = f"{len(busy)} busy windows" if busy else "no verify steps in these files"
    serious = sum(finding.severity in ("warning", "critical") for finding in inspection.findings)
    return f"{seen}, {serious or 'no'} finding{'' if serious == 1 else 's'} to act on"


def _left_out(inspection: Inspection) -> Iterator[tuple[str, str, int]]:
    for file, reasons in inspection.rejected.items():
        for reason, count in reasons.items():
            yield file, reason, count


def _title(finding: Finding) -> str:
    entry = findings().get(finding.id)
    where = "".join(f" [{value}]" for value in (finding.series.rank, finding.series.category) if value)
    return (finding.id if entry is None else entry.title) + where


def _remedy(finding: Finding) -> Sequence[str]:
    entry = findings().get(finding.id)
    return () if entry is None else entry.remedy.lines(finding.series.engine)


def _sample(name: str, sample: Sample) -> dict[str, Any]:
    window = sample.window
    counts = window.counts
    acc_len = counts.acc_len
    return {
        "file": sample.file,
        "target": name,
        "rank": window.series.rank,
        "category": window.series.category,
        "engine": window.series.engine,
        "source": window.source,
        "start": format_time(window.start),
        "end": format_time(window.end),
        "acc_len": acc_len,
        "reported_acc_len": window.reported_length,
        "reported_accept_rate": window.reported_rate,
        "accept_rate": counts.accept_rate,
        "steps": counts.steps,
        "emitted": counts.emitted,
        "busy": window.busy,
        "exact": window.exact,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    series = finding.series
    target = series.target if series.rank is None else f"{series.target} rank {series.rank}"
    return {
        "id": finding.id,
        "severity": finding.severity,
        "target": target,
        "rank": series.rank,
        "category": series.category,
        "resolved": finding.resolved,
        "since": format_time(finding.since),
        "value": finding.value,
        "lower": finding.lower,
        "upper": finding.upper,
        "threshold": finding.threshold,
        "steps": finding.steps,
        "requests": finding.requests,
        "source": finding.source,
        "cause": finding.cause,
        "why": finding.why,
    }
