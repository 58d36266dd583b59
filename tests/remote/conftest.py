from __future__ import annotations

import itertools

import pytest

from stores import Azurite, Moto, Proxy, aws, azure
from waiting import PATIENCE

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
def cache(tmp_path, monkeypatch, tuned):
    from rollbook.remote import views

    monkeypatch.setenv("ROLLBOOK_CACHE", str(tmp_path / "cache"))
    tuned(remote_seconds=PATIENCE)  # init asks a place in a process of its own
    views.forget()
    yield tmp_path / "cache"
    views.forget()


@pytest.fixture(scope="session")
def azurite():
    """Azure's emulator, where npm has put it: `npm i azurite`, then on the PATH or as $ROLLBOOK_AZURITE."""
    program = Azurite.program()
    if program is None:
        pytest.skip("azurite-blob is not here: npm i azurite, and name it by $ROLLBOOK_AZURITE")
    pytest.importorskip("obstore")
    server = Azurite(program)
    yield server
    server.close()


@pytest.fixture
def container(azurite, monkeypatch):
    """The address of an empty container."""
    name = azurite.container(f"container-{next(numbers)}")
    with azure(monkeypatch, azurite):
        yield f"az://{name}/lab"
