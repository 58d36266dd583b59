"""Conditions on runs cost what their length says, which is bounded."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rollbook.errors import BadInput
from rollbook.runs.conditions import holds
from rollbook.schema.expressions import LONGEST, MOST_COLUMNS, MOST_TERMS, condition

ROWS = [{"name": f"run {n}", "path": f"p/{n}", "config": {"lr": n / 10}, "tags": ["a"]} for n in range(10)]

SHAPES = [
    "a", "a.", "a ", " ", "a has ", "has ", "config.a", "config ", "config[ ", "config['a']", "config[\"a\"] [", "is ",
    "is not ", "= ", "= null ", "group ", "group by ", "group  ", "None ", "'", "''", "' '", '"', "'\"", "a 'b' ", "[",
    "(", "not ", "a has 'b' and ", "last(", "last('", 'max("a") ',
]  # fmt: skip

SPELL = f"""
import resource
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
from rollbook.schema.expressions import _spelled
from rollbook.server.runs.columns import metrics_in
for shape in {SHAPES!r}:
    text = shape * (150_000 // len(shape))
    _spelled(text), _spelled(text + "!"), metrics_in(text)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="the system limits no processor time")
def test_a_condition_is_read_in_time_proportional_to_its_length() -> None:
    """Seven times the longest one, in every shape: quadratic work would take minutes for a single one of them."""
    assert subprocess.run([sys.executable, "-c", SPELL], check=False).returncode == 0


@pytest.mark.parametrize(
    "text",
    [
        "a" * 100_000,
        " or ".join(f"name == 'x{n}'" for n in range(3_000)),
        f"name in ({', '.join(repr(str(n)) for n in range(20_000))})",
        f"seed in ({', '.join('1' for _ in range(MOST_TERMS))})",
        " and ".join(f"config.a{n} > 1" for n in range(MOST_COLUMNS + 1)),
        "(" * 9_000 + "seed = 1" + ")" * 9_000,
        "not " * 4_000 + "true",
        "seed = " + "-" * 15_000 + "1",
        "seed = 1" + " + 1" * 3_000,
        "[" * 9_000 + "]" * 9_000 + " = []",
        "case when true then " * 400 + "true" + " end" * 400,
    ],
    ids=lambda text: text[:20],
)
def test_too_long_a_condition_is_refused_in_few_words(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        condition(text)
    assert len(str(refused.value)) < 1_000


def test_a_long_word_that_is_no_field_is_refused_in_few_words() -> None:
    with pytest.raises(BadInput, match="has a field") as refused:
        holds("a" * LONGEST, ROWS)
    assert len(str(refused.value)) < 1_000


def test_a_condition_of_a_thousand_terms_is_answered() -> None:
    names = " or ".join(f"name == 'run {n}'" for n in range(800))
    assert len(names) < LONGEST
    assert holds(names, ROWS) == [True] * 10
    assert holds("tags has 'a' and config['lr'] < 0.5", ROWS) == [True] * 5 + [False] * 5


ODD = [
    {"summary": {"test/return": {"last": 490.0 + n}}, "config": {"env-id": "A", "lr": 4, "lr/2": n}} for n in range(3)
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("summary.test/return.last > 490", [False, True, True]),
        ("summary.test/return.last/2 > 245.5 and summary.test/return.last<400+92", [False, False, False]),
        ("config.env-id = 'A'", [True, True, True]),
        ("config.env-id = 'config.env-id' or summary.\"test/return\".last > 491", [False, False, True]),
        ("config.lr/2 = 2", [True, True, True]),  # all its parts are fields and numbers: it divides
    ],
)
def test_a_name_with_a_slash_or_a_hyphen_needs_no_quotes(text: str, expected: list[bool]) -> None:
    assert holds(text, ODD) == expected


def test_the_spelling_that_an_error_proposes_is_understood() -> None:
    with pytest.raises(BadInput, match="Did you mean") as refused:
        holds("summary.tst/return.last > 490", ODD)
    proposed = str(refused.value).partition("Did you mean '")[2].partition("'")[0]
    assert holds(f"{proposed} > 490", ODD) == [False, True, True]
