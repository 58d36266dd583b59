"""What holds for all tests."""

from __future__ import annotations

import hypothesis

# A busy machine makes nothing red: how long an example takes says nothing about whether it is right.
hypothesis.settings.register_profile("rollbook", deadline=None)
hypothesis.settings.load_profile("rollbook")
