"""A cache that cannot be written stops no shipping, and a reader is told what to do."""

from __future__ import annotations

import errno

import pytest

import rollbook
from rollbook.errors import RemoteError
from rollbook.remote import views
from rollbook.remote.push import push
from rollbook.schema.addresses import backlog


@pytest.fixture
def shipped(tmp_path):
    with rollbook.init("cartpole", "ppo", dir=tmp_path / "runs", sinks=[], keeper="inline") as run:
        for step in range(300):
            run.log({"train/return": step * 0.5}, env_step=step)
    push(run.folder, tmp_path / "store")
    return run.folder


@pytest.fixture
def no_cache(tmp_path, monkeypatch):
    """No folder can be made there, not even by root."""
    (tmp_path / "a file").touch()
    monkeypatch.setenv("ROLLBOOK_CACHE", str(tmp_path / "a file" / "cache"))
    views.forget()


def test_shipping_needs_no_cache(tmp_path, no_cache, shipped):
    assert backlog(shipped)["done"]
    assert (tmp_path / "store" / "_pages" / "cartpole" / f"{shipped.name}.json").exists()


def test_reading_without_a_cache_says_what_to_set(tmp_path, shipped, no_cache):
    for read in (rollbook.open, lambda url: rollbook.open(f"{url}/cartpole/{shipped.name}").one()):
        with pytest.raises(RemoteError, match=r"cannot be written: .* Set ROLLBOOK_CACHE"):
            read(f"file://{tmp_path}/store")


def test_a_full_disk_under_the_cache_is_reported(tmp_path, shipped, monkeypatch):
    def full(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(views._View, "_make_hole", full)
    monkeypatch.setattr(views._View, "_write", full)
    with pytest.raises(RemoteError, match=r"No space left on device\. Set ROLLBOOK_CACHE"):
        rollbook.open(f"file://{tmp_path}/store").one().keys()
