"""Secrets in configurations, command lines and URLs are hidden by one rule; what only sounds like one is kept."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollbook
from rollbook.capture.origin.provenance import command_line
from rollbook.capture.origin.secrets import HIDDEN, hidden, is_secret_name, without_secrets
from rollbook.errors import RollbookWarning

SECRET_NAMES = [
    "password", "db_password", "api_key", "API-KEY", "apiKey", "wandb_api_key", "wandb-key", "wandb.key", "openai_key",
    "hf_token", "--token", "aws_secret_access_key", "private_key",
    "ssh_key", "github_token", "auth", "cookie", "api_keys",
    "Authorization",
]  # fmt: skip
OTHER_NAMES = [
    "lr", "obs_key", "action_keys", "prng_key", "sort_key",
    "pad_token", "eos_token", "stop_tokens", "token_level", "tokens_per",
    "monkey", "keyboard", "passes", "compass", "author", "n_pass_steps", "reward_key", "tokenizer",
]  # fmt: skip
CREDENTIALS = [
    "sk-abcdefghijklmnopqrstuv0123", "ghp_abcdefghijklmnopqrst0123",
    "hf_abcdefghijklmnopqrstuv01", "AKIAABCDEFGHIJKLMNOP",
    "xoxb-1234567890-abc", "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJ",
]  # fmt: skip


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_name_of_a_secret_hides_its_value(name: str) -> None:
    assert is_secret_name(name)
    assert hidden(name, "anything at all") == HIDDEN


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_a_name_that_only_sounds_like_one_hides_nothing(name: str) -> None:
    assert not is_secret_name(name)
    assert hidden(name, "reach-v2") == "reach-v2"


@pytest.mark.parametrize("secret", CREDENTIALS)
def test_a_credential_is_hidden_under_any_name_and_inside_any_text(secret: str) -> None:
    assert secret not in str(hidden("note", f"run with {secret}, please"))
    assert secret not in " ".join(command_line(["train.py", secret]))


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["--wandb-key=X", "--lr", "3"], ["--wandb-key=***", "--lr", "3"]),
        (["--openai-key", "X", "--lr"], ["--openai-key", "***", "--lr"]),
        (["-p", "hunter2"], ["-p", "***"]),
        (["-p", "8080"], ["-p", "8080"]),
        (["+wandb.key=X"], ["+wandb.key=***"]),
        (["--header", "Authorization: Bearer abcdef123456"], ["--header", "Authorization: Bearer ***"]),
        (["https://h/x?token=X&page=2"], ["https://h/x?token=***&page=2"]),
        (["https://me:pass@h/x"], ["https://***@h/x"]),
        (["--pad-token", "<pad>"], ["--pad-token", "<pad>"]),
    ],
)
def test_a_command_line_shows_no_secret(command: list[str], shown: list[str]) -> None:
    assert command_line(command) == shown


@pytest.mark.parametrize("value", [512, 0.5, True, None])
def test_numbers_are_no_secrets(value: Any) -> None:
    assert hidden("max_token", value) is value
    assert hidden("token", value) is value


@given(st.text(max_size=60), st.text(max_size=200))
def test_no_name_or_text_is_too_odd(name: str, text: str) -> None:
    assert isinstance(hidden(name, text), str)
    assert isinstance(without_secrets(text), str)


def test_a_run_keeps_no_secret_of_its_configuration_and_says_so_once(tmp_path: Path) -> None:
    config = {
        "lr": 0.1,
        "wandb_api_key": "0123456789abcdef",
        "db": {"password": "hunter2", "url": "postgres://me:hunter2@host/db"},
        "keys": [{"hf_token": "hunter2"}],
        "tokens": {"pad_token": "<pad>"},
    }
    with pytest.warns(RollbookWarning, match=r"wandb_api_key, db.password, db.url") as said:
        run = rollbook.init("p", "r", dir=tmp_path, config=config, sinks=[], keeper="inline", strict=True)
    run.finish()
    assert len([w for w in said if "secret" in str(w.message)]) == 1
    for file in Path(run.folder).rglob("*"):
        if file.is_file():
            assert b"hunter2" not in file.read_bytes(), file
            assert b"0123456789abcdef" not in file.read_bytes(), file
    kept = rollbook.open(tmp_path).one("p/r").config
    assert kept["lr"] == 0.1
    assert kept["tokens"] == {"pad_token": "<pad>"}
    assert config["wandb_api_key"] == "0123456789abcdef", "the caller's own configuration is left alone"


def test_a_user_may_keep_what_looks_like_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLBOOK_SECRETS", "keep")
    with rollbook.init("p", "r", dir=tmp_path, config={"token": "<s>"}, sinks=[], keeper="inline") as run:
        assert run.config["token"] == "<s>"


@pytest.mark.parametrize("how", ["argument", "environment"])
def test_a_private_run_is_for_its_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    if how == "environment":
        monkeypatch.setenv("ROLLBOOK_PRIVATE", "1")
    private = True if how == "argument" else None
    with rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="inline", private=private) as run:
        run.log({"a": 1.0}, env_step=1)
    assert stat.S_IMODE(Path(run.folder).stat().st_mode) == 0o700
    assert rollbook.open(tmp_path).one("p/r").metrics(["a"]).num_rows == 1
