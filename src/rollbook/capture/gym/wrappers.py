"""Inspects an environment and its wrappers: its spaces, and which sums must agree across a wrapper."""

from __future__ import annotations

from typing import Any

import gymnasium

from rollbook.values.spaces import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType

    from rollbook.capture.episodes.recorder import EpisodeSettings

_REPORTERS = ("RecordEpisodeStatistics", "Monitor")
_REWARD_ONLY = frozenset(("NormalizeReward", "TransformReward", "ClipReward", "VectorizeTransformReward"))
_NEUTRAL = frozenset(
    (
        "TimeLimit", "OrderEnforcing", "PassiveEnvChecker", "RecordVideo", "HumanRendering", "RenderCollection",
        "TimeAwareObservation", "FrameStackObservation", "ArrayConversion", "JaxToNumpy", "JaxToTorch", "NumpyToTorch",
        "DictInfoToList", "LedgerStage", "RecordEpisodes", "RecordVectorEpisodes", "RecordEpisodeStatistics", "Monitor",
        "VectorizeTransformObservation", "NormalizeObservation", "Autoreset", "AddRenderObservation",
    )
)  # fmt: skip


def _of_vectors(*names: str) -> tuple[Any, ...]:
    """Classes of `gymnasium.vector`; none before gymnasium 1.0, whose vectors have other wrappers."""
    return tuple(getattr(gymnasium.vector, name) for name in names if hasattr(gymnasium.vector, name))


_BASES = (
    gymnasium.Wrapper,
    gymnasium.ObservationWrapper,
    gymnasium.ActionWrapper,
    *_of_vectors("VectorWrapper", "VectorObservationWrapper", "VectorActionWrapper"),
)
_REWARD_BASES = (gymnasium.RewardWrapper, *_of_vectors("VectorRewardWrapper"))
_ANY = (gymnasium.Wrapper, *_of_vectors("VectorWrapper"))


def reporter(env: object) -> tuple[Any, str, str]:
    """The outermost wrapper inside `env` that reports returns: (wrapper, its name, the info key it writes).

    This is a known wrapper or a subclass of one, or a wrapper whose code writes `info["episode"]`. No wrapper outside
    it can have changed its report. (None, "", "episode") if there is none.
    """
    while isinstance(env, _ANY):
        kinds = type(env).__mro__
        if any(kind.__name__ in _REPORTERS for kind in kinds):
            return env, type(env).__name__, str(getattr(env, "_stats_key", "episode"))
        if any(_writes_episode(kind) for kind in kinds):
            return env, type(env).__name__, "episode"
        env = env.env
    return None, "", "episode"


def _writes_episode(kind: type) -> bool:
    """Whether the code of a class contains the key "episode" and stores items: then it reports returns."""
    if kind in _ANY or kind.__module__.partition(".")[0] in ("gymnasium", "rollbook"):
        return False
    codes = [value.__code__ for value in vars(kind).values() if hasattr(value, "__code__")]
    return any(_names_episode(code.co_consts) and _stores(code) for code in codes)


def _names_episode(constants: tuple[object, ...]) -> bool:
    return any(each == "episode" or (isinstance(each, tuple) and _names_episode(each)) for each in constants)


def _stores(code: CodeType) -> bool:
    from dis import get_instructions

    stores = ("STORE_SUBSCR", "BUILD_MAP", "BUILD_CONST_KEY_MAP")
    return any(n in code.co_names for n in ("update", "setdefault")) or any(
        instruction.opname in stores for instruction in get_instructions(code)
    )


def has_autoreset(env: object) -> bool:
    """Whether a single environment resets itself in the step after an episode's last one."""
    while isinstance(env, gymnasium.Wrapper):
        if type(env).__name__ == "Autoreset":
            return True
        env = env.env
    return False


def comparable(env: object, inner: object) -> tuple[bool, bool]:
    """Whether (returns, lengths) measured outside `env` and inside, at `inner`, must agree.

    Wrappers that change rewards make returns differ. An unknown wrapper may skip or add steps.
    """
    returns = lengths = True
    while env is not inner and isinstance(env, _ANY):
        name = type(env).__name__
        if name in _REWARD_ONLY or isinstance(env, _REWARD_BASES):
            returns = False
        elif name not in _NEUTRAL and not any(type(env).step is base.step for base in _BASES):
            returns = lengths = False
        env = env.env
    return returns, lengths


def describe_env(env: gymnasium.Env | gymnasium.vector.VectorEnv, settings: EpisodeSettings) -> None:
    """Store the spaces and the id of an environment as texts of the run, so that exports need no environment."""
    # Before gymnasium 1.0 a wrapper warns when it is asked for what it does not have.
    of_one = "single_" if isinstance(env, gymnasium.vector.VectorEnv) else ""
    settings.describe_once(
        lambda: {
            "env/observation_space": describe(getattr(env, f"{of_one}observation_space")),
            "env/action_space": describe(getattr(env, f"{of_one}action_space")),
            "env/id": getattr(env.spec, "id", None) or type(env.unwrapped).__name__,
        }
    )
