"""Names of runs and groups where room is short. Names that are shown together are never shortened to one text.

    short_names(["ppo lr 3e-4 gamma 0.99", "ppo lr 3e-4 gamma 0.995"], 12)     ["gamma 0.99", "gamma 0.995"]

`shortNames` of dashboard/src/data/names.ts is the same for the page; names.cases.json there holds both to it. Standard
library only.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

_GAP = re.compile(r"([\s,_/|;:=]+|(?<!\d[eE])(?<=[^\s,_/|;:=])-(?=\w))", re.ASCII)
_JOINS = re.compile(r"[\s=:]+", re.ASCII)
_NUMBER = re.compile(r"[-+.]?\d", re.ASCII)
_NUMBERS = re.compile(r"\d*\.?\d+(?:e[-+]?\d+)?", re.ASCII)
_STAMP = re.compile(r"\d{8,}|(?=.*\d)[0-9a-f]{7,}", re.ASCII)
_OF_LABELS, _OF_WORDS = (5, 3, 1), (8, 5, 4, 3, 2, 1)
"""How many letters of a setting's name, and of a word, where there is no room for all."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A word of a name, or a setting with its value: "lr=3e-4".

    Attributes:
      label: of a setting; "" of a word; between: what stands between a label and its value.
      gap: what stands before it; first, last: its first and last word in the name.
      key: what it is in all names: its label, or its index among the words without one.
    """

    label: str
    between: str
    value: str
    gap: str
    first: int
    last: int
    key: str

    def text(self) -> str:
        return f"{self.label} {self.value}" if self.label else self.value

    def in_full(self) -> str:
        return self.label + self.between + self.value


_Spell = Callable[[_Part], str]
_Names = Sequence[Sequence[_Part]]


def short_names(names: Sequence[str], most: int) -> list[str]:
    """Each name within `most` characters, so that two that differ stay different.

    Names that all fit are left as they are. Else what all share is left out, then what is not needed to tell them
    apart; settings get the first letters of their names, then none; then names are cut to their beginning and end.
    Where all that makes two alike, each has a number: "lr 0.001…#3".

    Args:
      names: those that are shown together; they may repeat.
      most: at least 3; a number of its own may take more.
    """
    distinct = list(dict.fromkeys(names))
    if all(len(name) <= most for name in distinct):
        return list(names)
    short = dict(zip(distinct, _shortened(distinct, max(3, most)), strict=True))
    return [short[name] for name in names]


def _shortened(names: Sequence[str], most: int) -> Sequence[str]:
    if len(names) == 1:
        return [_half(name, most, 0.5) for name in names]
    parts = [_parts_of(name) for name in names]
    shared = reduce(_common, [[part.text() for part in own] for own in parts])
    left = [_told(own, shared) or own for own in parts]
    if not _apart(_all(left)):
        left = parts
    plain = [[part for part in own if not _STAMP.fullmatch(part.value)] for own in left]
    if _apart(_all(plain)):
        left = plain
    left = _fewest(left, most)
    best: Sequence[str] = names
    for way in _ways(left, most):
        if not _apart(way):
            continue
        if _fit(way, most):
            return way
        if best is names or _too_long(way, most) < _too_long(best, most):
            best = way
    for tail in (0.5, 0.35, 0.7, 1.0):
        cut = [_half(name, most, tail) for name in best]
        if _apart(cut) and not any(map(_breaks_number, best, cut)):
            return cut
    some = [name if len(name) <= most else _numbered(name, n, most) for n, name in enumerate(best, 1)]
    return some if _apart(some) else [_numbered(name, n, most) for n, name in enumerate(best, 1)]


def _words_of(name: str) -> list[tuple[str, str]]:
    """The words of a name, each with what stands before it; the minus of a number does not separate."""
    found = []
    gap = ""
    for index, part in enumerate(_GAP.split(name)):
        if index % 2:
            gap += part
        elif part:
            found.append((part, gap))
            gap = ""
    return found


def _parts_of(name: str) -> list[_Part]:
    """A number belongs to the word before it: "clip_range 0.1"."""
    words = _words_of(name)
    out: list[_Part] = []
    unlabelled = 0
    for index, (value, gap) in enumerate(words):
        before = words[index - 1][0] if index else "0"
        is_value = _NUMBER.match(value) and not _STAMP.fullmatch(value) and not _NUMBER.match(before)
        if not is_value or not _JOINS.fullmatch(gap):
            out.append(_Part("", "", value, gap, index, index, str(unlabelled)))
            unlabelled += 1
            continue
        first = index - 1
        while first > 0 and words[first][1] == "_":
            first -= 1
        if not re.search(r"\s", words[first][1]) and not (first == 0 and re.search(r"\s", gap)):
            first = index - 1
        while out and out[-1].first >= first:
            out.pop()
            unlabelled -= 1
        label = words[first][0] + "".join(own + text for text, own in words[first + 1 : index])
        out.append(_Part(label, gap, value, words[first][1], first, index, f" {label}"))
    return out


def _common(a: Sequence[str], b: Sequence[str]) -> list[str]:
    """The longest row of texts that both have, in their order."""
    long = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in reversed(range(len(a))):
        for k in reversed(range(len(b))):
            long[i][k] = long[i + 1][k + 1] + 1 if a[i] == b[k] else max(long[i + 1][k], long[i][k + 1])
    out: list[str] = []
    i = k = 0
    while i < len(a) and k < len(b):
        if a[i] == b[k]:
            out.append(a[i])
            i, k = i + 1, k + 1
        elif long[i + 1][k] >= long[i][k + 1]:
            i += 1
        else:
            k += 1
    return out


def _told(own: Sequence[_Part], shared: Sequence[str]) -> list[_Part]:
    """The parts of a name that not all have."""
    waiting = list(shared)
    kept = []
    for part in reversed(own):
        if waiting and part.text() == waiting[-1]:
            waiting.pop()
        else:
            kept.append(part)
    return kept[::-1]


def _apart(texts: Sequence[str]) -> bool:
    return len(set(texts)) == len(texts) and "" not in texts


def _fit(texts: Sequence[str], most: int) -> bool:
    return not _too_long(texts, most)


def _too_long(texts: Sequence[str], most: int) -> int:
    return sum(len(text) > most for text in texts)


def _written(parts: Sequence[_Part], spell: _Spell = _Part.in_full) -> str:
    words = [spell(part) for part in parts[:1]]
    for before, part in itertools.pairwise(parts):
        words.append(re.sub("_+", "_", part.gap) if before.last == part.first - 1 else " ")
        words.append(spell(part))
    return "".join(words)


def _all(names: _Names, spell: _Spell = _Part.in_full) -> list[str]:
    return [_written(own, spell) for own in names]


def _fewest(names: list[list[_Part]], most: int) -> list[list[_Part]]:
    """Without the settings and words, from the last on, that are not needed to tell names apart, until all fit."""
    often = Counter(text for own in names for text in {part.text() for part in own})

    def key_of(part: _Part) -> str:
        """A word that most of them have is removed from these alone, any other by its index."""
        is_common = 2 * often[part.value] > len(names) and not re.search(r"\d", part.value)
        return f" {part.value}" if is_common and not part.label else part.key

    best = names
    for key in reversed(list(dict.fromkeys(key_of(part) for own in names for part in own))):
        if _fit(_all(best), most):
            break
        fewer = [[part for part in own if key_of(part) != key] for own in best]
        # A word of its own says more than the one setting that would be left, "seed 9".
        says = all(a == b or len(a) > 1 or (a and not a[0].label) for a, b in zip(fewer, best, strict=True))
        if (says or key.startswith(" ")) and _apart(_all(fewer)):
            best = fewer
    return best


def _ways(names: _Names, most: int) -> Iterator[list[str]]:
    """Ways to write names, the longest first."""
    labels = list(dict.fromkeys(part.label for own in names for part in own if part.label))
    full = _all(names)
    yield full
    for letters in _OF_LABELS:
        yield _all(names, _spelled(_abbreviated(labels, letters), frozenset()))
    # A setting that all have can do without its name: values stand in one order.
    owners = [[part.label for part in own if part.label] for own in names]
    bare = frozenset(label for label in labels if all(len(own) < 2 or label in own for own in owners))
    for letters in _OF_LABELS:
        yield _without_commas(_all(names, _spelled(_abbreviated(labels, letters), bare)))
    long = [len(name) > most for name in full]
    words = dict.fromkeys(part.value for own, is_long in zip(names, long, strict=True) if is_long for part in own)
    spell = _spelled(_abbreviated(labels, 1), bare)
    for letters in _OF_WORDS:
        short = _abbreviated([word for word in words if not re.search(r"\d", word)], letters)
        told = [
            _written([replace(part, value=short.get(part.value, part.value)) for part in own], spell) for own in names
        ]
        yield _without_commas([a if is_long else b for a, b, is_long in zip(told, full, long, strict=True)])


def _spelled(short: Mapping[str, str], without: frozenset[str]) -> _Spell:
    def spell(part: _Part) -> str:
        is_bare = not part.label or part.label in without
        return part.value if is_bare else short[part.label] + part.between + part.value

    return spell


def _abbreviated(words: Sequence[str], letters: int) -> dict[str, str]:
    """The first letters of each word, and as many more as distinguish it from the others."""
    short = {}
    for word in words:
        most = len(word) if len(word) < 3 else letters
        while most < len(word) and any(other != word and other.startswith(word[:most]) for other in words):
            most += 1
        short[word] = word[:most].rstrip("_.")
    return short


def _without_commas(names: Sequence[str]) -> list[str]:
    return [re.sub(r",\s+", " ", name) for name in names]


def _half(name: str, most: int, share: float) -> str:
    """Its beginning and its end."""
    if len(name) <= most:
        return name
    tail = max(1, -int(-(most - 1) * share // 1))
    return f"{name[: max(0, most - 1 - tail)]}…{name[len(name) - tail :]}"


def _in_number(name: str, at: int) -> bool:
    return any(number.start() < at < number.end() for number in _NUMBERS.finditer(name))


def _breaks_number(name: str, cut: str) -> bool:
    """Whether a cut goes through a number, of which half says something else."""
    head = cut.find("…")
    return cut != name and (_in_number(name, head) or _in_number(name, len(name) - (len(cut) - head - 1)))


def _numbered(name: str, n: int, most: int) -> str:
    """Its beginning and a number of its own, where no room is left for what tells it apart."""
    at = max(0, most - 2 - len(str(n)))
    while at > 0 and _in_number(name, at):
        at -= 1
    head = name[:at]
    while head and not head[-1].isalnum():
        head = head[:-1]
    return f"#{n}" if len(head) < 2 else f"{head}…#{n}"
