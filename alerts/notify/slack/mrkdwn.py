"""Text in Slack's markup that shows what it says, mentions nobody and links nowhere.

https://docs.slack.dev/messaging/formatting-message-text
"""

from __future__ import annotations

import re

from acceptance.query import format_time
from alerts.notify.notice import CUT

ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
BRACKETS = {"<": "‹", ">": "›"}
LOOKALIKES = {"`": "ˋ", "*": "∗", "_": "ˍ", "~": "∼", ":": "∶", "@": "＠"}
"""Slack has no escape for its formatting characters: where they would format, they are replaced."""

_FORMATTING = re.compile(
    r"`"
    # Inside a word these are literal, and names are full of them.
    r"|(?<![^\W_])[*_~]|[*_~](?![^\W_])"
    r"|:(?=[\w+'-]*[a-z][\w+'-]*:)"
    r"|@(?=here|channel|everyone)"
)


def escaped(text: str, limit: int) -> str:
    """``text`` as mrkdwn of at most ``limit`` UTF-16 units, escapes included (Slack counts them), visibly cut."""
    harmless = _FORMATTING.sub(lambda match: LOOKALIKES[match[0]], text)
    return _within([ENTITIES.get(character, character) for character in harmless], limit)


def plain(text: str, limit: int) -> str:
    """``text`` for a plain_text object: it knows no markup, but its angle brackets might yet be read as some."""
    return _within([BRACKETS.get(character, character) for character in text], limit)


def date(seconds: float) -> str:
    """A time that Slack shows in the reader's own zone, and elsewhere in UTC."""
    whole = int(seconds)
    return f"<!date^{whole}^{{date_short_pretty}} {{time_secs}}|{format_time(whole)}>"


def _within(pieces: list[str], limit: int) -> str:
    """The pieces in one, whole ones left off at the end if that is longer than ``limit``."""
    if sum(map(_length, pieces)) <= limit:
        return "".join(pieces)
    room, kept = limit - len(CUT), list[str]()
    for piece in pieces:
        room -= _length(piece)
        if room < 0:
            break
        kept.append(piece)
    return "".join(kept) + CUT


def _length(piece: str) -> int:
    return len(piece.encode("utf-16-le")) // 2
