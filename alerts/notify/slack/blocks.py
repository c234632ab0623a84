"""A notice as a Slack message of Block Kit blocks.

Slack's limits: 50 blocks, header 150, section text 3000, 10 fields of 2000 each; and about 13,000 characters in all
(``msg_blocks_too_long``, undocumented). The limits here are lower, so that their sum stays within that.
https://docs.slack.dev/reference/block-kit/blocks
"""

from __future__ import annotations

from typing import Any

from alerts.notify.notice import Notice
from alerts.notify.slack.mrkdwn import date, escaped, plain

Block = dict[str, Any]

ICONS = {"critical": "🔴", "warning": "🟠", "notice": "🔵", "info": "⚪"}
RESOLVED_ICON = "✅"

HEADER_LIMIT = 150
SUMMARY_LIMIT = 500
NAME_LIMIT = 120
WHY_LIMIT = 1500
CAUSE_LIMIT = 1000
REMEDY_LIMIT = 2800


def payload(notice: Notice) -> dict[str, Any]:
    """The JSON to post: blocks, and ``text`` for notifications and for clients that show no blocks."""
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": _headline(notice), "emoji": False}},
        {"type": "section", "fields": [_mrkdwn(field) for field in _fields(notice)]},
        *_section("Why", notice.why, WHY_LIMIT),
        *_section("Likely cause", notice.cause, CAUSE_LIMIT),
        *_remedy(notice),
        *_buttons(notice),
        {"type": "context", "elements": [_mrkdwn(_origin(notice))]},
    ]
    return {"text": _summary(notice), "blocks": blocks, "unfurl_links": False, "unfurl_media": False}


def _headline(notice: Notice) -> str:
    icon = RESOLVED_ICON if notice.resolved else ICONS.get(notice.severity, "⚪")
    return plain(f"{icon} {notice.severity_word}: {notice.title}", HEADER_LIMIT)


def _summary(notice: Notice) -> str:
    where = f" ({notice.target})" if notice.target else ""
    figure = f": {notice.figure()}" if notice.value is not None else ""
    return escaped(f"{notice.severity_word}: {notice.title}{where}{figure}", SUMMARY_LIMIT)


def _fields(notice: Notice) -> list[str]:
    where = {
        "target": notice.target,
        "group": notice.group,
        "rank": notice.rank,
        "category": "(unlabelled)" if notice.category == "" else notice.category,
        "engine": notice.engine,
        "model": notice.model,
        "drafter": notice.drafter,
    }
    places = [f"{name} {escaped(value, NAME_LIMIT)}" for name, value in where.items() if value is not None]
    return [
        f"*What*\n{escaped(notice.finding, NAME_LIMIT)}, {escaped(notice.severity, NAME_LIMIT)}",
        f"*Since*\n{_times(notice)}",
        "*Where*\n" + ("\n".join(places) or "no data"),
        f"*Value*\n{escaped(notice.figure(), NAME_LIMIT)}",
        f"*Evidence*\nverify steps: {_count(notice.steps)}\nrequests: {_count(notice.requests)}",
        f"*Source*\n{escaped(notice.source, NAME_LIMIT) if notice.source else 'no data'}",
    ]


def _times(notice: Notice) -> str:
    since = notice.since if notice.since is not None else notice.fired_at
    text = "no data" if since is None else date(since)
    if notice.resolved:
        text += f"\nresolved {date(notice.created_at if notice.resolved_at is None else notice.resolved_at)}"
    return text


def _section(heading: str, text: str | None, limit: int) -> list[Block]:
    return [{"type": "section", "text": _mrkdwn(f"*{heading}*\n{escaped(text, limit)}")}] if text else []


def _remedy(notice: Notice) -> list[Block]:
    """What to do, step by step; all steps share the room there is."""
    if not notice.remedy or notice.resolved:
        return []
    each = REMEDY_LIMIT // len(notice.remedy) - len("10. \n")
    steps = [f"{number}. {escaped(step, each)}" for number, step in enumerate(notice.remedy, 1)]
    return [{"type": "section", "text": _mrkdwn("*What to do*\n" + "\n".join(steps))}]


def _buttons(notice: Notice) -> list[Block]:
    links = {"Open in Draftgauge": notice.link, "Runbook": notice.runbook}
    buttons = [
        {"type": "button", "text": {"type": "plain_text", "text": label, "emoji": False}, "url": url}
        for label, url in links.items()
        if url is not None
    ]
    return [{"type": "actions", "elements": buttons}] if buttons else []


def _origin(notice: Notice) -> str:
    return (
        f"Draftgauge: finding {escaped(notice.finding, NAME_LIMIT)}, message {escaped(notice.message_id, NAME_LIMIT)}"
    )


def _mrkdwn(text: str) -> Block:
    # verbatim: Slack looks for no @names, #channels and URLs in what users wrote.
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _count(value: float | None) -> str:
    return "no data" if value is None else f"{value:,.0f}"
