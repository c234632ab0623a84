"""Facts: what is known of a target beside its counts, and what cannot be seen of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from types import MappingProxyType

from acceptance.series import Series

FactValue = str | int | float | bool | None

KNOWN: Mapping[str, str] = MappingProxyType(
    {
        "engine": "sglang or vllm",
        "version": "engine version",
        "model": "target model as served",
        "role": "unified, prefill or decode",
        "speculative": "whether speculation was asked for",
        "algorithm": "speculative algorithm or method (EAGLE3, DSPARK, ngram, ...)",
        "drafter": "draft model",
        "k": "draft tokens a step can have accepted",
        "num_draft_tokens": "draft tokens of a verify step with their root (SGLang): one more than are proposed",
        "draft_attention_backend": "attention backend the drafter runs on",
        "decode_attention_backend": "attention backend of the target's decode",
        "verify_mode": "static, compact or cap-accept (DSpark), or the engine's attention mode of verify",
        "cuda_graph_disabled": "graphs were turned off on purpose",
        "decode_log_interval": "decode passes between two decode lines",
        "max_running_requests": "concurrency limit",
        "tensor_parallel": "tensor-parallel size",
        "data_parallel": "data-parallel size",
        "context_parallel": "decode-context-parallel size",
        "chunked_prefill_size": "tokens of a prefill chunk",
        "mixed_chunk": "prefill chunks were asked to share passes with decode",
        "startup_time": "unix time at which the process began, where the engine tells",
        "lifetime_acc_len": "the engine's own mean since it began; shown, never judged",
        "synthetic_acceptance": "acceptance is simulated: figures are not real",
    }
)
"""The names a reader may state, with what they mean."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement about a target and where it was read (``server_info``, ``log``, ``metrics``, ``bundle``)."""

    target: str
    name: str
    value: FactValue
    source: str
    at: float


@dataclass(frozen=True, slots=True)
class Subject:
    """Who a text is about: what a reader needs to know of a target before it reads.

    ``category_label`` is the custom label of SGLang's metrics that names the request category.
    """

    target: str
    group: str | None = None
    category_label: str = "category"
    facts: Mapping[str, FactValue] = field(default_factory=dict[str, FactValue])

    def text(self, name: str) -> str | None:
        """A fact as text, None where it is unknown."""
        value = self.facts.get(name)
        return None if value is None else str(value)

    def number(self, name: str) -> float | None:
        """A fact as a number, None where it is unknown or not one."""
        value = self.facts.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    @property
    def k(self) -> int | None:
        """Draft tokens a step can have accepted."""
        number = self.number("k")
        return None if number is None else int(number)

    def knowing(self, facts: Mapping[str, FactValue]) -> Subject:
        """This subject with ``facts`` laid over what it knew."""
        return Subject(self.target, self.group, self.category_label, {**self.facts, **facts})

    def series(
        self,
        *,
        engine: str | None = None,
        role: str | None = None,
        model: str | None = None,
        rank: str | None = None,
        category: str | None = None,
        context: str | None = None,
    ) -> Series:
        """The series of a source that tells these dimensions; facts supply the rest."""
        return Series(
            target=self.target,
            group=self.group,
            revision=revision(self.facts),
            role=role or self.text("role"),
            engine=engine or self.text("engine"),
            model=model if model is not None else self.text("model"),
            drafter=self.text("drafter"),
            rank=rank,
            category=category,
            context=context,
        )


_REVISION = ("version", "drafter", "k", "draft_attention_backend", "verify_mode")


def revision(facts: Mapping[str, FactValue]) -> str | None:
    """Eight hex digits over what makes figures comparable; None where nothing of it is known."""
    values = [facts.get(name) for name in _REVISION]
    if all(value is None for value in values):
        return None
    return blake2b(repr(values).encode(), digest_size=4).hexdigest()


@dataclass(frozen=True, slots=True)
class Unseen:
    """Something about a target that nothing has told, and the one thing that would show it."""

    what: str
    needs: str


def unseen(facts: Mapping[str, FactValue], *, has_log: bool, has_categories: bool) -> tuple[Unseen, ...]:
    """What cannot be seen of a target. Unknown is never OK, so it is said."""
    engine = facts.get("engine")
    gaps: list[Unseen] = []
    if engine is None:
        gaps.append(Unseen("engine unknown", "a metrics page with sglang: or vllm: families"))
    if facts.get("version") is None:
        gaps.append(Unseen("version unknown", "/server_info (SGLang) or /version (vLLM)"))
    if facts.get("speculative") is not False and facts.get("draft_attention_backend") is None:
        gaps.append(Unseen("draft backend unknown", "the start-up log"))
    if not has_log:
        gaps.append(Unseen("fallback messages not seen", "the server's log, from its start"))
    if engine == "sglang" and not has_categories:
        gaps.append(
            Unseen("categories unknown", "--tokenizer-metrics-allowed-custom-labels category and x-custom-labels")
        )
    if engine == "vllm" and not has_categories:
        gaps.append(Unseen("categories unknown", "request records (--per-request-spec-decode-metrics)"))
    return tuple(gaps)
