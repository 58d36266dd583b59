"""Stores for tests: moto's S3 on a port of its own, and a proxy before it that counts and does harm."""

from __future__ import annotations

import base64
import hmac
import os
import random
import shutil
import socket
import socketserver
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from contextlib import contextmanager
from email.utils import formatdate

from rollbook.schema.addresses import backlog
from waiting import PATIENCE, pause, until

SERVER = """
import functools, logging, sys, threading
from moto.s3.responses import S3Response
from moto.server import ThreadedMotoServer

# moto compares If-Match with what is there and then stores, each request in a thread of its own: two that were compared
# with the same object both hold. A real store decides and stores as one step; so does this one.
def one_at_a_time(method, lock=threading.Lock()):
    @functools.wraps(method)
    def locked(self):
        with lock:
            return method(self)
    return locked

for name in ("put_object", "delete_object"):
    setattr(S3Response, name, one_at_a_time(getattr(S3Response, name)))
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(*server.get_host_and_port(), flush=True)
sys.stdin.read()
"""


def await_shipped(folder):
    """Until the last shipment of this run is in its place: the keeper goes on after `finish` on a slow machine."""
    until(lambda: (said := backlog(folder) or {}).get("done") and said.get("final"), f"{folder} is shipped")


class Moto:
    """An S3 in a process of its own, on a port that was free."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "MOTO_ALLOW_NONEXISTENT_REGION": "true"},
        )
        line = ""
        while ":" not in line and not line.strip().rpartition(" ")[2].isdigit():
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError("moto did not start")
        host, port = line.split()
        self.address = (host, int(port))
        self.url = f"http://{host}:{port}"

    def bucket(self, name):
        signature = "AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=x"
        request = urllib.request.Request(f"{self.url}/{name}", method="PUT", headers={"Authorization": signature})
        urllib.request.urlopen(request, timeout=PATIENCE).read()
        return name

    def close(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()


class Azurite:
    """Azure's emulator of blobs, on a port that was free; everything in memory."""

    account = "devstoreaccount1"
    key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # known to all

    @staticmethod
    def program():
        given = os.environ.get("ROLLBOOK_AZURITE")
        return given if given and os.path.exists(given) else shutil.which("azurite-blob")

    def __init__(self, program):
        self.process = subprocess.Popen(
            [program, "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--blobPort", "0"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.url = ""
        while not self.url:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError("azurite did not start")
            if "listens on http" in line or "listening at http" in line:
                self.url = line[line.index("http") :].strip()
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def container(self, name):
        """Made by a signed request: no light client of ours makes containers."""
        moment = formatdate(usegmt=True)
        told = f"x-ms-date:{moment}\nx-ms-version:2021-08-06\n"
        what = f"/{self.account}/{self.account}/{name}\nrestype:container"
        text = "PUT" + "\n" * 12 + told + what
        signature = base64.b64encode(hmac.new(base64.b64decode(self.key), text.encode(), "sha256").digest()).decode()
        headers = {
            "x-ms-date": moment,
            "x-ms-version": "2021-08-06",
            "Content-Length": "0",
            "Authorization": f"SharedKey {self.account}:{signature}",
        }
        url = f"{self.url}/{self.account}/{name}?restype=container"
        urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers), timeout=PATIENCE).read()
        return name

    def close(self):
        self.process.terminate()
        self.process.wait(PATIENCE)


MOST_HARM = 3


class Faults:
    """What the proxy does to requests. All chances are between 0 and 1; no request meets harm more than three times in
    a row, so that whoever asks again often enough gets through without luck.
    """

    def __init__(self, seed=0):
        self.random = random.Random(seed)
        self.busy = self.reset = self.cut = self.lost = self.stall = 0.0
        self.latency = 0.0
        self.away = False
        self.stalled = threading.Event()
        self.harmed: Counter[tuple[str, str, str]] = Counter()

    def chance(self, request):
        """Where this request falls among the harms; 1: beyond all of them."""
        chance = self.random.random() if self.harmed[request] < MOST_HARM else 1.0
        is_harmed = chance < self.busy + self.reset + self.stall + self.lost + self.cut
        self.harmed[request] = self.harmed[request] + 1 if is_harmed else 0
        return chance


