"""What a record shows of the request: attributes by which categories are told. Prompts are looked at, never kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, cast

import orjson

from acceptance.categories import Request
from collectors.document import Object, inner
from collectors.records import label

LONGEST_PROMPT = 65_536
"""Characters of a prompt that patterns look at."""
LONGEST_VALUE = 200
MOST_HEADERS = 100

_BODY = ("messages", "prompt", "text", "input_ids", "input", "sampling_params")
_STRUCTURED = (
    *("json_schema", "regex", "ebnf", "structural_tag", "structured_outputs"),
    *("guided_json", "guided_regex", "guided_choice", "guided_grammar"),
)
_NOTHING: Object = MappingProxyType({})


def request_of(document: Object, *, with_prompt: bool) -> Request:
    """What is told: by a record as it is posted, or by the body of a request itself."""
    body = _body(document)
    shown = body is not None
    body = body if body is not None else _NOTHING
    sampling = inner(body, "sampling_params")
    return Request(
        category=label(document.get("category")),
        headers=_headers(document),
        model=_text(body.get("model"), document.get("model")),
        api_key=_text(document.get("api_key_alias")),
        lora=_text(document.get("lora"), body.get("lora_path"), body.get("lora")),
        route=_text(document.get("route")),
        structured=_is_structured(body, sampling) if shown else None,
        tools=bool(body.get("tools")) if shown else None,
        temperature=_number(body.get("temperature"), sampling.get("temperature")),
        prompt_tokens=_prompt_tokens(document),
        prompt="\n".join(_texts(body))[:LONGEST_PROMPT] if with_prompt and shown else None,
    )


def _body(document: Object) -> Object | None:
    """The request's body, None where the document does not show it."""
    for name in ("request", "obj"):
        if isinstance(document.get(name), dict):
            return inner(document, name)
    parameters = document.get("request_parameters")
    if isinstance(parameters, str):
        try:
            loaded: Any = orjson.loads(parameters)
        except orjson.JSONDecodeError:
            return None
        return cast("Object", loaded) if isinstance(loaded, dict) else None
    # A result of SGLang's has its output under "text" too.
    is_result = "meta_info" in document or "choices" in document
    return document if not is_result and any(name in document for name in _BODY) else None


def _headers(document: Object) -> Mapping[str, str]:
    listed = list(inner(document, "headers").items())[:MOST_HEADERS]
    return {name.lower(): value[:LONGEST_VALUE] for name, value in listed if isinstance(value, str)}


def _is_structured(body: Object, sampling: Object) -> bool:
    kind = inner(body, "response_format").get("type")
    return kind not in (None, "text") or any(part.get(name) for part in (body, sampling) for name in _STRUCTURED)


def _prompt_tokens(document: Object) -> float | None:
    return _number(
        document.get("prompt_tokens"),
        inner(document, "usage").get("prompt_tokens"),
        inner(document, "meta_info").get("prompt_tokens"),
    )


def _texts(body: Object) -> Iterator[str]:
    """The texts of a prompt, as far as there is any use in reading them."""
    for name in ("prompt", "text", "input"):
        yield from _strings(body.get(name))
    messages = body.get("messages")
    for message in cast("list[object]", messages) if isinstance(messages, list) else ():
        if isinstance(message, dict):
            yield from _strings(cast("Object", message).get("content"))


def _strings(value: object) -> Iterator[str]:
    """Of a text, of a list of texts, or of the parts of a message's content."""
    for item in cast("list[object]", value) if isinstance(value, list) else (value,):
        text = cast("Object", item).get("text") if isinstance(item, dict) else item
        if isinstance(text, str):
            yield text


def _text(*values: object) -> str | None:
    return next((value[:LONGEST_VALUE] for value in values if isinstance(value, str) and value), None)


def _number(*values: object) -> float | None:
    for value in values:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None
