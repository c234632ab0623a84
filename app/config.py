"""The configuration from its file, the environment and the command line. All that is wrong with it is said at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from alerts.detectors import detectors
from alerts.findings import findings
from alerts.notify.registry import BadChannel, channel_settings
from app import placed_yaml
from app.access.settings import is_loopback
from app.placed_yaml import Document, Place, Problem, read_yaml
from app.settings import Config, name_of

__all__ = ["Config", "ConfigError", "load"]

COMMAND_LINE = Place(0, 0, "command line")

_Found = tuple[placed_yaml.Path, str]


class ConfigError(Exception):
    """The configuration cannot be used. ``problems`` is all of what is wrong, in the order of the file."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.place.line, problem.place.column)))
        super().__init__("\n".join(str(problem) for problem in self.problems))


def load(
    path: str | Path | None, overrides: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None
) -> Config:
    """The configuration of a file (None: the defaults) with ``overrides`` laid over it; raises ``ConfigError``.

    ``overrides`` has the shape of the file. What is None in it was not given; its lists are added to those of the
    file; its paths are ``pathlib.Path`` and relative to the working directory, those of the file to the file.
    """
    document = _read(path, os.environ if environment is None else environment)
    places = dict(document.places)
    data = _laid_over(document.data, overrides or {}, (), places)
    base = Path() if path is None else Path(path).absolute().parent
    config, found = _checked(data, base)
    problems = list(document.problems)
    for where, message in found:
        # Of a value that could not be read, everything else that would be wrong is an echo.
        if not any(problem.path[: len(where)] == where for problem in document.problems):
            problems.append(Problem(_place(where, places), where, message))
    if config is None or problems:
        raise ConfigError(problems)
    return config


def _read(path: str | Path | None, environment: Mapping[str, str]) -> Document:
    if path is None:
        return Document({}, {(): COMMAND_LINE}, ())
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigError([Problem(Place(0, 0, str(path)), (), f"cannot be read: {reason}")]) from None
    return read_yaml(text, str(path), environment)


def _laid_over(
    below: Mapping[str, Any], above: Mapping[str, Any], path: placed_yaml.Path, places: dict[placed_yaml.Path, Place]
) -> dict[str, Any]:
    result = dict(below)
    for key, value in above.items():
        here = (*path, key)
        known = below.get(key)
        if isinstance(value, Mapping):
            result[key] = _laid_over(dict(_items(known)), cast("Mapping[str, Any]", value), here, places)
        elif isinstance(value, list):
            listed = cast("list[Any]", known) if isinstance(known, list) else []
            result[key] = [*listed, *cast("list[Any]", value)]
            places.update(((*here, index), COMMAND_LINE) for index in range(len(listed), len(result[key])))
        elif value is not None:
            result[key] = value
            places[here] = COMMAND_LINE
    return result


def _place(path: placed_yaml.Path, places: Mapping[placed_yaml.Path, Place]) -> Place:
    """Of the value, else of what it would be in."""
    known = (path[:length] for length in range(len(path), -1, -1))
    return next((places[each] for each in known if each in places), COMMAND_LINE)


def _checked(data: Mapping[str, Any], base: Path) -> tuple[Config | None, list[_Found]]:
    channels, found = _channels(data.get("channels", {}))
    found += _twice(data.get("targets"))
    found += _unknown_channels(data.get("routes"), data.get("channels", {}))
    found += _unknown_thresholds(data.get("thresholds"))
    try:
        config = Config.model_validate({**data, "channels": channels}, context={"base": base})
    except ValidationError as error:
        return None, found + [_told(detail) for detail in error.errors(include_url=False, include_input=False)]
    return config, found + _open_to_everybody(config)


def _open_to_everybody(config: Config) -> list[_Found]:
    access, host = config.access, config.listen.host
    if access.asks or access.allow_anonymous or is_loopback(host):
        return []
    reason = (
        f"{host} can be reached from other machines, and no token is asked for: set access.tokens, or let everybody "
        "read with --allow-anonymous (access.allow_anonymous: true)"
    )
    return [(("listen", "host"), reason)]


