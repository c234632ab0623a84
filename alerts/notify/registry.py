"""The kinds of channel there are. A new kind is one folder with a ``SETTINGS``; nothing else names kinds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter, ValidationError

import alerts.notify
from alerts.notify.channel import ChannelSettings


class BadChannel(ValueError):
    """A channel that cannot be configured like this.

    ``problems`` are (key, reason); the key is "" where it is about several. Values are not quoted: they may be secrets.
    """

    def __init__(self, name: str, problems: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"channel {name}: {f'{key}: ' if key else ''}{reason}" for key, reason in problems))
        self.name = name
        self.problems = problems


@cache
def kinds() -> Mapping[str, type[ChannelSettings]]:
    """Kind (the folder's name) -> its settings."""
    found: dict[str, type[ChannelSettings]] = {}
    for module in iter_modules(alerts.notify.__path__):
        if module.ispkg:
            found[module.name] = import_module(f"alerts.notify.{module.name}").SETTINGS
    return MappingProxyType(found)


def channel_settings(name: str, given: Mapping[str, Any]) -> ChannelSettings:
    """Settings of ``{"kind": "slack", "url": ..., ...}``, environment variables already put in.

    Raises ``BadChannel``, which names every key that is unknown, missing or wrong.
    """
    rest = {key: value for key, value in given.items() if key != "kind"}
    kind = given.get("kind")
    settings = kinds().get(kind) if isinstance(kind, str) else None
    if settings is None:
        raise BadChannel(name, [("kind", f"must be one of {', '.join(sorted(kinds()))}")])
    try:
        return TypeAdapter(settings).validate_python(rest)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        raise BadChannel(name, [(".".join(map(str, each["loc"])), each["msg"]) for each in problems]) from None
