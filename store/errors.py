"""What a store says when it cannot be opened."""

from __future__ import annotations


class StoreUnusable(Exception):
    """A database cannot be opened: which one (a path, or a URL without its password) and why."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.where = where
        self.reason = reason
