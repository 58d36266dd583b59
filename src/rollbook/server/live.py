"""Live updates: one socket per browser, on which the server reports changes of what is on screen.

Without a listener nothing is checked. With one, a single task checks the folders once a second (runs that are being
written) and every run.json every few seconds. Each socket gets only what it asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import time
from typing import Literal

import anyio.to_thread
import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from rollbook.book.questions import end_of_lines
from rollbook.errors import RollbookError
from rollbook.schema import manifest
from rollbook.schema.endings import resume_line, why_ended
from rollbook.schema.status import ENDED_BADLY
from rollbook.server.runs.page_state import boards_stamp
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.shapes import Refused, plain, words_of
from rollbook.server.shared.state import ServerContext, look_again, stamp_of
from rollbook.server.tables.logs import end_of, log_path, new_lines

log = logging.getLogger("rollbook.server")

_LOOK_SECONDS = 0.5
_RUN_SECONDS = 1.0
_GIVE_BACK_SECONDS = 60.0
"""Curves of live runs are a little longer each time. What the shorter ones took is free, but in pieces: without this,
the memory of a server with 50 live runs grows by half a megabyte a minute."""
_MOST_TOPICS = 500
_MOST_CHANGED = 200
_QUEUE = 1_000
_GONE = 4429


class Watch(msgspec.Struct, tag="watch", tag_field="type", forbid_unknown_fields=True):
    """What is on screen: "runs", "boards", "run:<run>", "log:<run>:<name>". Replaces the message before."""

    topics: list[str]


class Ping(msgspec.Struct, tag="ping", tag_field="type", forbid_unknown_fields=True):
    """Are you there? Answered with the same number."""

    n: int = 0


_decoder = msgspec.json.Decoder(Watch | Ping)


class _Listener:
    """One socket: what it watches, and the messages to send."""

    def __init__(self) -> None:
        self.topics: frozenset[str] = frozenset()
        self.queue: asyncio.Queue[dict[str, object]] = asyncio.Queue(_QUEUE)
        self.logs: dict[str, int] = {}
        self.shown: dict[str, list[object]] = {}  # the last line that was sent of each log
        self.lost = False

    def send(self, message: dict[str, object]) -> None:
        """Queue a message. If the browser does not read, it learns later that it missed something."""
        try:
            self.queue.put_nowait(message)
        except asyncio.QueueFull:
            self.lost = True


class Live:
    """All sockets, and the one task that checks the runs for them.

    Args:
      context: the server's shared state.
    """

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._listeners: set[_Listener] = set()
        self._task: asyncio.Task[None] | None = None
        self._wake: asyncio.Event | None = None
        self._stamps: dict[str, object] = {}
        self._sent_at: dict[str, float] = {}
        self._boards = 0
        self._known: dict[str, str] | None = None
        self._facts_version = -1

    @property
    def is_looking(self) -> bool:
        """Whether the folders are being checked."""
        return self._task is not None and not self._task.done()

    async def serve(self, socket: WebSocket) -> None:
        """One socket, until it is closed."""
        await socket.accept()
        if len(self._listeners) >= self._context.limits.sockets:
            await socket.close(_GONE, "too many sockets")
            return
        listener = _Listener()
        self._listeners.add(listener)
        listener.send({"type": "hello", "time": time.time(), "server": self._context.identity})
        sender = asyncio.create_task(self._send(socket, listener))
        try:
            while True:
                await self._receive(await socket.receive_text(), listener)
        except (WebSocketDisconnect, KeyError, RuntimeError):  # closed; or bytes instead of text
            pass
        finally:
            self._listeners.discard(listener)
            sender.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await sender

    async def _receive(self, text: str, listener: _Listener) -> None:
        try:
            request = _decoder.decode(text)
            if isinstance(request, Ping):
                listener.send({"type": "pong", "n": request.n})
                return
            if len(request.topics) > _MOST_TOPICS:
                raise Refused("too_large", f"{len(request.topics)} topics; at most {_MOST_TOPICS}")
            listener.topics = frozenset(request.topics)
            starts = {name: start for name, start in listener.logs.items() if name in listener.topics}
            for topic in listener.topics:
                if topic.startswith("log:") and topic not in starts:
                    starts[topic] = await anyio.to_thread.run_sync(self._log_size, topic)
            listener.logs = starts
        except (msgspec.DecodeError, ValueError, RecursionError) as err:
            listener.send({"type": "error", "error": {"code": "bad_input", "message": str(err)[:500], "hint": None}})
            return
        except Exception as err:
            listener.send({"type": "error", "error": msgspec.to_builtins(words_of(err))})
            return
        if listener.topics:
            self._look_again()

    def _look_again(self) -> None:
        """Check the folders now and from now on."""
        if not self.is_looking:
            self._wake = asyncio.Event()
            self._task = asyncio.create_task(self._look())
        elif self._wake is not None:
            self._wake.set()

    async def _send(self, socket: WebSocket, listener: _Listener) -> None:
        while True:
            message = await listener.queue.get()
            await socket.send_text(msgspec.json.encode(message).decode())
            if listener.lost and listener.queue.empty():
                listener.lost = False
                listener.send({"type": "runs", "version": "", "live": 0, "total": 0, "changed": None})

    async def _look(self) -> None:
        """Check while there are listeners."""
        given_back = time.monotonic()
        while any(listener.topics for listener in self._listeners):
            try:
                await self._look_once()
            except Exception:  # a folder that vanishes meanwhile must not stop the task
                log.exception("looking at the runs failed")
            if time.monotonic() - given_back >= _GIVE_BACK_SECONDS:
                await anyio.to_thread.run_sync(give_back_memory)
                given_back = time.monotonic()
            assert self._wake is not None
            self._wake.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._wake.wait(), _LOOK_SECONDS)
        self._known = None
        self._stamps.clear()

    async def _look_once(self) -> None:
        topics = frozenset(topic for listener in self._listeners for topic in listener.topics)
        if "runs" in topics or any(topic.startswith("run:") for topic in topics):
            await self._look_at_runs(topics)
        if "boards" in topics:
            stamp = await anyio.to_thread.run_sync(boards_stamp, self._context)
            if self._boards and stamp != self._boards:
                self._broadcast("boards", {"type": "boards"})
            self._boards = stamp or 1
        for topic in sorted(topics):
            if topic.startswith("log:"):
                await self._follow(topic)

    async def _look_at_runs(self, topics: frozenset[str]) -> None:
        context = self._context
        changed = await anyio.to_thread.run_sync(context.catalogue.refresh)
        shot = context.catalogue.snapshot(60.0)
        before = self._known
        self._known = {key: row.status for key, row in shot.rows.items()}
        if before is not None:
            for row in changed:
                was, now = before.get(row.key), row.status
                if was != now:
                    self._broadcast("runs", _status(row, was))
        version = context.facts.version
        if before is not None and (changed or version != self._facts_version):
            names = [row.key for row in changed]
            self._broadcast(
                "runs",
                {
                    "type": "runs",
                    "version": f"{context.identity}.{shot.version}.{version}",
                    "live": shot.live,
                    "total": len(shot.rows),
                    "changed": names if len(names) <= _MOST_CHANGED else None,
                },
            )
        self._facts_version = version
        watched = [
            shot.rows[topic[4:]] for topic in sorted(topics) if topic.startswith("run:") and topic[4:] in shot.rows
        ]
        for row, stamp in await anyio.to_thread.run_sync(_stamps_of, watched):
            known = self._stamps.get(row.key)
            late = time.monotonic() - self._sent_at.get(row.key, 0.0) >= _RUN_SECONDS
            if known is None:
                self._stamps[row.key] = stamp
            elif stamp != known and late:
                self._stamps[row.key] = stamp
                self._sent_at[row.key] = time.monotonic()
                self._broadcast(f"run:{row.key}", {"type": "run", "run": row.key, "time": time.time(), "tables": None})

    async def _follow(self, topic: str) -> None:
        """Send the lines that were added to a log."""
        listeners = [listener for listener in self._listeners if topic in listener.topics]
        for start in {listener.logs.get(topic, 0) for listener in listeners}:
            try:
                part = await anyio.to_thread.run_sync(self._grown, topic, start)
            except (Refused, OSError):
                continue
            if part is None:
                continue
            lines, end, again = part
            _, run, name = topic.split(":", 2)
            for listener in listeners:
                if listener.logs.get(topic, 0) == start:
                    listener.logs[topic] = end
                    if listener.shown.get(topic) != lines[-1:]:
                        listener.shown[topic] = lines[-1:]
                        listener.send(
                            {"type": "log", "run": run, "name": name, "lines": lines, "end": end, "again": again}
                        )

    def _grown(self, topic: str, start: int) -> tuple[list[object], int, bool] | None:
        """Lines that came after a byte, where they end, and whether they replace what is shown: the file is shorter."""
        path = self._log(topic)
        size = os.path.getsize(path)
        if size == start:
            return None
        if size < start:
            end = end_of(path)
            return msgspec.to_builtins(end.lines), end.end, True
        part, unfinished = new_lines(path, start)
        lines = [*part.lines, *([unfinished] if unfinished is not None else [])]
        return (msgspec.to_builtins(lines), part.end, False) if lines else None

    def _log_size(self, topic: str) -> int:
        return end_of_lines(self._log(topic))

    def _log(self, topic: str) -> str:
        parts = topic.split(":", 2)
        if len(parts) != 3:
            raise Refused("bad_input", f"{topic!r:.80} is not a topic", "log:<run>:<name>")
        return log_path(self._context.row(parts[1]), parts[2])

    def _broadcast(self, topic: str, message: dict[str, object]) -> None:
        for listener in self._listeners:
            if topic in listener.topics:
                listener.send(message)


def give_back_memory() -> None:
    """Return free pages to the system (glibc)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _stamps_of(rows: list[RunRow]) -> list[tuple[RunRow, object]]:
    for row in rows:
        look_again(row.folder, is_live=row.is_live)
    return [(row, stamp_of(row.folder)) for row in rows]


def _status(row: RunRow, was: str | None) -> dict[str, object]:
    about = row.about
    try:
        run_json = manifest.read(row.folder)
    except (RollbookError, OSError):
        run_json = manifest.RunJson()
    why = why_ended(run_json, row.status)
    kind: Literal["status"] = "status"
    name, project = (str(about.get(word) or "") for word in ("name", "project"))
    died = row.status in ENDED_BADLY
    return {
        "type": kind,
        "run": row.key,
        "name": plain(name),
        "project": plain(project),
        "seed": plain(about.get("seed")),
        "status": row.status,
        "was": was,
        "time": time.time(),
        "why": None if why is None else plain(why[1]),
        "resume_line": plain(resume_line(run_json)) if died else None,
    }
