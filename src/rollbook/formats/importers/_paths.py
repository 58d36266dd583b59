"""What the path of a run says: algorithm, environment, seed, date, settings such as lr0.02.

    told = read_path(["ppo", "Hopper-v4", "lr0.02", "seed_3"])
    told.algo, told.env, told.seed      "ppo", "Hopper-v4", 3
    told.settings                       {"lr": 0.02}
    told.group                          "ppo/Hopper-v4/lr0.02": the path without what only numbers repeats

Nothing is guessed from numbers alone: a folder `3` is a trial, not a seed.
"""

# ruff: noqa: SIM905  (lists of words are read as words)

from __future__ import annotations

import re
from collections.abc import Sequence

from rollbook.formats.importers._plain import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ALGORITHMS = frozenset(
    "a2c a3c acer acktr airl alphazero apex apexdqn appo ars averageddqn awac awr bc bcq bear bootstrappeddqn c51 "
    "calql categoricaldqn cem cma cmaes coma combo cpo cppo cql crossq curl d4pg ddpg ddqn decisiontransformer "
    "diayn distralsac doubledqn dqfd dqn dreamer dreamerv1 dreamerv2 dreamerv3 drq drqn drqv2 droq dsac duelingdqn "
    "duelingddqn edac efficientzero es facmac focops fqf gail ga3c ga gcsl grpo happo hatrpo her hiro icm iddpg idqn "
    "il impala ippo iql iqn isac lspi maa2c mac maddpg mappo marwil masac maskableppo matd3 matrpo mbpo mcts mopo "
    "morel mpo muesli muzero naf ngu noisydqn oac openaies option pcl pddpg per pets pg planet plasp ppg ppo ppo1 "
    "ppo2 ppoc ppolag ppolagrangian ppolstm ppornn pqn prioritizeddqn qlearning qmix qplex qrdqn qrsac qtran r2d2 r2d3 "
    "rad rainbow rainbowdqn random rebrac recurrentppo redq reinforce rlpd rnd rppo sac sacae sacd sacdiscrete saclag "
    "sacn sarsa simba slac sql svg td3 td3bc td3lag tdmpc tdmpc2 tqc trpo trpolag trpolagrangian ucb vdn vmpo vpg "
    "vtrace wdqn xql rloo dpo".split()
)
"""Names of algorithms as they are written in folders, in lower case and without signs between their parts."""

_NO_WORDS = frozenset({"es", "ga", "il", "mac", "per", "option", "random", "rad", "her", "bc", "pg", "ars", "cem"})
"""Of these, those that are also words: only a folder of exactly this name is one."""

_ENVIRONMENTS = frozenset(
    "acrobot adventure airraid alien amidar ant antmaze assault asterix asteroids atlantis bankheist battlezone "
    "beamrider berzerk bipedalwalker bipedalwalkerhardcore blackjack bowling boxing breakout bossfight carracing "
    "cartpole cartpoleswingup catch centipede cheetahrun chopper choppercommand cliffwalking coinrun crazyclimber "
    "defender demonattack doubledunk enduro fingerspin fingerturn fishingderby freeway frostbite frozenlake gopher "
    "gravitar halfcheetah hero hoppers hopper hopperhop hopperstand humanoid humanoidrun humanoidstand humanoidwalk "
    "humanoidstandup icehockey jamesbond kangaroo krull kungfumaster lunarlander lunarlandercontinuous mountaincar "
    "mountaincarcontinuous montezumarevenge mspacman namethisgame pendulum phoenix pitfall pong privateeye pusher "
    "qbert reacher riverraid roadrunner robotank seaquest skiing solaris spaceinvaders stargunner starpilot swimmer "
    "taxi tennis timepilot tutankham upndown venture videopinball walker walker2d walkerrun walkerstand walkerwalk "
    "wizardofwor yarsrevenge zaxxon quadruprun quadrupedwalk quadrupedrun ballincupcatch dogrun dogwalk acrobotswingup "
    "cheetah 3m 8m 2s3z 3s5z 5mvs6m mmm mmm2 corridor 6hvs8z 27mvs30m bigfish maze ninja fruitbot".split()
)
"""Environments that folders name without a version."""

