"""State in an SQL database: SQLite by default, written so that PostgreSQL takes it as it is."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, Select, bindparam, delete, exists, func, insert, or_, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from acceptance.facts import Fact, FactValue
from acceptance.hits import Hit
from store.engine import open_engine
from store.errors import StoreUnusable
from store.failpoints import failpoint
from store.hits import record_hits, stored_hits
from store.schema import NotOurs, migrate
from store.state import AlertChange, AlertRecord, Attempt, Delivery, DeliveryStatus, Message
from store.tables import alerts, attempts, facts, messages

MAX_FACT = 2000
"""Characters kept of a fact's text."""

_UPSERTS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
)
"""Core has no portable ON CONFLICT; the dialects that have one spell it alike."""

_resolved_at = func.coalesce(alerts.c.resolved_at, alerts.c.evaluated_at)


class SqlState:
    """``store.state.StateStore`` in the database at ``url``; one writer at a time, any number of readers."""

    def __init__(self, url: str) -> None:
        """Open or create it and bring it to this version's schema; raises ``StoreUnusable``."""
        self._writer = Lock()
        self._engine = open_engine(url)
        self._for_writing = self._engine.execution_options(writes=True)
        self._upsert = _UPSERTS[self._engine.dialect.name]
        try:
            with self._transaction() as connection:
                migrate(connection)
        except (SQLAlchemyError, NotOurs) as error:
            self._engine.dispose()
            where = self._engine.url.render_as_string(hide_password=True)
            raise StoreUnusable(where, str(getattr(error, "orig", error))) from error

    def record(self, facts: Sequence[Fact], hits: Sequence[Hit]) -> None:
        """As ``StateStore.record``."""
        with self._transaction() as connection:
            self._put_facts(connection, facts)
            record_hits(connection, hits)
            failpoint("facts.before_commit")
        failpoint("facts.after_commit")

    def facts(self) -> dict[str, dict[str, Fact]]:
        """As ``StateStore.facts``."""
        known: dict[str, dict[str, Fact]] = defaultdict(dict)
        with self._engine.connect() as connection:
            for row in connection.execute(select(facts)).mappings():
                known[row["target"]][row["name"]] = Fact(**{**row, "value": json.loads(row["value"])})
        return dict(known)

    def hits(self, target: str | None = None) -> list[Hit]:
        """As ``StateStore.hits``."""
        with self._engine.connect() as connection:
            return stored_hits(connection, target)

    def alerts(self, *, resolved_since: float | None = None) -> list[AlertRecord]:
        """As ``StateStore.alerts``."""
        wanted = alerts.c.phase != "resolved"
        if resolved_since is not None:
            wanted = or_(wanted, alerts.c.resolved_at >= resolved_since)
        with self._engine.connect() as connection:
            rows = connection.execute(select(alerts).where(wanted).order_by(alerts.c.active_since, alerts.c.key))
            return [AlertRecord(**row) for row in rows.mappings()]

    def apply(self, changes: Sequence[AlertChange]) -> None:
        """As ``StateStore.apply``."""
        with self._transaction() as connection:
            self._put_alerts(connection, [change.record for change in changes])
            self._put_messages(connection, [message for change in changes for message in change.messages])
            failpoint("alerts.before_commit")
        failpoint("alerts.after_commit")

    def forget_alerts(self, keys: Sequence[str]) -> None:
        """As ``StateStore.forget_alerts``."""
        if not keys:
            return
        named = alerts.c.key == bindparam("named")
        again = update(alerts).where(named, alerts.c.episode > 0)
        with self._transaction() as connection:
            names = [{"named": key} for key in keys]
            connection.execute(delete(alerts).where(named, alerts.c.episode == 0), names)
            connection.execute(again.values(phase="resolved", resolved_at=_resolved_at), names)

    def forget_before(self, at: float) -> None:
        """As ``StateStore.forget_before``."""
        of_open_alert = exists().where(
            alerts.c.key == messages.c.alert_key,
            alerts.c.phase != "resolved",
            alerts.c.active_since <= messages.c.created_at,
        )
        has_messages = exists().where(messages.c.alert_key == alerts.c.key)
        with self._transaction() as connection:
            connection.execute(
                delete(messages).where(messages.c.status != "waiting", messages.c.created_at < at, ~of_open_alert)
            )
            connection.execute(delete(alerts).where(alerts.c.phase == "resolved", _resolved_at < at, ~has_messages))

    def due(self, now: float, limit: int, skip: Collection[str] = ()) -> list[Delivery]:
        """As ``StateStore.due``."""
        earlier = messages.alias()
        overtakes = exists().where(
            earlier.c.alert_key == messages.c.alert_key,
            earlier.c.channel == messages.c.channel,
            earlier.c.status == "waiting",
            tuple_(earlier.c.created_at, earlier.c.number) < tuple_(messages.c.created_at, messages.c.number),
        )
        picked = (
            select(messages)
            .where(messages.c.status == "waiting", messages.c.next_at <= now, ~overtakes)
            .where(messages.c.channel.not_in(skip))
            .order_by(messages.c.next_at, messages.c.created_at, messages.c.number)
            .limit(limit)
        )
        with self._engine.connect() as connection:
            return _deliveries(connection, picked)

    def attempted(
        self, message_id: str, channel: str, attempt: Attempt, status: DeliveryStatus, next_at: float | None
    ) -> None:
        """As ``StateStore.attempted``; raises ``LookupError`` for a message that is not there."""
        named = (messages.c.id == message_id, messages.c.channel == channel)
        with self._transaction() as connection:
            number = connection.execute(select(messages.c.number).where(*named)).scalar()
            if number is None:
                raise LookupError(f"no message {message_id!r} for channel {channel!r}")
            connection.execute(
                insert(attempts).values(
                    message=number,
                    at=attempt.at,
                    outcome=attempt.outcome,
                    detail=attempt.detail,
                    seconds=attempt.seconds,
                )
            )
            connection.execute(
                update(messages)
                .where(messages.c.number == number)
                .values(status=status, next_at=next_at if status == "waiting" else None)
            )

    def deliveries(self, limit: int, alert_key: str | None = None) -> list[Delivery]:
        """As ``StateStore.deliveries``."""
        picked = select(messages).order_by(messages.c.created_at.desc(), messages.c.number.desc()).limit(limit)
        if alert_key is not None:
            picked = picked.where(messages.c.alert_key == alert_key)
        with self._engine.connect() as connection:
            return _deliveries(connection, picked)

    def close(self) -> None:
        """As ``StateStore.close``."""
        with self._writer:
            self._engine.dispose()

    @contextmanager
    def _transaction(self) -> Generator[Connection]:
        with self._writer, self._for_writing.begin() as connection:
            yield connection

    def _put_facts(self, connection: Connection, told: Sequence[Fact]) -> None:
        if not told:
            return
        put = self._upsert(facts)
        newer = {"value": put.excluded.value, "source": put.excluded.source, "at": put.excluded.at}
        put = put.on_conflict_do_update(
            index_elements=[facts.c.target, facts.c.name], set_=newer, where=facts.c.at <= put.excluded.at
        )
        connection.execute(put, [{**_row(fact), "value": _json(fact.value)} for fact in told])

    def _put_alerts(self, connection: Connection, records: Sequence[AlertRecord]) -> None:
        if not records:
            return
        put = self._upsert(alerts)
        changed = {column.name: put.excluded[column.name] for column in alerts.c if column.name != "key"}
        put = put.on_conflict_do_update(index_elements=[alerts.c.key], set_=changed)
        connection.execute(put, [{**_row(record), "detail": dict(record.detail)} for record in records])

    def _put_messages(self, connection: Connection, new: Sequence[Message]) -> None:
        if not new:
            return
        put = self._upsert(messages).on_conflict_do_nothing(index_elements=[messages.c.id, messages.c.channel])
        waiting = {"status": "waiting"}
        connection.execute(
            put,
            [{**_row(each), **waiting, "body": dict(each.body), "next_at": each.created_at} for each in new],
        )


def _row(value: Fact | AlertRecord | Message) -> dict[str, Any]:
    """Columns are named as the fields are."""
    return {name: getattr(value, name) for name in value.__slots__}


def _json(value: FactValue) -> str:
    return json.dumps(value[:MAX_FACT] if isinstance(value, str) else value)


def _deliveries(connection: Connection, picked: Select[Any]) -> list[Delivery]:
    tried: dict[int, list[Attempt]] = defaultdict(list)
    theirs = attempts.c.message.in_(picked.with_only_columns(messages.c.number))
    for row in connection.execute(select(attempts).where(theirs).order_by(attempts.c.number)).mappings():
        tried[row["message"]].append(Attempt(row["at"], row["outcome"], row["detail"], row["seconds"]))
    return [
        Delivery(
            Message(row["id"], row["channel"], row["alert_key"], row["kind"], row["body"], row["created_at"]),
            row["status"],
            tuple(tried[row["number"]]),
            row["next_at"],
        )
        for row in connection.execute(picked).mappings()
    ]
