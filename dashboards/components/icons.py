"""Icons, by their Lucide name: a mask in the colour of the text around them."""

from __future__ import annotations

from dash import html

from alerts.verdicts import Severity

SEVERITY_ICONS: dict[Severity, str] = {
    "info": "info",
    "notice": "info",
    "warning": "triangle-alert",
    "critical": "octagon-alert",
}


def icon(name: str) -> html.I:
    """Hidden from assistive technology: the word beside it says the same."""
    return html.I(className=f"icon icon-{name}", **{"aria-hidden": "true"})
