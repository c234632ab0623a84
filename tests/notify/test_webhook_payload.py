from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import SecretStr

from alerts.notify.notice import Notice
from alerts.notify.webhook.payload import payload
from alerts.notify.webhook.signature import signed_headers
from store.state import Message

GROUP_KEYS = {
    "version",
    "groupKey",
    "truncatedAlerts",
    "status",
    "receiver",
    "groupLabels",
    "commonLabels",
    "commonAnnotations",
    "externalURL",
    "alerts",
}
"""https://prometheus.io/docs/alerting/latest/configuration/#webhook_config"""
ALERT_KEYS = {"status", "labels", "annotations", "startsAt", "endsAt", "generatorURL", "fingerprint"}


def sent(message: Message) -> dict[str, Any]:
    return payload(Notice.of(message), "ops", "https://draftgauge.example")


def test_firing_is_what_alertmanager_would_send(message: Callable[..., Message]) -> None:
    group = sent(message())
    assert set(group) == GROUP_KEYS
    [alert] = group["alerts"]
    assert set(alert) == ALERT_KEYS
    assert group["version"] == "4"
    assert group["truncatedAlerts"] == 0
    assert group["status"] == alert["status"] == "firing"
    assert group["receiver"] == "ops"
    assert group["externalURL"] == "https://draftgauge.example"
    assert group["groupKey"] == '{}:{alertname="dead-drafter", category="code", rank="1", target="kimi-3"}'
    assert alert["labels"] == group["commonLabels"] == {
        "alertname": "dead-drafter",
        "severity": "critical",
        "target": "kimi-3",
        "group": "chat",
        "rank": "1",
        "category": "code",
        "model": "moonshotai/Kimi-K3",
        "drafter": "kimi-k3-dspark",
        "engine": "sglang",
    }  # fmt: skip
    assert alert["annotations"] == group["commonAnnotations"] == {
        "summary": "The drafter is dead",
        "description": "acc_len 1.04 over 1234 verify steps",
        "cause": "the drafter's weights do not belong to the target model",
        "remedy": "Check --speculative-draft-model-path\nRestart the server with the right drafter",
        "measure": "acc_len",
        "value": "1.04",
        "lower": "1.01",
        "upper": "1.07",
        "threshold": "1.1",
        "steps": "1234",
        "requests": "56",
        "source": "log",
        "since": "2026-11-30T00:50:20Z",
        "runbook_url": "https://runbooks.example/dead-drafter",
    }  # fmt: skip
    assert alert["startsAt"] == "2026-11-30T00:52:20Z"
    assert alert["endsAt"] == "0001-01-01T00:00:00Z"
    assert alert["generatorURL"] == message().body["link"]
    assert len(alert["fingerprint"]) == 16
    assert int(alert["fingerprint"], 16) > 0


def test_resolved_ends_the_same_alert(message: Callable[..., Message]) -> None:
    firing, resolved = sent(message()), sent(message(kind="resolved", body={"resolved_at": 1_796_000_300.5}))
    assert resolved["status"] == resolved["alerts"][0]["status"] == "resolved"
    assert resolved["alerts"][0]["endsAt"] == "2026-11-30T00:58:20.5Z"
    for key in ("startsAt", "fingerprint"):
        assert firing["alerts"][0][key] == resolved["alerts"][0][key]
    assert firing["groupKey"] == resolved["groupKey"]


def test_alerts_differ_by_fingerprint(message: Callable[..., Message]) -> None:
    assert (
        sent(message(alert="a1"))["alerts"][0]["fingerprint"] != sent(message(alert="a2"))["alerts"][0]["fingerprint"]
    )


def test_what_is_not_known_is_absent(message: Callable[..., Message]) -> None:
    nothing = dict.fromkeys(message().body)
    [alert] = sent(message(body={**nothing, "finding": "target-down", "severity": "warning", "value": float("nan")}))[
        "alerts"
    ]
    assert alert["labels"] == {"alertname": "target-down", "severity": "warning"}
    assert alert["annotations"] == {"summary": "target-down"}
    assert alert["generatorURL"] == ""
    assert alert["startsAt"] == "2026-11-30T00:53:20Z"


def test_hostile_text_stays_one_line_of_limited_length(message: Callable[..., Message]) -> None:
    [alert] = sent(message(body={"target": "a\r\nX: y\u202e\ud800" + "b" * 5000}))["alerts"]
    assert alert["labels"]["target"].startswith("a X: y\ufffdbbb")
    assert alert["labels"]["target"].endswith(" … [cut]")
    assert len(alert["labels"]["target"]) == 200


def test_the_signature_is_that_of_standard_webhooks() -> None:
    """The specification's own example."""
    headers = signed_headers(
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330.9,
        b'{"test": 2432232314}',
        SecretStr("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
