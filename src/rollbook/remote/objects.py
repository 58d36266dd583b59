"""Object stores through obstore: S3 and compatible ones, Google Cloud Storage, Azure, and memory.

Credentials and regions come from the environment, the configuration files of the cloud's tools, or the machine's role.
This module neither stores nor prints them.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from rollbook.errors import (
    BadInput,
    CredentialsExpired,
    NoPermission,
    NoSuchBucket,
    RemoteError,
    WrongRegion,
)
from rollbook.remote.remote import WORKERS
from rollbook.remote.steps import Away, ListedObject, Missing, Refused, Stored, Unknown
from rollbook.system.optional import need
from rollbook.system.tuning import TUNING

T = TypeVar("T")

_READS = 6
_memories: dict[str, Any] = {}
_PLAIN = re.compile(r"[A-Za-z0-9_./-]+")
"""Names that every store writes and orders in the same way."""
_CODE = re.compile(r"<(?:Code|code)>([A-Za-z0-9]+)</")
_CAUSE = re.compile(r"kind: (Connect|Timeout)\b")
_STATUS = re.compile(r"status code: (\d{3})")

_EXPIRED = frozenset(
    {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired", "RequestTimeTooSkewed"}
)
_REGION = frozenset(
    {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "TemporaryRedirect"}
)
_NO_BUCKET = frozenset({"NoSuchBucket", "ContainerNotFound", "InvalidBucketName"})
_DENIED = frozenset(
    {
        "AccessDenied",
        "AllAccessDisabled",
        "AccountProblem",
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "InvalidToken",
        "AuthenticationFailed",
        "AuthorizationFailure",
        "AuthorizationPermissionMismatch",
        "Forbidden",
    }
)


class ObjectRemote:
    """A bucket, or a prefix in one. See `remote.Remote`.

    Args:
      url: its address.
      store: an obstore store.
      bucket: for messages.
      prefix: "" or ends with "/".
      patience: seconds within which an answer that breaks off is requested again.
    """

    def __init__(self, url: str, store: Any, bucket: str, prefix: str, patience: float = 0.0) -> None:
        self.url, self._store, self._bucket, self._prefix = url, store, bucket, prefix
        self._patience = patience
        import obstore
        from obstore.store import GCSStore, S3Store

        self._obstore = obstore
        # Other stores list everything and skip what comes before, or have no order, like S3's directory buckets.
        self._begins_anywhere = isinstance(store, (S3Store, GCSStore)) and not bucket.endswith("--x-s3")

    def get(self, key: str, into: str = "") -> Stored:
        """See `remote.Remote`."""

        def call() -> Stored:
            answer = self._obstore.get(self._store, self._prefix + key)
            etag = str(answer.meta["e_tag"])
            if not into:
                return Stored(bytes(answer.bytes()), etag, answer.meta["last_modified"].timestamp())
            with open(into, "wb") as file:
                for chunk in answer.stream(min_chunk_size=1024 * 1024):
                    file.write(chunk)
            return Stored(b"", etag)

        return self._read(key, call)

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """See `remote.Remote`."""

        def call() -> list[bytes]:
            if len(ranges) == 1:
                start, stop = ranges[0]
                data = self._obstore.get_range(self._store, self._prefix + key, start=start, end=stop)
                return [bytes(data)]
            starts, stops = [start for start, _ in ranges], [stop for _, stop in ranges]
            parts = self._obstore.get_ranges(self._store, self._prefix + key, starts=starts, ends=stops, coalesce=0)
            return [bytes(data) for data in parts]

        return self._read(key, call)

    def _read(self, key: str, call: Callable[[], T]) -> T:
        """What a reading call returns. obstore does not retry an answer that breaks off in the middle, so we do."""
        until = time.monotonic() + self._patience
        for attempt in range(_READS):
            try:
                return call()
            except FileNotFoundError as err:
                raise self._missing(err, key) from None
            except Exception as err:
                raised = self._translated(err, Away)
                if not isinstance(raised, Away) or attempt == _READS - 1 or time.monotonic() >= until:
                    raise raised from None
            time.sleep(0.05 * 2**attempt)
        raise AssertionError("the last attempt returns or raises")

    def put(self, key: str, data: object, *, create: bool = False, etag: str | None = None) -> str:
        """See `remote.Remote`."""
        mode: Any = "create" if create else {"e_tag": etag} if etag is not None else "overwrite"
        source: Any = data
        if isinstance(data, (str, os.PathLike)):
            from pathlib import Path

            source = Path(data)
        try:
            return str(self._obstore.put(self._store, self._prefix + key, source, mode=mode)["e_tag"])
        except FileNotFoundError as err:
            raise self._missing(err, key) from None
        except Exception as err:
            if type(err).__name__ in ("AlreadyExistsError", "PreconditionError", "FileExistsError"):
                raise Refused(key) from None
            raise self._translated(err, Unknown) from None

    def listing(self, prefix: str, known: Sequence[str] = ()) -> Iterator[ListedObject]:
        """See `remote.Remote`."""
        between = known[TUNING.listed_names - 1 : -1 : TUNING.listed_names] if self._begins_anywhere else ()
        cuts = ["", *(name for name in between if _PLAIN.fullmatch(self._prefix + name)), ""]

        def stretch(after: str, last: str) -> list[ListedObject]:
            return self._read(prefix, lambda: self._listed(prefix, after, last))

        if len(cuts) == 2:
            yield from stretch("", "")
            return
        from rollbook.system.daemon_threads import DaemonThreads

        with DaemonThreads(WORKERS, "rollbook-remote") as pool:
            for entries in pool.map(stretch, cuts, cuts[1:]):
                yield from entries

    def _listed(self, prefix: str, after: str, last: str) -> list[ListedObject]:
        """Entries with the prefix, after `after` and up to `last`; "" is no limit."""
        whole = self._prefix + prefix
        # The store only lists folders; names with the prefix are picked from their folder.
        folder = whole.rpartition("/")[0]
        offset = self._prefix + after if after else None
        entries: list[ListedObject] = []
        for page in self._obstore.list(self._store, folder or None, offset=offset, chunk_size=TUNING.listed_names):
            for item in page:
                if item["path"].startswith(whole):
                    key, changed = item["path"][len(self._prefix) :], item["last_modified"].timestamp()
                    if last and key > last:
                        return entries
                    entries.append(ListedObject(key, int(item["size"]), str(item["e_tag"]), changed))
            if last and entries and entries[-1].key == last:  # otherwise another page would be requested
                return entries
        return entries

    def folders(self, prefix: str) -> list[str]:
        """See `remote.Remote`."""
        whole = (self._prefix + prefix).rstrip("/")
        listed = self._read(prefix, lambda: self._obstore.list_with_delimiter(self._store, whole or None))
        return [path.rstrip("/").rpartition("/")[2] for path in listed["common_prefixes"]]

    def delete(self, key: str) -> None:
        """See `remote.Remote`."""
        try:
            self._obstore.delete(self._store, self._prefix + key)
        except FileNotFoundError as err:
            if isinstance(raised := self._missing(err, key), RemoteError):
                raise raised from None
        except Exception as err:
            raise self._translated(err, Unknown) from None

    def _missing(self, err: Exception, key: str) -> Exception:
        return self._translated(err, Missing) if _code(str(err)) in _NO_BUCKET else Missing(key)

    def _translated(self, err: Exception, otherwise: type[Exception]) -> Exception:
        """The error that describes the problem. Requests and their headers are not passed on."""
        text, kind = str(err), type(err).__name__
        code = _code(text)
        status = match[1] if (match := _STATUS.search(text)) else ""
        where = f"{self.url}: the store answers {code or status or kind}"
        if code in _NO_BUCKET:
            return NoSuchBucket(
                f"{where}. There is no bucket {self._bucket!r}. Make it, or correct the address; buckets are made "
                "by the "
                "tools of the cloud, not by rollbook"
            )
        if code in _EXPIRED:
            return CredentialsExpired(
                f"{where}. Get a new token and set the same variables again; nothing is lost meanwhile"
            )
        if code in _REGION or status in ("301", "307") or "Received redirect" in text:
            return WrongRegion(
                f"{where}. The bucket {self._bucket!r} is in another region: set AWS_REGION to that of the bucket"
            )
        if code in _DENIED or kind in ("PermissionDeniedError", "UnauthenticatedError") or status in ("401", "403"):
            return NoPermission(
                f"{where}. The credentials in the environment may not do this. They need to list, read, write and "
                "delete "
                f"below {self.url}"
            )
        if "o credentials" in text or "169.254.169.254" in text or "169.254.170" in text:
            return NoPermission(
                f"{self.url}: no credentials were found. Set those of the cloud's own tools, such as "
                "AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
            )
        if code or status:
            return otherwise(f"{where}. It is busy or out of order; try again later")
        cause = match[1] if (match := _CAUSE.search(text)) else ""
        why = {"Connect": "it cannot be connected to", "Timeout": "it took too long"}.get(cause, "the answer broke off")
        return otherwise(
            f"{self.url}: the store gives no answer ({why}). Look at the network, at the address, and at the endpoint "
            "in the environment (AWS_ENDPOINT_URL) if there is one; or try again later"
        )


def _code(text: str) -> str:
    match = _CODE.search(text)
    return match[1] if match else ""


def open_objects(url: str, scheme: str, bucket: str, prefix: str, patience: float) -> ObjectRemote:
    """The remote behind an address.

    Args:
      patience: seconds that a call is retried for.
    Raises:
      BadInput: the store's configuration in the environment makes no sense. MissingExtra: obstore is not installed.
    """
    store = need("obstore.store", extra="cloud", why=f"a remote such as {scheme}://…")
    if scheme == "memory":
        return ObjectRemote(url, _memories.setdefault(bucket, store.MemoryStore()), bucket, prefix)
    options: dict[str, Any] = {
        "client_options": {"timeout": f"{max(2, min(30, int(patience)))}s", "connect_timeout": "3s"},
        "retry_config": {
            "max_retries": 10,
            "backoff": {
                "init_backoff": timedelta(milliseconds=50),
                "max_backoff": timedelta(seconds=2),
                "base": 2,
            },
            "retry_timeout": timedelta(seconds=patience),
        },
    }
    if any(os.environ.get(name, "").startswith("http://") for name in _ENDPOINTS):
        options["client_options"]["allow_http"] = True
    try:
        if scheme == "s3":
            return ObjectRemote(url, store.S3Store(bucket, **_aws(), **options), bucket, prefix, patience)
        if scheme == "gs":
            return ObjectRemote(url, store.GCSStore(bucket, **options), bucket, prefix, patience)
        return ObjectRemote(url, store.AzureStore(bucket, **options), bucket, prefix, patience)
    except Exception as err:
        raise BadInput(
            f"{url}: the settings of this store in the environment cannot be used ({type(err).__name__})"
        ) from None


_ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT", "AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")


def _aws() -> dict[str, object]:
    """What AWS tools take from their configuration files, where the environment does not set it."""
    settings: dict[str, object] = {}
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint:
        settings["endpoint"] = endpoint
    profile = os.environ.get("AWS_PROFILE") or "default"
    if "AWS_ACCESS_KEY_ID" not in os.environ:
        path = os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or os.path.expanduser("~/.aws/credentials")
        section = _section(path, profile)
        if "aws_access_key_id" in section and "aws_secret_access_key" in section:
            settings["access_key_id"] = section["aws_access_key_id"]
            settings["secret_access_key"] = section["aws_secret_access_key"]
            if "aws_session_token" in section:
                settings["session_token"] = section["aws_session_token"]
    if not (os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")):
        path = os.environ.get("AWS_CONFIG_FILE") or os.path.expanduser("~/.aws/config")
        region = _section(path, profile if profile == "default" else f"profile {profile}").get("region")
        settings["region"] = region or "us-east-1"
    return settings


def _section(path: str, name: str) -> dict[str, str]:
    import configparser

    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, OSError, UnicodeDecodeError):
        return {}
    return dict(parser.items(name)) if parser.has_section(name) else {}
