"""What the path of a run says: algorithm, environment, seed, date, settings such as lr0.02.

    facts = read_path(["ppo", "Hopper-v4", "lr0.02", "seed_3"])
    facts.algo, facts.env, facts.seed   "ppo", "Hopper-v4", 3
    facts.settings                      {"lr": 0.02}
    facts.group                         "ppo/Hopper-v4/lr0.02": the path without what only numbers repeats

Nothing is guessed from numbers alone: a folder `3` is a trial, not a seed.
"""

# ruff: noqa: SIM905  (lists of words are read as words)

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from rollbook.formats.importers._plain import plain

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
    "vtrace wdqn xql rloo dpo expectedsarsa doubleqlearning sarsalambda nstepsarsa dynaq".split()
)
"""Names of algorithms as they are written in folders, in lower case and without signs between their parts."""

_NO_WORDS = frozenset({"es", "ga", "il", "mac", "per", "option", "random", "rad", "her", "bc", "pg", "ars", "cem"})
"""Those of them that are also ordinary words: they count only as the whole name of a folder."""

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
    "cheetah crafter craftax minecraft minerl nethack memorymaze deepsea overcooked "
    "caveflyer chaser climber dodgeball heist jumper leaper miner plunder "
    "3m 8m 2s3z 3s5z 5mvs6m mmm mmm2 corridor 6hvs8z 27mvs30m bigfish maze ninja fruitbot".split()
)
"""Environments that folders name without a version."""

_LEVEL = re.compile(r"-v\d+$")
_BEGINNINGS = (
    "ale minigrid babyai fetch hand adroit maze2d pointmaze kitchen highway parking merge roundabout intersection "
    "racetrack procgen metadrive safety metaworld mw dmc door hammer relocate pen reach push pickplace drawer window "
    "buttonpress peginsert bin pick lift peg stack turnfaucet isaac panda".split()
)
_KNOWN_BEGINNING = re.compile("|".join(each for each in (*_BEGINNINGS, *sorted(_ENVIRONMENTS)) if len(each) > 1))
"""How the names of environments begin that have a version behind them."""

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

_CLOCK = re.compile(r"(?<![A-Za-z0-9.])[0-2]\d[-_:.][0-5]\d[-_:.][0-5]\d(?![A-Za-z0-9])")
_ID = re.compile(
    r"(?<![A-Za-z0-9])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40})(?![A-Za-z0-9])"
)
"""What a tool called one run by, as commits and UUIDs are."""

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
_NAMED_TRIAL = re.compile(r"[A-Za-z]")
_NUMBERED = re.compile(r"[^A-Za-z0-9]\d+$")
_SIGNS = re.compile(r"[-_ ,;+&.=()\[\]]+")

NEUTRAL = frozenset(
    "logs log tb tensorboard tb_logs tb_log tblogs tensorboard_logs summaries summary .summary events csv stats "
    "metrics monitor monitors progress data output outputs scalars".split()
)
"""Folders inside a training for what it logs: they say nothing about which training it is."""

_SAYS_NOTHING = NEUTRAL | {"seed", "seeds"}

STAGES = frozenset("train training eval evaluation evaluations test testing validation val valid".split())
"""Stages of a training, as files and folders are called."""

TRAINING = frozenset({"train", "training"})
"""Those of them that do not mean a test."""


class Part(NamedTuple):
    """What the name of one folder or file says on its own.

    Attributes:
      algo, env, seed, date, settings: as in `PathFacts`.
      is_known: whether the environment is one that is known by name, and not only one with a version, like ours-v2.
      rest: the name without seed, date and number of the trial; method: the part of it that is neither a setting nor
        the environment.
      full: the method with the environment: "ours-v2".
      number: of a trial at the end, as it is written: "_1"; is_trial: it stands where repetitions are numbered, behind
        an algorithm or an environment (PPO_1), alone (2), or with its word (run_3).
    """

    algo: str = ""
    env: str = ""
    is_known: bool = False
    is_whole: bool = False
    seed: int | None = None
    date: str = ""
    settings: tuple[tuple[str, Any], ...] = ()
    rest: str = ""
    method: str = ""
    full: str = ""
    number: str = ""
    is_trial: bool = False


