"""Notices: messages as channels read them, with everything checked once."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from store.state import Message

CUT = " … [cut]"
NAME_LIMIT = 200
TEXT_LIMIT = 2000
URL_LIMIT = 2000
MOST_REMEDIES = 10
LATEST_TIME = 1e11


@dataclass(frozen=True, slots=True)
class Notice:
    """What there is to tell. Texts are one line each and of limited length; None is "no data".

    measure   what ``value`` is a value of
    since, fired_at, resolved_at   unix seconds
    link, runbook   http(s) URLs
    """

    message_id: str
    alert_key: str
    resolved: bool
    created_at: float
    title: str
    finding: str
    severity: str
    target: str | None
    group: str | None
    rank: str | None
    category: str | None
    model: str | None
    drafter: str | None
    engine: str | None
    measure: str | None
    value: float | None
    lower: float | None
    upper: float | None
    threshold: float | None
    steps: float | None
    requests: float | None
    source: str | None
    since: float | None
    fired_at: float | None
    resolved_at: float | None
    why: str | None
    cause: str | None
    remedy: tuple[str, ...]
    link: str | None
    runbook: str | None

    @staticmethod
    def of(message: Message) -> Notice:
        """The notice of any message: what is missing or unfit in its body is None."""
        body = message.body
        finding = _text(body, "finding") or "unknown"
        return Notice(
            message_id=one_line(message.id, NAME_LIMIT),
            alert_key=message.alert_key,
            resolved=message.kind == "resolved",
            created_at=message.created_at,
            title=_text(body, "title") or finding,
            finding=finding,
            severity=_text(body, "severity") or "unknown",
            target=_text(body, "target"),
            group=_text(body, "group"),
            rank=_text(body, "rank"),
            category=_text(body, "category"),
            model=_text(body, "model"),
            drafter=_text(body, "drafter"),
            engine=_text(body, "engine"),
            measure=_text(body, "measure"),
            value=_number(body, "value"),
            lower=_number(body, "lower"),
            upper=_number(body, "upper"),
            threshold=_number(body, "threshold"),
            steps=_number(body, "steps"),
            requests=_number(body, "requests"),
            source=_text(body, "source"),
            since=_time(body, "since"),
            fired_at=_time(body, "fired_at"),
            resolved_at=_time(body, "resolved_at"),
            why=_text(body, "why", TEXT_LIMIT),
            cause=_text(body, "cause", TEXT_LIMIT),
            remedy=_texts(body, "remedy"),
            link=_url(body, "link"),
            runbook=_url(body, "runbook"),
        )

    @property
    def severity_word(self) -> str:
        return "RESOLVED" if self.resolved else self.severity.upper()

    def figure(self) -> str:
        """``acc_len 1.04 (1.01-1.07), threshold 1.10``."""
        if self.value is None:
            return "no data"
        text = f"{self.measure or 'value'} {number(self.value)}"
        if self.lower is not None and self.upper is not None:
            text += f" ({number(self.lower)}-{number(self.upper)})"
        if self.threshold is not None:
            text += f", threshold {number(self.threshold)}"
        return text


def number(value: float) -> str:
    """Two decimals for lengths and ratios, three digits for what would vanish in them."""
    return f"{value:.2f}" if value == 0 or 0.1 <= abs(value) < 1e6 else f"{value:.3g}"


def one_line(value: str, limit: int) -> str:
    """Text that cannot pretend to be more than a text: no line breaks, no invisible characters, visibly cut."""
    text = " ".join("".join(_shown(character) for character in value[: 4 * limit]).split())
    return cut(text, limit) if len(text) > limit or len(value) > 4 * limit else text


def cut(text: str, limit: int) -> str:
    """At most ``limit`` characters that say that something was left off."""
    return text[: limit - len(CUT)] + CUT


def _shown(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Cc", "Zl", "Zp"):
        return " "
    if category == "Cf":  # direction overrides and zero-width characters
        return ""
    return "\ufffd" if category == "Cs" else character  # half of a surrogate pair is no UTF-8


def _text(body: Mapping[str, Any], key: str, limit: int = NAME_LIMIT) -> str | None:
    value = body.get(key)
    return None if value is None else one_line(str(value), limit)


def _texts(body: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = body.get(key) or ()
    given = [values] if isinstance(values, str) else list(values)
    texts = [one_line(str(value), TEXT_LIMIT) for value in given[:MOST_REMEDIES]]
    if len(given) > MOST_REMEDIES:
        texts.append(f"… [cut: {len(given) - MOST_REMEDIES} more]")
    return tuple(text for text in texts if text)


def _number(body: Mapping[str, Any], key: str) -> float | None:
    value = body.get(key)
    return float(value) if isinstance(value, (int, float)) and abs(value) < 1e300 else None


def _time(body: Mapping[str, Any], key: str) -> float | None:
    seconds = _number(body, key)
    return seconds if seconds is not None and 0 <= seconds < LATEST_TIME else None


def _url(body: Mapping[str, Any], key: str) -> str | None:
    value = body.get(key)
    if not isinstance(value, str) or len(value) > URL_LIMIT or not value.isprintable() or any(map(str.isspace, value)):
        return None
    try:
        url = httpx.URL(value)
    except httpx.InvalidURL:
        return None
    return value if url.scheme in ("http", "https") and url.host else None
