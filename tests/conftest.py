from __future__ import annotations

from hypothesis import settings

# Test machines are shared: how long an example takes says nothing.
settings.register_profile("draftgauge", deadline=None)
settings.load_profile("draftgauge")