class PathFacts:
    """What a path says.

    Attributes:
      algo, env, date: as they are written; "" where it does not say.
      variant: the algorithm with its qualifiers: "sac-ours"; plain_algo: without them, if `algo` is a variant.
      seed: None where it does not say.
      settings: such as {"lr": 0.02}.
      group: the path without seed, date and number of the trial; "" if nothing is left.
      other: what else the path says, about neither algorithm, environment, seed, date, trial nor setting.
      repeated: the path as all repetitions have it: without seed and date, "#" for the number of a trial.
    """

    __slots__ = ("algo", "date", "env", "group", "other", "plain_algo", "repeated", "seed", "settings", "variant")

    def __init__(self) -> None:
        self.algo = self.env = self.date = self.group = self.variant = self.plain_algo = self.other = self.repeated = ""
        self.seed: int | None = None
        self.settings: dict[str, Any] = {}


def read_path(parts: Sequence[str], above: Sequence[str] = ()) -> PathFacts:
    """What the folders of a path say, the outermost first.

    Args:
      parts: names of folders.
      above: those above them. Of these, only a folder that is wholly an algorithm or an environment counts.
    """
    return combined(parts_of(parts), above)


def parts_of(names: Sequence[str]) -> list[Part]:
    """What each folder of a path means on its own. A number below a folder `seed` is a seed."""
    parts = []
    for index, name in enumerate(names):
        after_seed = index > 0 and names[index - 1].lower() in ("seed", "seeds")
        is_seed = after_seed and name.isdecimal() and len(name) <= 10
        parts.append(Part(seed=int(name)) if is_seed else _part(name))
    return parts


def combined(parts: Sequence[Part], above: Sequence[str] = ()) -> PathFacts:
    """What the folders of a path say together; see `read_path`."""
    facts = PathFacts()
    knows = any(part.is_known for part in parts)
    parts = [without_env(part) if knows and part.env and not part.is_known else part for part in parts]
    for part in parts:
        facts.seed = facts.seed if part.seed is None else part.seed
        facts.settings.update(part.settings)
        facts.date = f"{facts.date} {part.date}".strip() if _CLOCK.fullmatch(part.date) else part.date or facts.date
    facts.algo, facts.env = _algo_and_env(parts, above)
    own = [part for part in parts if part.algo and _normal(part.algo) == _normal(facts.algo)]
    facts.variant = "/".join(dict.fromkeys(part.method for part in own if part.method != part.algo)) or facts.algo
    facts.other = "/".join(part.method for part in parts if part not in own and part.method)
    facts.group = "/".join(part.rest for part in parts if part.rest)
    facts.repeated = "/".join(filter(None, (part.rest + ("#" if part.is_trial else part.number) for part in parts)))
    return facts


def _algo_and_env(parts: Sequence[Part], above: Sequence[str]) -> tuple[str, str]:
    """The algorithm and the environment: by folders that say nothing else, by words in others, by folders above."""
    algo = env = whole_algo = whole_env = ""
    for part in parts:
        if part.is_whole and part.algo:
            whole_algo = part.algo
        elif part.is_whole and part.env:
            whole_env = part.env
        else:
            algo, env = part.algo or algo, part.env or env
    for name in above:
        if not whole_algo and not algo and _is_algo(name, whole=True):
            algo = name
        elif not whole_env and not env and _is_env(name):
            env = name
    if not (algo and _normal(whole_algo) in _NO_WORDS):  # of her/sac_1, sac
        algo = whole_algo or algo
    if not _normal(env).startswith(_normal(whole_env)):  # of Ant/TD3_Ant-v1, Ant-v1
        env = whole_env
    return algo, env


