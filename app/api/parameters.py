"""Query parameters: what there is, said once for checking and for OpenAPI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from fastapi import Request

from acceptance.query import BadQuery, parse_duration
from acceptance.series import DIMENSIONS
from acceptance.window import SOURCES

MOST_VALUES = 200
"""Values of one filter."""
MOST_DELIVERIES = 1000

_TIME = "ISO 8601 (UTC unless it names a zone), unix seconds, or `now-1h`"
_FILTER = "only this value; repeat it for several. A series whose source cannot tell it does not match"

PARAMETERS: Mapping[str, str] = MappingProxyType(
    {
        "from": f"start, itself excluded: {_TIME}; an hour before `to` where it is not given",
        "to": f"end: {_TIME}; now where it is not given",
        "step": "bucket width (`60`, `30s`, `5m`, `1h`); one bucket where it is not given",
        "by": f"dimensions to tell apart, repeated or with commas ({', '.join(DIMENSIONS)}); `target` where it is not "
        "given, none where it is empty",
        "source": f"only this source ({', '.join(SOURCES)}); the best of each target where it is not given",
        "offset": "move the range this long into the past (`1d`)",
        "format": "`json` or `csv`",
        "resolved": "also alerts resolved within this time (`24h`)",
        "limit": f"most messages, 1 to {MOST_DELIVERIES}; 100 where it is not given",
        "alert": "only messages about the alert of this key",
        **dict.fromkeys(DIMENSIONS, _FILTER),
    }
)
"""Name -> what it means. A name means the same wherever it is allowed."""

ACCEPTANCE = ("from", "to", "step", "by", *DIMENSIONS, "source", "offset", "format")
LATEST = (*DIMENSIONS, "source", "format")
_REPEATED = frozenset({"by", *DIMENSIONS})


def only(names: Iterable[str]) -> Callable[[Request], Awaitable[None]]:
    """A dependency that refuses parameters beside ``names``: a misspelt filter would answer for everything."""
    allowed = frozenset(names)

    async def check(request: Request) -> None:
        for name in request.query_params:
            if name not in allowed:
                known = f"; known here: {', '.join(sorted(allowed))}" if allowed else "; there are none here"
                raise BadQuery(name[:40], f"unknown parameter{known}")
            values = request.query_params.getlist(name)
            if len(values) > 1 and name not in _REPEATED:
                raise BadQuery(name, "given more than once")
            if len(values) > MOST_VALUES:
                raise BadQuery(name, f"more than {MOST_VALUES} values")

    return check


def openapi(names: Iterable[str]) -> list[dict[str, Any]]:
    """The parameters in OpenAPI's form."""
    text = {"type": "string"}
    return [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": PARAMETERS[name],
            "schema": {"type": "array", "items": text} if name in _REPEATED else text,
        }
        for name in names
    ]


def grouped(request: Request, *, without: Iterable[str] = ()) -> dict[str, list[str]]:
    """Name -> its values, as ``AcceptanceQuery.parse`` takes them."""
    return {name: request.query_params.getlist(name) for name in request.query_params.keys() - frozenset(without)}


def choice(request: Request, name: str, values: tuple[str, ...]) -> str:
    """One of ``values``, the first where it is not given."""
    value = request.query_params.get(name) or values[0]
    if value not in values:
        raise BadQuery(name, f"must be {' or '.join(values)}")
    return value


def whole(request: Request, name: str, default: int, most: int) -> int:
    """A whole number from 1 to ``most``."""
    text = request.query_params.get(name) or str(default)
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= most):
        raise BadQuery(name, f"must be a whole number from 1 to {most}")
    return int(text)


def duration(request: Request, name: str) -> float | None:
    """Seconds, None where it is not given."""
    text = request.query_params.get(name)
    return parse_duration(name, text) if text else None
