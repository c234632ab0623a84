"""The HTTP API: every route in one table."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog
from fastapi import Depends, FastAPI, Request
from pydantic import BaseModel
from starlette.responses import JSONResponse, PlainTextResponse, Response

from acceptance.query import AcceptanceQuery
from acceptance.series import DIMENSIONS
from app.access.roles import ANYBODY, Role, requiring
from app.api import answers, parameters, schemas
from app.api.pool import ReadPool
from app.api.problems import Problem
from app.api.readiness import Readiness
from app.metrics import Metrics
from service.reads import Reads

log = structlog.get_logger(__name__)

ACCEPTANCE_PATIENCE_SECONDS = 5.0
"""How long /metrics waits for acceptance: with history stuck, our own health is wanted most."""

Endpoint = Callable[..., Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    """A path that answers GET to callers with ``role``. ``parameters`` None takes any, and ignores them."""

    path: str
    endpoint: Endpoint
    summary: str
    answer: type[BaseModel] | None = None
    parameters: tuple[str, ...] | None = ()
    role: Role | None = "viewer"


class Api:
    """The endpoints and what they answer from."""

    def __init__(
        self, reads: Reads, metrics: Metrics, readiness: Readiness, pool: ReadPool, *, demo: bool = False
    ) -> None:
        self._reads = reads
        self._metrics = metrics
        self._readiness = readiness
        self._pool = pool
        self._demo = demo

    def routes(self) -> tuple[Route, ...]:
        """Every route there is."""
        return (
            Route(
                "/api/acceptance",
                self.acceptance,
                "Acceptance over time",
                schemas.AcceptanceAnswer,
                parameters.ACCEPTANCE,
            ),
            Route(
                "/api/acceptance/latest",
                self.latest,
                "Acceptance now, of every series",
                schemas.LatestAnswer,
                parameters.LATEST,
            ),
            Route("/api/targets", self.targets, "Targets: state, facts, what cannot be seen", schemas.TargetsAnswer),
            Route("/api/targets/{name:path}", self.target, "One target", schemas.TargetDetail),
            Route("/api/alerts", self.alerts, "Alerts", schemas.AlertsAnswer, ("resolved",)),
            Route(
                "/api/deliveries",
                self.deliveries,
                "Messages and every try to deliver them",
                schemas.DeliveriesAnswer,
                ("limit", "alert"),
            ),
            Route("/healthz", self.healthz, "Whether the service runs", schemas.Health, None, ANYBODY),
            Route("/readyz", self.readyz, "Whether the service is ready", schemas.Health, None, ANYBODY),
            Route("/metrics", self.metrics, "Own metrics and acceptance now, for Prometheus", None, None),
        )

    async def acceptance(self, request: Request) -> Response:
        kind = parameters.choice(request, "format", ("json", "csv"))
        query = AcceptanceQuery.parse(parameters.grouped(request, without=("format",)), self._reads.now())

        def read() -> Response:
            rows = self._reads.acceptance(query)
            return answers.acceptance_csv(query.by, rows) if kind == "csv" else answers.acceptance_json(query, rows)

        return await self._pool.run(read)

    async def latest(self, request: Request) -> Response:
        kind = parameters.choice(request, "format", ("json", "csv"))
        now = self._reads.now()
        query = AcceptanceQuery.parse(parameters.grouped(request, without=("format",)), now)

        def read() -> Response:
            rows = self._reads.latest(query.where, query.source)
            return answers.acceptance_csv(DIMENSIONS, rows) if kind == "csv" else answers.latest_json(now, rows)

        return await self._pool.run(read)

    async def targets(self, _: Request) -> Response:
        def read() -> Response:
            targets = [answers.target_document(view) for view in self._reads.targets()]
            return answers.json_response({"demo": self._demo, "targets": targets})

        return await self._pool.run(read)

    async def target(self, name: str) -> Response:
        def read() -> Response:
            view = self._reads.target(name)
            if view is None:
                raise Problem(404, f"there is no target {name[:100]!r}")
            return answers.json_response(answers.target_detail(view, self._reads.hits(name)))

        return await self._pool.run(read)

    async def alerts(self, request: Request) -> Response:
        resolved = parameters.duration(request, "resolved")
        alerts = await self._pool.run(self._reads.alerts, resolved)
        return answers.json_response({"alerts": answers.alert_documents(alerts)})

    async def deliveries(self, request: Request) -> Response:
        limit = parameters.whole(request, "limit", 100, parameters.MOST_DELIVERIES)
        alert = request.query_params.get("alert") or None
        deliveries = await self._pool.run(self._reads.deliveries, limit, alert)
        return answers.json_response({"deliveries": [answers.delivery_document(each) for each in deliveries]})

    async def healthz(self, _: Request) -> Response:
        return answers.json_response({"status": "ok"})

    async def readyz(self, _: Request) -> Response:
        missing = self._readiness.missing()
        if missing:
            raise Problem(503, "not ready: " + "; ".join(missing), missing=missing)
        return answers.json_response({"status": "ok"})

    async def metrics(self, request: Request) -> Response:
        accept = request.headers.get("accept", "")

        def read() -> tuple[bytes, str]:
            return self._metrics.page(accept, self._reads.latest())

        try:
            async with asyncio.timeout(ACCEPTANCE_PATIENCE_SECONDS):
                body, content_type = await self._pool.run(read)
        except Exception:
            log.exception("acceptance is missing from /metrics")
            self._metrics.acceptance_missing()
            body, content_type = self._metrics.page(accept, ())
        return Response(body, media_type=content_type)


def install(app: FastAPI, api: Api) -> None:
    """Add the routes."""
    problem = {"model": schemas.ProblemAnswer, "description": "a problem (RFC 9457)"}
    for route in api.routes():
        with requiring(app, route.role):
            app.add_api_route(
                route.path,
                route.endpoint,
                methods=["GET"],
                summary=route.summary,
                response_model=route.answer,
                response_class=PlainTextResponse if route.answer is None else JSONResponse,
                responses={"4XX": problem, "5XX": problem},
                dependencies=[] if route.parameters is None else [Depends(parameters.only(route.parameters))],
                openapi_extra={"parameters": parameters.openapi(route.parameters or ())},
            )
