"""The configuration: what can be set, with types, limits and defaults. ``app.config`` reads it from its file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, Field, SkipValidation, StringConstraints, model_validator

from alerts.notify.channel import ChannelSettings
from alerts.verdicts import Severity
from app.access.settings import Access
from app.fields import (
    Categories,
    Directory,
    Name,
    Names,
    Number,
    Paths,
    Seconds,
    SecondsFrom0,
    SecretLine,
    Section,
    Whole,
)
from app.records.settings import CategoryEntry, Records
from collectors.target import Target


def _base_url(value: str) -> str:
    """A base URL; ``host:port`` means http. Raises ``ValueError``."""
    parts = _split(value)
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not hold a password: use bearer_token")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("must be a base URL, without a path (say http://10.0.0.1:30000)")
    return f"{parts.scheme}://{parts.netloc}"


def _public_url(value: str) -> str:
    parts = _split(value)
    if parts.query or parts.fragment:
        raise ValueError("must not have a query or a fragment")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _split(value: str) -> SplitResult:
    parts = urlsplit(value if "://" in value else f"http://{value}")
    try:
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not value.isprintable() or " " in value:
        raise ValueError("must be http://HOST:PORT, https://HOST or HOST:PORT")
    return parts


class Listen(Section):
    """Where the service answers."""

    host: Name = Field(default="127.0.0.1", description="address to listen on; `0.0.0.0` is every interface")
    port: Whole = Field(default=8400, ge=0, le=65535, description="port to listen on; 0 takes any free one")
    allowed_hosts: Names = Field(
        default=(),
        description="further names in the Host header that are answered, beside IP addresses, `localhost`, "
        "`listen.host` and the host of `external_url`",
    )


class TargetEntry(Section):
    """A server to watch."""

    name: Name | None = Field(default=None, description="what people see; `HOST:PORT` of `url` where it is not given")
    url: Annotated[str, AfterValidator(_base_url)] | None = Field(
        default=None, description="base URL of its HTTP server, without a path; `HOST:PORT` means http"
    )
    group: Name | None = Field(default=None, description="replicas that should behave alike")
    logs: Paths = Field(default=(), description="paths or globs of its log files; one may stand without a list")
    category_label: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] = Field(
        default="category", description="custom label of SGLang's metrics that names the request category"
    )
    bearer_token: SecretLine | None = Field(
        default=None,
        description="for an engine started with an API key; write `${NAME}` to keep it in the environment",
    )
    scrape_interval: Seconds | None = Field(
        default=None, ge=1, description="time between two looks at it, in place of `scrape.interval`"
    )

    @model_validator(mode="after")
    def _complete(self) -> TargetEntry:
        if self.url is None and not self.logs:
            raise ValueError("needs a url or logs")
        if self.url is None and self.name is None:
            raise ValueError("needs a name, since it has no url")
        return self


class Scrape(Section):
    """How targets are asked."""

    interval: Seconds = Field(default=15.0, ge=1, description="time between two looks at a target")
    timeout: Seconds = Field(default=10.0, description="longest wait for an answer")
    concurrency: Whole = Field(
        default=200, ge=1, le=10_000, description="requests under way at once, to all targets together"
    )


class Evaluation(Section):
    """How often alerts are judged."""

    interval: Seconds = Field(default=15.0, ge=1, description="time between two evaluations of all alerts")


class Retention(Section):
    """How long things are kept."""

    history: Seconds = Field(
        default=30 * 86400.0, ge=3600, description="age at which windows and looks at targets are dropped"
    )
    alerts: Seconds = Field(
        default=90 * 86400.0, ge=3600, description="age at which resolved alerts and their messages are dropped"
    )


class Where(Section):
    """Whom an override is about: all of these must hold (``*`` and ``?`` match as in file names)."""

    category: Categories = Field(default=(), description='categories it is for; `""` is requests without one')
    group: Names = Field(default=(), description="groups it is for")
    model: Names = Field(default=(), description="target models it is for")
    drafter: Names = Field(default=(), description="draft models it is for")


class Override(Section):
    """Other limits of a finding for some series. Of several that match, the most specific wins (``alerts.rules``).

    ``for`` and ``keep_firing_for`` are those of findings.yaml.
    """

    finding: Name = Field(description="id of the finding ([findings.md](findings.md))")
    where: Where = Field(default=Where(), description="whom it is for; everybody where it is not given")
    set: Mapping[Name, Number] = Field(
        default_factory=dict[str, float],
        description="threshold -> number; each finding has its own thresholds ([findings.md](findings.md))",
    )
    for_seconds: SecondsFrom0 | None = Field(
        default=None, alias="for", description="how long it must be true before it fires; 0 fires at once"
    )
    keep_firing_seconds: SecondsFrom0 | None = Field(
        default=None, alias="keep_firing_for", description="how long it must be false before it is resolved"
    )

    @model_validator(mode="after")
    def _changes_something(self) -> Override:
        if not self.set and self.for_seconds is None and self.keep_firing_seconds is None:
            raise ValueError("changes nothing: needs set, for or keep_firing_for")
        return self


class Config(Section):
    """Everything that can be configured."""

    listen: Listen = Field(default=Listen(), description="where the service answers")
    access: Access = Field(default=Access(), description="who may do what")
    external_url: Annotated[str, AfterValidator(_public_url)] | None = Field(
        default=None, description="URL at which people reach the service: for links in messages"
    )
    data_dir: Directory = Field(default=Path("draftgauge-data"), description="directory of the embedded stores")
    targets: Annotated[tuple[TargetEntry, ...], Field(strict=False)] = Field(default=(), description="servers to watch")
    scrape: Scrape = Field(default=Scrape(), description="how targets are asked")
    evaluation: Evaluation = Field(default=Evaluation(), description="how often alerts are judged")
    retention: Retention = Field(default=Retention(), description="how long things are kept")
    channels: Annotated[Mapping[str, ChannelSettings], SkipValidation] = Field(
        default_factory=dict[str, ChannelSettings],
        description="name -> where messages can be sent; see [alerting.md](alerting.md#channels)",
    )
    routes: Mapping[Severity, Names] | None = Field(
        default=None,
        description="severity (`info`, `notice`, `warning`, `critical`) -> names of channels; where it is not given, "
        "`warning` and `critical` go to every channel",
    )
    thresholds: Annotated[tuple[Override, ...], Field(strict=False)] = Field(
        default=(), description="other limits of findings, for some series or for all"
    )
    categories: Annotated[tuple[CategoryEntry, ...], Field(strict=False, max_length=200)] = Field(
        default=(), description="categories of requests, in the order in which they are asked"
    )
    records: Records = Field(default=Records(), description="what is taken of posted records")

    def channels_for(self, severity: Severity) -> tuple[str, ...]:
        """Names of the channels that are told of alerts of a severity."""
        if self.routes is not None:
            return self.routes.get(severity, ())
        return tuple(self.channels) if severity in ("warning", "critical") else ()

    def watched(self) -> tuple[Target, ...]:
        """The targets as collectors take them."""
        return tuple(
            Target(
                name=name_of(entry.name, entry.url) or "",
                url=entry.url,
                group=entry.group,
                logs=entry.logs,
                category_label=entry.category_label,
                bearer_token=None if entry.bearer_token is None else entry.bearer_token.get_secret_value(),
                scrape_interval_seconds=entry.scrape_interval or self.scrape.interval,
            )
            for entry in self.targets
        )

    @property
    def host_names(self) -> frozenset[str]:
        """Names in a Host header under which requests are answered, beside IP addresses and localhost."""
        external = None if self.external_url is None else urlsplit(self.external_url).hostname
        return frozenset(name for name in (self.listen.host, external, *self.listen.allowed_hosts) if name)


def name_of(name: str | None, url: str | None) -> str | None:
    """A target's name: the one given, else host and port of its URL; None where neither tells."""
    if name is not None or url is None:
        return name
    return urlsplit(url if "://" in url else f"http://{url}").netloc or None
