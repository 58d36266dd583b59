"""A run of a week, by counts alone: what seals, merges and ships decides over sizes, and no byte is moved."""

from __future__ import annotations

import pytest

from rollbook.remote.commit import LocalFile, Named, RemoteManifest, plan
from rollbook.remote.merging import SHARED_ROWS, SMALL_BYTES, groups_of
from rollbook.remote.push import _MANY_SMALL, _MERGE_BYTES

LOOKS, HOURS = 28, 6  # what seals looks each minute and what ships each 20 s; here it is each six hours
BYTES_A_ROW = 16
LONG, THEIR_HOUR = 4, 800_000  # four writers that stay: 890 rows a second
COMING, THEIR_ROWS = 60, 6_600  # and each hour sixty that come, log a little and go: 110 rows a second
TIERS = [8192 * 8**n for n in range(5)]
LARGEST = 8 * 1024 * 1024


def tier(rows: int) -> int:
    return next((n for n, limit in enumerate(TIERS) if rows < limit * 8), len(TIERS))


def merged_here(parts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What sealing makes of the parts of one stream: eight neighbours of a size become one."""
    again = True
    while again:
        again = False
        start = 0
        for stop in range(1, len(parts) + 1):
            sizes = {tier(b - a + 1) for a, b in parts[start : stop + 1]}
            if stop == len(parts) or len(sizes) > 1:
                if stop - start >= 8 and parts[start][1] - parts[start][0] + 1 < LARGEST:
                    parts = [*parts[:start], (parts[start][0], parts[stop - 1][1]), *parts[stop:]]
                    again = True
                    break
                start = stop
    return parts


def part(writer: str, first: int, last: int) -> LocalFile:
    cover = ("metrics", writer, 0, "S000", first, last)
    size = (last - first + 1) * BYTES_A_ROW
    path = f"data/metrics/wide/{writer}.L00.S000.{first}.parquet"
    return LocalFile(path, size, f"{writer} {first} {last}", bytes, (cover,), 0, "", size)


def named(file: LocalFile) -> Named:
    return Named(file.path, file.size, file.sha256, file.covers, 0, "", file.size)


@pytest.mark.long
def test_a_week_at_a_thousand_rows_a_second_is_some_hundred_pieces_and_few_small_ones():
    manifest = RemoteManifest(0, {}, {})
    streams: dict[str, list[tuple[int, int]]] = {f"long{n}": [] for n in range(LONG)}
    gone: dict[str, LocalFile] = {}
    bytes_sent = most = merges = 0
    for hour in range(0, LOOKS * HOURS, HOURS):
        for writer, parts in streams.items():
            first = parts[-1][1] + 1 if parts else 1
            hours = [(first + n * THEIR_HOUR, first + (n + 1) * THEIR_HOUR - 1) for n in range(HOURS)]
            streams[writer] = merged_here([*parts, *hours])
        for n in range(HOURS * COMING):
            file = part(f"short{hour}x{n}", 1, THEIR_ROWS)
            gone[file.path] = file
        files = {f.path: f for w, parts in streams.items() for f in (part(w, *each) for each in parts)} | gone
        proposal = plan(manifest.files, files)
        bytes_sent += sum(file.size for file in proposal.uploads)
        manifest = RemoteManifest(0, {**proposal.kept, **{f.path: named(f) for f in proposal.uploads}}, {})
        while group := next(
            (g for g in groups_of(manifest, set(streams), _MERGE_BYTES) if len(g) >= _MANY_SMALL), None
        ):
            chosen = [manifest.files[path] for path in group]
            covers = tuple(cover for one in chosen for cover in one.covers)
            assert max(c[5] - c[4] + 1 for c in covers) < SHARED_ROWS
            size = sum(one.size for one in chosen)
            rest = {path: one for path, one in manifest.files.items() if path not in group}
            merges += 1
            path = f"data/metrics/long/merged.{1_000_000 + merges}.parquet"
            manifest = RemoteManifest(0, {**rest, path: Named(path, size, f"{merges}", covers, 0, "", size)}, {})
            bytes_sent += size
        most = max(most, len(manifest.files))
    rows = sum(c[5] - c[4] + 1 for one in manifest.files.values() for c in one.covers)
    assert rows == LOOKS * HOURS * (LONG * THEIR_HOUR + COMING * THEIR_ROWS)
    small = [one for one in manifest.files.values() if one.stored < SMALL_BYTES]
    assert most < 400
    assert len(small) < 2 * _MANY_SMALL
    assert bytes_sent < 5 * rows * BYTES_A_ROW  # what is merged goes out again, each row some times