_SUITE = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:acrobot|ball[-_]in[-_]cup|cartpole|cheetah|cup|dog|finger|fish|hopper|humanoid|manipulator|pendulum|point[-_]mass|"
    r"quadruped|reach|reacher|stacker|swimmer|walker)(?:[-_](?:back|backwards|balance|bring|catch|duplo|easy|escape|fetch|"
    r"flip|front|hard|headstand|hop|insert|jump|medium|peg|poles|reach|run|sparse|spin|stand|swim|swingup|swimmer6|swimmer15|"
    r"three|top|trot|turn|two|upright|walk)(?![A-Za-z0-9]))+"
    r"|(?:mw|myo|metaworld)[-_][A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z]+)*"
    r")(?![A-Za-z0-9])",
    re.IGNORECASE,
)
"""Tasks of the DeepMind Control Suite, and tasks that begin with the name of their suite: all words are the name."""

_SETTINGS = (
    "learning_rate|learning-rate|lr_actor|lr_critic|actor_lr|critic_lr|lr|gamma|tau|alpha|beta|lambda|lam|gae_lambda|"
    "gae|eps|epsilon|clip_range|clip|ent_coef|ent|entropy|vf_coef|batch_size|batchsize|batch|bs|n_steps|nsteps|"
    "n_envs|num_envs|nenvs|hidden_size|hidden|hid|width|depth|layers|utd|replay_ratio|rr|buffer_size|buffer|temp|"
    "temperature|weight_decay|wd|dropout|horizon|noise|sigma|kl|rollout_len|unroll|nstep|n_step|ensemble|"
    "n_critics|num_critics|reward_scale|rs_scale"
)
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_START, _END = r"(?<![A-Za-z0-9.])", r"(?![A-Za-z0-9]|\.\d)"

_DATE = re.compile(
    _START + r"(?:"
    r"(?:19|20)\d\d[-_.]?[01]\d[-_.]?[0-3]\d(?:[-_T .]*[0-2]\d[-_:.h]?[0-5]\d(?:[-_:.m]?[0-5]\d)?(?:[-_.]?\d{3,6})?)?"
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[0-3]\d_[0-2]\d-[0-5]\d-[0-5]\d"
    r"|[0-3]\d-[0-3]\d-(?:19|20)\d\d(?:[-_T ][0-2]\d[-_:.][0-5]\d(?:[-_:.][0-5]\d)?)?"
    r"|1[4-9]\d{8}(?:\.\d+)?"
    r")" + _END
)
_RAY = re.compile(r"(?P<before>.*)_(?P<date>(?:19|20)\d\d-\d\d-\d\d_\d\d-\d\d-\d\d)[A-Za-z0-9_]{0,8}")
_RAY_TRIAL = re.compile(r"(?<=[A-Za-z0-9])_(?:[0-9a-f]{5,8}_)?\d{1,5}(?:_\d{1,5})?(?=_[A-Za-z./]+=|$)")
"""Ray Tune's folders: number of the trial, settings, date, random letters."""

