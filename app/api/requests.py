"""POST /api/acceptance/requests: results of single requests, from whoever sees them."""

from __future__ import annotations

from fastapi import FastAPI, Request
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from app.access.roles import requiring
from app.api import answers, schemas
from app.api.problems import Problem
from app.api.readiness import Readiness
from app.records.intake import Full, Intake, NotStored
from collectors.posted import TooMany, Unreadable

PATH = "/api/acceptance/requests"
MOST_BYTES = 4 * 2**20
RETRY = {"retry-after": "1"}


def install(app: FastAPI, intake: Intake, readiness: Readiness) -> None:
    """Add the route."""

    async def post(request: Request) -> Response:
        if readiness.stopping:
            raise Problem(503, "the service is stopping: send it again", headers=RETRY)
        body = await _body(request)
        try:
            taken = await intake.take(body)
        except TooMany as problem:
            raise Problem(413, str(problem)) from None
        except Unreadable as problem:
            raise Problem(400, str(problem)) from None
        except Full:
            raise Problem(429, "there is no room: send it again, whole", headers=RETRY) from None
        except NotStored:
            raise Problem(500, "these records cannot be stored; the service's log has the reason") from None
        rejected = [{"line": each.line, "reason": each.reason} for each in taken.rejected]
        answer = answers.json_response(
            {"accepted": taken.accepted, "duplicates": taken.duplicates, "rejected": rejected}
        )
        answer.status_code = 207 if rejected else 200
        return answer

    problem = {"model": schemas.ProblemAnswer, "description": "a problem (RFC 9457)"}
    some = {"model": schemas.RecordsAnswer, "description": "some records were rejected"}
    lines = {"schema": {"type": "string", "description": "one JSON object a line, or a JSON array of objects"}}
    with requiring(app, "agent"):
        app.add_api_route(
            PATH,
            post,
            methods=["POST"],
            summary="Results of single requests",
            response_model=schemas.RecordsAnswer,
            response_class=JSONResponse,
            responses={207: some, "4XX": problem, "5XX": problem},
            openapi_extra={"requestBody": {"required": True, "content": {"application/x-ndjson": lines}}},
        )


async def _body(request: Request) -> bytes:
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Problem(415, "send it without compression")
    too_large = Problem(413, f"a body of more than {MOST_BYTES} bytes: send it in parts")
    length = request.headers.get("content-length", "0")
    if length.isascii() and length.isdigit() and int(length[:20]) > MOST_BYTES:
        raise too_large
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > MOST_BYTES:
                raise too_large
            parts.append(part)
    except ClientDisconnect:
        raise Problem(400, "the body ended early") from None
    return b"".join(parts)
