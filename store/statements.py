"""The SQL of ``store.duckdb``. What varies is period numbers and names from ``DIMENSIONS``; values are parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from acceptance.series import DIMENSIONS, Dimension
from store.codec import MOMENTS, SCALARS

_FIGURES = ", ".join(f"{name} DOUBLE" for name in (*SCALARS, *MOMENTS))
_TEXTS = ", ".join(f'"{name}" VARCHAR' for name in DIMENSIONS)

CREATE = f"""
CREATE TABLE about (version INTEGER NOT NULL, period_seconds BIGINT NOT NULL);
CREATE TABLE series (id INTEGER PRIMARY KEY, {_TEXTS});
CREATE TABLE windows_none (
    id BIGINT NOT NULL, series INTEGER NOT NULL, started DOUBLE NOT NULL, ended DOUBLE NOT NULL,
    source VARCHAR NOT NULL, exact BOOLEAN NOT NULL, {_FIGURES}, clusters BIGINT, by_position DOUBLE[],
    reported_length DOUBLE, reported_rate DOUBLE
);
CREATE TABLE health_none (
    target VARCHAR NOT NULL, surface VARCHAR NOT NULL, looked_at DOUBLE NOT NULL, up BOOLEAN NOT NULL, error VARCHAR,
    running DOUBLE, queued DOUBLE, speculating BOOLEAN, decode_tokens DOUBLE, seconds DOUBLE
);
CREATE TABLE cursors (
    target VARCHAR NOT NULL, surface VARCHAR NOT NULL, state VARCHAR NOT NULL, read_at DOUBLE NOT NULL
);
"""

CREATE_PERIOD = 'CREATE TABLE "{kind}_{period}" AS FROM {kind}_none LIMIT 0'
DROP_PERIOD = 'DROP TABLE "{kind}_{period}"'
CREATE_VIEW = "CREATE OR REPLACE VIEW {kind} AS {parts}"

ADD_SERIES = "INSERT INTO series FROM rows"

# Rows arrive about in the order of their times, so the bounds of the batch let the search for known ones skip all
# but a few row groups.
ADD_WINDOWS = """
INSERT INTO "windows_{period}" FROM rows WHERE NOT EXISTS (
    FROM "windows_{period}" AS known WHERE known.id = rows.id
    AND known.ended BETWEEN (SELECT min(ended) FROM rows) AND (SELECT max(ended) FROM rows)
)
"""
KNOWN = """
SELECT id FROM windows WHERE ended > $after AND ended <= $until AND id IN (SELECT unnest($ids::BIGINT[]))
"""
ADD_HEALTH = """
INSERT INTO "health_{period}" FROM rows WHERE NOT EXISTS (
    FROM "health_{period}" AS known
    WHERE known.target = rows.target AND known.surface = rows.surface AND known.looked_at = rows.looked_at
    AND known.looked_at BETWEEN (SELECT min(looked_at) FROM rows) AND (SELECT max(looked_at) FROM rows)
)
"""
# An update in place: rows deleted and written anew would pile up in the file.
PUT_CURSORS = """
MERGE INTO cursors USING rows ON cursors.target = rows.target AND cursors.surface = rows.surface
WHEN MATCHED THEN UPDATE SET state = rows.state, read_at = rows.read_at
WHEN NOT MATCHED THEN INSERT BY NAME *
"""

FORGET_SERIES = "DELETE FROM series WHERE id NOT IN (SELECT series FROM windows)"

HEALTH = """
FROM health WHERE looked_at > $after AND looked_at <= $until AND ($target IS NULL OR target = $target)
ORDER BY looked_at, target, surface
"""

LOOKED = """
SELECT target, surface, $after + (ceil((looked_at - $after) / $step) - 1) * $step AS bucket,
    count(*) AS looks, count(*) FILTER (WHERE up) AS up,
    avg(running) AS running, sum(decode_tokens) AS decode_tokens, bool_or(speculating) AS speculating,
    min(looked_at) AS first, max(looked_at) AS last
FROM health WHERE looked_at > $after AND looked_at <= $until AND ($target IS NULL OR target = $target)
GROUP BY ALL
"""
TIMED = """
SELECT series.target AS target, source, $after + (ceil((ended - $after) / $step) - 1) * $step AS bucket,
    sum(passes) AS passes, sum(pass_seconds) AS pass_seconds
FROM windows JOIN series ON series.id = windows.series
WHERE ended > $after AND ended <= $until AND passes > 0 AND pass_seconds IS NOT NULL
    AND ($target IS NULL OR series.target = $target)
GROUP BY ALL
"""

WIDEST = "SELECT max(len(by_position)) FROM windows WHERE ended > $after AND ended <= $until"

IN_SPAN = "(FROM windows WHERE ended > $after AND ended <= $until)"
NEWEST_IN_SPAN = """(
    SELECT windows.* FROM windows JOIN (
        SELECT series, source, max(ended) AS ended FROM windows WHERE ended > $after AND ended <= $until GROUP BY ALL
    ) AS newest USING (series, source, ended)
)"""

ONE_BUCKET = "CAST($after AS DOUBLE)"
BUCKETS = "$after + (ceil((ended - $after) / $step) - 1) * $step"
OWN_END = "ended"

_SUMS = """
SELECT series.target AS of_target, source, {bucket} AS bucket{keys}, count(*) AS windows,
    bool_and(exact) AS exact, min(started) AS first, max(ended) AS last,
    {totals}, {clusters}, {positions}
FROM {windows} AS windows JOIN series ON series.id = windows.series
WHERE {conditions}
GROUP BY ALL
"""


def sums(
    *,
    windows: str,
    bucket: str,
    by: Sequence[Dimension],
    where: Iterable[Dimension],
    one_source: bool,
    positions: int,
) -> str:
    """Sums per target, source, bucket and ``by``.

    where       dimensions for which there is a parameter ``$where_NAME``, the list of accepted values
    positions   the most draft positions that a window of the span has
    """
    conditions = [f'list_contains(CAST($where_{name} AS VARCHAR[]), series."{name}")' for name in where]
    if one_source:
        conditions.append("source = $source")
    return _SUMS.format(
        windows=windows,
        bucket=bucket,
        keys="".join(f', series."{name}" AS key_{name}' for name in by),
        totals=", ".join(_known(name, f"sum({name})") for name in (*SCALARS, *MOMENTS)),
        clusters=_known("clusters", "CAST(sum(clusters) AS BIGINT)"),
        positions=_known("by_position", _by_position(positions)),
        conditions=" AND ".join(conditions) or "true",
    )


def _known(column: str, total: str) -> str:
    """NULL unless every row has a value: SUM alone would add up those that have one."""
    return f"CASE WHEN count({column}) = count(*) THEN {total} END AS {column}"


def _by_position(widest: int) -> str:
    """A position that a window lacks is NULL, which SUM skips: it counts as zero, as it should."""
    if not widest:
        return "CAST([] AS DOUBLE[])"
    each = ", ".join(f"sum(by_position[{number}])" for number in range(1, widest + 1))
    return f"list_resize([{each}], max(len(by_position)))"
