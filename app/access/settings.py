"""Access as it is configured."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Annotated, cast

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, StringConstraints, model_validator

from app.access.roles import Role
from app.fields import Flag, Name, Seconds, SecretFile, SecretLine, Section

SHORTEST_TOKEN = 20
FEWEST_CHARACTERS = 8

Network = IPv4Network | IPv6Network


def _hard_to_guess(secret: SecretStr) -> SecretStr:
    text = secret.get_secret_value()
    if len(text) < SHORTEST_TOKEN or len(set(text)) < FEWEST_CHARACTERS:
        raise ValueError(
            f"must have at least {SHORTEST_TOKEN} characters, {FEWEST_CHARACTERS} of them different "
            "(say `openssl rand -hex 24`)"
        )
    return secret


def _networks(value: object) -> object:
    items = cast("list[object]", value if isinstance(value, list) else [value])
    try:
        return tuple(ip_network(item) if isinstance(item, str) else item for item in items)
    except ValueError:
        raise ValueError("must be IP addresses or networks (say 10.0.0.5 or 10.0.0.0/24)") from None


def _header(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9-]+", value):
        raise ValueError("must be the name of a header (say X-Forwarded-User)")
    if value.lower() in ("authorization", "cookie", "host", "origin", "x-forwarded-for", "x-forwarded-proto"):
        raise ValueError("must be a header that the proxy sets for this and nothing else")
    return value.lower()


class TokenEntry(Section):
    """A token, and what those may do who have it."""

    name: Name = Field(description="who has it, for our log; several programs should not share one")
    role: Role = Field(
        description="`viewer` reads, `editor` also changes things, `agent` posts records and does nothing else"
    )
    token: Annotated[SecretLine, AfterValidator(_hard_to_guess)] | None = Field(
        default=None, description="the token, of 20 characters or more; write `${NAME}` to keep it in the environment"
    )
    token_file: Annotated[SecretFile, AfterValidator(_hard_to_guess)] | None = Field(
        default=None, description="file that holds the token, in place of `token`; read at the start"
    )

    @model_validator(mode="after")
    def _one_token(self) -> TokenEntry:
        if (self.token is None) == (self.token_file is None):
            raise ValueError("needs a token or a token_file, and not both")
        return self

    @property
    def secret(self) -> str:
        """The token."""
        given = self.token or self.token_file
        assert given is not None
        return given.get_secret_value()


class Access(Section):
    """Who may do what."""

    tokens: Annotated[tuple[TokenEntry, ...], Field(strict=False)] = Field(
        default=(), description="who may come in with a token"
    )
    allow_anonymous: Flag = Field(
        default=False, description="whoever brings no token may read; on a loopback address without tokens anybody may"
    )
    proxy_header: Annotated[str, StringConstraints(max_length=100), AfterValidator(_header)] | None = Field(
        default=None, description="header in which a proxy that logs people in says who it is (say X-Forwarded-User)"
    )
    proxy_role: Role = Field(default="viewer", description="what those may do whom `access.proxy_header` names")
    trusted_proxies: Annotated[tuple[Network, ...], BeforeValidator(_networks), Field(strict=False)] = Field(
        default=(),
        description="addresses or networks of those proxies; the header counts for nothing from elsewhere",
    )
    session_lifetime: Seconds = Field(
        default=7 * 86400.0, ge=300, description="how long a browser stays logged in after it was last used"
    )

    @model_validator(mode="after")
    def _complete(self) -> Access:
        if self.proxy_header is not None and not self.trusted_proxies:
            raise ValueError("proxy_header needs trusted_proxies: anybody could send the header")
        for problem in _repeated(self.tokens):
            raise ValueError(problem)
        return self

    @property
    def asks(self) -> bool:
        """Whether there is any way in to ask for."""
        return bool(self.tokens) or self.proxy_header is not None

    def anonymous_role(self, host: str) -> Role | None:
        """What those may do who do not say who they are, where the service listens on ``host``."""
        if not self.asks and is_loopback(host):
            return "editor"
        return "viewer" if self.allow_anonymous else None


def is_loopback(host: str) -> bool:
    """Whether an address to listen on is reached from this machine only. A name other than localhost may be any."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _repeated(tokens: tuple[TokenEntry, ...]) -> Iterator[str]:
    names: set[str] = set()
    secrets: set[str] = set()
    for entry in tokens:
        if entry.name in names:
            yield f"two tokens are called {entry.name!r}"
        if entry.secret in secrets:
            yield f"the token of {entry.name!r} is another one's too"
        names.add(entry.name)
        secrets.add(entry.secret)
