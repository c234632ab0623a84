"""What goes wrong in the demo, and when."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import structlog

from app.demo.faults import DrafterDies, Fault, Restart
from app.demo.fleet import Fleet

log = structlog.get_logger(__name__)

SLOWEST_ANSWER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Scene:
    """A fault of one replica, so many seconds after the start."""

    at: float
    replica: str
    fault: Fault
    words: str


STORY: tuple[Scene, ...] = (
    Scene(
        20.0,
        "sglang-3",
        Restart(seconds=6.0, draft_attention_backend="triton"),
        "a redeploy names a draft attention backend that falls back to a slower kernel",
    ),
    Scene(25.0, "sglang-6", DrafterDies(), "the drafter dies: no draft token is accepted any more"),
)


@contextmanager
def playing(story: Sequence[Scene], fleet: Fleet) -> Generator[None, None, None]:
    """Let the story happen for the time of a ``with`` block."""
    over = threading.Event()
    thread = threading.Thread(target=_play, args=(story, fleet, over), name="demo", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _play(story: Sequence[Scene], fleet: Fleet, over: threading.Event) -> None:
    began = time.monotonic()
    controls = {member.name: member.control_url for member in fleet.members}
    for scene in sorted(story, key=lambda scene: scene.at):
        if over.wait(max(0.0, began + scene.at - time.monotonic())):
            return
        try:
            _happen(controls[scene.replica], scene.fault)
        except (OSError, http.client.HTTPException) as error:
            log.warning("demo: a fault could not be made", target=scene.replica, error=str(error))
        else:
            log.info(f"demo: {scene.words}", target=scene.replica)


def _happen(control_url: str, fault: Fault) -> None:
    place = urlsplit(control_url)
    connection = http.client.HTTPConnection(place.netloc, timeout=SLOWEST_ANSWER_SECONDS)
    try:
        headers = {"content-type": "application/json"}
        connection.request("POST", f"{place.path}/emulator/fault", fault.model_dump_json(), headers)
        answer = connection.getresponse()
        if answer.status != 200:
            raise http.client.HTTPException(f"answered {answer.status}")
    finally:
        connection.close()
