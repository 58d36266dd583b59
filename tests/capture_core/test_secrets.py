"""Secrets in configurations, command lines and URLs are hidden by one rule; what only sounds like one is kept."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollbook
from forked_programs import Interpreter
from rollbook.errors import RollbookWarning
from rollbook.run.origin.config import hidden_paths, literal, plain
from rollbook.run.origin.provenance import command_line
from rollbook.run.origin.secrets import HIDDEN, hidden, is_secret_name, without_secrets

SECRET_NAMES = [
    "password", "db_password", "api_key", "API-KEY", "apiKey", "wandb_api_key", "wandb-key", "wandb.key", "openai_key",
    "hf_token", "--token", "aws_secret_access_key", "private_key",
    "ssh_key", "github_token", "auth", "cookie", "api_keys",
    "Authorization", "pw", "db_pw", "pwd", "pass", "passphrase", "creds",
]  # fmt: skip
OTHER_NAMES = [
    "lr", "obs_key", "action_keys", "prng_key", "sort_key",
    "pad_token", "eos_token", "stop_tokens", "token_level", "tokens_per",
    "monkey", "keyboard", "passes", "compass", "author", "n_pass_steps", "reward_key", "tokenizer",
]  # fmt: skip
KEYS_OF = [
    "anthropic", "aws", "azure", "cohere", "comet", "gemini", "github", "google", "groq", "hf", "huggingface",
    "mistral", "neptune", "openai", "together", "wandb", "weave",
    "access", "account", "api", "auth", "encryption", "license", "private", "ssh",
]  # fmt: skip
TOKENS_OF_TEXTS = [
    "begin", "bos", "end", "eos", "mask", "max", "min", "num",
    "pad", "per", "sep", "special", "start", "stop", "think", "unk",
]  # fmt: skip
HASHES = [
    "branch", "checksum", "commit", "digest", "etag", "fingerprint", "git", "hash", "hashes", "head", "id", "md5",
    "oid", "ref", "rev", "revision", "sha", "sha1", "sha256", "snapshot", "tag", "tree", "uuid", "version",
]  # fmt: skip
CREDENTIALS = [
    "sk-abcdefghijklmnopqrstuv0123",
    "ghp_abcdefghijklmnopqrst0123",
    "hf_abcdefghijklmnopqrstuv01",
    "AKIAABCDEFGHIJKLMNOP",
    "xoxb-1234567890-abc",
    "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJ",
    "sk-proj-abcdefghijklmnop0123",
    "sk-ant-api03-abcdefghijklmnop",
    "gsk_abcdefghijklmnopqrst0123",
    "wandb_v1_abcdefghijklmnop0123",
    "nvapi-abcdefghijklmnopqrst",
    "github_pat_abcdefghijklmnopqrst0123",
    *(f"{kind}_abcdefghijklmnopqrst0123" for kind in ("gho", "ghu", "ghs", "ghr", "api_org")),
    *(f"xox{kind}-1234567890-abc" for kind in "aprs"),
    "ASIAABCDEFGHIJKLMNOP",
    "glpat-abcdefghijklmnop",
    "AIzaabcdefghijklmnopqrstuvwxyz0123",
    "pypi-abcdefghijklmnop",
    "sk_live_abcdefghijklmnop",
    "rk_test_abcdefghijklmnop",
    "r8_abcdefghijklmnopqrstuvwxyz0123",
    "ya29.abcdefghijklmnop",
    "npm_abcdefghijklmnopqrstuvwxyz0123",
    "eyJhcGlfYWRkcmVzcyI6Imh0dHBzOi8vYXBwLm5lcHR1bmUuYWkiLCJhcGlfa2V5IjoiYWJjIn0=",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA75\nabcd/+==\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN OPENSSH PRIVATE KEY-----\\nb3BlbnNzaC1rZXktdjEA\\n",
]

HEX = "0123456789abcdef0123456789abcdef01234567"
AWS = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

HIDDEN_IN = [
    {"api": {"key": "X1"}},
    {"api": {"keys": ["X1", "X2"]}},
    {"wandb": {"key": "X1"}},
    {"wandb": {"entity": {"key": HEX}}},
    {"credentials": {"user": {"name": "X1"}}},
    {"secrets": {"a": ["X1"]}},
    {"db": {"auth": "X1"}},
    {"auth": {"token": "X1"}},
    {"logger": HEX},
    {"extra": {"x": [HEX]}},
    {"key": f"local-{HEX}"},
    {"x": AWS},
    {"x": {"y": AWS}},
    {"password": b"X1"},
    {"note": b"use sk-abcdefghijklmnopqrstuv0123"},
    {"names": {"sk-abcdefghijklmnopqrstuv0123"}},
    {"sk-abcdefghijklmnopqrstuv0123": 1},
    {"x": f"WANDB_API_KEY={HEX} python train.py"},
    {"x": f"wandb login {HEX}"},
    {"x": f"use {HEX} now"},
    {"x": f"my key is {HEX}."},
    {"x": f"{HEX} "},
    {"x": f"\t{HEX}\n"},
    {"x": [f"'{AWS}'"]},
    {"x": f"use {HEX}".encode()},
    {"x": HEX.encode()},
    {f"a {HEX} b": 1},
    {"x": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=abc123+/==;EndpointSuffix=b"},
    {"argv": ["--url", "https://me:X1@h/x"]},
    {"url": "https://h/x?api_key=X1&page=2"},
    {"a": [{"b": ({"pw": "X1"},)}]},
    *({name: {"user": "X1"}} for name in ("cred", "password", "passwd")),
    *({"url": f"https://h/x?{name}=X1"} for name in ("key", "sig", "signature", "code")),
    *({"x": f"Server=h;{name}=X1"} for name in ("SharedAccessKey", "Password", "Pwd")),
    *({"x": f"version 2, {name}: {HEX}"} for name in ("wandb", "token", "login", "key")),
    {"header": "Basic X1X1X1X1"},
]
"""Configurations of which nothing but names may be kept."""

KEPT = [
    {"commit": HEX},
    {"git": {"head": HEX}},
    {"git_sha": HEX},
    {"code": {"revision": HEX}},
    {"data": {"hash": [HEX]}},
    {"run_id": HEX},
    {"model": {"checksum": HEX}},
    {"x": f"checked out at {HEX}"},
    {"x": f"https://h/tree/{HEX}/a.py"},
    {"x": f"HEAD is now {HEX}"},
    {"x": f"package@{HEX}"},
    {"commit": f"{HEX} on main"},
    {"x": HEX[:39]},
    {"x": HEX + "0"},
    {"x": "experiments/CartPole/PPO/seed1/2024/best"},
    {"x": "Runs/HalfCheetah/PPO/Seed12/Try3/Best/ab"},
    {"x": "HalfCheetahProximalPolicyOptimisationV12"},
    {"x": "a" * 40},
    {"x": "1" * 39},
    {"env": {"key": "door"}},
    {"obs": {"key": "image"}},
    {"tokens": {"pad_token": "<pad>", "level": "word"}},
    {"special": {"eos_token": "</s>"}},
    {"wandb": {"project": "ppo", "mode": "online"}},
    {"api": {"url": "https://h/x?page=2"}},
    {"auth": {"method": "none"}},
    {"secret_maze": {"goal": "exit"}},
    {"pass_rate": "high"},
    {"x": "sk-learn"},
    {"x": "-----BEGIN CERTIFICATE-----\nMIID\n-----END CERTIFICATE-----"},
    {"x": b"raw bytes"},
    {"keys": ["obs", "action"]},
    {"jax": {"prng": {"key": "threefry"}}},
    {"x": "eyJ short"},
    {1: {"2": "text"}},
]
"""Configurations that are kept as they are."""


def texts_in(value: Any) -> Iterator[Any]:
    """Every text in a nested value, keys included."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from texts_in(key)
            yield from texts_in(inner)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for inner in value:
            yield from texts_in(inner)
    elif isinstance(value, (str, bytes)):
        yield value if isinstance(value, str) else value.decode()


