"""The tables of the state database. A change here needs a migration (``store/migrations/versions``)."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    Column,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)

from store.text import encodable

MAX_EXCERPT = 500
MAX_ATTEMPT_DETAIL = 1000

metadata = MetaData()


class Safe(TypeDecorator[str]):
    """Text from outside: cut to ``limit`` characters, and with U+FFFD for what the database cannot hold."""

    impl = Text
    cache_ok = True

    def __init__(self, limit: int | None = None) -> None:
        super().__init__()
        self.limit = limit

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """On the way in. SQLite holds NUL, PostgreSQL does not."""
        if value is None:
            return None
        text = encodable(value[: self.limit])
        return text if dialect.name == "sqlite" else text.replace("\0", "\ufffd")


facts = Table(
    "facts",
    metadata,
    Column("target", Safe, primary_key=True),
    Column("name", Safe, primary_key=True),
    # JSON, but not of that type: SQLite would take a bare 5.0 in such a column for the integer 5.
    Column("value", Text, nullable=False),
    Column("source", Safe, nullable=False),
    Column("at", Double, nullable=False),
)

hits = Table(
    "hits",
    metadata,
    # A hash of (target, incarnation, signature, rank), since a rank may be NULL and a key may not.
    Column("identity", String(32), primary_key=True),
    Column("target", Safe, nullable=False),
    Column("incarnation", Safe, nullable=False),
    Column("signature", Safe, nullable=False),
    Column("rank", Safe),
    Column("at", Double, nullable=False),
    Column("excerpt", Safe(MAX_EXCERPT), nullable=False),
    Column("captures", JSON, nullable=False),
    Column("count", Integer, nullable=False),
    Column("counted", JSON, nullable=False),
    Column("counted_until", Double),
    Index("hits_by_target", "target", "at"),
)

alerts = Table(
    "alerts",
    metadata,
    Column("key", Safe, primary_key=True),
    Column("finding", Safe, nullable=False),
    Column("severity", Safe, nullable=False),
    Column("target", Safe, nullable=False),
    Column("phase", Safe, nullable=False),
    Column("active_since", Double, nullable=False),
    Column("evaluated_at", Double, nullable=False),
    Column("true_seconds", Double, nullable=False),
    Column("fired_at", Double),
    Column("clear_since", Double),
    Column("resolved_at", Double),
    Column("episode", Integer, nullable=False),
    Column("detail", JSON, nullable=False),
)

messages = Table(
    "messages",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("id", Safe, nullable=False),
    Column("channel", Safe, nullable=False),
    Column("alert_key", Safe, nullable=False),
    Column("kind", Safe, nullable=False),
    Column("body", JSON, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("status", Safe, nullable=False),
    Column("next_at", Double),
    UniqueConstraint("id", "channel", name="one_message_per_channel"),
    Index("messages_waiting", "status", "next_at"),
    Index("messages_by_alert", "alert_key", "channel"),
    Index("messages_by_age", "created_at"),
)

attempts = Table(
    "attempts",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("message", Integer, ForeignKey("messages.number", ondelete="CASCADE"), nullable=False, index=True),
    Column("at", Double, nullable=False),
    Column("outcome", Safe, nullable=False),
    Column("detail", Safe(MAX_ATTEMPT_DETAIL), nullable=False),
    Column("seconds", Double, nullable=False),
)
