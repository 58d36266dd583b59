"""Stores that misbehave: nothing is lost, nothing doubled, what is wrong is said, and training never waits."""

from __future__ import annotations

import itertools
import os

import numpy as np
import pytest
from click.testing import CliRunner

import rollbook
from cases import some_of
from rollbook import errors
from rollbook.cli.app import app
from rollbook.remote import views
from rollbook.remote.local import FolderRemote
from rollbook.remote.opening import open_remote
from rollbook.remote.push import push
from rollbook.remote.steps import Away
from rollbook.schema.addresses import backlog
from rollbook.system.files import try_lock
from stores import await_shipped


def recorded(tmp_path, rows=2000, **more):
    with rollbook.init("cartpole", "ppo", dir=tmp_path / "runs", sinks=[], keeper="inline", **more) as run:
        for step in range(rows):
            run.log({"train/return": step * 0.37, "train/length": step}, env_step=step)
    return run.folder


HARMS = {
    "a slow network": {"latency": 0.05},
    "a busy store": {"busy": 0.2},
    "connections that are reset": {"reset": 0.2},
    "answers that are cut short": {"cut": 0.2},
    "answers that are lost": {"lost": 0.2},
    "all of it": {"busy": 0.08, "reset": 0.08, "cut": 0.08, "lost": 0.1},
}


@pytest.mark.parametrize("harm", some_of(HARMS, ["a slow network", "answers that are cut short", "all of it"].count))
def test_shipping_and_reading_get_through(harm, tmp_path, bucket, proxy):
    folder = recorded(tmp_path)
    for name, chance in HARMS[harm].items():
        setattr(proxy.faults, name, chance)
    for _ in range(6):
        try:
            push(folder, bucket)
            break
        except errors.RemoteUnreachable:
            continue
    there = rollbook.open(bucket).one().series("train/return", x="env_step")
    here = rollbook.open(tmp_path / "runs").one().series("train/return", x="env_step")
    assert np.array_equal(there.mean, here.mean)
    assert np.array_equal(there.x, here.x)
    push(folder)
    assert backlog(folder)["done"]


def test_a_stalled_request_is_given_up_and_made_again(tmp_path, moto, proxy, bucket):
    folder = recorded(tmp_path, rows=20)
    proxy.faults.stall = 0.1
    try:
        push(folder, bucket, patience=4.0)
    except errors.RemoteUnreachable:
        proxy.faults.stall = 0.0
        push(folder, bucket)
    proxy.faults.stall = 0.0
    assert len(rollbook.open(bucket)) == 1


def test_a_folder_that_a_stopped_process_has_locked_is_not_waited_for_for_ever(tmp_path):
    place = FolderRemote("file://there", str(tmp_path), patience=0.1)
    place.put("a", b"1", create=True)
    with open(tmp_path / ".rollbook-place.lock", "r+b") as held:
        assert try_lock(held.fileno())
        with pytest.raises(Away, match=r"file://there: another process has locked it for 0\.1 seconds"):
            place.put("b", b"2", create=True)
    place.put("b", b"2", create=True)


def test_while_a_store_is_away_everything_waits_here_counted_and_goes_later(tmp_path, bucket, proxy):
    folder = recorded(tmp_path)
    push(folder, bucket)
    with rollbook.init(
        "cartpole", "ppo", dir=tmp_path / "runs", sinks=[], keeper="inline", resume="must", remote=False
    ) as run:
        run.log({"train/return": 1.0}, env_step=9000)
    proxy.faults.away = True
    for n in (1, 2):
        with pytest.raises(errors.RemoteUnreachable):
            push(folder, bucket, patience=0.5)
        said = backlog(folder)
        assert (said["failures"], said["done"]) == (n, False)
        assert said["waiting_files"] > 0
        assert said["waiting_bytes"] > 0
    proxy.faults.away = False
    push(folder)
    assert backlog(folder)["waiting_files"] == 0
    assert rollbook.open(bucket).one().series("train/return", x="env_step").x[-1] == 9000


