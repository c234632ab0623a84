"""Settings: what channels are configured with, and what of it must never be seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated
from urllib.parse import parse_qsl, unquote, urlsplit

import httpx
from pydantic import AfterValidator, ConfigDict, Field, SecretStr

STRICT = ConfigDict(extra="forbid", hide_input_in_errors=True)
"""Unknown keys are errors, and errors do not quote values: they may be secrets."""

SHORTEST_URL_PART = 8
"""Shorter parts of a URL (``api``, ``v1``) are no secrets; blotting them out would make reasons unreadable."""
SHORTEST_SECRET = 4


def _web_url(secret: SecretStr) -> SecretStr:
    try:
        url = httpx.URL(secret.get_secret_value())
    except httpx.InvalidURL:
        raise ValueError("not a URL") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("must be an http:// or https:// URL with a host")
    if url.userinfo:
        raise ValueError("must not hold a user or password: use a header")
    return secret


def _header_value(secret: SecretStr) -> SecretStr:
    value = secret.get_secret_value()
    if not value or not value.isascii() or not value.isprintable() or value != value.strip():
        raise ValueError("must be printable ASCII in one line")
    return secret


SecretUrl = Annotated[SecretStr, AfterValidator(_web_url)]
"""A URL that may hold a token in its path (Slack's does) or its query: it is treated as a secret."""

SecretHeader = Annotated[SecretStr, AfterValidator(_header_value)]

TimeoutSeconds = Annotated[float, Field(gt=0, le=60)]
"""How long one try may take in all, from connecting to the end of the answer."""


def origin(url: str) -> str:
    """Scheme, host and port: what may be shown of a URL."""
    parts = httpx.URL(url)
    port = f":{parts.port}" if parts.port is not None else ""
    host = f"[{parts.host}]" if ":" in parts.host else parts.host
    return f"{parts.scheme}://{host}{port}"


def url_secrets(url: str) -> Iterator[str]:
    """Every part of ``url`` by which somebody could use it, and which an answer may echo."""
    split = urlsplit(url)
    parts = [url, split.path, *split.path.split("/"), split.query, *(value for _, value in parse_qsl(split.query))]
    return (part for part in parts if len(part) >= SHORTEST_URL_PART)


class Redactor:
    """Blots secrets out of text before anybody sees it."""

    def __init__(self, secrets: Iterable[str]) -> None:
        spellings = {spelling for secret in secrets for spelling in (secret, unquote(secret))}
        self._secrets = sorted((text for text in spellings if len(text) >= SHORTEST_SECRET), key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text
