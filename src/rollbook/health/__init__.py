"""Health rules: what the keeper asks of a run's rows while it trains, one rule a file.

    rollbook.init("cartpole", "ppo")                                            the rules of `DEFAULT`
    rollbook.init("cartpole", rules=["non_finite", {"name": "kl", "limit": 0.05}])
    rollbook.init("cartpole", rules=())                                         none

What a rule finds is a row of `alerts` with the rows and limits that made it speak, said once per rule and key. A rule
never stops a training. `make` builds one from its name and plain options; see `protocols.Rule` for what a rule is.
"""

from __future__ import annotations

from rollbook.health._registry import DEFAULT, GROUP, check, make, names, summary

__all__ = ["DEFAULT", "GROUP", "check", "make", "names", "summary"]
