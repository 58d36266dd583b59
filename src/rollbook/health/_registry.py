"""The rules by name. A new rule is one file and one line here.

Another package offers one as an entry point in the group `rollbook.rules`, named like the rule and pointing at its
class. A project's own rule is named by its location, "package.module:Class". Nothing is imported before it is used.
"""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.system.registry import Registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from rollbook.protocols import Rule

GROUP = "rollbook.rules"

_RULES = {
    "alpha": "alpha:Alpha",
    "below_earlier": "below_earlier:BelowEarlier",
    "clip_fraction": "clip_fraction:ClipFraction",
    "constant": "constant:Constant",
    "displacement": "displacement:Displacement",
    "entropy": "entropy:Entropy",
    "evaluation_gap": "evaluation_gap:EvaluationGap",
    "exploration": "exploration:Exploration",
    "explained_variance": "explained_variance:ExplainedVariance",
    "first_ratio": "first_ratio:FirstRatio",
    "frozen": "frozen:Frozen",
    "jump": "jump:Jump",
    "kl": "kl:Kl",
    "kl_below_zero": "kl_below_zero:KlBelowZero",
    "learning_rate": "learning_rate:LearningRate",
    "learns_nothing": "learns_nothing:LearnsNothing",
    "never_updated": "never_updated:NeverUpdated",
    "no_episode": "no_episode:NoEpisode",
    "no_signal": "no_signal:NoSignal",
    "non_finite": "non_finite:NonFinite",
    "overfitting": "overfitting:Overfitting",
    "q_bound": "q_bound:QBound",
    "return_fall": "return_fall:ReturnFall",
    "reward_hacking": "reward_hacking:RewardHacking",
    "rollouts": "rollouts:Rollouts",
    "sampler_mismatch": "sampler_mismatch:SamplerMismatch",
    "settings": "settings:ImpossibleSettings",
    "short_sighted": "short_sighted:ShortSighted",
    "silent": "silent:Silent",
    "steps_again": "steps_again:StepsAgain",
    "throughput": "throughput:Throughput",
    "unlike_earlier": "unlike_earlier:UnlikeEarlier",
    "value_scale": "value_scale:ValueScale",
    "zero_variance_groups": "zero_variance_groups:ZeroVarianceGroups",
}

DEFAULT: tuple[str, ...] = tuple(_RULES)
"""The rules of a run that names none."""

_REGISTRY = Registry("rule", "rollbook.health", _RULES, GROUP)


names = _REGISTRY.names


def make(name: str, **options: object) -> Rule:
    """The rule of that name, or at "package.module:Class".

    Args:
      name: one of `names()`, or "package.module:Class".
      options: those of the rule.
    Raises:
      UnknownOption: no rule has that name, or it has no such option.
      BadInput: an option with a value it cannot use; or the class is not a rule.
    """
    rule: Any = _REGISTRY.make(name, options, made=_load(name))
    missing = [part for part in ("name", "tables", "open", "look") if not hasattr(rule, part)]
    if missing:
        raise BadInput(
            f"rule {name!r}: what is there lacks {', '.join(missing)}. A rule has name, tables, open and look; see "
            "rollbook.protocols.Rule"
        )
    ready: Rule = rule
    return ready


def check(asked: object) -> list[dict[str, object]]:
    """Rules as `init` takes them, as plain data: {"name": …, option: value}.

    Args:
      asked: names, and dicts with a name and the rule's options. A name with "-" in front is left out. If all names
        have "-", they are left out of the rules of `DEFAULT`.
    Raises:
      UnknownOption, BadInput: an unknown rule, or options that it cannot use.
    """
    if isinstance(asked, (str, bytes)) or not hasattr(asked, "__iter__") or hasattr(asked, "items"):
        raise BadInput(f"rules={asked!r:.200}: pass a list of names or dicts, such as rules=['non_finite', 'silent']")
    specs: list[dict[str, object]] = []
    listed = list(asked)
    silenced = {rule[1:] for rule in listed if isinstance(rule, str) and rule.startswith("-")}
    for name in sorted(silenced - set(_RULES)):
        make(name)  # its error lists the rules
    if silenced:
        kept = [rule for rule in listed if not (isinstance(rule, str) and rule.startswith("-"))]
        listed = [rule for rule in kept or DEFAULT if rule not in silenced]
    for rule in listed:
        spec = {"name": rule} if isinstance(rule, str) else rule
        if not hasattr(spec, "items") or not isinstance(spec.get("name"), str):
            raise BadInput(
                f"rules=[… {rule!r:.200} …]: a rule is its name, or a dict of its name and options, such as "
                "{'name': 'kl', 'limit': 0.05}. The keeper makes it in another process"
            )
        if len(spec) > 1 or spec["name"] not in _RULES:  # the usual ones need no import
            make(spec["name"], **{name: value for name, value in spec.items() if name != "name"})
        specs.append(dict(spec))
    return specs


def are_ours(specs: Sequence[object]) -> bool:
    """Whether these entries of a plan all name rollbook's rules.

    Args:
      specs: entries as `check` returns them.
    """
    names = [spec.get("name") if isinstance(spec, dict) else None for spec in specs]  # `all` would cost a call for each
    return set(names) <= set(_RULES)


def summary(name: str) -> str:
    """A rule's description of itself, in one line.

    Args:
      name: as in `make`.
    """
    return _REGISTRY.summary(name, made=_load(name))


def _load(name: str) -> object:
    """The class of that name, or at "package.module:Class"."""
    module, colon, member = name.partition(":")
    if not colon:
        return _REGISTRY.load(name)
    from importlib import import_module

    try:
        return getattr(import_module(module), member)
    except (ImportError, AttributeError) as err:
        raise BadInput(
            f"rule {name!r} could not be found ({err}). Write 'package.module:Class' with a module that can be imported"
        ) from None