def test_a_run_begins_where_the_store_is_away_and_says_so(tmp_path, bucket, proxy, tuned):
    proxy.faults.away = True
    tuned(remote_patience_seconds=1.0)
    with pytest.warns(errors.RollbookWarning, match="shipped when the remote answers"):
        run = rollbook.init("cartpole", "ppo", dir=tmp_path / "runs", sinks=[], keeper="inline", remote=bucket)
    run.log({"train/return": 1.0}, env_step=1)
    assert run.bill()["drops"]["remote"] >= 1
    remote = run.bill()["remote"]
    assert (remote["done"], remote["failures"]) == (False, 1)
    assert bucket in remote["words"]
    proxy.faults.away = False
    run.finish()
    push(run.folder)
    assert len(rollbook.open(bucket)) == 1


@pytest.mark.parametrize(
    ("command", "harm"),
    some_of(
        itertools.product(["ls", "show", "push", "pull", "sync", "catalogue"], ["busy", "gone"]),
        lambda case: (case[0] in ("ls", "push", "sync")) == (case[1] == "busy"),
    ),
)
def test_each_command_on_a_store_that_is_away_says_once_where_what_and_what_to_do(
    harm, command, tmp_path, bucket, proxy, monkeypatch
):
    from rollbook.remote import objects

    plain = objects.open_objects
    monkeypatch.setattr(objects, "open_objects", lambda *where: plain(*where[:-1], 0.1))  # nobody waits for it here
    folder = recorded(tmp_path, rows=10)
    push(folder, bucket)
    if harm == "busy":
        proxy.faults.busy = 1.0
    else:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    words = {
        "ls": ["ls", "--dir", bucket],
        "show": ["show", f"{bucket}/cartpole/{folder.name}"],
        "push": ["push", str(folder), bucket],
        "pull": ["pull", bucket, "--dir", str(tmp_path / "back")],
        "sync": ["sync", str(folder), bucket],
        "catalogue": ["catalogue", bucket],
    }[command]
    answer = CliRunner().invoke(app, words)
    said = " ".join(answer.output.split())
    assert answer.exit_code == 1
    assert said.count(bucket) == 1, answer.output
    expected = (
        "answers SlowDown. It is busy" if harm == "busy" else "gives no answer (it cannot be connected to). Look at"
    )
    assert expected in said
    assert "try again later" in said


def test_a_view_of_a_run_is_shown_while_its_store_is_away(tmp_path, bucket, proxy):
    push(recorded(tmp_path), bucket)
    book = rollbook.open(bucket).one()
    before = book.series("train/return", x="env_step").mean
    proxy.faults.away = True
    views.remote_of(bucket)._store = open_remote(bucket, patience=0.5)._store
    assert np.array_equal(rollbook.Book(book.path).series("train/return", x="env_step").mean, before)


def test_a_bucket_that_is_not_there_is_an_error_at_init(tmp_path, bucket):
    with pytest.raises(errors.NoSuchBucket, match="no bucket 'typo'"):
        rollbook.init("cartpole", "ppo", dir=tmp_path / "runs", sinks=[], remote="s3://typo/lab")
    assert not (tmp_path / "runs").exists() or not list((tmp_path / "runs").rglob("run.json"))


def test_a_prefix_with_something_else_is_an_error_at_init(tmp_path, bucket):
    open_remote(bucket).put("weights.bin", b"x")
    with pytest.raises(errors.ForeignRemote, match=r"weights\.bin"):
        rollbook.init("cartpole", "ppo", dir=tmp_path / "runs", sinks=[], remote=bucket)


