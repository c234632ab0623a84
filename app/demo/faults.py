"""What can be wrong with an emulated engine, as asked for over its control endpoint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, NonNegativeInt, PositiveFloat

Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a fault does to the passes of an engine.

    accept_to, over_seconds   the chance that a draft token is accepted goes evenly down to this share of what it was
    rank, category            whom that hits; None is everybody
    step_factor               by what the time of a decode pass is multiplied
    eager                     decode passes run outside a graph
    """

    accept_to: float = 1.0
    over_seconds: float = 0.0
    rank: int | None = None
    category: str | None = None
    step_factor: float = 1.0
    eager: bool = False

    def accept_scale(self, rank: int, category: str, elapsed: float) -> float:
        """By what the chance of acceptance is multiplied, ``elapsed`` seconds after the fault began."""
        if self.rank not in (None, rank) or self.category not in (None, category):
            return 1.0
        gone = 1.0 if self.over_seconds <= 0 else min(max(elapsed / self.over_seconds, 0.0), 1.0)
        return 1.0 - (1.0 - self.accept_to) * gone


class Fault(BaseModel):
    """A fault, as it is asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    def effect(self) -> Effect:
        """What it does to the passes."""
        return Effect()


class DrafterDies(Fault):
    """No draft token is accepted any more: acc_len 1.00."""

    kind: Literal["drafter-dies"] = "drafter-dies"
    rank: NonNegativeInt | None = None
    category: str | None = None

    @property
    def effect(self) -> Effect:
        return Effect(accept_to=0.0, rank=self.rank, category=self.category)


class Decay(Fault):
    """The chance of acceptance sinks evenly over ``seconds`` to ``floor`` of what it was."""

    kind: Literal["decay"] = "decay"
    seconds: PositiveFloat = 600.0
    floor: Share = 0.35
    category: str | None = None

    @property
    def effect(self) -> Effect:
        return Effect(accept_to=self.floor, over_seconds=self.seconds, category=self.category)


class KernelFallback(Fault):
    """A slower kernel: passes take longer, acceptance stays. ``eager`` shows it by the graph as well."""

    kind: Literal["kernel-fallback"] = "kernel-fallback"
    factor: PositiveFloat = 1.8
    eager: bool = False

    @property
    def effect(self) -> Effect:
        return Effect(step_factor=self.factor, eager=self.eager)


class BadRank(Fault):
    """One data-parallel rank accepts less than the others."""

    kind: Literal["bad-rank"] = "bad-rank"
    rank: NonNegativeInt = 0
    scale: Share = 0.3

    @property
    def effect(self) -> Effect:
        return Effect(accept_to=self.scale, rank=self.rank)


class Idle(Fault):
    """No new requests come; those that run are finished."""

    kind: Literal["idle"] = "idle"


class Restart(Fault):
    """The process ends at once and another one is ready after ``seconds``; until then its port refuses."""

    kind: Literal["restart"] = "restart"
    seconds: NonNegativeFloat = 30.0
    draft_attention_backend: str | None = Field(None, description="what the drafter runs on from then on (SGLang)")


class Hang(Fault):
    """The process takes connections but neither answers nor works nor logs, for ``seconds`` or until "none"."""

    kind: Literal["hang"] = "hang"
    seconds: PositiveFloat | None = None


class NoFault(Fault):
    """Everything is well again."""

    kind: Literal["none"] = "none"


AnyFault = Annotated[
    DrafterDies | Decay | KernelFallback | BadRank | Idle | Restart | Hang | NoFault, Field(discriminator="kind")
]


@dataclass(frozen=True, slots=True)
class Conditions:
    """The faults of the moment, each with the time at which it began."""

    faults: tuple[tuple[float, Fault], ...] = ()

    def having(self, at: float, fault: Fault) -> Conditions:
        """These conditions and one fault more; one of the same kind is replaced."""
        kept = tuple(entry for entry in self.faults if type(entry[1]) is not type(fault))
        return Conditions((*kept, (at, fault)))

    def accept_scales(self, rank: int, categories: Iterable[str], at: float) -> list[float]:
        """For each category, by what the chance that a draft token is accepted is multiplied at a time."""
        effects = [(at - since, fault.effect) for since, fault in self.faults]
        scales: list[float] = []
        for category in categories:
            scale = 1.0
            for elapsed, effect in effects:
                scale *= effect.accept_scale(rank, category, elapsed)
            scales.append(scale)
        return scales

    @property
    def step_factor(self) -> float:
        """By what the time of a decode pass is multiplied."""
        factor = 1.0
        for _, fault in self.faults:
            factor *= fault.effect.step_factor
        return factor

    @property
    def eager(self) -> bool:
        """Decode passes run outside a graph."""
        return any(fault.effect.eager for _, fault in self.faults)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the faults that are on."""
        return tuple(fault.model_dump()["kind"] for _, fault in self.faults)
