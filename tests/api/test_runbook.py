"""The runbook answers at the anchors that messages link to."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from alerts.findings import findings
from alerts.messages import Links
from app.api import runbook


@pytest.fixture
async def page() -> str:
    app = FastAPI()
    runbook.install(app)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gauge.example") as client:
        answer = await client.get("/runbook")
    assert answer.status_code == 200
    assert "script-src" not in answer.headers["content-security-policy"]
    return answer.text


@pytest.mark.parametrize("finding", sorted(findings()))
async def test_the_link_of_a_message_leads_to_the_finding(page: str, finding: str) -> None:
    link = Links("http://gauge.example").to_runbook(finding)
    assert link is not None
    path, _, anchor = link.removeprefix("http://gauge.example").partition("#")
    assert path == "/runbook"
    assert f'id="{anchor}"' in page


def test_the_api_document_names_it() -> None:
    assert "`/runbook`" in Path("docs/api.md").read_text()
