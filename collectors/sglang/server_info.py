"""SGLang's ``/server_info``: the resolved arguments, and what its schedulers add.

The drafter's own fall-back to another attention backend is not written back into the arguments: the backend stated
here was asked for or resolved, and only the log tells the one that runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

from acceptance.facts import FactValue, Subject
from collectors.document import NotReadable, Object, inner, parse, refused, tell
from collectors.reading import Reading, State, Text
from collectors.sglang.server_args import facts_of_server_args

LONGEST_TEXT = 300
_OLDEST_UNIX_TIME = 1e9
_SIMULATED = re.compile(r"\bSGLANG_SIMULATE_ACC_LEN=[\"']?(?P<length>[\d.]+)")
_WITHOUT_SPECULATION = ("algorithm", "drafter", "k", "num_draft_tokens", "draft_attention_backend", "lifetime_acc_len")
_VERIFY_MODES = ("static", "compact", "cap-accept")


class ServerInfoReader:
    """Facts only: the lifetime mean it tells is of no known time and is never made a window."""

    surface = "server_info"

    def feed(self, subject: Subject, state: State, text: Text) -> tuple[State, Reading]:
        """A whole document, of any version. Keys and tokens in it are never looked at."""
        try:
            document = parse(text.body)
        except NotReadable as problem:
            return refused(problem, self.surface, state)
        return tell(_facts(document), self.surface, subject, state, text.at)


def _facts(document: Object) -> dict[str, FactValue]:
    facts: dict[str, FactValue] = {"engine": "sglang", **facts_of_server_args(document)}
    ranks = _ranks(document)
    version, tokens = document.get("version"), document.get("speculative_num_draft_tokens")
    if isinstance(version, str):
        facts["version"] = version[:LONGEST_TEXT]
    if isinstance(tokens, int):
        facts["num_draft_tokens"] = tokens
    started = document.get("startup_time")
    if isinstance(started, int | float) and started >= _OLDEST_UNIX_TIME:
        # All sampled versions have an object here: how long each phase of starting took.
        facts["startup_time"] = float(started)
    if document.get("speculative_draft_model_path", "") is None:
        facts["drafter"] = None
    lifetime = _lifetime(document, ranks)
    if lifetime is not None:
        facts["lifetime_acc_len"] = lifetime
    if facts.get("speculative") is False:
        facts |= dict.fromkeys(_WITHOUT_SPECULATION)
    return {**facts, **_environment(document, ranks, facts.get("algorithm"))}


def _ranks(document: Object) -> Sequence[Object]:
    """``internal_states``: one object a data-parallel rank."""
    states = document.get("internal_states")
    if not isinstance(states, list):
        return ()
    return [cast("Object", state) if isinstance(state, dict) else {} for state in cast("list[object]", states)]


def _lifetime(document: Object, ranks: Sequence[Object]) -> FactValue:
    """The engine's mean length since it began; by rank where several tell, since means are not averaged.

    A rank without one has no sample yet. 0.4.6 states it outside ``internal_states``.
    """
    lengths = [rank.get("avg_spec_accept_length") for rank in ranks] or [document.get("avg_spec_accept_length")]
    told = {
        rank: float(length) for rank, length in enumerate(lengths) if isinstance(length, int | float) and length > 0
    }
    if len(lengths) == 1 and told:
        return told[0]
    return ", ".join(f"rank {rank}: {length:.2f}" for rank, length in told.items())[:LONGEST_TEXT] or None


def _environment(document: Object, ranks: Sequence[Object], algorithm: FactValue) -> Mapping[str, FactValue]:
    """What only the environment tells: shown with SGLANG_EXPOSE_OWN_ENV_VARS=1, or a part of the launch command."""
    facts: dict[str, FactValue] = {}
    variables = next((inner(rank, "env_vars") for rank in ranks if "env_vars" in rank), None)
    if variables is not None:
        facts["synthetic_acceptance"] = _is_above_zero(variables.get("SGLANG_SIMULATE_ACC_LEN"))
        mode = str(variables.get("SGLANG_RAGGED_VERIFY_MODE", "static")).lower()
        if algorithm == "DSPARK" and mode in _VERIFY_MODES:
            facts["verify_mode"] = mode
    command = document.get("launch_command")
    simulated = _SIMULATED.search(command) if isinstance(command, str) else None
    if simulated is not None and _is_above_zero(simulated["length"]):
        facts["synthetic_acceptance"] = True
    return facts


def _is_above_zero(value: object) -> bool:
    try:
        return float(str(value)) > 0.0
    except ValueError:
        return False
