"""What holds for all tests."""

from __future__ import annotations

try:
    import hypothesis
except ImportError:  # the environments of the frameworks run some of these tests without it
    pass
else:
    # A busy machine makes nothing red: how long an example takes says nothing about whether it is right.
    hypothesis.settings.register_profile("rollbook", deadline=None)
    hypothesis.settings.load_profile("rollbook")
