from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.findings import findings
from alerts.notify.notice import Notice
from alerts.notify.slack.blocks import payload
from alerts.notify.slack.mrkdwn import escaped, plain
from store.state import Message

DATE = re.compile(r"<!date\^\d+\^\{date_short_pretty\} \{time_secs\}\|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ>")
ENTITY = re.compile(r"&(?:amp|lt|gt);")


def texts(value: Any) -> Iterator[dict[str, Any]]:
    """Every text object of a payload."""
    if isinstance(value, dict):
        if value.get("type") in ("mrkdwn", "plain_text"):
            yield value
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def assert_slack_takes(sent: dict[str, Any]) -> None:
    """The limits of https://docs.slack.dev/reference/block-kit/blocks, written out."""
    assert 1 <= units(sent["text"]) <= 4000
    assert 1 <= len(sent["blocks"]) <= 50
    for block in sent["blocks"]:
        match block["type"]:
            case "header":
                assert block["text"]["type"] == "plain_text"
                assert units(block["text"]["text"]) <= 150
            case "section":
                assert ("text" in block) != ("fields" in block)
                assert len(block.get("fields", [])) <= 10
                assert all(units(field["text"]) <= 2000 for field in block.get("fields", []))
            case "context":
                assert 1 <= len(block["elements"]) <= 10
            case "actions":
                assert 1 <= len(block["elements"]) <= 25
                for button in block["elements"]:
                    assert button["type"] == "button"
                    assert units(button["text"]["text"]) <= 75
                    assert units(button["url"]) <= 3000
                    assert re.match(r"https?://\S+$", button["url"])
            case other:
                pytest.fail(f"no such block: {other}")
    for text in texts(sent):
        assert 1 <= units(text["text"]) <= 3000
        assert text.get("verbatim", False) == (text["type"] == "mrkdwn")
        assert ("emoji" in text) == (text["type"] == "plain_text")
    assert len(json.dumps(sent, ensure_ascii=False)) <= 13_000


def assert_harmless(sent: dict[str, Any]) -> None:
    """Nothing but our own markup: no mention, no link, no formatting beyond the headings."""
    for text in [*(each["text"] for each in texts(sent) if each["type"] == "mrkdwn"), sent["text"]]:
        ours = DATE.sub(
            "", re.sub(r"^\*(?:What|Since|Where|Value|Evidence|Source|Why|Likely cause|What to do)\*", "", text)
        )
        assert "<" not in ours
        assert ">" not in ours
        assert "`" not in ours
        assert "&" not in ENTITY.sub("", ours)
        assert not re.search(r"@(?:here|channel|everyone)", ours)
        assert not re.search(r"(?:^|\s)[*_~]|[*_~](?:\s|$)", ours)
    for text in texts(sent):
        if text["type"] == "plain_text":
            assert "<" not in text["text"]


HOSTILE = (
    *("<!channel>", "<!date^1^{date}|x>", "@here ", "@channel", "```", "`x`", "*b*", "_i_", " ~s~ ", "&amp;", "&"),
    *("<https://evil.example|click>", ":fire:", "\n*Severity*\n", "\u202e", "\u200b", "\ud800"),
    *("🔥" * 50, "<" * 3000, "a" * 3000),
)
ODD = st.lists(st.one_of(st.text(max_size=400), st.sampled_from(HOSTILE)), max_size=5).map("".join)
ANYTHING = st.one_of(st.none(), ODD, st.integers(), st.floats(), st.booleans())
KEYS = (
    *("title", "finding", "severity", "target", "group", "rank", "category", "model", "drafter", "engine", "measure"),
    *("source", "why", "cause", "value", "lower", "upper", "threshold", "steps", "requests"),
    *("since", "fired_at", "resolved_at"),
)
BODIES = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(KEYS, ANYTHING),
        "remedy": st.one_of(st.none(), ODD, st.lists(ODD, max_size=30)),
        "link": st.one_of(ANYTHING, ODD.map(lambda text: "https://x.example/" + text)),
        "runbook": st.one_of(ANYTHING, st.just("javascript:alert(1)")),
    },
)


@given(BODIES, st.sampled_from(["firing", "resolved"]), ODD)
def test_whatever_the_body_holds_slack_takes_it_and_nobody_is_mentioned(
    body: dict[str, Any], kind: str, name: str
) -> None:
    sent = payload(Notice.of(Message(name or "m", "pager", "a", kind, body, 1_796_000_000.0)))
    assert_slack_takes(sent)
    assert_harmless(sent)


def test_the_longest_of_everything_still_fits(message: Callable[..., Message]) -> None:
    longest = {key: "<" * 5000 for key, value in message().body.items() if isinstance(value, str) or value is None}
    links = dict.fromkeys(("link", "runbook"), "https://x.example/" + "a" * 1982)
    blocks_of(message("&" * 300, body={**longest, **links, "measure": ">" * 300, "remedy": ["<" * 5000] * 30}))


def blocks_of(message: Message) -> dict[str, Any]:
    sent = payload(Notice.of(message))
    assert_slack_takes(sent)
    assert_harmless(sent)
    return sent


def shown(sent: dict[str, Any]) -> str:
    return "\n".join(text["text"] for text in texts(sent))


