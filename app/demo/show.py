"""How the demo is configured."""

from __future__ import annotations

from typing import Any

from app.demo.fleet import Fleet
from app.demo.inbox import Inbox

SECONDS_BETWEEN_LOOKS = 5.0
DEAD_FOR_SECONDS = 30.0
"""A drafter is dead for two minutes before anybody is called; who looks at a demo should not have to wait that long."""


def settings(fleet: Fleet, inbox: Inbox, url: str | None) -> dict[str, Any]:
    """The configuration that watches ``fleet`` and tells ``inbox``. ``url`` is where people look, if that is known."""
    return {
        "external_url": url,
        "targets": [
            {"name": member.name, "url": member.url, "group": member.group, "logs": [member.log]}
            for member in fleet.members
        ],
        "scrape": {"interval": SECONDS_BETWEEN_LOOKS},
        "evaluation": {"interval": SECONDS_BETWEEN_LOOKS},
        "channels": {"demo": {"kind": "slack", "url": inbox.url}},
        "thresholds": [{"finding": "dead-drafter", "for": DEAD_FOR_SECONDS}],
    }
