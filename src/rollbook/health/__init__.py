"""Health rules: what the keeper asks of a run's rows while it trains, one rule a file.

    rollbook.init("cartpole", "ppo")                                            the rules of `DEFAULT`
    rollbook.init("cartpole", rules=["non_finite", {"name": "kl", "limit": 0.05}])
    rollbook.init("cartpole", rules=())                                         none

What a rule finds is a row of `alerts` with the rows and limits that made it speak, reported once per rule and key. A
rule never stops a training. `make` builds one from its name and plain options; see `protocols.Rule` for what a rule is.
"""

from __future__ import annotations

from rollbook.health._registry import DEFAULT, GROUP, are_ours, check, make, names, summary

__all__ = ["DEFAULT", "FALSE_ALARMS", "GROUP", "are_ours", "check", "make", "names", "summary"]

FALSE_ALARMS = (
    "The rules spoke in one of 152 short healthy trainings, and in two of 110 that were held out: at most 0.06 false "
    "alarms a run (95 %, Poisson)."
)
"""How often the rules of `DEFAULT` speak although nothing is wrong, as measured; docs/health.md says on what."""
