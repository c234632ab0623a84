from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.config import Config, ConfigError, load
from app.settings import Override, Where
from collectors.target import Target

WHOLE = """
listen: {host: 0.0.0.0, port: 9000, allowed_hosts: draftgauge.svc}
external_url: https://dg.example/monitor/
data_dir: /var/lib/draftgauge
access:
  tokens:
    - {name: prometheus, role: viewer, token: "${METRICS_TOKEN}"}
    - {name: ana, role: editor, token_file: ana.token}
  allow_anonymous: "${OPEN:-false}"
  proxy_header: X-Forwarded-User
  proxy_role: editor
  trusted_proxies: [10.0.0.5, 10.1.0.0/16]
  session_lifetime: 12h
scrape: {interval: 30s, timeout: 2.5, concurrency: 50}
evaluation: {interval: 1m}
retention: {history: 7d, alerts: 2w}
targets:
  - url: http://10.0.0.1:30000/
  - name: prefill
    url: 10.0.0.2:8000
    group: k3
    logs: [/logs/*.log, own.log]
    category_label: request_category
    bearer_token: ${TOKEN}
    scrape_interval: 5s
  - {name: archived, logs: old.log}
channels:
  chat: {kind: slack, url: "${SLACK}"}
  pager: {kind: webhook, url: https://pager.example/hook}
routes: {critical: [pager, chat], warning: chat}
thresholds:
  - {finding: low-acceptance, set: {acc_len: 1.5}}
  - finding: low-acceptance
    where: {category: [creative, chat], group: k3, model: kimi, drafter: dspark}
    set: {acc_len: 2.4}
    for: 30s
    keep_firing_for: 0
"""
ENVIRONMENT = {
    "TOKEN": "0123456789",
    "SLACK": "https://hooks.slack.example/services/T0/B0/verysecret",
    "METRICS_TOKEN": "abcdefghijklmnopqrst-metrics",
}


@pytest.fixture(autouse=True)
def _token_file(tmp_path: Path) -> None:
    (tmp_path / "ana.token").write_text("abcdefghijklmnopqrst-ana\n")


def test_everything_that_can_be_set(config_of: Any, tmp_path: Path) -> None:
    config = config_of(WHOLE, ENVIRONMENT)
    assert (config.listen.host, config.listen.port, config.listen.allowed_hosts) == (
        "0.0.0.0",
        9000,
        ("draftgauge.svc",),
    )
    assert config.external_url == "https://dg.example/monitor"
    assert config.host_names == {"0.0.0.0", "dg.example", "draftgauge.svc"}
    assert config.data_dir == Path("/var/lib/draftgauge")
    access = config.access
    assert [(entry.name, entry.role, entry.secret) for entry in access.tokens] == [
        ("prometheus", "viewer", "abcdefghijklmnopqrst-metrics"),
        ("ana", "editor", "abcdefghijklmnopqrst-ana"),
    ]
    assert (access.allow_anonymous, access.proxy_header, access.proxy_role) == (False, "x-forwarded-user", "editor")
    assert [str(network) for network in access.trusted_proxies] == ["10.0.0.5/32", "10.1.0.0/16"]
    assert access.session_lifetime == 12 * 3600
    assert (config.scrape.interval, config.scrape.timeout, config.scrape.concurrency) == (30.0, 2.5, 50)
    assert (config.evaluation.interval, config.retention.history, config.retention.alerts) == (60, 604800, 1209600)
    assert config.watched() == (
        Target("10.0.0.1:30000", "http://10.0.0.1:30000", scrape_interval_seconds=30.0),
        Target(
            "prefill",
            "http://10.0.0.2:8000",
            "k3",
            ("/logs/*.log", str(tmp_path / "own.log")),
            "request_category",
            "0123456789",
            5.0,
        ),
        Target("archived", logs=(str(tmp_path / "old.log"),), scrape_interval_seconds=30.0),
    )
    assert set(config.channels) == {"chat", "pager"}
    assert [config.channels_for(severity) for severity in ("critical", "warning", "notice")] == [
        ("pager", "chat"),
        ("chat",),
        (),
    ]
    assert config.thresholds == (
        Override(finding="low-acceptance", set={"acc_len": 1.5}),
        Override(
            finding="low-acceptance",
            where=Where(category=("creative", "chat"), group=("k3",), model=("kimi",), drafter=("dspark",)),
            set={"acc_len": 2.4},
            **{"for": 30.0, "keep_firing_for": 0.0},
        ),
    )


