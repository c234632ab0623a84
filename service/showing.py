"""Which alerts change how a target looks: quiet when healthy, and healthy is against its own normal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from alerts.findings import Entry
from alerts.verdicts import as_severe, severity_of
from service.cells import NORMAL_BELOW, below
from service.present import Present
from store.state import AlertRecord

ACC_LEN = "acc_len"
"""What most findings measure."""


def showing(alerts: Iterable[AlertRecord], present: Present, entries: Mapping[str, Entry]) -> tuple[AlertRecord, ...]:
    """All that are grave, and notices about a figure that is not normal.

    What a notice says of a setting stays so for as long as the process lives: it would colour healthy targets. And an
    acc_len in the band of notices may be just what was published for that traffic.
    """
    return tuple(alert for alert in alerts if _shows(alert, present, entries.get(alert.finding)))


def _shows(alert: AlertRecord, present: Present, entry: Entry | None) -> bool:
    if as_severe(severity_of(alert.severity), "warning"):
        return True
    if alert.severity != "notice" or entry is None or entry.measure is None:
        return False
    value = alert.detail.get("value")
    if entry.measure != ACC_LEN or not isinstance(value, int | float):
        return True
    share = below(value, expected_by(alert, present))
    return share is None or share >= NORMAL_BELOW


def expected_by(alert: AlertRecord, present: Present) -> float | None:
    """What is expected of the traffic an alert is about. A rank has a mix of its own."""
    series: Mapping[str, str] = alert.detail.get("series", {})
    if "rank" in series:
        return None
    return present.normal.get(series["category"]) if "category" in series else present.whole
