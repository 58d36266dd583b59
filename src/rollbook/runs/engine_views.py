"""SQL views of the tables of many runs, for a DuckDB without rollbook: see `view_sql`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from rollbook.errors import BadInput
from rollbook.runs.catalog import open as open_runs
from rollbook.schema import manifest
from rollbook.schema.addresses import is_address, parts_of
from rollbook.schema.clocks import STANDARD
from rollbook.schema.expressions import literal, quoted
from rollbook.schema.run_files import COLUMNS_FILE, LONG, RESERVED, WIDE, table_names
from rollbook.system.files import own_files

_FIELDS = ("project", "run", "run_name", "run_seed")
_FORMS = (f"metrics/{WIDE}", f"metrics/{LONG}")


def view_sql(root: str | os.PathLike[str]) -> str:
    """SQL for the views `writers`, `abandoned`, `metrics` (one row per value: `key`, `value`) and one per other table.

    Rows abandoned by rewinds are left out. Each row has the columns `project`, `run`, `run_name` and `run_seed`.

    Args:
      root: a folder of runs, a project or a run in it, or the address of a remote.
    Raises:
      BadInput: nothing is sealed there, or DuckDB would read the path as a pattern.
    """
    text = os.fspath(root)
    folders = [str(row["path"]) for row in open_runs(text).rows()]
    sealed = _of_remote(folders) if is_address(text) else _of_folder(os.path.abspath(text), folders)
    missing = [name for name in (*_FORMS, "writers", "abandoned") if name not in sealed.files]
    if missing:
        raise BadInput(
            f"views of {text!r}: no run there has data/{missing[0]}.",
            "`rollbook seal RUN` makes it, also of runs that an older rollbook sealed",
        )
    tables = [table for table in sealed.files if table not in (*_FORMS, "writers", "abandoned")]
    views = [
        f"create or replace view writers as\n  {_read(sealed.files['writers'])};",
        f"create or replace view abandoned as\n  {_read(sealed.files['abandoned'])};",
        _metrics(sealed),
        *(_table(table, sealed.files[table]) for table in sorted(tables)),
    ]
    head = f"-- The tables of the runs below {' '.join(text.split())}, printed by: rollbook views\n"
    return head + sealed.prelude + "\n".join(views) + "\n"


class _Sealed(NamedTuple):
    """The sealed files below a root.

    Attributes:
      files: table -> names or patterns of its files; for metrics by form.
      clocks: the clocks that are columns of the files.
      prelude: SQL that gives DuckDB access to them.
    """

    files: dict[str, list[str]]
    clocks: list[str]
    prelude: str


def _read(paths: Iterable[str]) -> str:
    listed = ", ".join(literal(path) for path in paths)
    return f"from read_parquet([{listed}], union_by_name = true)"


def _beside(rows: str) -> str:
    """Rows that are not abandoned, with their run."""
    fields = ", ".join(f"w.{name}" for name in _FIELDS)
    return (
        f"  select {fields}, r.* from {rows} r\n"
        "  anti join abandoned a on r.writer = a.writer and r.lane = a.lane and r.seq = a.seq\n"
        "  left join (select distinct on (writer) * from writers) w on r.writer = w.writer"
    )


def _table(table: str, paths: Iterable[str]) -> str:
    return f"create or replace view {quoted(table)} as\n{_beside(f'({_read(paths)})')};"


def _metrics(sealed: _Sealed) -> str:
    """Both forms of metrics as one: one row per value."""
    fixed = list(dict.fromkeys(["time", *sealed.clocks, *RESERVED]))
    names = ", ".join(map(quoted, fixed))
    wide, long = (_read(sealed.files[form]) for form in _FORMS)
    values = f"select {names}, columns(* exclude ({names}))::double from ({wide})"
    lines = f"select * from (unpivot ({values}) on columns(* exclude ({names})) into name key value value)"
    rare = f"select {names}, key, coalesce(value, integer::double, digits::double) as value from ({long})"
    bare = f"regexp_replace(key, '^(value/)+', '') in ({', '.join(map(literal, fixed))})"
    named = f"case when {bare} and key like 'value/%' then substr(key, 7) else key end as key"
    both = f"(select * replace ({named}) from ({lines}) union all by name {rare})"
    return f"create or replace view metrics as\n{_beside(both)};"


def _of_folder(root: str, folders: list[str]) -> _Sealed:
    """Patterns, which also match the files of later runs."""
    import pyarrow.parquet as pq

    if any(letter in root for letter in ("*?[" if os.sep == "\\" else "*?[\\")):
        raise BadInput(
            f"views of {root!r}: DuckDB would take the path for a pattern, or find nothing.",
            "Use a name without * ? [ and \\",
        )
    files: dict[str, list[str]] = {}
    clocks = dict.fromkeys(STANDARD)
    for folder in folders:
        depth = 0 if folder == root else os.path.relpath(folder, root).count(os.sep) + 1
        data = root.replace(os.sep, "/") + "/*" * depth + "/data"
        tables = [table for table in table_names(folder) if table != "metrics"]
        for name in (*_FORMS, *tables):
            if any(file.endswith(".parquet") for file in own_files(os.path.join(folder, "data", name))):
                _add(files, name, f"{data}/{name}/*.parquet")
        for name in ("writers", "abandoned"):
            if os.path.isfile(os.path.join(folder, "data", f"{name}.parquet")):
                _add(files, name, f"{data}/{name}.parquet")
        columns = os.path.join(folder, "data", _FORMS[1], COLUMNS_FILE)
        if os.path.isfile(columns):
            clocks.update(dict.fromkeys(_clocks(manifest.look(folder), pq.read_schema(columns).names)))
    return _Sealed(files, list(clocks), "")


def _add(files: dict[str, list[str]], table: str, name: str) -> None:
    if name not in files.setdefault(table, []):
        files[table].append(name)


def _clocks(about: manifest.RunJson, columns: Iterable[str]) -> list[str]:
    """The clocks of a run that its files have."""
    known = set(columns)
    return [clock for clock in about.clocks if clock in known]


def _of_remote(folders: list[str]) -> _Sealed:
    """The pieces that the manifests list."""
    import json

    import pyarrow as pa
    import pyarrow.parquet as pq

    from rollbook.remote import perform
    from rollbook.remote.commit import Commits
    from rollbook.remote.views import address_of, remote_of

    files: dict[str, list[str]] = {}
    clocks = dict.fromkeys(STANDARD)
    prelude = ""
    for folder in folders:
        url, run = address_of(folder)
        scheme, bucket, prefix = parts_of(url)
        head = prefix if scheme == "file" else f"{scheme}://{'/'.join(name for name in (bucket, prefix) if name)}"
        remote, prelude = remote_of(url), _secret(scheme)
        for shipped in perform(Commits(f"{run}/", "").origins(), remote).values():
            for path, file in sorted(shipped.files.items()):
                table = _table_of(path)
                if table:
                    _add(files, table, f"{head}/{run}/{file.piece}")
                if path == f"data/{_FORMS[1]}/{COLUMNS_FILE}":
                    names = pq.read_schema(pa.BufferReader(remote.get(f"{run}/{file.piece}").data)).names
                    about = manifest.RunJson.of(json.loads(remote.get(f"{run}/run.json").data))
                    clocks.update(dict.fromkeys(_clocks(about, names)))
    return _Sealed(files, list(clocks), prelude)


def _table_of(path: str) -> str:
    """The table of a file of a run; "" for other files."""
    data, _, rest = path.partition("/")
    if data != "data" or not rest.endswith(".parquet"):
        return ""
    table = rest.rpartition("/")[0] or rest.removesuffix(".parquet")
    return "" if table.partition("/")[0] in ("fills", "marks", "aside", "pyramid") or table == "metrics" else table


_SECRET = "create or replace secret rollbook (type {}, provider credential_chain{});\n"


def _secret(scheme: str) -> str:
    """DuckDB's access to a remote: its extension, and credentials from the usual sources of that cloud."""
    if scheme == "az":
        return "install azure; load azure;\n" + _SECRET.format("azure", "")
    if scheme == "gs":
        return (
            "install httpfs; load httpfs;\n-- and your HMAC keys: create secret (type gcs, key_id '…', secret '…');\n"
        )
    if scheme != "s3":
        return ""
    endpoint = urlsplit(os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or "")
    more = ""
    if endpoint.netloc:
        ssl = "true" if endpoint.scheme == "https" else "false"
        more = f", endpoint {literal(endpoint.netloc.rpartition('@')[2])}, use_ssl {ssl}, url_style 'path'"
    return "install httpfs; load httpfs; install aws; load aws;\n" + _SECRET.format("s3", more)