def test_a_page_says_what_where_since_when_how_sure_and_what_to_do(message: Callable[..., Message]) -> None:
    sent = blocks_of(message())
    assert sent["text"] == "CRITICAL: The drafter is dead (kimi-3): acc_len 1.04 (1.01-1.07), threshold 1.10"
    assert sent["blocks"][0]["text"]["text"] == "🔴 CRITICAL: The drafter is dead"
    fields = dict(field["text"].split("\n", 1) for field in sent["blocks"][1]["fields"])
    assert fields == {
        "*What*": "dead-drafter, critical",
        "*Since*": "<!date^1795999820^{date_short_pretty} {time_secs}|2026-11-30T00:50:20Z>",
        "*Where*": "target kimi-3\ngroup chat\nrank 1\ncategory code\nengine sglang\n"
        "model moonshotai/Kimi-K3\ndrafter kimi-k3-dspark",
        "*Value*": "acc_len 1.04 (1.01-1.07), threshold 1.10",
        "*Evidence*": "verify steps: 1,234\nrequests: 56",
        "*Source*": "log",
    }
    text = shown(sent)
    assert "*Why*\nacc_len 1.04 over 1234 verify steps" in text
    assert "*Likely cause*\nthe drafter's weights" in text
    assert "*What to do*\n1. Check --speculative-draft-model-path\n2. Restart the server" in text
    assert "Draftgauge: finding dead-drafter, message m1" in text
    [actions] = [block for block in sent["blocks"] if block["type"] == "actions"]
    assert [button["url"] for button in actions["elements"]] == [message().body["link"], message().body["runbook"]]


def test_a_figure_nobody_named_is_not_called_acc_len(message: Callable[..., Message]) -> None:
    sent = blocks_of(message(body={"measure": None, "value": 0.0351, "lower": None, "threshold": 1200000}))
    assert sent["text"].endswith(": value 0.0351, threshold 1.2e+06")


def test_resolved_says_so_and_when(message: Callable[..., Message]) -> None:
    sent = blocks_of(message(kind="resolved", body={"status": "resolved", "resolved_at": 1_796_000_300.0}))
    assert sent["blocks"][0]["text"]["text"] == "✅ RESOLVED: The drafter is dead"
    assert sent["text"].startswith("RESOLVED: ")
    assert "resolved <!date^1796000300^" in shown(sent)
    assert "*What to do*" not in shown(sent)


def test_what_is_not_known_is_no_data_never_a_number(message: Callable[..., Message]) -> None:
    nothing = dict.fromkeys(message().body)
    sent = blocks_of(message(body={**nothing, "finding": "target-down", "category": ""}))
    fields = dict(field["text"].split("\n", 1) for field in sent["blocks"][1]["fields"])
    assert fields["*Value*"] == "no data"
    assert sent["text"] == "UNKNOWN: target-down"
    assert fields["*Evidence*"] == "verify steps: no data\nrequests: no data"
    assert fields["*Source*"] == "no data"
    assert fields["*Since*"] == "no data"
    assert fields["*Where*"] == "category (unlabelled)"
    assert not [block for block in sent["blocks"] if block["type"] == "actions"]


@pytest.mark.parametrize(
    "link",
    [
        "javascript:alert(1)",
        "ftp://x.example/a",
        "https://",
        "https://x.example/a b",
        "https://x.example/" + "a" * 5000,
    ],
)
def test_only_web_links_become_buttons(message: Callable[..., Message], link: str) -> None:
    sent = blocks_of(message(body={"link": link, "runbook": None}))
    assert not [block for block in sent["blocks"] if block["type"] == "actions"]


def test_truncation_is_visible_and_never_splits_an_escape(message: Callable[..., Message]) -> None:
    sent = blocks_of(message(body={"title": "t" * 500, "why": "<" * 1900, "remedy": ["r" * 3000] * 20}))
    text = shown(sent)
    assert "t … [cut]" in text
    assert "&lt; … [cut]" in text
    assert "r … [cut]" in text
    assert "… [cut: 10 more]" in text


@pytest.mark.parametrize("engine", ["sglang", "vllm", None])
def test_every_remedy_there_is_fits_uncut(message: Callable[..., Message], engine: str | None) -> None:
    for entry in findings().values():
        text = shown(blocks_of(message(body={"remedy": entry.remedy.lines(engine), "cause": entry.cause})))
        assert "[cut" not in text, entry.title


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("<!channel> & <@U1>", "&lt;!channel&gt; &amp; &lt;@U1&gt;"),
        ("--draft_model_path", "--draft_model_path"),
        ("a_b*c~d", "a_b*c~d"),
        ("*bold* _it_ ~gone~", "∗bold∗ ˍitˍ ∼gone∼"),
        ("```rm -rf```", "ˋˋˋrm -rfˋˋˋ"),
        (":fire: at 12:30:45 on host:8000", "∶fire: at 12:30:45 on host:8000"),
        ("mail a@b.example, @here", "mail a@b.example, ＠here"),
    ],
)
def test_markup_is_shown_not_obeyed(given: str, expected: str) -> None:
    assert escaped(given, 200) == expected


@given(st.text(), st.integers(20, 60))
def test_text_fits_its_limit(text: str, limit: int) -> None:
    text = text.encode("utf-8", "replace").decode()
    assert units(escaped(text, limit)) <= limit
    assert units(plain(text, limit)) <= limit
