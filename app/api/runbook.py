"""/runbook: every finding, what it means and what to do, at the anchor that messages link to."""

from __future__ import annotations

from html import escape

from fastapi import FastAPI, Request
from starlette.responses import Response

from alerts.findings import Entry, findings
from app.api.plain import plain_page


def install(app: FastAPI) -> None:
    """Add /runbook."""

    async def runbook(_: Request) -> Response:
        return plain_page("Draftgauge: runbook", "".join(_section(name, entry) for name, entry in findings().items()))

    app.add_route("/runbook", runbook, include_in_schema=False)


def _section(name: str, entry: Entry) -> str:
    remedies = (("", entry.remedy.any), ("SGLang", entry.remedy.sglang), ("vLLM", entry.remedy.vllm))
    return f'<h2 id="{escape(name)}">{escape(entry.title)} <small>{escape(name)}, {entry.severity}</small></h2>' + (
        f"<p>{escape(entry.cause)}</p>"
        + "".join(f"{f'<h3>{engine}</h3>' if engine else ''}{_list(lines)}" for engine, lines in remedies if lines)
    )


def _list(lines: tuple[str, ...]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"
