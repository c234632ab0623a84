"""Slack, by an incoming webhook."""

from __future__ import annotations

import orjson
from pydantic.dataclasses import dataclass

from alerts.notify.channel import Refused, Result, RetryAfter, Surroundings
from alerts.notify.http import post, verdict
from alerts.notify.notice import Notice
from alerts.notify.settings import STRICT, Redactor, SecretUrl, TimeoutSeconds, origin, url_secrets
from alerts.notify.slack.blocks import payload
from store.state import Message


@dataclass(frozen=True, slots=True, config=STRICT)
class SlackSettings:
    """``url`` is the incoming webhook's: who knows it can post."""

    url: SecretUrl
    timeout_seconds: TimeoutSeconds = 10.0

    def open(self, name: str, surroundings: Surroundings) -> SlackChannel:
        return SlackChannel(name, self, surroundings)


class SlackChannel:
    """Posts to one Slack channel, the one its webhook was made for."""

    def __init__(self, name: str, settings: SlackSettings, surroundings: Surroundings) -> None:
        self._url = settings.url.get_secret_value()
        self._redact = Redactor(url_secrets(self._url))
        self._timeout = settings.timeout_seconds
        self._surroundings = surroundings
        self.name = name
        self.address = origin(self._url)

    async def send(self, message: Message) -> Result:
        answer = await post(
            self._surroundings.client,
            self._url,
            orjson.dumps(payload(Notice.of(message))),
            {},
            timeout_seconds=self._timeout,
            redact=self._redact,
        )
        if isinstance(answer, RetryAfter):
            return answer
        # Slack says "ok". A sign-in page of a proxy in between also comes with 200, and nobody was told.
        if answer.status == 200 and answer.text not in ("", "ok"):
            return Refused("answered 200 but not ok: does a proxy answer in Slack's place?")
        return verdict(answer, self._surroundings.clock())


SETTINGS = SlackSettings
