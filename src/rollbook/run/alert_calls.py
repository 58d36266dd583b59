"""Sends alerts of a run's health rules to a function, a command or a web address."""

from __future__ import annotations

import json
import os
import threading
import time

from rollbook.errors import BadInput
from rollbook.keeper.rules import alerts_path
from rollbook.system.files import exists
from rollbook.system.tuning import TUNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias

    Receiver: TypeAlias = "Callable[[dict[str, Any]], object] | str | Sequence[str]"

SEND_SECONDS = 10.0
"""Time limit for a command or a web address."""

MOST_AN_HOUR = 30
"""Limit of alerts per hour for one command or address; further ones are counted."""

_PAUSE_SECONDS = 1.0
_LEVELS = {"note": ("note", "warn", "fail"), "warn": ("warn", "fail"), "fail": ("fail",)}
_ADDRESSES = ("http://", "https://")
_CAUSE = "on_alert"


class AlertCalls:
    """A thread that checks once a second for new alerts of the keeper's rules, and sends them.

    Args:
      folder: the run's folder.
      about: what each alert contains about the run.
      count: takes (cause, how often, message) for alerts that could not be sent.
    """

    def __init__(self, folder: str, about: dict[str, Any], count: Callable[[str, int, str], None]) -> None:
        self._path, self._about, self._count = alerts_path(folder), about, count
        self._receivers: list[tuple[tuple[str, ...], Callable[[dict[str, Any]], object]]] = []
        self._at = os.path.getsize(self._path) if exists(self._path) else 0  # skip alerts of earlier attempts
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="rollbook-alerts", daemon=True)

    def add(self, receiver: Receiver, level: str) -> None:
        """Send the next and all later alerts to `receiver`.

        Raises:
          BadInput: the level does not exist, or the receiver cannot be called.
        """
        send = _sender(receiver, level)
        call = send if callable(receiver) else self._limited(send)
        self._receivers.append((_LEVELS[level], call))
        if self._thread.ident is None:
            self._thread.start()

    def end(self) -> None:
        """The run has ended: send the remaining alerts, but do not wait for long."""
        self._ending.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(TUNING.alert_end_seconds)

    def _watch(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._ending.wait(_PAUSE_SECONDS)
            for alert in self._new():
                for levels, call in list(self._receivers):
                    if alert.get("level") in levels:
                        try:
                            call(dict(alert))
                        except BaseException as err:
                            self._count(_CAUSE, 1, f"an alert was not passed on: {type(err).__name__}: {err}")

    def _new(self) -> list[dict[str, Any]]:
        try:
            with open(self._path, "rb") as file:
                file.seek(self._at)
                whole, newline, _rest = file.read().rpartition(b"\n")
        except OSError:
            return []
        self._at += len(whole) + len(newline)
        alerts = []
        for line in whole.splitlines():
            try:
                alert = json.loads(line)
            except ValueError:
                continue
            if isinstance(alert, dict):
                alerts.append({**self._about, **alert})
        return alerts

    def _limited(self, send: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any]], None]:
        sent: list[float] = []

        def call(alert: dict[str, Any]) -> None:
            now = time.monotonic()
            sent[:] = [moment for moment in sent if now - moment < 3600]
            if len(sent) >= MOST_AN_HOUR:
                words = f"more than {MOST_AN_HOUR} alerts in an hour; the others are in the run's alerts"
                self._count(_CAUSE, 1, words)
                return
            sent.append(now)
            send(alert)

        return call


def asked_receiver(alerts: object) -> tuple[Any, str]:
    """The receiver of alerts and its minimum level, from `init(alerts=…)` or else $ROLLBOOK_ALERTS.

    Raises:
      BadInput: the receiver cannot be called.
    """
    level: object = "warn"
    if alerts is None:
        given = os.environ["ROLLBOOK_ALERTS"].strip()
        receiver: Any = given if given.startswith(_ADDRESSES) else _words(given)
    elif isinstance(alerts, dict):
        unknown = [name for name in alerts if name not in ("to", "level")]
        if unknown or "to" not in alerts:
            raise BadInput(f"alerts={alerts!r:.200}: pass {{'to': …, 'level': 'note', 'warn' or 'fail'}}")
        receiver, level = alerts["to"], alerts.get("level", level)
    else:
        receiver = alerts
    _sender(receiver, level)
    return receiver, str(level)


def _words(command: str) -> list[str]:
    import shlex

    try:
        return shlex.split(command)
    except ValueError as err:
        raise BadInput(f"$ROLLBOOK_ALERTS={command!r:.200} cannot be read as a command: {err}") from None


def _sender(receiver: Any, level: object) -> Callable[[dict[str, Any]], object]:
    """A function that sends one alert."""
    if not isinstance(level, str) or level not in _LEVELS:
        raise BadInput(f"level={level!r}: alerts have 'note', 'warn' and 'fail'")
    if callable(receiver):
        call: Callable[[dict[str, Any]], object] = receiver
        return call
    if isinstance(receiver, str) and receiver.startswith(_ADDRESSES):
        import urllib.request  # noqa: F401 - here, since a thread that imports blocks a fork

        return lambda alert: _post(receiver, alert)
    if isinstance(receiver, (list, tuple)) and receiver and all(isinstance(word, str) for word in receiver):
        if receiver[0].startswith(_ADDRESSES):
            raise BadInput(f"alerts to {receiver!r:.200}: a list is a command; pass the address itself")
        import subprocess  # noqa: F401 - as above

        return lambda alert: _run(list(receiver), alert)
    raise BadInput(f"alerts to {receiver!r:.200}: pass a function, an http(s) address, or a command as a list of words")


def _post(address: str, alert: dict[str, Any]) -> None:
    """JSON to a web address; `text` is what chat services show."""
    from urllib.request import Request, urlopen

    text = f"{alert['project']}/{alert['name']}: {alert['level']}: {alert['message']}"
    body = json.dumps({"text": text, **alert}).encode()
    request = Request(address, body, {"Content-Type": "application/json"}, method="POST")
    with urlopen(request, timeout=SEND_SECONDS):
        pass


def _run(words: list[str], alert: dict[str, Any]) -> None:
    """A command, with the alert as JSON on its standard input."""
    import subprocess

    subprocess.run(words, input=json.dumps(alert).encode(), timeout=SEND_SECONDS, check=True, stdout=subprocess.DEVNULL)