_CLOCK = re.compile(r"[0-2]\d[-_:.][0-5]\d[-_:.][0-5]\d")
_EQUALS = re.compile(
    r"(?<![A-Za-z0-9])([A-Za-z][A-Za-z.]*(?:_[A-Za-z.]+)*)=([^=,;&]*?)(?=[,;&]|[_-][A-Za-z][A-Za-z_.]*=|$)"
)
_GLUED = re.compile(
    rf"(?<![A-Za-z0-9])(?:({_SETTINGS})[-_]?({_NUMBER})|([A-Za-z]{{1,12}})(\d+\.\d+|\d+[eE]-?\d+)){_END}",
    re.IGNORECASE,
)
_CLEANRL = re.compile(r"__(\d{1,10})__(?=1[4-9]\d{8}$)")
_SEED = re.compile(r"(?<![A-Za-z0-9])(?:(?:random|rng)?[-_]?seeds?[-_=]?|s=?)(\d{1,10})" + _END, re.IGNORECASE)
_VERSIONED = re.compile(r"(?<![A-Za-z0-9])([A-Za-z][A-Za-z0-9]*(?:[-:][A-Za-z0-9]+)*?-v\d+)(?![A-Za-z0-9])")
_TRIAL = re.compile(
    r"(?:(?:^|(?<=[-_ .]))"
    r"(?:run|trial|exp|experiment|rep|repeat|replicate|version|try|job|worker|fold|instance|attempt)"
    r"[-_ ]?\d{1,6}|(?<=[A-Za-z0-9\)])[-_ ]\d{1,3}|^\d{1,6})$",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"[^A-Za-z0-9]\d+$")
_SIGNS = re.compile(r"[-_ ,;+&.=()\[\]]+")

NEUTRAL = frozenset(
    "logs log tb tensorboard tb_logs tb_log tblogs tensorboard_logs summaries summary .summary events csv stats "
    "metrics monitor monitors progress data output outputs scalars".split()
)
"""Folders inside a training for what it logs: they say nothing about which training it is."""

STAGES = frozenset("train training eval evaluation evaluations test testing validation val valid".split())
"""Stages of a training, as files and folders are called."""

TRAINING = frozenset({"train", "training"})
"""Of these, those that are no tests."""


class Told:
    """What a path says.

    Attributes:
      algo, env, date: as they are written; "" where it does not say.
      seed: None where it does not say.
      settings: such as {"lr": 0.02}.
      group: the path without seed, date and number of the trial; "" if nothing is left.
    """

    __slots__ = ("algo", "date", "env", "group", "seed", "settings")

    def __init__(self) -> None:
        self.algo = self.env = self.date = self.group = ""
        self.seed: int | None = None
        self.settings: dict[str, Any] = {}


def read_path(parts: Sequence[str], above: Sequence[str] = ()) -> Told:
    """What the folders of a path say, the outermost first.

    Args:
      parts: names of folders.
      above: those above them. Of these, only a folder that is wholly an algorithm or an environment counts.
    """
    told, left = Told(), []
    whole_algo = whole_env = ""
    for place, part in enumerate(parts):
        after_seed = place > 0 and parts[place - 1].lower() in ("seed", "seeds")
        if after_seed and part.isdecimal() and len(part) <= 10:
            told.seed = int(part)
            continue
        if _is_algo(part, whole=True):
            whole_algo = part
            left.append(part)
            continue
        if _is_env(part):
            whole_env = part
            left.append(part)
            continue
        rest = _take(part, told)
        if rest and rest.lower() not in ("seed", "seeds") and rest.lower() not in NEUTRAL:
            left.append(rest)
    for part in above:
        if not whole_algo and not told.algo and _is_algo(part, whole=True):
            told.algo = part
        elif not whole_env and not told.env and _is_env(part):
            told.env = part
    told.algo = whole_algo or told.algo
    if not _normal(told.env).startswith(_normal(whole_env)):  # of Ant/TD3_Ant-v1, Ant-v1
        told.env = whole_env
    told.group = "/".join(left)
    return told


