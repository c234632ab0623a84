"""The traffic client: it asks a vLLM server and adds up what every response says about its own speculation."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import httpx

MAX_TOKENS = (48, 96, 1, 2, 17, 64, 33)
"""Cuts of every kind: a response of one token has no verify step, and most cuts fall inside a step's tokens."""


@dataclass(slots=True)
class Truth:
    """Sums over responses of ``metrics.speculative_decoding``, in integers."""

    requests: int = 0
    completion_tokens: int = 0
    steps: int = 0
    accepted: int = 0
    proposed: int = 0
    histogram: Counter[int] = field(default_factory=Counter[int])
    finished: Counter[str] = field(default_factory=Counter[str])

    def add(self, response: dict[str, Any]) -> None:
        """Raises ``ValueError`` where a response disagrees with itself: it could not serve as truth."""
        said = response["metrics"]["speculative_decoding"]
        histogram: list[int] = said["acceptance_histogram"]
        per_step: list[int] = said["per_step_accepted"] or []
        steps, accepted = said["num_spec_steps"], said["num_accepted_draft_tokens"]
        if Counter(per_step) != Counter({n: count for n, count in enumerate(histogram) if count}):
            raise ValueError(f"histogram {histogram} is not that of the steps {per_step}")
        if (len(per_step), sum(per_step)) != (steps, accepted):
            raise ValueError(f"{steps} steps with {accepted} accepted are not the steps {per_step}")
        self.requests += 1
        self.completion_tokens += response["usage"]["completion_tokens"]
        self.steps += steps
        self.accepted += accepted
        self.proposed += said["num_draft_tokens"]
        self.histogram.update(per_step)
        self.finished[response["choices"][0]["finish_reason"]] += 1

    def by_position(self, k: int) -> tuple[int, ...]:
        """Steps that accepted draft position 0..k-1: position i is accepted where more than i tokens are."""
        return tuple(sum(steps for n, steps in self.histogram.items() if n > i) for i in range(k))

    @property
    def emitted(self) -> int:
        return self.accepted + self.steps

    @property
    def acc_len(self) -> float:
        return self.emitted / self.steps


def repeats(seed: int) -> Iterator[dict[str, Any]]:
    """Without end: code that repeats itself, greedy. A drafter that knows the target is mostly right."""
    chance = random.Random(seed)
    for number, max_tokens in enumerate(itertools.cycle(MAX_TOKENS)):
        text = "def parse(self, value): return value; " * chance.randint(3, 10) + f"case {number % 9}"
        yield _body(text, max_tokens, temperature=0.0, seed=number)


def noise(seed: int) -> Iterator[dict[str, Any]]:
    """Without end: random letters at temperature 1. No drafter is right.

    Not to be mixed into ``repeats``: vLLM then drafts worse for the greedy requests of the same batch too.
    """
    chance = random.Random(seed)
    for number, max_tokens in enumerate(itertools.cycle(MAX_TOKENS)):
        letters = chance.choices("abcdefghijklmnopqrstuvwxyz      ", k=chance.randint(40, 300))
        yield _body("".join(letters), max_tokens, temperature=1.0, seed=number)


def _body(text: str, max_tokens: int, *, temperature: float, seed: int) -> dict[str, Any]:
    messages = [{"role": "user", "content": text}]
    return {"messages": messages, "max_tokens": max_tokens, "temperature": temperature, "seed": seed}


def ask(
    url: str,
    requests: Iterator[dict[str, Any]],
    truth: Truth,
    *,
    concurrency: int,
    pause_seconds: float = 0.0,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Ask for all of ``requests``, or until ``stop``, and add the responses to ``truth``.

    Requests that have begun are always finished. Any error is raised: a lost response would make the sums wrong.
    """
    lock, ended = threading.Lock(), threading.Event()

    def worker(client: httpx.Client) -> None:
        while not (ended.is_set() or stop()):
            with lock:
                body = next(requests, None)
            if body is None:
                return
            response = client.post("/v1/chat/completions", json={"model": "tiny", **body}).raise_for_status().json()
            with lock:
                truth.add(response)
            time.sleep(pause_seconds)

    with httpx.Client(base_url=url, timeout=120.0) as client, ThreadPoolExecutor(concurrency) as pool:
        workers = [pool.submit(worker, client) for _ in range(concurrency)]
        try:
            for done in workers:
                done.result()
        finally:
            ended.set()