def without_env(part: Part) -> Part:
    """A part whose versioned word is a method, not an environment: sac-ours-v2."""
    return part._replace(env="", method=part.full, is_whole=False)


@functools.lru_cache(maxsize=65_536)
def _part(name: str) -> Part:
    """What the name of one folder says."""
    if _is_algo(name, whole=True):
        return Part(algo=name, is_whole=True, rest=name, method=name, full=name)
    if _is_env(name):
        return Part(env=name, is_known=_is_known(name), is_whole=True, rest=name, full=name)
    part = _of_words(name)
    return part._replace(rest="", method="", full="") if part.rest.lower() in _SAYS_NOTHING else part


def _of_words(name: str) -> Part:
    """What a name of several words says."""
    rest, date, seed = _without_stamps(name)
    named = _settings_in(rest)
    # `words` is what is left to be recognised; `rest` keeps settings, algorithm and environment.
    words, algo, env = named.words, named.algo, named.env
    is_known = bool(env)
    versioned = _VERSIONED.search(words)
    seeded = _SEED.search(words if versioned is None else words.replace(versioned[0], " "))
    if seeded is not None:
        seed = int(seeded[1])
        words, rest = words.replace(seeded[0], " ", 1), rest.replace(seeded[0], "", 1)
    full = words
    if versioned is not None and not _is_algo(_LEVEL.sub("", task := _without_algo(versioned[1]))):
        env, is_known = task, _is_known(task)
        words = words.replace(env, " ", 1)
    method, found_algo = words, _algo_in(words)
    if env and not is_known and not found_algo and _tidied(full).endswith(env):  # my_env-v0
        env, words, method = _squeezed(_tidied(full)), "", ""
    if found_algo:
        algo = found_algo
        words = words.replace(algo, " ", 1)
    if versioned is None or not env:
        suite = _SUITE.search(words)
        found_env = suite[0] if suite is not None else next((word for word in _words(words, 2) if _is_env(word)), "")
        if found_env:
            env, is_known = found_env, True
            method = method.replace(found_env, " ", 1)
            # walker_run_1 is no first run
            words = words.replace(found_env, "x" if suite is not None else found_env, 1)
    stem, trial, number = _trial_at_end(rest, words)
    is_trial = bool(trial) and bool(algo or env or _NAMED_TRIAL.match(trial) or _tidied(rest) == trial)
    method, full = (_tidied(text).removesuffix(trial) for text in (method, full))
    method = _squeezed(method) if found_algo or not named.algo else f"{named.algo} {_squeezed(method)}".strip()
    return Part(algo, env, is_known, False, seed, date, named.settings, stem, method, _squeezed(full), number, is_trial)


def _without_stamps(name: str) -> tuple[str, str, int | None]:
    """(the name without what tools add to tell runs apart, the date among it, the seed among it)."""
    rest, date, seed = name, "", None
    if (ray := _RAY.fullmatch(name)) is not None:
        rest = f"{_RAY_TRIAL.sub('', ray['before'], count=1)}_{ray['date']}"
    if (numbered := _CLEANRL.search(rest)) is not None:
        seed = int(numbered[1])
        rest = rest[: numbered.start()] + "__" + rest[numbered.end() :]
    # torch's SummaryWriter appends the host: "Mar04_12-00-00_host" and then a comment.
    if (stamp := _DATE.search(rest) or _CLOCK.search(rest)) is not None:
        date = stamp[0]
        rest = rest[: stamp.start()] + rest[stamp.end() :]
    return _ID.sub("", rest), date, seed


class _Named(NamedTuple):
    """What a name says by settings, `env=Ant` or `lr0.1`, and the words that are left."""

    algo: str
    env: str
    settings: tuple[tuple[str, Any], ...]
    words: str


