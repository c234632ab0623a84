"""The configuration: what can be set, with types, limits and defaults. ``app.config`` reads it from its file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, cast
from urllib.parse import SplitResult, urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    SkipValidation,
    StringConstraints,
    ValidationInfo,
    model_validator,
)

from acceptance.query import BadQuery, parse_duration
from alerts.notify.channel import ChannelSettings
from alerts.verdicts import Severity
from collectors.target import Target


def _seconds(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    try:
        return parse_duration("", str(value))
    except BadQuery:
        raise ValueError("must be a duration above 0 (say 15s, 5m, 30d, or seconds)") from None


def _number(value: object) -> object:
    """Text from the environment as the number it stands for."""
    if not isinstance(value, str) or not re.fullmatch(r"-?\d{1,15}(\.\d{1,15})?", value, re.ASCII):
        return value
    return float(value) if "." in value else int(value)


def _list(value: object) -> object:
    return (value,) if isinstance(value, str) else value


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


def _token(value: SecretStr) -> SecretStr:
    text = value.get_secret_value().strip()
    if not text or not text.isascii() or not text.isprintable():
        raise ValueError("must be one line of ASCII characters")
    return SecretStr(text)


def _path(value: object, info: ValidationInfo) -> object:
    """Text is relative to ``base`` of the validation's context (the directory of the file); a ``Path`` is as it is."""
    context = cast("Mapping[str, Path]", info.context or {})
    return Path(context.get("base", ""), Path(value).expanduser()) if isinstance(value, str) else value


def _paths(value: object, info: ValidationInfo) -> object:
    items = cast("list[object]", value if isinstance(value, list) else [value])
    return tuple(str(_path(item, info)) if isinstance(item, str | Path) else item for item in items)


def _printable(value: str) -> str:
    if not value.isprintable():
        raise ValueError("must not hold control characters")
    return value


Name = Annotated[
    str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True), AfterValidator(_printable)
]
Names = Annotated[tuple[Name, ...], BeforeValidator(_list), Field(strict=False)]
Categories = Annotated[
    tuple[Annotated[str, StringConstraints(max_length=200), AfterValidator(_printable)], ...],
    BeforeValidator(_list),
    Field(strict=False),
]
Paths = Annotated[tuple[Name, ...], BeforeValidator(_paths), Field(strict=False)]
Number = Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)]
Seconds = Annotated[float, BeforeValidator(_seconds), Field(gt=0, allow_inf_nan=False)]
Whole = Annotated[int, BeforeValidator(_number)]


class _Section(BaseModel):
    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, hide_input_in_errors=True, arbitrary_types_allowed=True
    )


class Listen(_Section):
    """Where the service answers."""

    host: Name = Field(default="127.0.0.1", description="address to listen on; `0.0.0.0` is every interface")
    port: Whole = Field(default=8400, ge=0, le=65535, description="port to listen on; 0 takes any free one")
    allowed_hosts: Names = Field(
        default=(),
        description="further names in the Host header that are answered, beside IP addresses, `localhost`, "
        "`listen.host` and the host of `external_url`",
    )


class TargetEntry(_Section):
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
    bearer_token: Annotated[SecretStr, AfterValidator(_token)] | None = Field(
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


class Scrape(_Section):
    """How targets are asked."""

    interval: Seconds = Field(default=15.0, ge=1, description="time between two looks at a target")
    timeout: Seconds = Field(default=10.0, description="longest wait for an answer")
    concurrency: Whole = Field(
        default=200, ge=1, le=10_000, description="requests under way at once, to all targets together"
    )


class Evaluation(_Section):
    """How often alerts are judged."""

    interval: Seconds = Field(default=15.0, ge=1, description="time between two evaluations of all alerts")


class Retention(_Section):
    """How long things are kept."""

    history: Seconds = Field(
        default=30 * 86400.0, ge=3600, description="age at which windows and looks at targets are dropped"
    )
    alerts: Seconds = Field(
        default=90 * 86400.0, ge=3600, description="age at which resolved alerts and their messages are dropped"
    )


class Where(_Section):
    """Whom an override is about: all of these must hold (``*`` and ``?`` match as in file names)."""

    category: Categories = Field(default=(), description='categories it is for; `""` is requests without one')
    group: Names = Field(default=(), description="groups it is for")
    model: Names = Field(default=(), description="target models it is for")
    drafter: Names = Field(default=(), description="draft models it is for")


class Override(_Section):
    """Other limits of a finding for some series. Of several that match, the most specific wins (``alerts.rules``)."""

    finding: Name = Field(description="id of the finding ([findings.md](findings.md))")
    where: Where = Field(default=Where(), description="whom it is for; everybody where it is not given")
    set: Mapping[Name, Number] = Field(
        description="threshold -> number; each finding has its own thresholds ([findings.md](findings.md))"
    )


class Config(_Section):
    """Everything that can be configured."""

    listen: Listen = Field(default=Listen(), description="where the service answers")
    external_url: Annotated[str, AfterValidator(_public_url)] | None = Field(
        default=None, description="URL at which people reach the service: for links in messages"
    )
    data_dir: Annotated[Path, BeforeValidator(_path)] = Field(
        default=Path("draftgauge-data"), description="directory of the embedded stores"
    )
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