@pytest.mark.parametrize("text", ["", "# nothing\n", "targets:\nscrape:\n  interval:\n"])
def test_nothing_has_to_be_set(config_of: Any, text: str) -> None:
    config = config_of(text)
    assert config == Config()
    assert (config.listen.host, config.listen.port, str(config.data_dir)) == ("127.0.0.1", 8400, "draftgauge-data")
    assert (config.scrape.interval, config.evaluation.interval, config.retention.history) == (15, 15, 30 * 86400)


def test_without_a_file() -> None:
    assert load(None) == Config()


def test_alerts_go_to_every_channel_unless_routed(config_of: Any) -> None:
    config = config_of("channels: {a: {kind: webhook, url: http://a}, b: {kind: webhook, url: http://b}}")
    assert config.channels_for("critical") == config.channels_for("warning") == ("a", "b")
    assert config.channels_for("notice") == config.channels_for("info") == ()


SECRETS = ("verysecret", "0123456789", "abcdefghijklmnopqrst")


def test_secrets_are_not_shown(config_of: Any) -> None:
    config = config_of(WHOLE, ENVIRONMENT)
    for text in (repr(config), str(config), repr(config.watched()), repr(config.channels), config.model_dump_json()):
        assert not any(secret in text for secret in SECRETS)


def test_secrets_are_not_in_errors(config_of: Any) -> None:
    wrong = WHOLE.replace("verysecret", "x").replace("group: k3", "group: [0123456789]", 1)
    wrong = wrong.replace('url: "${SLACK}"', 'url: "not ${SLACK}", extra: "${SLACK}"')
    wrong = wrong.replace("bearer_token: ${TOKEN}", "bearer_token: [ '${TOKEN}' ]")
    with pytest.raises(ConfigError) as caught:
        config_of(wrong, ENVIRONMENT)
    assert len(caught.value.problems) == 4
    for text in (str(caught.value), repr(caught.value), repr(caught.value.problems)):
        assert not any(secret in text for secret in SECRETS)


BROKEN = """\
listen:
  port: 99999
  hst: here
targets:
  - url: http://10.0.0.1:30000/metrics
  - 10.0.0.2:30000
  - url: 10.0.0.3:30000
    group: no
    scrape_interval: 0
  - url: 10.0.0.3:30000
    bearer_token: ${TOKEN}
  - logs: [a.log]
  - name: nowhere
  - {name: nowhere, url: "http://user:password@h"}
scrape:
  interval: 15 parsecs
  interval: 20s
channels:
  page: {kind: slak}
  chat: {kind: slack, url: "${SLACK}"}
  hook: {kind: webhook, url: http://h, urll: 1}
  bad: 1
routes:
  critial: [page]
  warning: [pagee, chat]
thresholds:
  - finding: low-acceptence
    set: {acc_len: 1.8}
  - finding: low-acceptance
    where: {catgory: creative}
    set: {acc_len: low, speed: 1}
  - finding: dead-drafter
scrpe: {}
"""


