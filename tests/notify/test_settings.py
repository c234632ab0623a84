from __future__ import annotations

import base64

import pytest

from alerts.notify.registry import BadChannel, channel_settings, kinds
from alerts.notify.slack import SlackSettings
from alerts.notify.webhook import WebhookSettings

KEY = "whsec_" + base64.b64encode(bytes(range(32))).decode()


def test_kinds_are_found_by_their_folders() -> None:
    assert kinds() == {"slack": SlackSettings, "webhook": WebhookSettings}


def test_settings_of_every_kind() -> None:
    slack = channel_settings("pager", {"kind": "slack", "url": "https://hooks.slack.com/services/T0/B0/xyzzyxyzzy"})
    assert isinstance(slack, SlackSettings)
    assert slack.timeout_seconds == 10.0
    webhook = channel_settings(
        "ops",
        {
            "kind": "webhook",
            "url": "http://10.0.0.1:9000/hook",
            "bearer_token": "t0ps3cret",
            "headers": {"X-Team": "inference"},
            "signing_secret": KEY,
            "timeout_seconds": 3,
        },
    )
    assert isinstance(webhook, WebhookSettings)
    assert webhook.headers["X-Team"].get_secret_value() == "inference"


@pytest.mark.parametrize(
    ("given", "key", "reason"),
    [
        ({}, "kind", "must be one of slack, webhook"),
        ({"kind": "pigeon"}, "kind", "must be one of slack, webhook"),
        ({"kind": ["slack"]}, "kind", "must be one of slack, webhook"),
        ({"kind": "slack"}, "url", "required"),
        ({"kind": "slack", "url": "ftp://x3cret.example/a"}, "url", "http"),
        ({"kind": "slack", "url": "https:///x3cret"}, "url", "host"),
        ({"kind": "slack", "url": "https://x3cret\n.example"}, "url", "not a URL"),
        ({"kind": "webhook", "url": "https://x:x3cret@y.example"}, "url", "use a header"),
        (
            {
                "kind": "webhook",
                "url": "https://y.example",
                "bearer_token": "a",
                "headers": {"Authorization": "x3cret"},
            },
            "",
            "both set Authorization",
        ),
        ({"kind": "slack", "url": "https://x.example", "token": "x3cret"}, "token", "nexpected"),
        ({"kind": "slack", "url": "https://x.example", "timeout_seconds": 0}, "timeout_seconds", "greater than 0"),
        ({"kind": "webhook", "url": "https://x.example", "bearer_token": "x3cret\r\nA: b"}, "bearer_token", "one line"),
        ({"kind": "webhook", "url": "https://x.example", "headers": {"A B": "x3cret"}}, "headers.A B.[key]", "pattern"),
        ({"kind": "webhook", "url": "https://x.example", "headers": {"A": "x3cret\n"}}, "headers.A", "one line"),
        ({"kind": "webhook", "url": "https://x.example", "headers": {"Webhook-Id": "x3cret"}}, "headers", "sender"),
        (
            {"kind": "webhook", "url": "https://x.example", "signing_secret": "whsec_x3cret!"},
            "signing_secret",
            "base64",
        ),
        ({"kind": "webhook", "url": "https://x.example", "signing_secret": "whsec_eDNjcmV0"}, "signing_secret", "24"),
    ],
)
def test_what_is_wrong_is_named_and_not_quoted(given: dict[str, object], key: str, reason: str) -> None:
    with pytest.raises(BadChannel) as caught:
        channel_settings("pager", given)
    assert [problem[0] for problem in caught.value.problems] == [key]
    assert reason in caught.value.problems[0][1]
    assert str(caught.value).startswith(f"channel pager: {key}")
    assert "x3cret" not in str(caught.value)


def test_every_problem_is_named_at_once() -> None:
    with pytest.raises(BadChannel) as caught:
        channel_settings("pager", {"kind": "webhook", "url": "nonsense", "bearer_token": "", "colour": "red"})
    assert {key for key, _ in caught.value.problems} == {"url", "bearer_token", "colour"}


def test_settings_show_no_secrets() -> None:
    webhook = channel_settings(
        "ops",
        {
            "kind": "webhook",
            "url": "https://ops.example/hook/x3cretx3cret?token=x3cretx3cret",
            "bearer_token": "x3cretx3cret",
            "headers": {"X-Key": "x3cretx3cret"},
            "signing_secret": KEY,
        },
    )
    for text in (repr(webhook), str(webhook)):
        assert "x3cret" not in text
        assert KEY not in text
