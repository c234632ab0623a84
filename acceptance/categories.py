"""Categories of requests: an ordered list of rules over what is known of a request; the first that matches wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Protocol, cast

import re2

from acceptance.series import OTHER

LONGEST_PATTERN = 1_000
PATTERN_MEMORY_BYTES = 1 << 20
"""What a compiled pattern may take: ``(a{1000}){1000}`` is refused instead of built."""

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """What is known of a request when it is categorized. None: not told, and no rule about it matches.

    category       what whoever sent the record says it is; "" where it says that there is none
    headers        lower-case name -> value
    api_key        alias of the API key, never the key
    lora           name of the adapter
    route          path or name of the route that took it
    structured     whether the output is held to a grammar, a JSON schema, or the like
    tools          whether tools were offered
    prompt_tokens  length of the prompt
    prompt         text of the prompt, for patterns; it is looked at and never kept
    """

    category: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    model: str | None = None
    api_key: str | None = None
    lora: str | None = None
    route: str | None = None
    structured: bool | None = None
    tools: bool | None = None
    temperature: float | None = None
    prompt_tokens: float | None = None
    prompt: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Span:
    """Numbers from ``at_least`` on and under ``below``; None is no limit."""

    at_least: float | None = None
    below: float | None = None

    def holds(self, value: float) -> bool:
        """Whether ``value`` lies in it."""
        return (self.at_least is None or value >= self.at_least) and (self.below is None or value < self.below)


@dataclass(frozen=True, slots=True)
class Rule:
    """Requests that are of category ``name``: those for which everything that is given holds.

    Of several values of one text any will do; ``*`` and ``?`` match as in file names. Header names are in lower case.
    """

    name: str
    headers: Mapping[str, Names] = field(default_factory=dict[str, Names])
    model: Names = ()
    api_key: Names = ()
    lora: Names = ()
    route: Names = ()
    structured: bool | None = None
    tools: bool | None = None
    temperature: Span | None = None
    prompt_tokens: Span | None = None
    prompt: str | None = None


class Categories:
    """Ordered rules, compiled. Raises ``ValueError`` for a pattern that is not RE2."""

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self._rules = tuple(_Compiled(rule) for rule in rules)
        self.names = frozenset(rule.name for rule in rules)
        self.reads_prompts = any(rule.prompt is not None for rule in rules)

    def of(self, request: Request) -> str | None:
        """The category of a request: its own, else of the first rule that matches, else ``other``.

        Without any rule it is what the request says, None where it says nothing.
        """
        if request.category or not self._rules:
            return request.category
        return next((rule.name for rule in self._rules if rule.matches(request)), OTHER)


class Pattern(Protocol):
    """A compiled pattern."""

    def search(self, text: str, /) -> object | None: ...


def compiled(pattern: str) -> Pattern:
    """A pattern of RE2, whose time is linear in the text; raises ``ValueError`` that says what is wrong with it."""
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"must not be longer than {LONGEST_PATTERN} characters")
    library: Any = re2
    options = library.Options()
    options.log_errors = False
    options.max_mem = PATTERN_MEMORY_BYTES
    try:
        return cast("Pattern", library.compile(pattern, options))
    except library.error as problem:
        raise ValueError(f"is not a pattern of RE2: {_reason(problem)}") from None


class _Compiled:
    """A rule that is ready to match."""

    def __init__(self, rule: Rule) -> None:
        self.name = rule.name
        self._headers = tuple(rule.headers.items())
        self._texts: list[tuple[str, Names]] = [
            (name, values) for name in ("model", "api_key", "lora", "route") if (values := getattr(rule, name))
        ]
        self._flags = [
            (name, wanted) for name in ("structured", "tools") if (wanted := getattr(rule, name)) is not None
        ]
        self._spans: list[tuple[str, Span]] = [
            (name, span) for name in ("temperature", "prompt_tokens") if (span := getattr(rule, name)) is not None
        ]
        self._prompt = None if rule.prompt is None else compiled(rule.prompt)

    def matches(self, request: Request) -> bool:
        """Whether everything holds; the prompt last, since it takes longest."""
        return (
            all(_is_one(request.headers.get(name), values) for name, values in self._headers)
            and all(_is_one(getattr(request, name), values) for name, values in self._texts)
            and all(getattr(request, name) is wanted for name, wanted in self._flags)
            and all((value := getattr(request, name)) is not None and span.holds(value) for name, span in self._spans)
            and (self._prompt is None or (request.prompt is not None and bool(self._prompt.search(request.prompt))))
        )


def _is_one(value: str | None, names: Names) -> bool:
    return value is not None and any(fnmatchcase(value, name) for name in names)


def _reason(problem: Exception) -> str:
    told = problem.args[0] if problem.args else problem
    return told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
