"""The Python on the pages of the adapters calls what is there: tests/frameworks train with it, this reads it."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import rollbook
from syntax import tree as tree_of

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
PAGES = [page for page in sorted((ROOT / "docs" / "adapters").glob("*.md")) if "```python\n" in page.read_text("utf-8")]
Definition = ast.ClassDef | ast.FunctionDef


def definitions(module: str) -> dict[str, Definition]:
    """The classes and functions of a module and its package, read, not imported: most need their framework."""
    path = SRC.joinpath(*module.split("."))
    files = path.glob("*.py") if path.is_dir() else [path.with_suffix(".py")]
    return {
        node.name: node
        for file in files
        for node in ast.walk(tree_of(file.read_text("utf-8")))
        if isinstance(node, Definition)
    }


def keywords_of(found: Definition) -> set[str] | None:
    """The arguments that can be given by name, those of `init` where they are passed on; None if any can be given."""
    function: ast.AST | None = found
    if isinstance(found, ast.ClassDef):
        function = next((each for each in found.body if getattr(each, "name", "") in ("__init__", "__new__")), None)
    if not isinstance(function, ast.FunctionDef):
        return None
    named = {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}
    if function.args.kwarg is None:
        return named
    passed_on = function.args.kwarg.arg in ("run_options", "init_arguments", "init_kwargs")
    return named | {*inspect.signature(rollbook.init).parameters} if passed_on else None


def calls_of_ours(page: Path) -> Iterator[tuple[str, str, list[str]]]:
    """(module, name, keywords) of each call of a name that the page's blocks import from rollbook."""
    ours: dict[str, str] = {}
    for code in re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        for node in ast.walk(tree_of(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rollbook."):
                ours |= {alias.asname or alias.name: f"{node.module}:{alias.name}" for alias in node.names}
        for node in ast.walk(tree_of(code)):
            if not isinstance(node, ast.Call):
                continue
            words = [keyword.arg for keyword in node.keywords if keyword.arg]
            if isinstance(node.func, ast.Name) and node.func.id in ours:
                module, _, name = ours[node.func.id].partition(":")
                yield module, name, words
            elif isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
                module, _, name = ours.get(node.func.value.id, "").partition(":")
                if name and (
                    SRC.joinpath(*module.split("."), name).exists()
                    or (SRC / f"{module}.{name}".replace(".", "/")).with_suffix(".py").exists()
                ):
                    yield f"{module}.{name}", node.func.attr, words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_the_page_of_an_adapter_calls_takes_these_arguments(page: Path) -> None:
    for module, name, words in calls_of_ours(page):
        found = definitions(module).get(name)
        if found is None:
            continue  # the host's own, or a star import
        known = keywords_of(found)
        assert known is None or set(words) <= known, f"{module}.{name} takes no {set(words) - known}"


def names_bound(tree: ast.AST) -> set[str]:
    """What running `tree` binds: assigned, imported or defined."""
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    found |= {node.name for node in ast.walk(tree) if isinstance(node, Definition | ast.AsyncFunctionDef)}
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return found | {alias.asname or alias.name.partition(".")[0] for node in imports for alias in node.names}


def names_read_of_a_page(frame: ast.FunctionDef) -> set[str]:
    """The `names["x"]` of a frame: what it asks of the namespace in which its page ran."""
    return {
        node.slice.value
        for node in ast.walk(frame)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "names"
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
    }


def names_given_to_a_page(frame: ast.FunctionDef) -> set[str]:
    """The keys of the dictionary that a frame yields: what its page finds."""
    given = (node.value for node in ast.walk(frame) if isinstance(node, ast.Yield))
    keys = (key for each in given if isinstance(each, ast.Dict) for key in each.keys)
    return {key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}


def test_what_is_asked_of_a_page_that_ran_is_bound_on_it() -> None:
    """tests/frameworks runs the pages, an hour after; here the names alone are compared."""
    tree = tree_of((ROOT / "tests" / "support" / "around_pages.py").read_text("utf-8"))
    unbound, asked = [], 0
    for frame in (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list):
        names = names_read_of_a_page(frame)
        asked += len(names)
        around = frame.decorator_list[0]
        assert isinstance(around, ast.Call)
        page = ROOT / "docs" / ast.literal_eval(around.args[0]).removeprefix("docs/")
        code = re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
        bound = set().union(names_given_to_a_page(frame), *(names_bound(tree_of(block)) for block in code))
        unbound += [f"{page.name}: {name}" for name in sorted(names - bound)]
    assert asked > 20
    assert unbound == []


def test_the_pages_are_seen_to_call_something() -> None:
    called = {(module, name) for page in PAGES for module, name, _ in calls_of_ours(page)}
    assert len(called) >= 20, called


def test_the_table_of_what_was_trained_names_every_adapter_and_tests_that_exist() -> None:
    page = ROOT / "docs" / "adapters" / "index.md"
    section = page.read_text("utf-8").partition("## What was trained")[2].partition("\n## ")[0]
    told = {path.name: path.resolve() for path in (page.parent / name for name in re.findall(r"\]\((.*?)\)", section))}
    assert [str(path) for path in told.values() if not path.exists()] == []
    older = {
        "acme",
        "lightzero",
        "mrl",
        "rllib",
        "sb3",
        "spinningup",
        "tensorboard",
        "tianshou",
        "verl",
    }  # by their pages
    words = section.lower().replace("-", "_").replace(" ", "_")
    missing = {door for door in DOORS - older if door not in words}
    assert missing == set()


ASKED = {
    "Stable-Baselines3": ("sb3",), "RecordEpisodes": (), "RecordParallel": (), "Lightning": ("lightning",),
    "Optuna": ("optuna",), "Keras": ("keras",), "d3rlpy": ("d3rlpy", "skrl"), "Brax": ("brax", "stoix"),
    "NeMo-RL": ("nemo_rl", "openrlhf", "prime_rl", "slime", "tinker", "pufferlib", "elements"),
    "TensorBoard": ("tensorboard", "wandb", "accelerate"), "TRL": ("trl",), "verl": ("verl", "_verl_rollouts"),
    "RLlib": ("rllib",), "Tianshou": ("tianshou",), "MRL": ("mrl",), "LightZero": ("lightzero",), "Acme": ("acme",),
    "Spinning": ("spinningup",), "rl_games": ("rl_games",), "rsl_rl": ("rsl_rl",), "TorchRL": ("torchrl",),
    "JAX": ("jax",),
}  # fmt: skip
"""The first word of each row of the table of questions -> the adapters that it speaks of."""


def test_the_table_of_questions_to_hosts_has_every_adapter_and_asks_what_its_code_asks() -> None:
    text = (ROOT / "docs" / "adapters" / "index.md").read_text("utf-8")
    section = text.partition("## What is asked of a host")[2].partition("\n## ")[0]
    rows = {re.findall(r"[\w-]+", row)[0]: row for row in re.findall(r"^\| (?!adapter|---)(.*)", section, re.MULTILINE)}
    assert sorted(rows) == sorted(ASKED)
    assert {name for names in ASKED.values() for name in names} - {"_verl_rollouts"} == DOORS
    adapters, invented = SRC / "rollbook" / "adapters", []
    for first, names in ASKED.items():
        files = [file for name in names for file in (*adapters.glob(f"{name}.py"), *adapters.glob(f"{name}/*.py"))]
        code = "".join(file.read_text("utf-8") for file in files or [*(SRC / "rollbook" / "capture").rglob("*.py")])
        asked = {word for told in re.findall(r"`([^`]+)`", rows[first]) for word in re.findall(r"[A-Za-z_]{3,}", told)}
        invented += [f"{first}: {word}" for word in asked if word not in code]
    assert invented == []


DOORS = {
    file.stem for file in (SRC / "rollbook" / "adapters").iterdir() if file.name[0] not in "_." and file.stem != "keys"
}
UNTRAINED = {"slime", "prime_rl", "nemo_rl", "tinker", "openrlhf"}
"""They need GPUs or a service, which their page says; tests/adapters plays their programs."""


def test_every_adapter_is_trained_with_its_real_package_or_its_page_gives_the_reason() -> None:
    trained = "".join(file.read_text("utf-8") for file in (ROOT / "tests" / "frameworks").glob("*.py"))
    for name in re.findall(r'\bexample\("(\w+)"\)', trained):
        trained += (ROOT / "examples" / f"{name}.py").read_text("utf-8")
    used = {door for door in DOORS if re.search(rf"rollbook\.adapters(\.| import .*\b){door}\b|--{door}\b", trained)}
    assert DOORS - used == UNTRAINED
    played = "".join(file.read_text("utf-8") for file in (ROOT / "tests" / "adapters").rglob("*.py"))
    assert {door for door in UNTRAINED if door not in played} == set()


OFFERED = {  # what programs log with -> who reads or takes it here
    "rsl_rl": "rsl_rl", "TorchRL": "torchrl", "skrl": "skrl", "rl_games": "rl_games", "PufferLib": "pufferlib",
    "Brax": "brax", "JAX": "jax", "Stoix": "stoix", "d3rlpy": "d3rlpy", "DreamerV3": "elements",
    "Lightning": "lightning", "Keras": "keras", "Accelerate": "accelerate", "Optuna": "optuna", "wandb": "wandb",
    "TRL": "trl", "verl": "verl", "slime": "slime", "prime-rl": "prime_rl", "NeMo-RL": "nemo_rl",
    "Tinker": "tinker", "OpenRLHF": "openrlhf",
}  # fmt: skip
"""Of 42 reinforcement-learning code bases and their loggers, those that a program can be brought in by."""


def test_each_logger_that_programs_bring_has_an_adapter() -> None:
    assert set(OFFERED.values()) - DOORS == set()
    index = (ROOT / "docs" / "adapters" / "index.md").read_text("utf-8").lower()
    assert [name for name in OFFERED if name.lower() not in index] == []