def _channels(given: Any) -> tuple[dict[str, Any], list[_Found]]:
    """Settings by name. The channels' kinds check their own."""
    channels: dict[str, Any] = {}
    found: list[_Found] = [] if isinstance(given, dict) else [(("channels",), "must be NAME: settings")]
    for name, settings in _items(given):
        if not isinstance(settings, dict):
            found.append((("channels", name), "must be settings: a kind and what it needs"))
            continue
        try:
            channels[name] = channel_settings(name, cast("dict[str, Any]", settings))
        except BadChannel as error:
            found += [(("channels", name, *key.split(".")), _plain(reason)) for key, reason in error.problems]
    return channels, found


def _twice(targets: Any) -> Iterator[_Found]:
    """Targets by a name that another one has: what they tell would be mixed up."""
    seen: set[str] = set()
    for index, target in enumerate(cast("list[Any]", targets) if isinstance(targets, list) else []):
        given = {key: value for key, value in _items(target) if isinstance(value, str)}
        name = name_of(given.get("name"), given.get("url"))
        if name in seen:
            yield ("targets", index), f"another target is called {name!r} already: give it a name of its own"
        if name is not None:
            seen.add(name)


def _unknown_channels(routes: Any, channels: Any) -> Iterator[_Found]:
    known = [name for name, _ in _items(channels)]
    for severity, names in _items(routes):
        for index, name in enumerate(cast("list[Any]", names) if isinstance(names, list) else [names]):
            if isinstance(name, str) and name not in known:
                where = ("routes", severity, index) if isinstance(names, list) else ("routes", severity)
                yield where, f"no channel is called {name!r}{_instead(name, known)}"


def _unknown_thresholds(overrides: Any) -> Iterator[_Found]:
    for index, override in enumerate(cast("list[Any]", overrides) if isinstance(overrides, list) else []):
        given = dict(_items(override))
        name = given.get("finding")
        if not isinstance(name, str):
            continue
        entry = findings().get(name)
        if entry is None:
            yield ("thresholds", index, "finding"), f"no finding is called {name!r}{_instead(name, findings())}"
            continue
        detector = detectors()[entry.detector]
        known = sorted(detector.thresholds | detector.optional)
        for threshold, _ in _items(given.get("set")):
            if threshold not in known:
                reason = f"not a threshold of {name}, which has {', '.join(known) or 'none'}"
                yield ("thresholds", index, "set", threshold), reason


def _told(detail: ErrorDetails) -> _Found:
    """A problem of pydantic's in the words of the file."""
    where = tuple(part for part in detail["loc"] if part != "[key]")
    if detail["type"] == "extra_forbidden":
        known = _keys_beside(where)
        return where, f"unknown key{_instead(str(where[-1]), known)}; known here: {', '.join(known)}"
    return where, _WORDS.get(detail["type"]) or _plain(detail["msg"])


_WORDS = {
    "missing": "is missing",
    "bool_type": "must be true or false",
    "string_type": "must be text: put it in quotes",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "tuple_type": "must be a list",
    "dict_type": "must be keys and values",
    "model_type": "must be keys and values",
}


def _plain(message: str) -> str:
    """Pydantic's message without what only programmers read."""
    text = message.removeprefix("Value error, ").removeprefix("Input ")
    return _PLAIN.get(text) or text[:1].lower() + text[1:]


_PLAIN = {"Unexpected keyword argument": "unknown key", "Missing required argument": "is missing"}


def _keys_beside(path: placed_yaml.Path) -> list[str]:
    """Keys that may stand where ``path`` does."""
    model: type[BaseModel] = Config
    for part in path[:-1]:
        if isinstance(part, str):
            model = _model_in(model.model_fields[part].annotation) or model
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The section that a type is, or holds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for inner in get_args(annotation) if (model := _model_in(inner)) is not None), None)


def _instead(name: str, known: Iterable[str]) -> str:
    """`` (do you mean x?)`` where something known is spelled much the same."""
    close = get_close_matches(name, list(known), 1)
    return f" (do you mean {close[0]}?)" if close else ""


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(cast("dict[str, Any]", value).items()) if isinstance(value, dict) else []
