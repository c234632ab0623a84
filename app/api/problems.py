"""Errors as RFC 9457 problem+json: which thing was wrong, and why. Never a traceback."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from acceptance.query import BadQuery

MEDIA_TYPE = "application/problem+json"
BAD_PARAMETER = "urn:draftgauge:problem:bad-parameter"


class Problem(Exception):
    """An answer that is an error. ``members`` are further fields of the document."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        type_: str = "about:blank",
        headers: Mapping[str, str] | None = None,
        **members: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.type = type_
        self.headers = dict(headers or {})
        self.members = members

    def response(self) -> Response:
        """The document; ``title`` is the phrase of the status."""
        document = {
            "type": self.type,
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            **self.members,
        }
        return Response(orjson.dumps(document), self.status, self.headers, MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Every error of ``app`` that is not a bug answers as a problem; bugs are the guard's (``app.api.guard``)."""

    async def problem(_: Request, error: Exception) -> Response:
        assert isinstance(error, Problem)
        return error.response()

    async def bad_query(_: Request, error: Exception) -> Response:
        assert isinstance(error, BadQuery)
        return Problem(400, str(error), type_=BAD_PARAMETER, parameter=error.parameter).response()

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        path = request.url.path[:200]
        details = {404: f"there is no {path}", 405: f"{request.method[:20]} is not a method of {path}"}
        return Problem(
            error.status_code, details.get(error.status_code, str(error.detail)), headers=error.headers
        ).response()

    app.add_exception_handler(Problem, problem)
    app.add_exception_handler(BadQuery, bad_query)
    app.add_exception_handler(HTTPException, http)