def _take(part: str, told: Told) -> str:
    """Note what one folder's name says. Returns it without seed, date and number of the trial."""
    rest = part
    if (ray := _RAY.fullmatch(part)) is not None:
        rest = f"{_RAY_TRIAL.sub('', ray['before'], count=1)}_{ray['date']}"
    numbered = _CLEANRL.search(rest)
    if numbered is not None:
        told.seed = int(numbered[1])
        rest = rest[: numbered.start()] + "__" + rest[numbered.end() :]
    stamped = _DATE.search(rest)
    if stamped is not None:
        told.date = stamped[0]
        # torch's SummaryWriter appends the host: "Mar04_12-00-00_host" and then a comment.
        rest = rest[: stamped.start()] + rest[stamped.end() :]
    elif _CLOCK.fullmatch(rest):
        told.date = f"{told.date} {rest}".strip()
        return ""
    words = rest  # what is left to be recognised; `rest` keeps settings, algorithm and environment
    for pattern in (_EQUALS, _GLUED):
        for found in list(pattern.finditer(words)):
            name, value = (each for each in found.groups() if each is not None)
            last = name.rpartition("_")[2]
            if last.lower() == "seed" or re.fullmatch(_SETTINGS, last, re.IGNORECASE):
                name = name if re.fullmatch(_SETTINGS, name, re.IGNORECASE) else last  # of ppo_seed=3, seed
            if name.lower() in ("seed", "s", "random_seed"):
                continue
            if name.lower() in ("env", "env_id", "env_name", "task") and not told.env:
                told.env = value
            elif name.lower() in ("algo", "algorithm", "alg", "agent") and not told.algo:
                told.algo = value
            else:
                told.settings[name] = plain(value.rstrip("_-"))
            words = words.replace(found[0], " ", 1)
    versioned = _VERSIONED.search(words)
    if versioned is not None:
        env = _without_algo(versioned[1])
        told.env = env
        words = words.replace(env, " ", 1)
    seeded = _SEED.search(words)
    if seeded is not None:
        told.seed = int(seeded[1])
        words, rest = words.replace(seeded[0], " ", 1), rest.replace(seeded[0], "", 1)
    algo = _algo_in(words)
    if algo:
        told.algo = algo
        words = words.replace(algo, " ", 1)
    if versioned is None:
        task = _SUITE.search(words)
        found_env = task[0] if task is not None else next((word for word in _words(words, 2) if _is_env(word)), "")
        told.env = found_env or told.env
        words = words.replace(found_env, "x", 1) if task is not None else words  # walker_run_1 is no first run
    tidy = _tidied(rest)
    trial = _TRIAL.search(_tidied(words))  # of what is neither setting nor version
    return _tidied(tidy.removesuffix(trial[0])) if trial is not None else tidy


def _tidied(text: str) -> str:
    text = re.sub(r"__+", "__", text)
    return text.strip(" -_,+.;&=")


def _normal(text: str) -> str:
    return _SIGNS.sub("", text).lower()


def _is_algo(text: str, *, whole: bool = False) -> bool:
    normal = _normal(text)
    return normal in _ALGORITHMS and (whole or normal not in _NO_WORDS) and not _NUMBERED.search(text)


def _is_env(text: str) -> bool:
    return _normal(text) in _ENVIRONMENTS or (
        (match := _VERSIONED.fullmatch(text)) is not None and _without_algo(match[1]) == text
    )


def _words(text: str, most: int) -> list[str]:
    """The words of a text, and up to `most` that follow each other, the longest first, as they are written."""
    places = [(found.start(), found.end()) for found in re.finditer(r"[A-Za-z0-9]+", text)]
    return [
        text[places[n][0] : places[n + length - 1][1]]
        for length in range(most, 0, -1)
        for n in range(len(places) - length + 1)
    ]


def _algo_in(text: str) -> str:
    return next((word for word in _words(text, 3) if " " not in word and _is_algo(word)), "")


def _without_algo(env: str) -> str:
    """An environment's name without an algorithm before it: of ppo-Hopper-v4, Hopper-v4."""
    words = env.split("-")
    for place in range(len(words) - 2, 0, -1):
        if any(_is_algo("-".join(words[start:place])) for start in range(place)):
            return "-".join(words[place:])
    return env
