"""The pages on a FastAPI object, as a client of HTTP sees them."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest

import dashboards

ASSETS = Path(dashboards.__file__).parent / "assets"


@pytest.fixture
async def client(made: dict[str, Any]) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(made["served"]())
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


@pytest.mark.parametrize("path", ["/", "/trends", "/?theme=dark&from=now-1h"])
async def test_a_page_is_answered_with_its_policy(path: str, client: httpx.AsyncClient) -> None:
    answer = await client.get(path)
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert "script-src 'self' 'sha256-" in policy
    assert '<html lang="en">' in answer.text


@pytest.mark.parametrize("path", ["/nonsense", "/api/nope", "/trends/more", "/assets/nothing.js", "/fleet.php"])
async def test_other_paths_are_not_caught(path: str, client: httpx.AsyncClient) -> None:
    assert (await client.get(path)).status_code == 404


async def test_every_inline_script_is_one_the_policy_names(client: httpx.AsyncClient) -> None:
    answer = await client.get("/")
    inline = re.findall(r"<script(?![^>]* src=)(?![^>]*application/json)[^>]*>(.*?)</script>", answer.text, re.DOTALL)
    assert inline
    for script in inline:
        digest = b64encode(sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in answer.headers["content-security-policy"]


async def test_the_theme_is_known_before_anything_is_painted(client: httpx.AsyncClient) -> None:
    page = (await client.get("/")).text
    assert page.count("theme.js") == 1
    assert page.index("theme.js") < min(page.index('rel="stylesheet"'), page.index("<body>"))


async def test_nothing_is_fetched_from_elsewhere(client: httpx.AsyncClient) -> None:
    page = (await client.get("/")).text
    assert not re.findall(r"(?:src|href)=\"(?:https?:)?//", page)
    for path in [*ASSETS.glob("*.css"), *ASSETS.glob("*.js")]:
        addresses = re.findall(
            r"(?:https?:)?//[a-z0-9-]+\.[a-z]+[^\s\"')]*", re.sub(r"http://www\.w3\.org/\S+", "", path.read_text())
        )
        assert not [address for address in addresses if not address.startswith("// ")], path.name


def test_icons_are_those_that_are_kept_with_their_licence() -> None:
    css = (ASSETS / "icons.css").read_text()
    drawn = dict(re.findall(r'\.icon-([\w-]+) { --icon: url\("data:image/svg\+xml,([^"]+)"\)', css))
    kept = {path.stem: path.read_text() for path in (ASSETS / "icons").glob("*.svg")}
    assert drawn.keys() == kept.keys()
    for name, svg in kept.items():
        shapes = re.findall(r'\b(?:d|cx|cy|r|x1|x2|y1|y2|width|height|points)="([^"]+)"', svg)
        assert all(f"'{shape}'" in unquote(drawn[name]) for shape in shapes), name
