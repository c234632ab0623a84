"""Emulated engines as a process: ``python -m app.demo.emulator --engine sglang --speed 10``.

It prints one JSON line for each engine when its port is open, and stops on SIGTERM, SIGINT or, with
``--exit-with-stdin``, when its standard input ends (so that it never outlives who started it).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from app.demo.clock import Clock, ManualClock, ScaledClock
from app.demo.engine import FACES, EmulatedEngine
from app.demo.scheduler import Pace
from app.demo.server import LOOPBACK, Served, serve
from app.demo.settings import Settings
from app.demo.static import StaticPage
from app.demo.workload import MEAN_ACC_LEN, Workload

_STATIC_SECONDS = (240.0, 300.0)


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    defaults, traffic, pace = Settings(), Workload(), Pace()
    parser = argparse.ArgumentParser(prog="python -m app.demo.emulator", description="Emulated engines")
    add = parser.add_argument
    add("--engine", choices=tuple(FACES), default="sglang")
    add("--count", type=int, default=1, help="engines in this process, each on a port of its own (seeds count up)")
    add("--name", default="emulator", help="of several engines NAME-0, NAME-1, ... (default: %(default)s)")
    add("--port", type=int, default=0, help="of the first engine; 0 takes free ones")
    add("--control-port", type=int, default=0)
    add("--seed", type=int, default=0)
    add("--speed", type=float, default=1.0, help="seconds of emulated time in one second")
    add("--manual-clock", action="store_true", help="emulated time moves by POST /emulator/advance only")
    add("--epoch", type=float, help="unix time at which emulated time starts (default: now)")
    add("--log", type=Path, help="log file; of several engines, the directory of their logs")
    add("--categories", default=",".join(traffic.categories), help=f"known: {', '.join(MEAN_ACC_LEN)}")
    add("--rate", type=float, default=traffic.rate, help="arrivals a second; 0 is no traffic (default: %(default)s)")
    add("--k", type=int, default=defaults.k, help="draft tokens a step; 0 is no speculation (default: %(default)s)")
    add("--ranks", type=int, default=defaults.ranks, help="data-parallel ranks (default: %(default)s)")
    add("--tp", type=int, default=defaults.tp, help="tensor-parallel ranks (default: %(default)s)")
    add("--model", default=defaults.model)
    add("--label", default=defaults.label, help='SGLang\'s custom label of the category; "" is none')
    add("--pool", choices=("hybrid", "plain"), default="hybrid", help="KV pool, as SGLang logs it")
    add("--decode-log-interval", type=int, default=pace.report_every)
    add("--max-running", type=int, default=pace.max_running)
    add("--draft-attention-backend", default=defaults.draft_attention_backend, help="SGLang's")
    add("--no-warm-up", action="store_true", help="SGLang's --skip-server-warmup")
    add("--log-requests", action="store_true", help="SGLang logs each finished request as JSON")
    add("--api-servers", type=int, default=defaults.api_servers, help="vLLM's --api-server-count")
    add("--development", action="store_true", help="vLLM's development endpoints")
    add("--lines", type=int, default=0, help="fill the metrics page up to about so many lines")
    add("--static-page", action="store_true", help="a page made once, whose values move evenly: no traffic, no truth")
    add("--exit-with-stdin", action="store_true", help="stop when standard input ends")
    return parser


def name_of(options: argparse.Namespace, number: int) -> str:
    """The name of engine ``number``."""
    return options.name if options.count == 1 else f"{options.name}-{number}"


def log_of(options: argparse.Namespace, number: int) -> Path | None:
    """Its log file."""
    return options.log / f"{name_of(options, number)}.log" if options.log and options.count > 1 else options.log


def settings_of(options: argparse.Namespace, number: int) -> Settings:
    """What the options say about engine ``number`` of this process."""
    workload = Workload(categories=tuple(options.categories.split(",")), rate=options.rate or 1.0)
    pace = Pace(report_every=options.decode_log_interval, max_running=options.max_running)
    return Settings(
        engine=options.engine,
        name=name_of(options, number),
        model=options.model,
        seed=options.seed + number,
        k=options.k,
        ranks=options.ranks,
        tp=options.tp,
        label=options.label,
        hybrid=options.pool == "hybrid",
        api_servers=options.api_servers,
        development=options.development,
        log_requests=options.log_requests,
        warm_up=not options.no_warm_up,
        lines=options.lines,
        draft_attention_backend=options.draft_attention_backend,
        workload=workload,
        pace=pace,
    )


def log_writer(path: Path | None) -> Callable[[Sequence[str]], None]:
    """Appends lines to a file, or to nothing."""
    if path is None:
        return lambda _: None
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a", encoding="utf-8")

    def write(lines: Sequence[str]) -> None:
        file.write("".join(f"{line}\n" for line in lines))
        file.flush()

    return write


def build(options: argparse.Namespace) -> list[Served]:
    """The engines of this process."""
    epoch = time.time() if options.epoch is None else options.epoch
    clock: Clock = ManualClock(epoch) if options.manual_clock else ScaledClock(epoch, options.speed, time.monotonic)
    static = static_page(options, epoch) if options.static_page else None
    served: list[Served] = []
    for number in range(options.count):
        port = options.port + number if options.port else 0
        one = Served(port, clock, static)
        settings = replace(settings_of(options, number), port=one.port)
        engine = EmulatedEngine(settings, epoch, log_writer(log_of(options, number)))
        one.run(engine, paused=not options.rate or static is not None)
        served.append(one)
    return served


def static_page(options: argparse.Namespace, epoch: float) -> StaticPage:
    """A page of an engine that has worked for some minutes."""
    engine = EmulatedEngine(settings_of(options, 0), epoch, lambda _: None)
    pages: list[bytes] = []
    for seconds in _STATIC_SECONDS:
        engine.advance(epoch + seconds)
        pages.append(engine.metrics())
    return StaticPage(*pages)


def announcement(one: Served, log: Path | None, control_port: int) -> dict[str, Any]:
    """What is printed about an engine when it is ready."""
    name = one.engine.settings.name
    return {
        "name": name,
        "engine": one.engine.settings.engine,
        "port": one.port,
        "url": f"http://{LOOPBACK}:{one.port}",
        "control_url": f"http://{LOOPBACK}:{control_port}/{name}",
        "log": None if log is None else str(log),
        "epoch": one.engine.at,
        "pid": os.getpid(),
    }


async def run(options: argparse.Namespace) -> None:
    """Serve until told to stop."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    watching = [asyncio.create_task(_stdin_ended(ended))] if options.exit_with_stdin else []
    served = build(options)

    def ready(control_port: int) -> None:
        for number, one in enumerate(served):
            said = announcement(one, log_of(options, number), control_port)
            sys.stdout.buffer.write(orjson.dumps(said, option=orjson.OPT_APPEND_NEWLINE))
        sys.stdout.flush()

    await serve(served, options.control_port, ready, ended.wait())
    for task in watching:
        task.cancel()


async def _stdin_ended(ended: asyncio.Event) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(4096):
        pass
    ended.set()


def main(argv: Sequence[str] | None = None) -> None:
    """Run from the command line."""
    options = arguments().parse_args(argv)
    gc.freeze()
    asyncio.run(run(options))


if __name__ == "__main__":
    main()
