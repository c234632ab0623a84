"""Signatures seen, in the state database: one row per (target, incarnation, signature, rank)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, func, insert, select, update

from acceptance.hits import Hit
from store.occurrences import Occurrences
from store.tables import MAX_EXCERPT, hits
from store.text import encodable

MAX_PER_TARGET = 1000
"""Rows kept of a target; beyond, those seen longest ago are forgotten."""

MAX_CAPTURES = 20
MAX_CAPTURE = 200


def record_hits(connection: Connection, seen: Sequence[Hit]) -> None:
    """Count hits that were not counted yet (``store.occurrences``), and keep excerpt and captures of the newest."""
    by_identity: dict[str, list[Hit]] = defaultdict(list)
    for hit in seen:
        by_identity[_identity(hit)].append(hit)
    for identity, group in by_identity.items():
        _count(connection, identity, sorted(group, key=lambda hit: hit.at))
    for target in {hit.target for hit in seen}:
        _forget_oldest(connection, target)


def stored_hits(connection: Connection, target: str | None) -> list[Hit]:
    """Newest first."""
    query = select(hits).order_by(hits.c.at.desc(), hits.c.signature, hits.c.identity)
    if target is not None:
        query = query.where(hits.c.target == target)
    return [_hit(row) for row in connection.execute(query).mappings()]


def _count(connection: Connection, identity: str, group: Sequence[Hit]) -> None:
    """Add hits of one identity, oldest first."""
    row = connection.execute(select(hits).where(hits.c.identity == identity)).mappings().one_or_none()
    counted, newest = Occurrences(), group[-1]
    if row is not None:
        lines = tuple((at, text) for at, text in row["counted"])
        counted = Occurrences(row["count"], lines, row["counted_until"])
        newest = max(_hit(row), newest, key=lambda hit: hit.at)
    for hit in group:
        counted = counted.adding(hit.at, encodable(hit.excerpt[:MAX_EXCERPT]), hit.count)
    values: dict[str, Any] = {
        "at": newest.at,
        "excerpt": newest.excerpt,
        "captures": {
            name[:MAX_CAPTURE]: value[:MAX_CAPTURE] for name, value in list(newest.captures.items())[:MAX_CAPTURES]
        },
        "count": counted.count,
        "counted": counted.remembered,
        "counted_until": counted.counted_until,
    }
    if row is not None:
        connection.execute(update(hits).where(hits.c.identity == identity).values(values))
        return
    who = {"target": newest.target, "incarnation": newest.incarnation, "signature": newest.signature}
    connection.execute(insert(hits).values(identity=identity, rank=newest.rank, **who, **values))


def _forget_oldest(connection: Connection, target: str) -> None:
    rows = connection.execute(select(func.count()).select_from(hits).where(hits.c.target == target)).scalar_one()
    if rows > MAX_PER_TARGET:
        oldest = select(hits.c.identity).where(hits.c.target == target)
        oldest = oldest.order_by(hits.c.at, hits.c.identity).limit(rows - MAX_PER_TARGET)
        connection.execute(delete(hits).where(hits.c.identity.in_(oldest)))


def _identity(hit: Hit) -> str:
    text = repr((hit.target, hit.incarnation, hit.signature, hit.rank))
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _hit(row: RowMapping) -> Hit:
    return Hit(
        target=row["target"],
        incarnation=row["incarnation"],
        signature=row["signature"],
        at=row["at"],
        rank=row["rank"],
        excerpt=row["excerpt"],
        captures=row["captures"],
        count=row["count"],
    )
