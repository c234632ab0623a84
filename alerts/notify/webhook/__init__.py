"""Generic webhook: what reads Alertmanager's webhooks (version 4) reads ours."""

from __future__ import annotations

from typing import Annotated, Self

import orjson
from pydantic import AfterValidator, Field, SecretStr, model_validator
from pydantic.dataclasses import dataclass

from alerts.notify.channel import Result, RetryAfter, Surroundings
from alerts.notify.http import post, verdict
from alerts.notify.notice import Notice
from alerts.notify.settings import STRICT, Redactor, SecretHeader, SecretUrl, TimeoutSeconds, origin, url_secrets
from alerts.notify.webhook.payload import payload
from alerts.notify.webhook.signature import SigningSecret, signed_headers
from store.state import Message

OURS = frozenset({"content-type", "content-length", "host", "transfer-encoding", "user-agent"})


def _free_names(headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
    for name in headers:
        if name.lower() in OURS or name.lower().startswith("webhook-"):
            raise ValueError(f"{name} is set by the sender")
    return headers


HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")]


@dataclass(frozen=True, slots=True, config=STRICT)
class WebhookSettings:
    """Where to post and how to be known there.

    bearer_token    sent as ``Authorization: Bearer``
    headers         further headers; their values are treated as secrets
    signing_secret  ``whsec_`` and base64: requests are signed as Standard Webhooks says
    """

    url: SecretUrl
    timeout_seconds: TimeoutSeconds = 10.0
    bearer_token: SecretHeader | None = None
    headers: Annotated[dict[HeaderName, SecretHeader], AfterValidator(_free_names)] = Field(
        default_factory=dict[str, SecretStr]
    )
    signing_secret: SigningSecret | None = None

    @model_validator(mode="after")
    def _one_authorization(self) -> Self:
        if self.bearer_token is not None and "authorization" in map(str.lower, self.headers):
            raise ValueError("bearer_token and headers both set Authorization")
        return self

    def open(self, name: str, surroundings: Surroundings) -> WebhookChannel:
        return WebhookChannel(name, self, surroundings)


class WebhookChannel:
    """Posts to one URL."""

    def __init__(self, name: str, settings: WebhookSettings, surroundings: Surroundings) -> None:
        self._url = settings.url.get_secret_value()
        self._timeout = settings.timeout_seconds
        self._secret = settings.signing_secret
        self._headers = {key: value.get_secret_value() for key, value in settings.headers.items()}
        if settings.bearer_token is not None:
            self._headers["authorization"] = f"Bearer {settings.bearer_token.get_secret_value()}"
        self._redact = Redactor(self._secrets(settings))
        self._surroundings = surroundings
        self.name = name
        self.address = origin(self._url)

    async def send(self, message: Message) -> Result:
        content = payload(Notice.of(message), self.name, self._surroundings.external_url)
        body = orjson.dumps(content)
        signing = signed_headers(message.id, self._surroundings.clock(), body, self._secret)
        answer = await post(
            self._surroundings.client,
            self._url,
            body,
            {**self._headers, **signing},
            timeout_seconds=self._timeout,
            redact=self._redact,
        )
        return answer if isinstance(answer, RetryAfter) else verdict(answer, self._surroundings.clock())

    @staticmethod
    def _secrets(settings: WebhookSettings) -> list[str]:
        given = [settings.bearer_token, settings.signing_secret, *settings.headers.values()]
        words = [word for each in given if each is not None for word in each.get_secret_value().split()]
        return [*url_secrets(settings.url.get_secret_value()), *words]


SETTINGS = WebhookSettings
