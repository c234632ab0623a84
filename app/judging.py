"""What the configuration, the catalog and the signatures tell the evaluation."""

from __future__ import annotations

from acceptance.series import Dimension
from alerts.findings import findings
from alerts.messages import Links, Routes
from alerts.rules import Override, Rulebook
from alerts.verdicts import SEVERITIES
from app.settings import Config, Where
from collectors.signatures import finding_of_signature
from service.catalog import LOG_PREFIX, Catalog
from service.evaluate import Fleet, Surroundings


def surroundings(config: Config) -> Surroundings:
    """Rules with the configured overrides, routes and links. Raises ``ValueError`` for an unknown threshold."""
    overrides = [
        Override(
            finding=override.finding,
            where=_where(override.where),
            thresholds=override.set,
            for_seconds=override.for_seconds,
            keep_firing_seconds=override.keep_firing_seconds,
        )
        for override in config.thresholds
    ]
    return Surroundings(
        rulebook=Rulebook(findings(), overrides, interval_seconds=config.evaluation.interval),
        routes=Routes({severity: config.channels_for(severity) for severity in SEVERITIES}),
        links=Links(config.external_url),
        signatures=finding_of_signature(),
    )


def fleet(catalog: Catalog) -> Fleet:
    """Who is watched now, with the lives of the processes whose logs are read."""
    watched = [status for status in catalog.statuses() if status.removed_at is None]
    return Fleet(
        subjects=[catalog.subject(status.target) for status in watched],
        lives={
            status.target.name: lives
            for status in watched
            if (lives := {life for name, life in status.incarnations.items() if name.startswith(LOG_PREFIX)})
        },
    )


def _where(where: Where) -> dict[Dimension, tuple[str, ...]]:
    named: dict[Dimension, tuple[str, ...]] = {
        "category": where.category,
        "group": where.group,
        "model": where.model,
        "drafter": where.drafter,
    }
    return {dimension: values for dimension, values in named.items() if values}
