"""Slack's Block Kit as HTML. Whatever a message holds, no markup of its own gets through.

https://docs.slack.dev/reference/block-kit/blocks, https://docs.slack.dev/messaging/formatting-message-text
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape
from typing import Any, cast
from urllib.parse import urlsplit

_TOKEN = re.compile(r"<([^<>]*)>")
_MARKS = (
    (re.compile(r"(?<![\w*])\*(?=\S)([^*\n]+)(?<=\S)\*(?![\w*])"), "strong"),
    (re.compile(r"(?<![\w_])_(?=\S)([^_\n]+)(?<=\S)_(?![\w_])"), "em"),
    (re.compile(r"`([^`\n]+)`"), "code"),
)


def html_of(payload: Mapping[str, Any]) -> str:
    """The blocks of a message; "" where it has none."""
    return "".join(_block(block) for block in _objects(payload.get("blocks")))


def mrkdwn(text: str) -> str:
    """Slack's markup: bold, italic, code, links, times."""
    pieces = _TOKEN.split(text)
    return "".join(_token(piece) if index % 2 else _plain(piece) for index, piece in enumerate(pieces))


def _block(block: dict[str, Any]) -> str:
    render = _BLOCKS.get(str(block.get("type")))
    return render(block) if render else f'<p class="context">[{escape(str(block.get("type")))}]</p>'


def _header(block: dict[str, Any]) -> str:
    return f"<h2>{_text(block.get('text'))}</h2>"


def _section(block: dict[str, Any]) -> str:
    text = block.get("text")
    fields = [f"<div>{_text(each)}</div>" for each in _objects(block.get("fields"))]
    return (f'<div class="section">{_text(text)}</div>' if text else "") + (
        f'<div class="fields">{"".join(fields)}</div>' if fields else ""
    )


def _context(block: dict[str, Any]) -> str:
    return f'<p class="context">{" ".join(_text(each) for each in _objects(block.get("elements")))}</p>'


def _actions(block: dict[str, Any]) -> str:
    buttons = [_button(each) for each in _objects(block.get("elements"))]
    return f'<div class="actions">{"".join(buttons)}</div>'


def _button(element: dict[str, Any]) -> str:
    return _link(str(element.get("url", "")), _text(element.get("text")), "button")


_BLOCKS: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "header": _header,
    "section": _section,
    "context": _context,
    "actions": _actions,
    "divider": lambda _: "<hr>",
}


def _text(value: object) -> str:
    given = _objects([value])
    if not given:
        return ""
    text = str(given[0].get("text", ""))
    return mrkdwn(text) if given[0].get("type") == "mrkdwn" else escape(text)


def _token(token: str) -> str:
    """What stands in angle brackets: a time or a link; all else is shown as it is."""
    target, _, label = token.partition("|")
    if target.startswith("!date^"):
        return f"<time>{_plain(label)}</time>"
    return _link(target, _plain(label or target), "")


def _link(url: str, label: str, style: str) -> str:
    """A link where it leads to the web, else its label."""
    try:
        leads = urlsplit(url).scheme in ("http", "https")
    except ValueError:
        leads = False
    if not leads:
        return f"<span>{label}</span>"
    attribute = f' class="{style}"' if style else ""
    return f'<a{attribute} href="{escape(url)}" rel="noopener noreferrer">{label}</a>'


def _plain(text: str) -> str:
    html = escape(text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    for pattern, tag in _MARKS:
        html = pattern.sub(rf"<{tag}>\1</{tag}>", html)
    return html.replace("\n", "<br>")


def _objects(value: object) -> list[dict[str, Any]]:
    """Those of a list that are objects; of anything else none."""
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
