"""Checks the arguments of `init`: accepts, converts or refuses them.

Every check raises at once, with what was asked, what was found and what to do. A wrong argument then shows before
training begins, not later by an empty sink.
"""

from __future__ import annotations

import operator
import os
import sys
import unicodedata

from rollbook.errors import BadInput, InvalidName, UnknownOption, did_you_mean
from rollbook.schema.clocks import as_clock
from rollbook.system.files import as_text, is_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Self

_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that change the writing direction: `ls` would show a wrong name."""

_PORTS = "com1 com2 com3 com4 com5 com6 com7 com8 com9 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9"
_DEVICES = frozenset(f"con prn aux nul {_PORTS}".split())


def check_option(what: str, value: object, choices: Sequence[str]) -> None:
    """Check that `value` is one of `choices`.

    Raises:
      UnknownOption: it is not.
    """
    if value not in choices:
        raise UnknownOption(f"{what}={value!r} is not one of the choices.", did_you_mean(str(value), list(choices)))


class GoesOn(str):
    """resume="must" of an adapter whose training goes on after it ended the run: no attempt begins, the last goes on.

    Args:
      writer: the id of the main writer of this process that has closed.
    """

    __slots__ = ("writer",)
    writer: str

    def __new__(cls, writer: str) -> Self:
        """See the class."""
        made = super().__new__(cls, "must")
        made.writer = writer
        return made


def check_resume(resume: object) -> str:
    """How to resume: "never", "allow", "must" or "takeover". True means "allow", False and None mean "never".

    Raises:
      UnknownOption: it is none of these.
    """
    if resume is None or isinstance(resume, bool):
        return "allow" if resume else "never"
    choices = ("never", "allow", "must", "takeover")
    if isinstance(resume, os.PathLike) or (isinstance(resume, str) and os.sep in resume):
        given = f"resume={str(resume)!r:.200} is not one of the choices: {', '.join(choices)}."
        raise UnknownOption(given, _by_id(resume))
    if isinstance(resume, str) and resume not in choices and not resume.isalpha():  # ids have figures, the words none
        raise UnknownOption(
            f"resume={resume!r:.80} is not one of the choices: {', '.join(choices)}.",
            f"To go on with the run of that id, pass run_id={resume!r:.80} and resume='must'",
        )
    check_option("resume", resume, choices)
    return str(resume)


def _by_id(folder: Any) -> str:
    """How the run in a folder is continued."""
    from rollbook.schema import manifest

    path = os.path.abspath(folder)
    root, project = os.path.split(os.path.dirname(path))
    identity = manifest.look(path).id or "the end of the folder's name"
    return f"A run is continued by its id: init({project!r}, run_id={identity!r}, resume='must', dir={root!r})"


def check_name(what: str, name: object) -> str:
    """Check that a name works as a folder name on every system and prints unchanged in a terminal.

    Raises:
      InvalidName: it does not.
    """
    fault = ""
    if isinstance(name, str) and any("\udc80" <= c <= "\udcff" for c in name):  # of the command, in an ASCII locale
        name = as_text(name)
    if not isinstance(name, str):
        fault = f"it is a {type(name).__name__}"
    elif not name.strip():
        fault = "it is empty"
    elif any(unicodedata.category(c) in ("Cc", "Zl", "Zp") or c in _TURNING for c in name):
        fault = "it holds control characters"
    elif any("\ud800" <= c <= "\udfff" for c in name):
        fault = "it holds half of a surrogate pair, which is not a character"
    elif any(c in name for c in '/\\:*?"<>|'):
        fault = 'it holds one of / \\ : * ? " < > |'
    elif name in (".", "..") or name.startswith(".") or name != name.strip() or name.endswith("."):
        fault = "it begins with a dot, or begins or ends with a space or dot"
    elif name.lower() in _DEVICES:
        fault = "Windows knows it as a device"
    elif len(name.encode()) > 120:
        fault = "it is longer than 120 bytes"
    if fault and what == "run_id" and isinstance(name, str) and is_folder(name):
        raise InvalidName(f"init(run_id={name!r:.200}): this is a folder. {_by_id(name)}")
    if fault:
        raise InvalidName(
            f"init({what}={name!r:.200}) cannot be used as a folder's name: {fault}. Use letters, digits, - _ . and "
            f"spaces"
        )
    return str(name)


def program_name() -> str:
    """The default name of a run: that of the program, of a package that is run as one, or of a notebook."""
    path = sys.argv[0] if sys.argv else ""
    stem = os.path.splitext(os.path.basename(path))[0]
    if stem == "__main__":  # python -m package
        stem = os.path.basename(os.path.dirname(os.path.abspath(path)))
    elif stem in ("ipykernel_launcher", "colab_kernel_launcher"):
        file = os.environ.get("JPY_SESSION_NAME") or getattr(sys.modules["__main__"], "__vsc_ipynb_file__", "")
        stem = os.path.splitext(os.path.basename(str(file)))[0] or "notebook"
    elif path.replace(os.sep, "/").endswith("submitit/core/_submit.py"):
        stem = os.environ.get("SLURM_JOB_NAME") or "submitit"
    elif path == "-c":
        stem = ""
    clean = "".join(c if c.isalnum() or c in "-_." else "-" for c in stem).strip("-.")
    return clean[:60] or "run"


def check_seed(seed: Any) -> int | None:
    """The seed as a Python integer.

    Raises:
      BadInput: it is not an integer.
    """
    if seed is None:
        return None
    try:
        return operator.index(seed)
    except TypeError:
        number = as_clock(seed)  # accepts 3.0, which some configurations contain
    if number is None:
        raise BadInput(f"seed={seed!r:.100}: a seed is one integer. Keep what else there is in config=")
    return number


def check_tags(tags: object) -> list[str]:
    """Tags as texts.

    Raises:
      BadInput: a single text (each letter would become a tag), or something that is not iterable.
    """
    if isinstance(tags, (str, bytes)) or not hasattr(tags, "__iter__"):
        raise BadInput(f"tags={tags!r:.100}: pass a list of texts, such as tags=[{str(tags)!r:.100}]")
    return [str(tag) for tag in tags]


def check_clock_list(clocks: object) -> list[Any]:
    """The names of clocks as a list; see `clocks.check_clock_names` for the names themselves.

    Raises:
      BadInput: a single text (each letter would become a clock), or something that is not iterable.
    """
    if isinstance(clocks, (str, bytes)) or not hasattr(clocks, "__iter__"):
        raise BadInput(f"clocks={clocks!r:.100}: pass a list of names, such as clocks=[{str(clocks)!r:.100}]")
    return list(clocks)


def check_total(total: object, clocks: Iterable[str]) -> dict[str, int]:
    """The planned length of a run, by clock.

    Raises:
      BadInput: not a mapping of clocks to whole numbers above 0. UnknownOption: a clock that the run does not have.
    """
    if not total:
        return {}
    if not hasattr(total, "items"):
        raise BadInput(f"total={total!r:.100}: say of which clock, such as total={{'env_step': 100_000}}")
    known = list(clocks)
    goals: dict[str, int] = {}
    for name, value in total.items():
        number = as_clock(value)
        if name not in known:
            raise UnknownOption(
                f"total={{{name!r}: {value!r:.100}}}: the run has no such clock.{did_you_mean(str(name), known)} "
                f"Further ones are declared: clocks=[{name!r}]"
            )
        if number is None or number < 1:
            raise BadInput(f"total={{{name!r}: {value!r:.100}}}: pass how far the run will go, a whole number above 0")
        goals[str(name)] = number
    return goals