@pytest.mark.parametrize("config", HIDDEN_IN, ids=str)
def test_no_secret_of_a_configuration_is_kept_wherever_it_stands(config: dict[Any, Any]) -> None:
    for data in (plain(config)[0], literal(config)[0]):
        shown = " ".join(texts_in(data))
        assert HIDDEN in shown
        for secret in ("X1", "X2", HEX, AWS, "sk-abc", "abc123"):
            assert secret not in shown
    assert hidden_paths(plain(config)[0]) or HIDDEN in str(list(plain(config)[0]))


@pytest.mark.parametrize("config", KEPT, ids=str)
def test_what_only_looks_like_a_secret_is_kept(config: dict[Any, Any]) -> None:
    assert literal(config)[0] == config
    assert not hidden_paths(plain(config)[0])


LONG = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
from rollbook.run.origin.secrets import hidden
pieces = ["a-", "a@", "://", "a://", "a+b.c-", "eyJa-", "eyJa.", "sk-", "ghp_", "bearer ", "?a", "&a=", ";", "key ",
          "key-", "-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "-----", "AccountKey", "pwd=", "xoxb-", "_",
          "0123456789abcdef"]
for piece in pieces:
    for text in (piece * (60_000 // len(piece)), piece * (60_000 // len(piece)) + " a://b@c=d"):
        hidden("note", text), hidden(text, "value")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the system limits no processor time")
def test_a_long_text_is_gone_through_once() -> None:
    """Quadratic work on 60,000 characters would take minutes."""
    assert subprocess.run([sys.executable, "-c", LONG], check=False).returncode == 0


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_name_of_a_secret_hides_its_value(name: str) -> None:
    assert is_secret_name(name)
    assert hidden(name, "anything at all") == HIDDEN


def test_the_key_of_a_service_or_of_a_door_is_a_secret_and_a_token_of_a_text_is_none() -> None:
    assert [kind for kind in KEYS_OF if not is_secret_name(f"{kind}_key")] == []
    assert [kind for kind in TOKENS_OF_TEXTS if is_secret_name(f"{kind}_token")] == []
    assert is_secret_name("myapikey")
    assert is_secret_name("credential_path")


def test_forty_digits_are_a_hash_where_a_name_or_a_word_before_says_so() -> None:
    assert [name for name in HASHES if hidden(name, HEX) != HEX] == []
    words = [*HASHES, "checked out at", "checkout", "cloned", "merge", "merged", "parent", "reset to"]
    assert [text for word in words if without_secrets(text := f"now {word} {HEX}") != text] == []


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
        (["--pw", "hunter2", "--db.pwd=hunter2"], ["--pw", "***", "--db.pwd=***"]),
        (["--logger", HEX, f"--x={HEX}"], ["--logger", "***", "--x=***"]),
        (["--commit", HEX, f"--git.sha={HEX}", HEX], ["--commit", HEX, f"--git.sha={HEX}", "***"]),
        (["--url=https://me:pass@h/x", "--lr=3"], ["--url=https://***@h/x", "--lr=3"]),
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


@pytest.mark.skipif(os.name == "nt", reason="a umask is of POSIX")
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_the_umask_says_who_may_read_a_run(tmp_path: Path, umask: int, interpreter: Interpreter) -> None:
    code = """
import os, sys, rollbook
os.umask(int(sys.argv[2]))
with rollbook.init("p", "r", dir=sys.argv[1], sinks=["jsonl"], keeper="inline") as run:
    run.log({"a": 1.0}, env_step=1)
    run.log_text("note", "hello")
    run.save_checkpoint({"w": 1.0})
"""
    assert interpreter.run(code, tmp_path, umask, env=os.environ).returncode == 0
    (folder,) = (path.parent for path in tmp_path.rglob("run.json"))
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.rglob("*")]}
    assert len(modes) > 10
    assert {path for path, mode in modes.items() if mode & umask} == set()
    if umask == 0o022:
        closed = {path for path, mode in modes.items() if not mode & 0o044}
        assert closed == set(), "whoever may see the folder reads all of it"
