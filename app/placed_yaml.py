"""YAML of which every value knows its place, so that whatever is wrong with it can be said as file:line:column."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

Path = tuple[str | int, ...]
"""Keys and list positions from the top of a document to a value."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value was written: a file with line and column from 1, or (0, 0) of something that has no lines."""

    line: int
    column: int
    source: str

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and where. ``path`` is empty for the document as a whole."""

    place: Place
    path: Path
    message: str

    def __str__(self) -> str:
        about = f"{spelled(self.path)}: " if self.path else ""
        return f"{self.place}: {about}{self.message}"


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML document as plain values, the place of each, and what was wrong with the text itself."""

    data: dict[str, Any]
    places: Mapping[Path, Place]
    problems: tuple[Problem, ...]


def spelled(path: Path) -> str:
    """``("targets", 0, "url")`` as ``targets[0].url``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def read_yaml(text: str, source: str, environment: Mapping[str, str]) -> Document:
    """Read one mapping.

    ``${NAME}`` and ``${NAME:-default}`` in values are replaced from ``environment`` and stay text, whatever they look
    like: an environment cannot bring in structure, and a token of digits stays a token. ``$${`` is a literal ``${``. A
    value of which nothing remains is left out as if its key had not been written, and so is a key without a value.
    """
    reader = _Reader(source, environment)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        reader.complain(error.problem_mark or error.context_mark, (), error.problem or "not YAML")
        node = None
    except yaml.YAMLError:
        reader.complain(None, (), "not YAML: a character that is not allowed")
        node = None
    if node is None:
        data: Any = {}
    elif isinstance(node, yaml.MappingNode):
        data = reader.value(node, ())
    else:
        reader.complain(node.start_mark, (), "must be keys and values")
        data = {}
    return Document(data, reader.places, tuple(reader.problems))


_VARIABLE = re.compile(r"\$(?P<literal>\$\{)|\$\{(?P<name>[A-Za-z_]\w*)(?P<has_default>:-(?P<default>[^}]*))?\}|\$\{")
_EMPTY = object()


class _Reader:
    def __init__(self, source: str, environment: Mapping[str, str]) -> None:
        self._source = source
        self._environment = environment
        self._constructor: Any = yaml.SafeLoader("")
        self._open: set[int] = set()
        self.places: dict[Path, Place] = {}
        self.problems: list[Problem] = []

    def complain(self, mark: yaml.Mark | None, path: Path, message: str) -> None:
        self.problems.append(Problem(self._place(mark), path, message))

    def value(self, node: yaml.Node, path: Path) -> Any:
        self.places[path] = self._place(node.start_mark)
        if id(node) in self._open:
            self.complain(node.start_mark, path, "contains itself")
            return None
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, path)
            if isinstance(node, yaml.SequenceNode):
                return self._sequence(node, path)
            return self._scalar(node, path)
        finally:
            self._open.discard(id(node))

    def _sequence(self, node: yaml.SequenceNode, path: Path) -> list[Any]:
        items: list[Any] = []
        for item in node.value:
            value = self.value(item, (*path, len(items)))
            if value is not _EMPTY:
                items.append(value)
        return items

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        self._refuse_repeats(node, path)
        try:
            self._constructor.flatten_mapping(node)
        except yaml.MarkedYAMLError as error:
            self.complain(error.problem_mark, path, error.problem or "cannot be merged")
            return {}
        result: dict[str, Any] = {}
        for key, item in node.value:
            if isinstance(key, yaml.ScalarNode):
                value = self.value(item, (*path, key.value))
                self.places[*path, key.value] = self._place(key.start_mark)
                if value is not _EMPTY and value is not None:
                    result[key.value] = value
            else:
                self.complain(key.start_mark, path, "a key must be text")
        return result

    def _refuse_repeats(self, node: yaml.MappingNode, path: Path) -> None:
        seen: dict[str, yaml.Mark] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            if key.value in seen:
                first = seen[key.value].line + 1
                self.complain(key.start_mark, (*path, key.value), f"given twice, first in line {first}")
            seen.setdefault(key.value, key.start_mark)

    def _scalar(self, node: yaml.Node, path: Path) -> Any:
        if "$" in node.value:
            expanded = self._expanded(node, path)
            if expanded != node.value:
                return expanded or _EMPTY
        try:
            return self._constructor.construct_object(node)
        except (yaml.MarkedYAMLError, ValueError):
            self.complain(node.start_mark, path, f"not a value this file can hold ({node.tag})")
            return None

    def _expanded(self, node: yaml.Node, path: Path) -> str:
        def replacement(match: re.Match[str]) -> str:
            if match["literal"]:
                return match["literal"]
            name = match["name"]
            if name is None:
                self.complain(
                    node.start_mark, path, "a ${ without NAME} or NAME:-default} after it; $${ is a literal ${"
                )
                return ""
            value = self._environment.get(name, "")
            if not value and match["has_default"]:
                return match["default"]
            if name not in self._environment:
                self.complain(node.start_mark, path, f"the environment has no {name}; ${{{name}:-default}} allows that")
            return value

        return _VARIABLE.sub(replacement, node.value)

    def _place(self, mark: yaml.Mark | None) -> Place:
        return Place(0, 0, self._source) if mark is None else Place(mark.line + 1, mark.column + 1, self._source)
