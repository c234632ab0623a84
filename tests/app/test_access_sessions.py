"""Logging in with a browser, guessing tokens, and what of a session outlives what."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from app.access.damping import FREE_FAILURES, LONGEST_WAIT_SECONDS, Damper
from app.access.sessions import COOKIE, Sessions

TOKEN, OTHER = "viewer-0123456789-abcdefghij", "editor-0123456789-abcdefghij"
ACCESS = {
    "tokens": [
        {"name": "wall screen", "role": "viewer", "token": TOKEN},
        {"name": "ana", "role": "editor", "token": OTHER},
        {"name": "host-7", "role": "agent", "token": "agent-0123456789-abcdefghij"},
    ],
    "session_lifetime": "1d",
}
PAGE = {"accept": "text/html,application/xhtml+xml", "sec-fetch-dest": "document"}
KEYS = {"ana": b"k" * 32}


@pytest.fixture
def client(serve: Any, browse: Any) -> httpx.AsyncClient:
    return browse(serve(ACCESS, "0.0.0.0"), "10.0.0.9")


async def test_a_link_leads_to_the_login_and_back(client: httpx.AsyncClient) -> None:
    answer = await client.get("/trends?from=now-3h&category=code", headers=PAGE)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    found = re.search(r'http-equiv="refresh" content="0;url=([^"]*)"', answer.text)
    assert found
    form = await client.get(unescape(found[1]))
    assert form.status_code == 200
    hidden = re.search(r'name="next" value="([^"]*)"', form.text)
    assert hidden
    entered = await client.post("/login", data={"token": f" {TOKEN}\n", "next": unescape(hidden[1])})
    assert entered.status_code == 303
    back = urlsplit(entered.headers["location"])
    assert (back.path, parse_qs(back.query)) == ("/trends", {"from": ["now-3h"], "category": ["code"]})
    assert (await client.get(entered.headers["location"], headers=PAGE)).status_code == 200
    # Whoever is logged in and was led there by a link of another site is not asked again.
    assert (await client.get(unescape(found[1]))).headers["location"] == entered.headers["location"]


async def test_scripts_and_programs_get_a_problem_and_no_page(client: httpx.AsyncClient) -> None:
    for headers in ({"accept": "*/*"}, {**PAGE, "sec-fetch-dest": "empty"}):
        answer = await client.get("/", headers=headers)
        assert answer.headers["content-type"] == "application/problem+json"
    assert (await client.post("/", headers=PAGE)).headers["content-type"] == "application/problem+json"


async def test_the_cookie_is_for_this_site_and_not_for_scripts(client: httpx.AsyncClient) -> None:
    answer = await client.post("/login", data={"token": TOKEN})
    cookie = answer.headers["set-cookie"]
    assert {part.strip() for part in cookie.split(";")[1:]} == {
        "Max-Age=86400",
        "Path=/",
        "HttpOnly",
        "SameSite=Strict",
    }
    assert TOKEN not in cookie
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(("address", "secure"), [("10.0.0.5", True), ("10.0.0.9", False)])
async def test_behind_tls_the_cookie_is_for_tls(serve: Any, browse: Any, address: str, secure: bool) -> None:
    client = browse(serve({**ACCESS, "trusted_proxies": ["10.0.0.5"]}, "0.0.0.0"), address)
    answer = await client.post("/login", data={"token": TOKEN}, headers={"x-forwarded-proto": "https"})
    assert ("Secure" in answer.headers["set-cookie"]) is secure


async def test_the_login_page_loads_nothing_and_is_framed_by_nobody(client: httpx.AsyncClient) -> None:
    for path in ("/login", "/logout"):
        answer = await client.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "form-action 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert not re.search(r"<script|<link|<img|@import|url\(|https?:", answer.text)


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "/x\r\nset-cookie: a=b",
        "/logout",
    ],
)
async def test_the_login_leads_nowhere_else(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.post("/login", data={"token": TOKEN, "next": path})
    assert answer.headers["location"] == "/"


async def test_what_is_typed_into_the_address_is_not_markup(client: httpx.AsyncClient) -> None:
    for answer in (
        await client.get("/login", params={"next": '/"><script>alert(1)</script>'}),
        await client.get('/"><script>alert(1)</script>', headers=PAGE),
    ):
        assert "<script" not in answer.text


@pytest.mark.parametrize(
    ("token", "status", "words"),
    [
        ("wrong-wrong-wrong-wrong", 401, "not known here"),
        ("", 401, "not known here"),
        ("agent-0123456789-abcdefghij", 403, "an agent&#x27;s"),
        ("x" * 100_000, 401, "not known here"),
    ],
)
async def test_a_token_that_opens_no_page(client: httpx.AsyncClient, token: str, status: int, words: str) -> None:
    answer = await client.post("/login", data={"token": token})
    assert answer.status_code == status
    assert words in answer.text
    assert "set-cookie" not in answer.headers


async def test_a_session_that_is_used_goes_on_and_an_unused_one_ends(client: httpx.AsyncClient, clock: Any) -> None:
    await client.post("/login", data={"token": TOKEN})
    first = client.cookies[COOKIE]
    clock.now += 11 * 3600
    assert "set-cookie" not in (await client.get("/api/targets")).headers
    for hours in (2, 13, 13, 13, 13):
        clock.now += hours * 3600
        assert (await client.get("/api/targets")).status_code == 200
    assert client.cookies[COOKIE] != first
    clock.now += 25 * 3600
    assert (await client.get("/api/targets")).status_code == 401


async def test_logging_out_ends_it_for_copies_too(client: httpx.AsyncClient) -> None:
    await client.post("/login", data={"token": TOKEN})
    copy = {"cookie": f"{COOKIE}={client.cookies[COOKIE]}"}
    assert (await client.post("/logout")).headers["location"] == "/login"
    assert COOKIE not in client.cookies
    assert (await client.get("/api/targets", headers=copy)).status_code == 401


async def test_a_restart_ends_no_session_but_a_changed_token_does(serve: Any, browse: Any) -> None:
    client = browse(serve(ACCESS))
    await client.post("/login", data={"token": OTHER})
    cookie = {"cookie": f"{COOKIE}={client.cookies[COOKIE]}"}
    assert (await browse(serve(ACCESS)).get("/api/targets", headers=cookie)).status_code == 200
    changed = {"tokens": [{"name": "ana", "role": "editor", "token": f"{OTHER}-2"}]}
    assert (await browse(serve(changed)).get("/api/targets", headers=cookie)).status_code == 401
    gone = {"tokens": [{"name": "bo", "role": "editor", "token": OTHER}]}
    assert (await browse(serve(gone)).get("/api/targets", headers=cookie)).status_code == 401


async def test_a_session_may_do_what_its_token_may_now(serve: Any, browse: Any) -> None:
    client = browse(serve(ACCESS))
    await client.post("/login", data={"token": OTHER})
    demoted = {"tokens": [{"name": "ana", "role": "agent", "token": OTHER}]}
    answer = await browse(serve(demoted)).get("/api/targets", headers={"cookie": f"{COOKIE}={client.cookies[COOKIE]}"})
    assert answer.status_code == 403


def test_no_cookie_can_be_made_up(clock: Any) -> None:
    sessions = Sessions(KEYS, 3600, clock)
    cookie = sessions.cookie(sessions.open("ana"), secure=False).split(";")[0].removeprefix(f"{COOKIE}=")
    assert sessions.read(cookie)
    name, id_, until, signature = cookie.split(".")
    for made_up in (
        f"{name}.{id_}.{int(until) + 1}.{signature}",
        f"Ym8=.{id_}.{until}.{signature}",
        f"{name}.{'0' * 32}.{until}.{signature}",
        f"{name}.{id_}.{until}.{signature[:-1]}",
        f"{name}.{id_}.{until}.",
        f"!.{id_}.{until}.{signature}",
        f"{name}.{id_}.٣.{signature}",
        "",
        "...",
        "." * 5000,
    ):
        assert sessions.read(made_up) is None, made_up
    assert Sessions({"ana": b"x" * 32}, 3600, clock).read(cookie) is None


async def test_guessing_waits(client: httpx.AsyncClient, serve: Any, browse: Any, clock: Any) -> None:
    good = {"authorization": f"Bearer {TOKEN}"}
    bad = {"authorization": "Bearer wrong-wrong-wrong-wrong"}
    for _ in range(FREE_FAILURES):
        assert (await client.get("/api/targets", headers=bad)).status_code == 401
    waiting = await client.get("/api/targets", headers=bad)
    assert (waiting.status_code, waiting.headers["retry-after"]) == (429, "1")
    # The right one fares no better, or a guesser would not have to wait.
    assert (await client.get("/api/targets", headers=good)).status_code == 429
    refused = await client.post("/login", data={"token": TOKEN})
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert "Wait 1 seconds" in refused.text
    assert (await client.get("/healthz", headers=bad)).status_code == 200
    clock.now += 1.1
    assert (await client.get("/api/targets", headers=good)).status_code == 200


def test_who_has_come_in_before_is_let_in_while_a_guesser_waits(clock: Any) -> None:
    damper = Damper(clock)
    assert damper.judge("10.0.0.9", "prometheus") == 0
    for _ in range(FREE_FAILURES):
        damper.judge("10.0.0.9", None)
    assert damper.judge("10.0.0.9", "ana") > 0
    assert damper.judge("10.0.0.9", "prometheus") == 0
    assert damper.judge("10.0.0.8", "ana") == 0


def test_waits_grow_to_a_minute_and_are_forgiven(clock: Any) -> None:
    damper = Damper(clock)
    waits: list[float] = []
    for number in range(FREE_FAILURES + 9):
        damper.judge("10.0.0.9", None)
        waits.append(damper.judge("10.0.0.9", f"never here before {number}"))
        clock.now += waits[-1] + 0.01
    assert waits[FREE_FAILURES - 1 :] == pytest.approx([1, 2, 4, 8, 16, 32, *[LONGEST_WAIT_SECONDS] * 4], abs=0.01)
    clock.now += 3600
    damper.judge("10.0.0.9", None)
    assert damper.judge("10.0.0.9", "ana") == 0


def test_one_host_has_one_wait_whatever_address_it_takes(clock: Any) -> None:
    damper = Damper(clock)
    for number in range(FREE_FAILURES):
        damper.judge(f"2001:db8::{number:x}", None)
    assert damper.judge("2001:db8::ffff", "ana") > 0
    assert damper.judge("2001:db8:0:1::1", "ana") == 0


def test_addresses_do_not_pile_up(clock: Any) -> None:
    damper = Damper(clock)
    for number in range(30_000):
        damper.judge(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", None)
    assert len(damper._records) == 10_000


async def test_behind_a_proxy_each_client_waits_for_itself(serve: Any, browse: Any) -> None:
    client = browse(serve({**ACCESS, "trusted_proxies": ["10.0.0.0/30"]}, "0.0.0.0"), "10.0.0.1")
    bad = {"authorization": "Bearer wrong-wrong-wrong-wrong"}
    for _ in range(FREE_FAILURES + 1):
        # What the client itself claims comes first in the list, and is not believed.
        await client.get("/api/targets", headers={**bad, "x-forwarded-for": "192.0.2.77, 192.0.2.1, 10.0.0.2"})
    good = {"authorization": f"Bearer {TOKEN}"}
    for address, status in (("192.0.2.1", 429), ("192.0.2.77", 200)):
        answer = await client.get("/api/targets", headers={**good, "x-forwarded-for": f"{address}, 10.0.0.2"})
        assert answer.status_code == status