def test_all_that_is_wrong_is_said_at_once_with_its_place(config_of: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        config_of(BROKEN, {"TOKEN": "a\nb"})
    lines = str(caught.value).replace(f"{tmp_path / 'draftgauge.yaml'}:", "").splitlines()
    expected = [
        ("2:3", "listen.port", "should be less than or equal to 65535"),
        ("3:3", "listen.hst", "unknown key (do you mean host?); known here: host, port, allowed_hosts"),
        ("5:5", "targets[0].url", "must be a base URL, without a path"),
        ("6:5", "targets[1]", "must be keys and values"),
        ("8:5", "targets[2].group", "must be text: put it in quotes"),
        ("9:5", "targets[2].scrape_interval", "should be greater than 0"),
        ("10:5", "targets[3]", "another target is called '10.0.0.3:30000' already"),
        ("11:5", "targets[3].bearer_token", "must be one line of ASCII characters"),
        ("12:5", "targets[4]", "needs a name, since it has no url"),
        ("13:5", "targets[5]", "needs a url or logs"),
        ("14:5", "targets[6]", "another target is called 'nowhere' already"),
        ("14:21", "targets[6].url", "must not hold a password: use bearer_token"),
        ("17:3", "scrape.interval", "given twice, first in line 16"),
        ("19:10", "channels.page.kind", "must be one of slack, webhook"),
        ("20:28", "channels.chat.url", "the environment has no SLACK"),
        ("21:40", "channels.hook.urll", "unknown key"),
        ("22:3", "channels.bad", "must be settings: a kind and what it needs"),
        ("24:3", "routes.critial", "should be 'info', 'notice', 'warning' or 'critical'"),
        ("25:13", "routes.warning[0]", "no channel is called 'pagee' (do you mean page?)"),
        ("27:5", "thresholds[0].finding", "no finding is called 'low-acceptence' (do you mean low-acceptance?)"),
        ("30:13", "thresholds[1].where.catgory", "unknown key (do you mean category?)"),
        ("31:11", "thresholds[1].set.acc_len", "must be a number"),
        ("31:25", "thresholds[1].set.speed", "not a threshold of low-acceptance, which has acc_len, "),
        ("32:5", "thresholds[2]", "changes nothing: needs set, for or keep_firing_for"),
        ("33:1", "scrpe", "unknown key (do you mean scrape?); known here: listen, access, external_url, "),
    ]
    for line, (place, path, message) in zip(lines, expected, strict=True):
        assert line.startswith(f"{place}: {path}: {message}"), line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1,\n", "2:1: "),
        ("- 1\n", "1:1: must be keys and values"),
        ("just text", "1:1: must be keys and values"),
        ("a: 1\n---\nb: 2\n", "2:1: "),
        ("listen: !!python/object/apply:os.system [ls]", "1:1: listen: must be keys and values"),
        ("external_url: !secret x", "1:15: external_url: not a value"),
        ("external_url: 'a\x07b'", ": not YAML: a character that is not allowed"),
        ("? [a]\n: 1\n", "1:3: a key must be text"),
        ("listen: &a {host: *a}\n", "1:9: listen.host: contains itself"),
        ("<<: 5\n", "1:5: "),
        ("external_url: ${A", "1:15: external_url: a ${ without NAME}"),
    ],
)
def test_text_that_cannot_be_read(config_of: Any, tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_of(text)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "draftgauge.yaml"))
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"x\.yaml: cannot be read: (No such file|not UTF-8)"):
        load(path)


@pytest.mark.parametrize(
    ("value", "environment", "expected"),
    [
        ("${NAME}", {"NAME": "k3"}, "k3"),
        ("a-${NAME}-${OTHER}", {"NAME": "k3", "OTHER": "x"}, "a-k3-x"),
        ("${NAME:-fallback}", {}, "fallback"),
        ("${NAME:-fallback}", {"NAME": ""}, "fallback"),
        ("${NAME:-}", {}, None),
        ("${NAME}", {"NAME": ""}, None),
        ("${NAME}", {"NAME": "yes"}, "yes"),
        ("${NAME}", {"NAME": "17"}, "17"),
        ("${NAME}", {"NAME": "{a: 1}"}, "{a: 1}"),
        ("${NAME}", {"NAME": "${NAME}"}, "${NAME}"),
        ("'$${NAME}'", {"NAME": "k3"}, "${NAME}"),
        ("$NAME", {"NAME": "k3"}, "$NAME"),
    ],
)
def test_the_environment_stays_text(
    config_of: Any, value: str, environment: dict[str, str], expected: str | None
) -> None:
    (target,) = config_of(f"targets:\n  - url: h:1\n    group: {value}\n", environment).targets
    assert target.group == expected


def test_numbers_and_durations_from_the_environment(config_of: Any) -> None:
    text = 'listen: {port: "${PORT}"}\nscrape: {interval: "${EVERY}", concurrency: "${N:-7}"}\n'
    config = config_of(text, {"PORT": "8500", "EVERY": "20s"})
    assert (config.listen.port, config.scrape.interval, config.scrape.concurrency) == (8500, 20.0, 7)
    with pytest.raises(ConfigError, match=r"listen\.port: must be a whole number"):
        config_of(text, {"PORT": "http", "EVERY": "20s"})


