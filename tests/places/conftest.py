from __future__ import annotations

import itertools

import pytest

from stores import Moto, Proxy, aws

numbers = itertools.count()


@pytest.fixture(scope="session")
def moto():
    pytest.importorskip("moto")
    pytest.importorskip("obstore")
    server = Moto()
    yield server
    server.close()


@pytest.fixture
def proxy(moto):
    proxy = Proxy(moto.address)
    yield proxy
    proxy.close()


@pytest.fixture
def bucket(moto, proxy, monkeypatch):
    """The address of an empty bucket behind the proxy."""
    name = moto.bucket(f"bucket-{next(numbers)}")
    with aws(monkeypatch, proxy.url):
        yield f"s3://{name}/lab"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    from rollbook.storage.places import views

    monkeypatch.setenv("ROLLBOOK_CACHE", str(tmp_path / "cache"))
    views.forget()
    yield tmp_path / "cache"
    views.forget()