class Proxy:
    """Passes requests on to a server; counts them, and does harm as `faults` says.

    Attributes:
      requests: [(verb, path, bytes of the answer's body)].
    """

    def __init__(self, address, faults=None, port=0):
        self.faults, self.requests, self.lock = faults or Faults(), [], threading.Lock()
        self.upstream = address
        proxy = self

        class Handler(socketserver.StreamRequestHandler):
            timeout = PATIENCE

            def handle(self):
                try:
                    while proxy.pass_on(self):
                        pass
                except (OSError, ValueError):
                    return

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            block_on_close = False
            request_queue_size = 128

        self.server = Server(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def close(self):
        self.faults.stalled.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def clear(self):
        with self.lock:
            self.requests.clear()

    def count(self, verb=None, having=""):
        with self.lock:
            return sum(1 for v, path, _ in self.requests if (verb is None or v == verb) and having in path)

    def received(self, having=""):
        """Bytes of bodies that answers to GETs had."""
        with self.lock:
            return sum(size for v, path, size in self.requests if v == "GET" and having in path)

    def verbs(self):
        with self.lock:
            return Counter(v for v, _, _ in self.requests)

    def pass_on(self, handler):
        """One request; False when the connection is over."""
        head = read_head(handler.rfile)
        if head is None:
            return False
        verb, path, headers = head
        body = read_body(handler.rfile, headers)
        faults = self.faults
        with self.lock:
            chance = faults.chance((verb, path, dict(headers).get("range", "")))
        if faults.latency:
            pause(faults.latency)
        if faults.away:
            with self.lock:
                self.requests.append((verb, path, 0))
            abort(handler.connection)
            return False
        for name, harm in (("busy", self._busy), ("reset", self._reset), ("stall", self._stall)):
            if chance < getattr(faults, name):
                with self.lock:
                    self.requests.append((verb, path, 0))
                return harm(handler)
            chance -= getattr(faults, name)
        lost, cut = chance < faults.lost, faults.lost <= chance < faults.lost + faults.cut
        with socket.create_connection(self.upstream, timeout=PATIENCE) as upstream:
            lines = [f"{verb} {path} HTTP/1.1", *(f"{k}: {v}" for k, v in headers if k.lower() not in _HOP)]
            lines += ["Connection: close", f"Content-Length: {len(body)}"]
            upstream.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
            answer = bytearray()
            while chunk := upstream.recv(1 << 16):
                answer += chunk
        top, _, rest = bytes(answer).partition(b"\r\n\r\n")
        with self.lock:
            self.requests.append((verb, path, len(rest)))
        if lost:
            abort(handler.connection)
            return False
        if verb == "HEAD" or b"chunked" in top.lower():
            handler.wfile.write(bytes(answer))
            return False
        lines = [
            line for line in top.split(b"\r\n") if not line.lower().startswith((b"connection:", b"content-length:"))
        ]
        length = b"Content-Length: %d" % len(rest)
        data = b"\r\n".join([*lines, length, b"", b""]) + rest
        if cut and len(rest) > 1:
            handler.wfile.write(data[: len(data) - len(rest) // 2 - 1])
            handler.wfile.flush()
            abort(handler.connection)
            return False
        handler.wfile.write(data)
        handler.wfile.flush()
        return True

    def _busy(self, handler):
        body = b"<Error><Code>SlowDown</Code></Error>"
        handler.wfile.write(b"HTTP/1.1 503 Slow Down\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        handler.wfile.flush()
        return True

    def _reset(self, handler):
        abort(handler.connection)
        return False

    def _stall(self, handler):
        self.faults.stalled.wait(PATIENCE)
        abort(handler.connection)
        return False


_HOP = {"connection", "content-length", "transfer-encoding", "expect"}


def abort(connection):
    """Reset it: no orderly goodbye."""
    import struct

    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def read_head(file):
    line = file.readline()
    if not line.strip():
        return None
    verb, path, _ = line.decode("latin-1").split(" ", 2)
    headers = []
    while (line := file.readline()) not in (b"\r\n", b""):
        name, _, value = line.decode("latin-1").rstrip("\r\n").partition(":")
        headers.append((name, value.strip()))
    return verb, path, headers


def read_body(file, headers):
    said = {name.lower(): value for name, value in headers}
    if "chunked" in said.get("transfer-encoding", ""):
        body = b""
        while size := int(file.readline().split(b";")[0], 16):
            body += file.read(size)
            file.readline()
        file.readline()
        return body
    return file.read(int(said.get("content-length", 0)))


@contextmanager
def aws(monkeypatch, url):
    """The environment that an AWS tool expects, pointing to a server here."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "AKIASECRETKEYID",
        "AWS_SECRET_ACCESS_KEY": "wJalrSECRETwords",
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    yield


@contextmanager
def azure(monkeypatch, server):
    """The environment that an Azure tool expects, pointing to an emulator."""
    for name in [name for name in os.environ if name.startswith("AZURE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
    monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", server.url)
    yield
