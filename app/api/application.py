"""The HTTP side of the service."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from contextlib import AbstractAsyncContextManager
from importlib.metadata import version

from fastapi import FastAPI
from starlette.middleware.body_limit import RequestBodyLimitMiddleware

from app.access import login
from app.access.callers import Callers
from app.access.gate import Gate
from app.access.roles import require, requiring
from app.api import problems, reference, routes, runbook
from app.api.compression import Compressed
from app.api.guard import Guard
from app.api.pool import ReadPool
from app.api.readiness import Readiness
from app.metrics import Metrics
from service.reads import Reads

_DESCRIPTION = "Acceptance length of speculative decoding on SGLang and vLLM. Times are UTC; no data is null."
MOST_BODY_BYTES = 8 * 2**20
"""Of any request, whatever reads it: Dash would read a callback's body to its end, however long."""


def create_app(
    reads: Reads,
    *,
    metrics: Metrics,
    readiness: Readiness,
    executor: Executor,
    callers: Callers,
    host_names: Iterable[str] = (),
    demo: bool = False,
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None,
) -> FastAPI:
    """The API, /metrics and the probes on one FastAPI object, to which a UI can be added.

    ``executor`` runs the reads of history: its threads are how many run at once, and its owner shuts it down.
    ``callers`` knows who asks, and what they may do. ``host_names`` are further names under which requests are answered
    (``Config.host_names``). Whoever adds routes does so in ``app.access.roles.requiring``.
    """
    app = FastAPI(
        title="Draftgauge",
        version=version("draftgauge"),
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    require(app, "viewer", app.routes)
    problems.install(app)
    routes.install(app, routes.Api(reads, metrics, readiness, ReadPool(executor, metrics), demo=demo))
    login.install(app, callers)
    with requiring(app, "viewer"):
        reference.install(app)
        runbook.install(app)
    names = frozenset(host_names)
    app.add_middleware(RequestBodyLimitMiddleware, max_body_size=MOST_BODY_BYTES)
    app.add_middleware(Compressed)
    app.add_middleware(Gate, callers=callers, observer=metrics, own_hosts=names)
    app.add_middleware(Guard, names=names)
    return app