def test_unlabelled_requests_have_thresholds_too(config_of: Any) -> None:
    config = config_of('thresholds: [{finding: low-acceptance, where: {category: ""}, set: {acc_len: 1.5}}]')
    assert config.thresholds[0].where.category == ("",)


def test_an_item_of_which_nothing_remains_is_left_out(config_of: Any) -> None:
    config = config_of('targets:\n  - url: h:1\n    logs: ["${A:-}", "${B}"]\n', {"B": "/b.log"})
    assert config.targets[0].logs == ("/b.log",)


def test_a_token_from_a_file_ends_in_a_newline(config_of: Any) -> None:
    config = config_of("targets: [{url: 'h:1', bearer_token: \"${TOKEN}\"}]", {"TOKEN": "secret\n"})
    assert config.watched()[0].bearer_token == "secret"


def test_paths_of_a_home(config_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/op")
    config = config_of("data_dir: ~/data\ntargets: [{name: a, logs: ~/logs/*.log}]")
    assert (config.data_dir, config.targets[0].logs) == (Path("/home/op/data"), ("/home/op/logs/*.log",))


def test_a_byte_order_mark_is_no_text(config_of: Any) -> None:
    assert config_of("\ufefflisten: {port: 1}").listen.port == 1


def test_shared_settings_by_anchor_and_merge(config_of: Any) -> None:
    text = """
targets:
  - &base {url: "h:1", group: k3, scrape_interval: 5s}
  - <<: *base
    url: h:2
"""
    assert [(target.url, target.group) for target in config_of(text).targets] == [
        ("http://h:1", "k3"),
        ("http://h:2", "k3"),
    ]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("h:1", "http://h:1"),
        ("https://h", "https://h"),
        ("http://[::1]:80/", "http://[::1]:80"),
        ("ftp://h", None),
        ("h:port", None),
        ("h:70000", None),
        ("h:0", None),
        ("http://", None),
        ("http://a b", None),
        ("http://h?x=1", None),
        ("http://h#x", None),
    ],
)
def test_urls_of_targets(config_of: Any, url: str, expected: str | None) -> None:
    text = f"targets:\n  - url: {url!r}\n"
    if expected is not None:
        assert config_of(text).targets[0].url == expected
        return
    with pytest.raises(ConfigError, match=r"2:5: targets\[0\]\.url: must be "):
        config_of(text)


@pytest.mark.parametrize("value", ["0", "-1", "15 s", "true", "[1]", ".inf", "'1y'", "''", "2020-01-01"])
def test_durations_that_are_none(config_of: Any, value: str) -> None:
    with pytest.raises(ConfigError, match=r"1:10: scrape\.timeout: "):
        config_of(f"scrape: {{timeout: {value}}}")


def test_the_command_line_wins_and_adds(config_of: Any, tmp_path: Path) -> None:
    overrides = {
        "listen": {"port": 9999, "host": None},
        "data_dir": Path("here"),
        "external_url": None,
        "targets": [{"url": "h:2"}, {"name": "log", "logs": [Path("x.log")]}],
    }
    config = config_of("listen: {host: 127.0.0.1, port: 1}\ntargets:\n  - url: h:1\n", overrides=overrides)
    assert (config.listen.host, config.listen.port) == ("127.0.0.1", 9999)
    assert config.data_dir == Path("here")
    assert [target.name for target in config.watched()] == ["h:1", "h:2", "log"]
    assert config.targets[2].logs == ("x.log",)


def test_what_is_wrong_on_the_command_line_is_said_so(config_of: Any) -> None:
    overrides = {"listen": {"port": -1}, "targets": [{"url": "h:1"}]}
    with pytest.raises(ConfigError) as caught:
        config_of("targets:\n  - url: h:1\n", overrides=overrides)
    assert str(caught.value).splitlines() == [
        "command line: targets[1]: another target is called 'h:1' already: give it a name of its own",
        "command line: listen.port: should be greater than or equal to 0",
    ]
