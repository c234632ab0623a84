"""``draftgauge categories test``: which categories requests would fall into, without their prompts."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from acceptance.categories import Categories, Request
from collectors.posted import Unreadable, documents_in
from collectors.requested import request_of

EXAMPLES = 3
UNCATEGORIZED = "(none)"
SHOWN = ("model", "api_key", "lora", "route", "structured", "tools", "temperature", "prompt_tokens")


@dataclass(slots=True)
class Trial:
    """What rules make of requests: category (None: none) -> how many, and the first of them by line."""

    counts: dict[str | None, int] = field(default_factory=lambda: defaultdict[str | None, int](int))
    examples: dict[str | None, list[tuple[int, Request]]] = field(default_factory=dict)
    rejected: list[int] = field(default_factory=list[int])


def tried(body: bytes, categories: Categories) -> Trial:
    """Every request of NDJSON or of a JSON array; raises ``Unreadable``."""
    trial = Trial()
    for line, document in documents_in(body, most=None):
        if document is None:
            trial.rejected.append(line)
            continue
        request = request_of(document, with_prompt=categories.reads_prompts)
        category = categories.of(request)
        trial.counts[category] += 1
        examples = trial.examples.setdefault(category, [])
        if len(examples) < EXAMPLES:
            examples.append((line, request))
    return trial


def report(body: bytes, categories: Categories, *, as_json: bool) -> int:
    """Try and print; 1 where nothing or not everything was a request, 2 where the file cannot be read."""
    try:
        trial = tried(body, categories)
    except Unreadable as problem:
        sys.stderr.write(f"draftgauge: {problem}\n")
        return 2
    if as_json:
        sys.stdout.write(orjson.dumps(_document(trial), option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in _lines(trial))
    return 1 if trial.rejected or not trial.counts else 0


def _document(trial: Trial) -> dict[str, Any]:
    return {
        "categories": [
            {
                "category": category,
                "requests": count,
                "examples": [{"line": line, **_shown(request)} for line, request in trial.examples[category]],
            }
            for category, count in _most_first(trial)
        ],
        "rejected": trial.rejected,
    }


def _lines(trial: Trial) -> Iterator[str]:
    for category, count in _most_first(trial):
        yield f"{count:>9,}  {(category or UNCATEGORIZED).encode('unicode_escape').decode()}"
        for line, request in trial.examples[category]:
            told = ", ".join(f"{name} {value!r}" for name, value in _shown(request).items())
            yield f"{'':11}line {line}: {told or 'tells nothing that rules look at'}"
    if trial.rejected:
        first = ", ".join(map(str, trial.rejected[:EXAMPLES]))
        more = ", ..." if len(trial.rejected) > EXAMPLES else ""
        yield f"{len(trial.rejected):>9,}  not a JSON object (line {first}{more})"


def _most_first(trial: Trial) -> list[tuple[str | None, int]]:
    return sorted(trial.counts.items(), key=lambda item: (-item[1], item[0] or ""))


def _shown(request: Request) -> dict[str, Any]:
    """What an example shows: names of headers without their values, which may be secrets; never the prompt."""
    told = {name: value for name in SHOWN if (value := getattr(request, name)) is not None}
    return {**told, "headers": sorted(request.headers)} if request.headers else told
