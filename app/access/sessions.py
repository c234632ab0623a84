"""Sessions of browsers: a signed cookie says whose token was brought, and until when that counts."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from secrets import token_hex

COOKIE = "draftgauge_session"
MOST_ENDED = 10_000


@dataclass(frozen=True, slots=True)
class Session:
    """``name`` has the token; ``until`` is unix seconds."""

    name: str
    id: str
    until: int


class Sessions:
    """Opens, reads and ends sessions. ``keys`` are by the name of who has the token."""

    def __init__(self, keys: Mapping[str, bytes], lifetime_seconds: float, clock: Callable[[], float]) -> None:
        self._keys = dict(keys)
        self._lifetime = lifetime_seconds
        self._clock = clock
        self._ended: dict[str, int] = {}

    def open(self, name: str) -> Session:
        """A new session."""
        return Session(name, token_hex(16), self._until())

    def renewed(self, session: Session) -> Session | None:
        """The same session with its whole life ahead; None while more than half of that is left."""
        if session.until - self._clock() > self._lifetime / 2:
            return None
        return replace(session, until=self._until())

    def cookie(self, session: Session, *, secure: bool) -> str:
        """The Set-Cookie header of a session."""
        return _set_cookie(self._signed(session), round(session.until - self._clock()), secure=secure)

    def end(self, session: Session, *, secure: bool) -> str:
        """The session is over, also (while this process lives) for whoever copied its cookie.

        Returns the Set-Cookie header that takes it away.
        """
        now = self._clock()
        self._ended = {id_: until for id_, until in self._ended.items() if until > now}
        while len(self._ended) >= MOST_ENDED:
            self._ended.pop(next(iter(self._ended)))
        # A copy may have been renewed since: no renewal outlives this.
        self._ended[session.id] = self._until()
        return _set_cookie("", 0, secure=secure)

    def read(self, cookie: str) -> Session | None:
        """The session of a cookie; None where it is none, or over."""
        parts = cookie.split(".")
        if len(parts) != 4 or len(cookie) > 1024 or not cookie.isascii() or not parts[2].isdigit():
            return None
        try:
            session = Session(urlsafe_b64decode(parts[0]).decode(), parts[1], int(parts[2]))
        except ValueError:
            return None
        if session.name not in self._keys or not hmac.compare_digest(self._signed(session), cookie):
            return None
        return None if session.until <= self._clock() or session.id in self._ended else session

    def _signed(self, session: Session) -> str:
        text = f"{urlsafe_b64encode(session.name.encode()).decode()}.{session.id}.{session.until}"
        return f"{text}.{hmac.new(self._keys[session.name], text.encode(), 'sha256').hexdigest()}"

    def _until(self) -> int:
        return int(self._clock() + self._lifetime)


def _set_cookie(value: str, max_age: int, *, secure: bool) -> str:
    return f"{COOKIE}={value}; Max-Age={max_age}; Path=/; HttpOnly; SameSite=Strict{'; Secure' if secure else ''}"
