"""vLLM's ``/version``."""

from __future__ import annotations

from acceptance.facts import Subject
from collectors.document import NotReadable, parse, refused, tell
from collectors.reading import Reading, State, Text

LONGEST_VERSION = 100


class VersionReader:
    """The fact ``version``."""

    surface = "version"

    def feed(self, subject: Subject, state: State, text: Text) -> tuple[State, Reading]:
        """``{"version": "0.33.0"}``."""
        try:
            version = parse(text.body).get("version")
            if not isinstance(version, str):
                raise NotReadable("no version in it")
        except NotReadable as problem:
            return refused(problem, self.surface, state)
        return tell({"engine": "vllm", "version": version[:LONGEST_VERSION]}, self.surface, subject, state, text.at)
