"""Who is calling: told by a trusted proxy, a token or a session; else anonymous."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest
from ipaddress import ip_address
from secrets import token_bytes
from typing import Literal

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import Scope

from app.access.damping import Damper
from app.access.roles import GRANTS, Role
from app.access.sessions import COOKIE, Session, Sessions
from app.access.settings import Access, Network

Way = Literal["anonymous", "proxy", "token", "session"]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls and what they may do; ``role`` None may do nothing."""

    name: str
    role: Role | None
    way: Way
    session: Session | None = None

    def may(self, role: Role) -> bool:
        return self.role is not None and role in GRANTS[self.role]


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has a token. The token itself is not kept."""

    name: str
    role: Role
    digest: bytes
    session_key: bytes


@dataclass(frozen=True, slots=True)
class Refused:
    """A token that was not taken. ``wait_seconds`` above 0: too many were wrong, and none is looked at until then."""

    wait_seconds: float = 0.0


class Callers:
    """Knows callers by what they bring. ``host`` is the address listened on, ``clock`` gives unix seconds."""

    def __init__(self, access: Access, host: str, clock: Callable[[], float]) -> None:
        self._access = access
        self._anonymous = Caller("anonymous", access.anonymous_role(host), "anonymous")
        self._salt = token_bytes(16)
        self._holders = tuple(
            Holder(entry.name, entry.role, self._digest(entry.secret), _session_key(entry.secret))
            for entry in access.tokens
        )
        self._damper = Damper(clock)
        self.sessions = Sessions(
            {holder.name: holder.session_key for holder in self._holders}, access.session_lifetime, clock
        )

    @property
    def has_login(self) -> bool:
        """Whether there is a token that could be asked for."""
        return bool(self._holders)

    def of(self, scope: Scope) -> Caller | Refused:
        """Whoever sent the request, by the first of: proxy, bearer token, session, none of these."""
        headers = Headers(scope=scope)
        name = self._told_by_proxy(scope, headers)
        if name is not None:
            return Caller(name, self._access.proxy_role, "proxy")
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            holder = self.holder(token.strip(), self.address(scope))
            return holder if isinstance(holder, Refused) else Caller(holder.name, holder.role, "token")
        session = self.sessions.read(cookie_parser(headers.get("cookie", "")).get(COOKIE, ""))
        holder = None if session is None else next(each for each in self._holders if each.name == session.name)
        return self._anonymous if holder is None else Caller(holder.name, holder.role, "session", session)

    def holder(self, token: str, address: str) -> Holder | Refused:
        """Who has this token. Every digest is compared, whichever fits: the time it takes tells nothing."""
        digest = self._digest(token)
        found = [holder for holder in self._holders if compare_digest(holder.digest, digest)]
        name = found[0].name if found else None
        wait = self._damper.judge(address, name)
        return found[0] if found and not wait else Refused(wait)

    def address(self, scope: Scope) -> str:
        """The client's address; behind trusted proxies the one that the outermost of them saw."""
        peer = _peer(scope)
        if self._trusts(peer):
            hops = ",".join(Headers(scope=scope).getlist("x-forwarded-for")).split(",")
            for hop in reversed([hop.strip() for hop in hops if hop.strip()]):
                peer = hop
                if not self._trusts(hop):
                    break
        return peer

    def secure(self, scope: Scope) -> bool:
        """Whether the browser speaks TLS with us, or with a trusted proxy in front of us."""
        forwarded = Headers(scope=scope).get("x-forwarded-proto", "") if self._trusts(_peer(scope)) else ""
        return scope.get("scheme") in ("https", "wss") or forwarded == "https"

    def _told_by_proxy(self, scope: Scope, headers: Headers) -> str | None:
        if self._access.proxy_header is None or not self._trusts(_peer(scope)):
            return None
        names = headers.getlist(self._access.proxy_header)
        # Two of them: the client sent one, and the proxy added its own instead of replacing it.
        return names[0].strip()[:200] or None if len(names) == 1 else None

    def _trusts(self, address: str) -> bool:
        return _within(address, self._access.trusted_proxies)

    def _digest(self, token: str) -> bytes:
        # Fast is right: tokens are long and random, so there is nothing to slow down but ourselves.
        return blake2b(token.encode("utf-8", "replace")[:4096], key=self._salt, digest_size=32).digest()


def _session_key(token: str) -> bytes:
    """Signs the sessions of a token: they end with it, and outlive a restart."""
    return blake2b(token.encode(), person=b"dg session", digest_size=32).digest()


def _peer(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else ""


def _within(address: str, networks: Iterable[Network]) -> bool:
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return any((mapped or parsed) in network for network in networks)