def test_a_run_of_that_name_that_is_another_one_is_an_error(tmp_path, bucket):
    with rollbook.init("cartpole", "ppo", run_id="abc", dir=tmp_path / "a", sinks=[], keeper="inline") as run:
        run.log({"a": 1.0})
    push(run.folder, bucket)
    with pytest.raises(errors.RunExists, match="another run of that name"):
        rollbook.init("cartpole", "ppo", run_id="abc", dir=tmp_path / "b", sinks=[], remote=bucket)
    with rollbook.init("cartpole", "ppo", run_id="abc", dir=tmp_path / "c", sinks=[], keeper="inline") as other:
        other.log({"a": 2.0})
    with pytest.raises(errors.RunExists):
        push(other.folder, bucket)
    assert rollbook.open(bucket).one().series("a").mean.tolist() == [1.0]


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("NoSuchBucket", 404, errors.NoSuchBucket),
        ("AccessDenied", 403, errors.NoPermission),
        ("InvalidAccessKeyId", 403, errors.NoPermission),
        ("SignatureDoesNotMatch", 403, errors.NoPermission),
        ("ExpiredToken", 400, errors.CredentialsExpired),
        ("RequestTimeTooSkewed", 403, errors.CredentialsExpired),
        ("PermanentRedirect", 301, errors.WrongRegion),
        ("AuthorizationHeaderMalformed", 400, errors.WrongRegion),
    ],
)
def test_what_is_wrong_with_a_remote_is_distinguished(code, status, error, bucket, proxy, monkeypatch):
    body = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()

    def answer(handler):
        from stores import read_body, read_head

        head = read_head(handler.rfile)
        if head is None:
            return False
        read_body(handler.rfile, head[2])
        handler.wfile.write(b"HTTP/1.1 %d No\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body)
        handler.wfile.flush()
        return True

    monkeypatch.setattr(proxy, "pass_on", answer)
    place = open_remote(bucket, patience=1.0)
    for ask in (
        lambda: place.get("a"),
        lambda: place.put("a", b"", create=True),
        lambda: list(place.listing("a/")),
    ):
        with pytest.raises(error) as caught:
            ask()
        assert "SECRET" not in str(caught.value)


def test_no_credential_is_ever_written_down(tmp_path, bucket, monkeypatch):
    with rollbook.init("cartpole", "ppo", dir=tmp_path / "runs", sinks=[], remote=bucket) as run:
        run.log({"train/return": 1.0}, env_step=1)
    await_shipped(run.folder)
    rollbook.open(bucket).one().series("train/return")
    place = open_remote(bucket)
    texts = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    texts += [place.get(entry.key).data for entry in place.listing("")]
    assert len(texts) > 10
    for secret in (b"AKIASECRETKEYID", b"wJalrSECRETwords"):
        assert not any(secret in text for text in texts)


def test_an_address_with_credentials_is_refused_without_repeating_them(tmp_path):
    for address in ("s3://key:hunter2@bucket/lab", "az://container/lab?sig=hunter2"):
        with pytest.raises(errors.BadInput) as caught:
            rollbook.init("cartpole", "ppo", dir=tmp_path / "runs", sinks=[], remote=address)
        assert "hunter2" not in str(caught.value)


def test_what_came_damaged_is_refused(tmp_path, bucket):
    from rollbook.remote.pull import pull

    folder = recorded(tmp_path)
    push(folder, bucket)
    place = open_remote(bucket)
    victim = next(entry.key for entry in place.listing("") if "/p/" in entry.key and "metrics-wide" in entry.key)
    place.put(victim, b"x" * len(place.get(victim).data))
    with pytest.raises(errors.Damaged, match="checksum"):
        pull(place, f"cartpole/{folder.name}", tmp_path / "back")
    assert not (tmp_path / "back" / "cartpole" / folder.name / "run.json").exists()


def test_log_takes_no_longer_while_the_store_is_away(tmp_path, bucket, proxy, interpreter):
    """Nothing of shipping is loaded into the training process, so nothing of it can hold up a row."""
    program = (
        "import sys, rollbook\n"
        f"run = rollbook.init('cartpole', 'ppo', dir={str(tmp_path / 'runs')!r}, sinks=[], remote={bucket!r})\n"
        "for step in range(100): run.log({'a': 1.0}, env_step=step)\n"
        "run.finish()\n"
        "print([name for name in sys.modules if name.startswith(('obstore', 'rollbook.remote', 'rollbook.storage'))])\n"
    )
    done = interpreter.run(program, env=os.environ)
    assert done.stdout.strip() == "[]", done.stderr
