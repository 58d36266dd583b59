"""Health rules: what the keeper checks in a run's rows during training, one rule a file.

    rollbook.init("cartpole", "ppo")                                            the rules of `DEFAULT`
    rollbook.init("cartpole", rules=["non_finite", {"name": "kl", "limit": 0.05}])
    rollbook.init("cartpole", rules=())                                         none

A finding is a row of `alerts` with the rows and limits that caused it, reported once per rule and key. A rule never
stops a training. `make` builds one from its name and plain options; `protocols.Rule` has the contract.
"""

from __future__ import annotations

from rollbook.health._registry import DEFAULT, GROUP, are_ours, check, make, names, summary

__all__ = ["DEFAULT", "FALSE_ALARMS", "GROUP", "are_ours", "check", "make", "names", "summary"]

FALSE_ALARMS = (
    "The rules raised 8 alerts in 548 short healthy trainings, each after five others of the same settings: at most "
    "0.026 false alarms a run (95 %, Poisson)."
)
"""How often the rules of `DEFAULT` raise an alert on healthy runs, as measured; docs/health.md names the runs."""
