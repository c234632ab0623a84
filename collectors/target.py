"""A server to watch, as configured or discovered."""

from __future__ import annotations

from dataclasses import dataclass, field

from acceptance.facts import FactValue, Subject


@dataclass(frozen=True, slots=True)
class Target:
    """Where a server's surfaces are.

    name            unique; what people see
    url             base URL of its HTTP server, without a path; None for a target known by its logs only
    group           replicas that should behave alike
    logs            paths of its log files
    category_label  custom label of SGLang's metrics that names the request category
    bearer_token    for an engine started with --api-key; never shown or logged
    scrape_interval_seconds
    """

    name: str
    url: str | None = None
    group: str | None = None
    logs: tuple[str, ...] = ()
    category_label: str = "category"
    bearer_token: str | None = field(default=None, repr=False)
    scrape_interval_seconds: float = 15.0

    def subject(self, facts: dict[str, FactValue]) -> Subject:
        """What readers and detectors need to know of it."""
        return Subject(self.name, self.group, self.category_label, facts)