def _settings_in(words: str) -> _Named:
    """The settings in a name; a seed among them stays in the words."""
    algo = env = ""
    settings: dict[str, Any] = {}
    for pattern in (_EQUALS, _GLUED):
        for found in list(pattern.finditer(words)):
            field, value = (each for each in found.groups() if each is not None)
            last = field.rpartition("_")[2]
            if last.lower() == "seed" or re.fullmatch(_SETTINGS, last, re.IGNORECASE):
                field = field if re.fullmatch(_SETTINGS, field, re.IGNORECASE) else last  # of ppo_seed=3, seed
            if field.lower() in ("seed", "s", "random_seed"):
                continue
            if field.lower() in ("env", "env_id", "env_name", "task") and not env:
                env = value
            elif field.lower() in ("algo", "algorithm", "alg", "agent") and not algo:
                algo = value
            else:
                settings[field] = plain(value.rstrip("_-"))
            words = words.replace(found[0], " ", 1)
    return _Named(algo, env, tuple(settings.items()), words)


def _trial_at_end(rest: str, words: str) -> tuple[str, str, str]:
    """(the rest of a name without the number of a trial at its end, what says the number, the number with its sign).

    Args:
      words: those that are neither setting nor version: only they may be the number.
    """
    tidy = _tidied(rest)
    trial = _TRIAL.search(_tidied(words))
    ends = trial[0] if trial is not None and tidy.endswith(trial[0]) else ""
    stem = _tidied(tidy.removesuffix(ends))
    return stem, ends, tidy[len(stem) :] if tidy.startswith(stem) else ends


def _squeezed(text: str) -> str:
    """A text after words were removed from its middle: one separator stays there."""
    return _tidied(re.sub(r"[-_ ,;+&.=]* [-_ ,;+&.=]*", "_", text))


def _tidied(text: str) -> str:
    text = re.sub(r"__+", "__", text)
    return text.strip(" -_,+.;&=")


def _normal(text: str) -> str:
    return _SIGNS.sub("", text).lower()


def is_algorithm(text: str) -> bool:
    """Whether a text is nothing but the name of a known algorithm."""
    return _is_algo(text, whole=True)


def is_environment(text: str) -> bool:
    """Whether a text is nothing but the name of a known environment, or has an environment's version."""
    return _is_env(text)


def _is_algo(text: str, *, whole: bool = False) -> bool:
    normal = _normal(text)
    return normal in _ALGORITHMS and (whole or normal not in _NO_WORDS) and not _NUMBERED.search(text)


def _is_env(text: str) -> bool:
    return _normal(text) in _ENVIRONMENTS or (
        (match := _VERSIONED.fullmatch(text)) is not None
        and _without_algo(match[1]) == text
        and not _is_algo(_LEVEL.sub("", text), whole=True)
    )


def _is_known(env: str) -> bool:
    """Whether an environment is one of those that are known, in whatever version."""
    normal = _normal(_LEVEL.sub("", env))
    return normal in _ENVIRONMENTS or _KNOWN_BEGINNING.match(normal) is not None or _SUITE.fullmatch(env) is not None


def _words(text: str, most: int) -> list[str]:
    """The words of a text, and up to `most` that follow each other, the longest first, as they are written."""
    spans = [(found.start(), found.end()) for found in re.finditer(r"[A-Za-z0-9]+", text)]
    return [
        text[spans[n][0] : spans[n + length - 1][1]]
        for length in range(most, 0, -1)
        for n in range(len(spans) - length + 1)
    ]


def _algo_in(text: str) -> str:
    return next((word for word in _words(text, 3) if " " not in word and _is_algo(word)), "")


def _without_algo(env: str) -> str:
    """An environment's name without an algorithm before it: Hopper-v4 for ppo-Hopper-v4."""
    words = env.split("-")
    for index in range(len(words) - 2, 0, -1):
        if any(_is_algo("-".join(words[start:index])) for start in range(index)):
            return "-".join(words[index:])
    return env
