"""How many examples a property gets: a few, the same every time, or with ``HYPOTHESIS_PROFILE=full`` ten thousand new ones
(``HYPOTHESIS_EXAMPLES`` says another number)."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("ci", max_examples=25, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("full", max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "10000")), deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
