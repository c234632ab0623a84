"""Ranks side by side: one that falls behind the others is a GPU or a link, all of them are a configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from service import copy
from service.cells import Cell
from service.falls import FELL, spoken


@dataclass(frozen=True, slots=True)
class RankRow:
    """acc_len of one data-parallel rank in the last 15 minutes."""

    rank: str
    acc_len: Cell


def ranks_note(rows: Sequence[RankRow]) -> str:
    """``all 8 alike``, or which are behind the median of the others; "" where fewer than two can be judged."""
    judged = [(row.rank, row.acc_len.acc_len) for row in rows if row.acc_len.trusted]
    lengths = {rank: acc_len for rank, acc_len in judged if acc_len is not None}
    if len(lengths) < 2:
        return ""
    behind = [
        spoken(rank, "rank")
        for rank, acc_len in lengths.items()
        if acc_len <= FELL * median(other for name, other in lengths.items() if name != rank)
    ]
    if not behind:
        return f"all {len(lengths)} alike"
    if len(behind) == 1:
        return f"only {behind[0]} is low: one GPU or its link"
    return f"{len(behind)} of {len(lengths)} are low: {copy.listed(behind)}"
