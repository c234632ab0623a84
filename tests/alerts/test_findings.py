"""findings.yaml and its loader."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from alerts.detectors import detectors
from alerts.findings import BadFindings, Entry, findings, parse_findings
from collectors.signatures import FINDINGS

RUNBOOK = Path(__file__).parents[2] / "docs" / "findings.md"

REQUIRED = {
    "dead-drafter",
    "low-acceptance",
    "acceptance-drop",
    "acceptance-decay",
    "per-position-cliff",
    "spec-not-active",
    "telemetry-stale",
    "target-down",
    "cuda-graph-decode-off",
    "config-cuda-graph-disabled",
    "draft-attention-backend-fallback",
    "data-quality",
}

GOOD = """
some-finding:
  title: Something
  severity: warning
  cause: A cause.
  remedy: {any: [Do something.]}
  detector: down
  evidence: {page: [{min_windows: 3}]}
  thresholds: {recent_seconds: 60}
  for: 2m
"""


def test_every_required_finding_and_every_one_a_signature_can_mean_is_there() -> None:
    assert findings().keys() >= REQUIRED | FINDINGS


@pytest.mark.parametrize("name", findings())
def test_every_entry_says_what_it_means_and_what_to_do_on_both_engines(name: str) -> None:
    entry = findings()[name]
    assert entry.cause.endswith(".")
    assert any((entry.remedy.any, entry.remedy.sglang, entry.remedy.vllm))
    if detectors()[entry.detector].about == "source":
        assert entry.measure


def test_nothing_that_a_signature_tells_pages_at_night() -> None:
    assert {entry.severity for entry in findings().values() if entry.detector == "told"} <= {
        "info",
        "notice",
        "warning",
    }


def test_only_death_is_critical_by_itself() -> None:
    assert [name for name, entry in findings().items() if entry.severity == "critical"] == ["dead-drafter"]


def test_what_others_yield_to_is_judged_before_them() -> None:
    order = list(findings())
    for name, entry in findings().items():
        assert all(order.index(other) < order.index(name) for other in entry.unless)


def test_the_defaults_of_the_design() -> None:
    dead, low = findings()["dead-drafter"], findings()["low-acceptance"]
    assert (dead.severity, dead.thresholds["acc_len"], dead.for_seconds) == ("critical", 1.10, 120.0)
    assert {(item.min_steps, item.min_windows) for item in dead.evidence.page} == {(500.0, 0), (60.0, 3)}
    assert (low.severity, low.thresholds["default_acc_len"], low.thresholds["default_yield"]) == ("warning", 2.0, 0.35)
    by_requests, by_windows = low.evidence.page
    assert (by_requests.min_steps, by_requests.min_requests) == (200.0, 20.0)
    assert (by_windows.min_windows, by_windows.min_span, by_windows.where_requests_unknown) == (10, 600.0, True)


def test_an_entry_is_read() -> None:
    entry = parse_findings(GOOD)["some-finding"]
    assert isinstance(entry, Entry)
    assert (entry.for_seconds, entry.keep_firing_seconds) == (120.0, 300.0)
    assert entry.evidence.page[0].enough().min_windows == 3


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("severity: warning", "severity: fatal"), "some-finding.severity: Input should be 'info'"),
        (("  title: Something\n", ""), "some-finding.title: Field required"),
        (("for: 2m", "for: soon"), "some-finding.for: Value error, must be a duration above 0"),
        (("detector: down", "detector: dwon"), "some-finding.detector: 'dwon' is none of cliff, dead"),
        (("recent_seconds: 60", "recent: 60"), "some-finding.thresholds.recent_seconds: missing"),
        (("recent_seconds: 60", "recent_seconds: 60, x: 1"), "some-finding.thresholds.x: not one of detector down"),
        (("min_windows: 3", "min_widnows: 3"), "some-finding.evidence.page.0.min_widnows: Extra inputs"),
        (("min_windows: 3", "min_windows: -3"), "some-finding.evidence.page.0.min_windows: Input should be greater"),
        (("  for: 2m\n", "  unless: [other]\n"), "some-finding.unless: 'other' is no finding"),
        (("  for: 2m\n", "  unless: [some-finding]\n"), "unless: findings yield to each other: some-finding"),
        (("some-finding:\n", "some-finding: [\n"), "findings: not YAML"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(change: tuple[str, str], problem: str) -> None:
    with pytest.raises(BadFindings, match=re.escape(problem)):
        parse_findings(GOOD.replace(*change))


def test_every_problem_is_said_at_once() -> None:
    with pytest.raises(BadFindings) as raised:
        parse_findings(GOOD.replace("severity: warning", "severity: fatal").replace("for: 2m", "for: soon"))
    assert len(str(raised.value).splitlines()) == 2


def test_remedies_name_the_engine_where_it_is_unknown() -> None:
    remedy = findings()["dead-drafter"].remedy
    assert not any(line.startswith("SGLang: ") for line in remedy.lines("sglang"))
    assert remedy.lines("vllm") != remedy.lines("sglang")
    assert {line.partition(":")[0] for line in remedy.lines(None)} >= {"SGLang", "vLLM"}


@pytest.mark.parametrize("name", findings())
def test_every_finding_has_a_section_in_the_runbook(name: str) -> None:
    sections = re.split(r"^## ", RUNBOOK.read_text(encoding="utf-8"), flags=re.MULTILINE)
    section = next((text for text in sections if text.startswith(f"{name}\n")), None)
    assert section is not None, f"docs/findings.md has no section '## {name}'"
    entry = findings()[name]
    assert entry.title in section
    for part in ("What it means", "How it is judged", "What to do"):
        assert f"**{part}.**" in section, f"{name}: {part}"
    for line in (*entry.remedy.any, *entry.remedy.sglang, *entry.remedy.vllm):
        assert line in section, f"{name}: the runbook lacks {line!r}"
    for threshold, value in entry.thresholds.items():
        assert f"| `{threshold}` | {value:g} |" in section, f"{name}: the runbook lacks its threshold {threshold}"
