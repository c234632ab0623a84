"""Flags in remedies: what somebody would copy out of the line that says what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

_VALUE = r"""'[^']*'|"[^"]*"|(?=[\w./:-]*[0-9_/A-Z])[\w./:-]*[\w/]"""
"""In quotes, or with something that no English word has: what follows a flag in a sentence is often the next word."""

_LINE = re.compile(
    rf"(?P<verb>[A-Z][a-z]+) (?P<name>--[a-z][a-z0-9-]+)(?:[ =](?P<value>{_VALUE}))?(?P<unset> unset\b)?"
)

_VERBS: Mapping[str, str] = MappingProxyType(
    {
        "Drop": "Remove",
        "Remove": "Remove",
        "Leave": "Remove",
        "Set": "Set",
        "Replace": "Replace",
        "Update": "Update",
        "Raise": "Raise",
        "Lower": "Lower",
    }
)


def flag_of(line: str) -> tuple[str, str] | None:
    """What a line says to do about one flag: ``("Remove", "--disable-cuda-graph")``.

    None unless it begins with just that: a flag taken out of the middle of a sentence could be the one to keep. None
    also where the flag's value is only sketched ("...").
    """
    found = _LINE.match(line)
    verb = None if found is None else _VERBS.get(found["verb"])
    if found is None or verb is None or "..." in (found["value"] or ""):
        return None
    if found["verb"] == "Leave" and not found["unset"]:
        return None
    return verb, found["name"] if found["value"] is None else f"{found['name']} {found['value']}"
