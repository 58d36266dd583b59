"""What repair saves, column by column and row by row, and what is said for ever of the rest."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import damaged_runs
import rollbook
from cases import some_of
from damaged_runs import KINDS, damage, of_book, readable
from forked_programs import forked
from rollbook.book.book import Book
from rollbook.book.repair import join, repair, verify
from rollbook.errors import BadInput, Damaged, RollbookError, RollbookWarning
from rollbook.journal import format as layout
from rollbook.storage import seal
from waiting import PATIENCE


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, damaged_runs.Values]]:
    """A run of each kind, and its values."""
    root = tmp_path_factory.mktemp("originals")
    runs = {kind: damaged_runs.make(kind, root) for kind in KINDS}
    return {kind: (folder, of_book(folder)) for kind, folder in runs.items()}


def copied(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / folder.name))


def part_of(folder: Path, pattern: str = "data/metrics/*/*.parquet") -> Path:
    return max(folder.glob(pattern), key=lambda path: path.stat().st_size)


def break_column(part: Path, column: str) -> None:
    """Change one byte in the middle of a column's last page."""
    data = bytearray(part.read_bytes())
    footer = pq.ParquetFile(part).metadata
    for group in (footer.row_group(i) for i in range(footer.num_row_groups)):
        for chunk in (group.column(i) for i in range(group.num_columns)):
            if chunk.path_in_schema == column:
                begin = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
                data[begin + chunk.total_compressed_size - 5] ^= 0xFF
    part.write_bytes(data)


def said(folder: Path) -> list[str]:
    """What verify, problems() and `rollbook show` say, if they all say the same."""
    texts = verify(folder)
    assert texts == Book(folder).problems() == Book(folder).problems(deep=False)
    return texts


@pytest.mark.parametrize("column", some_of(["entropy", "time", "seq", "env_step", "loss"], 4))
def test_a_damaged_column_costs_itself_and_no_other(
    originals: dict[str, tuple[Path, damaged_runs.Values]], tmp_path: Path, column: str
) -> None:
    folder = copied(originals["sealed"][0], tmp_path)
    before = Book(folder).metrics(["loss", "entropy", "count"], attempts="all")
    break_column(part_of(folder), column)
    assert verify(folder) != []
    repair(folder)
    after = Book(folder).metrics(["loss", "entropy", "count"], attempts="all")
    assert after.num_rows == before.num_rows
    for name in set(before.column_names) - {column}:
        assert Counter(after[name].to_pylist()) == Counter(before[name].to_pylist()), name
    assert f"{column} in" in said(folder)[0]
    assert repair(folder) == ["nothing had to be done"]
    shutil.rmtree(folder / "data" / "aside")
    assert len(said(folder)) == 1, "also when the damaged file is thrown away"


def test_of_a_merged_file_every_sound_column_stays(
    originals: dict[str, tuple[Path, damaged_runs.Values]], tmp_path: Path
) -> None:
    folder = copied(originals["small"][0], tmp_path)
    part = part_of(folder, "data/metrics/long/merged.*.parquet")
    truth = of_book(folder)
    break_column(part, "writer")
    repair(folder)
    assert of_book(folder) == truth
    assert "writer in" in said(folder)[0]


def test_a_part_whose_description_is_damaged_is_read_by_its_columns(
    originals: dict[str, tuple[Path, damaged_runs.Values]], tmp_path: Path
) -> None:
    folder, truth = copied(originals["sealed"][0], tmp_path), originals["sealed"][1]
    part = part_of(folder)
    part.write_bytes(part.read_bytes().replace(b'"group"', b'"grouq"'))
    assert verify(folder) != []
    repair(folder)
    assert of_book(folder) == truth
    assert "the description of its content" in said(folder)[0]


NAMES = ["loss", "time", "seq", "env_step", "entropy"]


@pytest.mark.parametrize(
    ("name", "is_described"),
    some_of(
        [(name, is_described) for name in NAMES for is_described in (True, False)],
        lambda case: case[1] == (NAMES.index(case[0]) % 2 > 0),
    ),
)
def test_a_damaged_name_of_a_column_costs_nothing_where_the_file_says_it_again(
    originals: dict[str, tuple[Path, damaged_runs.Values]], tmp_path: Path, name: str, is_described: bool
) -> None:
    original, truth = originals["sealed"]
    data = part_of(original).read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    places = [found.start() for found in re.finditer(re.escape(name.encode()), data[footer:])]
    in_schema_and_row_groups = [at for at in places if data[footer + at - 1] == len(name)]
    assert len(in_schema_and_row_groups) >= 2
    for at in in_schema_and_row_groups[:2]:
        folder = copied(original, tmp_path / str(at))
        hurt = bytearray(data)
        hurt[footer + at] ^= 2
        if not is_described:
            hurt[data.index(b"rollbook", footer)] ^= 2
        part_of(folder).write_bytes(hurt)
        repair(folder, force=True)
        assert of_book(folder) == truth, at


@pytest.mark.parametrize("hurt", ["cut to half", "a blank page", "garbage"])
def test_a_damaged_segment_is_named_by_every_reader_and_its_sound_rows_are_read(
    originals: dict[str, tuple[Path, damaged_runs.Values]], tmp_path: Path, hurt: str
) -> None:
    original, truth = originals["killed"]
    folder = copied(original, tmp_path)
    segment = max(folder.glob("data/journal/*/L00.S000.*.seg"), key=lambda path: path.read_bytes().count(0) * -1)
    data = bytearray(segment.read_bytes())
    if hurt == "cut to half":
        del data[len(data) // 2 :]
    else:
        data[8192:12288] = bytes(4096) if hurt == "a blank page" else random.Random(1).randbytes(4096)
    segment.write_bytes(data)
    need = readable(folder, original)
    for step in ("as it is", "sealed", "repaired"):
        if step == "sealed":
            seal(folder, take_over=True)
        if step == "repaired":
            repair(folder, force=True)
        now = of_book(folder)
        assert not need - now, step
        assert not now - truth, f"{step}: numbers that were never logged"
        assert all(any(segment.name in text for text in texts) for texts in (verify(folder), Book(folder).problems()))


BITS = [
    8 * layout.STATE_AT + 1,
    8 * layout.GENERATION_AT,
    8 * layout.FIRST_SEQ_AT + 12,
    8 * layout.STATE_AT,
    8 * layout.FIRST_SEQ_AT + 63,
]


@pytest.mark.parametrize(
    ("bit", "third"),
    some_of(
        [(bit, third) for bit in BITS for third in range(3)],
        lambda case: case[1] == BITS.index(case[0]) % 3,
    ),
)
def test_one_bit_of_a_segments_head_costs_no_row(
    originals: dict[str, tuple[Path, damaged_runs.Values]], tmp_path: Path, bit: int, third: int
) -> None:
    """It may say that the rows are sealed, are being written anew, or are those of a former use. Each bit in every
    third segment."""
    original, truth = originals["killed"]
    segments = sorted(path.relative_to(original) for path in original.glob("data/journal/*/*.seg"))
    for number, name in enumerate(segments[third::3]):
        folder = copied(original, tmp_path / str(number))
        data = bytearray((folder / name).read_bytes())
        data[bit // 8] ^= 1 << bit % 8
        (folder / name).write_bytes(data)
        # "left" for "in use" and "dropped" for "left" can both be, and hide nothing
        said = [] if bit // 8 == layout.STATE_AT and data[bit // 8] != layout.SEALED else [1]
        assert of_book(folder) == truth
        assert [said_of(name, texts) for texts in (verify(folder), Book(folder).problems(deep=False))] == [said] * 2
        seal(folder, take_over=True)
        assert of_book(folder) == truth, "nor when it is sealed"
        assert not list(folder.glob("data/journal/*/*.seg"))
        assert [said_of(name, texts) for texts in (verify(folder), Book(folder).problems(deep=False))] == [said] * 2
        repair(folder)
        assert not said or verify(folder) == Book(folder).problems() == [], "until somebody has looked after it"


def said_of(name: Path, texts: Sequence[str]) -> list[int]:
    """How often each of the texts about a segment names it and says that its rows were read."""
    return [text.count(name.name) for text in texts if name.name in text and "All rows were read" in text]


def test_garbage_between_records_hides_nothing_behind_it(
    originals: dict[str, tuple[Path, damaged_runs.Values]], tmp_path: Path
) -> None:
    folder, truth = copied(originals["killed"][0], tmp_path), originals["killed"][1]
    log = part_of(folder, "data/journal/*/*.log")
    data = bytearray(log.read_bytes())
    at = data.index(b"note 100") - 100
    data[at:at] = random.Random(2).randbytes(300)
    log.write_bytes(data)
    assert sum((truth - of_book(folder)).values()) <= 3, "a record that it went through"
    assert any(log.name in text for text in Book(folder).problems(deep=False))


@pytest.mark.parametrize("pattern", ["L00.S000.1.seg", "L00.frames.000000.log"])
def test_a_journal_file_that_is_gone_is_missed(
    originals: dict[str, tuple[Path, damaged_runs.Values]], tmp_path: Path, pattern: str
) -> None:
    folder = copied(originals["killed"][0], tmp_path)
    next(folder.glob(f"data/journal/*/{pattern}")).unlink()
    assert any("in no file" in text for text in verify(folder))
    assert any("in no file" in text for text in Book(folder).problems())
    repair(folder)
    assert "lost for good" in said(folder)[0]


def test_a_copied_segment_is_read_once(originals: dict[str, tuple[Path, damaged_runs.Values]], tmp_path: Path) -> None:
    folder, truth = copied(originals["killed"][0], tmp_path), originals["killed"][1]
    segment = next(folder.glob("data/journal/*/L00.S000.1.seg"))
    shutil.copyfile(segment, segment.with_name("L00.S000.77.seg"))
    assert of_book(folder) == truth
    assert any("L00.S000.77.seg" in text for text in Book(folder).problems())
    repair(folder)
    assert of_book(folder) == truth


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 16
    path.write_bytes(data)


def zeroed(path: Path) -> None:
    """The first page of a file, as of a disk that lost it."""
    path.write_bytes(bytes(4096) + path.read_bytes()[4096:])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


@pytest.mark.parametrize("hurt", some_of([flipped, emptied, zeroed, cut], 2))
def test_a_damaged_checkpoint_is_named_and_a_restore_takes_the_one_before(
    tmp_path: Path, hurt: Callable[[Path], object]
) -> None:
    options = {"dir": tmp_path, "sinks": [], "keeper": "inline"}
    with rollbook.init("p", "r", **options) as run:  # type: ignore[arg-type]
        for step in range(30):
            run.log({"loss": float(step)}, env_step=step)
            if step % 10 == 9:
                run.save_checkpoint({"weights": np.arange(500.0), "step": step})
    last = run.folder / "ckpt" / "iteration_29.ckpt"
    assert verify(run.folder) == []
    hurt(last)
    assert any(last.name in text for text in verify(run.folder))
    assert any(last.name in text for text in Book(run.folder).problems())
    with rollbook.init("p", "r", resume="must", **options) as run:  # type: ignore[arg-type]
        with pytest.raises(Damaged):
            run.restore(Book(run.folder).checkpoint("last").id)
        with pytest.warns(RollbookWarning, match="the run goes back to the one before"):
            restored = run.restore()
        assert restored is not None
        assert (restored.state["step"], restored.clocks["env_step"]) == (19, 19)
        run.log({"loss": -1.0}, env_step=20)
    assert Book(run.folder).metrics(["loss"])["loss"].to_pylist() == [*map(float, range(20)), -1.0]
    repair(run.folder)
    assert any(last.name in text for text in said(run.folder))


HANGS = """
import sys
from rollbook.book.book import Book
from rollbook.book.repair import repair, verify
book = Book(sys.argv[1])
book.media(), book.problems(), verify(sys.argv[1]), repair(sys.argv[1])
"""


@pytest.fixture(scope="module")
def look() -> Iterator[Callable[..., int]]:
    """Has another process look at a run: the status that it ends with."""
    with forked(HANGS, "import rollbook.book.book, rollbook.book.repair") as run:
        yield run


@pytest.mark.timeout(PATIENCE)
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with a name")
@pytest.mark.parametrize("kind", ["pipe", "device", "file elsewhere", "folder elsewhere"])
def test_nothing_that_is_no_file_of_the_run_is_opened(tmp_path: Path, kind: str, look: Callable[..., int]) -> None:
    with rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="inline") as run:
        run.log_image("frame", np.zeros((4, 4, 3), dtype=np.uint8))
    spool = run.folder / "media" / ".spool"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    note = {"format": 1, "kind": "image", "path": "media/x-000000000000000000000000.png", "width": 2, "height": 2,
            "channels": 3, "frames": 1, "fps": 0.0}  # fmt: skip
    (elsewhere / "a.json").write_text(json.dumps(note))
    (elsewhere / "a.raw").write_bytes(bytes(12))
    if kind == "folder elsewhere":
        shutil.rmtree(spool)
        spool.symlink_to(elsewhere)
    else:
        for name in ("a.json", "a.raw"):
            if kind == "pipe":
                os.mkfifo(spool / name)
            else:
                (spool / name).symlink_to("/dev/zero" if kind == "device" else elsewhere / name)
    assert look(run.folder) == 0
    assert list((run.folder / "media").glob("x-*")) == []
    assert {path.name for path in elsewhere.iterdir()} == {"a.json", "a.raw"}


def test_verify_of_an_address_checks_the_bytes_there_and_repair_refuses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.testing import CliRunner

    from rollbook.cli import doctor
    from rollbook.remote.push import push

    monkeypatch.setenv("ROLLBOOK_CACHE", str(tmp_path / "cache"))
    with rollbook.init("p", "r", dir=tmp_path / "runs", sinks=[], keeper="inline") as run:
        for i in range(3000):
            run.log({"loss": 0.5 * i}, env_step=i)
    url = f"file://{tmp_path}/store"
    push(run.folder, url)
    runner = CliRunner()
    assert runner.invoke(doctor.verify, [url]).exit_code == 0
    pieces = [path for path in (tmp_path / "store" / "p").rglob("*") if "wide" in path.name or "long" in path.name]
    flipped(pieces[0])
    pieces[1].unlink()
    result = runner.invoke(doctor.verify, [url])
    assert result.exit_code == 1
    assert "is damaged" in result.output
    assert "is missing" in result.output
    for command in (doctor.repair, doctor.seal):
        with pytest.raises(BadInput, match="this is a remote"):
            runner.invoke(command, [url], catch_exceptions=False)


@pytest.mark.parametrize("seed", some_of(range(int(os.environ.get("ROLLBOOK_DAMAGED_RUNS", "120"))), 6))
def test_what_can_be_read_of_a_damaged_run_is_there_after_repair_and_the_rest_stays_said(
    originals: dict[str, tuple[Path, damaged_runs.Values]], tmp_path: Path, seed: int
) -> None:
    kind = KINDS[seed % len(KINDS)]
    original, truth = originals[kind]
    folder = copied(original, tmp_path)
    what = damage(folder, random.Random(f"{seed} {kind}"))
    need = readable(folder, original) & truth  # a row is twice in the files while it is being sealed
    is_unchecked = "flip data/journal" in what  # values of unsealed rows have no checksum
    try:
        gone = truth - of_book(folder)
        assert not gone or is_unchecked or (verify(folder) and Book(folder).problems()), (
            f"{what}: nothing is said of {gone}"
        )
    except RollbookError:  # said in words, for example without a run.json
        pass
    repair(folder, force=True)
    after = of_book(folder)
    assert not need - after, (what, list((need - after).items())[:30], len(need - after))
    if ".seg" not in what:
        assert not after - truth, what
    if truth - after and not is_unchecked:
        assert verify(folder), what
        assert Book(folder).problems(), what
        assert Book(folder).problems(deep=False), what
    assert repair(folder, force=True) == ["nothing had to be done"], what


@pytest.mark.parametrize("table", ["text", "episodes", "marks"])
def test_a_part_of_which_nothing_can_be_read_stays_said(
    originals: dict[str, tuple[Path, damaged_runs.Values]], tmp_path: Path, table: str
) -> None:
    folder = copied(originals["small"][0], tmp_path)
    (part,) = (folder / "data" / table).glob("*.parquet")
    footer = int.from_bytes(part.read_bytes()[-8:-4], "little") + 8
    part.write_bytes(bytes(part.stat().st_size - footer) + part.read_bytes()[-footer:])
    assert verify(folder)
    repair(folder)
    assert "all of 1 row" in said(folder)[0]
    assert repair(folder) == ["nothing had to be done"]


@pytest.mark.parametrize("folder_of_part", ["text", "episodes", "metrics/long"])
@pytest.mark.parametrize("seed", some_of(range(120), 2))
def test_one_bit_at_the_end_of_a_merged_part_costs_no_sound_value_and_stops_no_reader(
    originals: dict[str, tuple[Path, damaged_runs.Values]], tmp_path: Path, folder_of_part: str, seed: int
) -> None:
    """Names of columns, the description of the rows, whether a column has nulls: no checksum covers any of these."""
    original, truth = originals["merged"]
    folder = copied(original, tmp_path)
    part = part_of(folder, f"data/{folder_of_part}/merged.*.parquet")
    data, rng = bytearray(part.read_bytes()), random.Random(f"{folder_of_part} {seed}")
    at = rng.randrange(len(data) - 8 - int.from_bytes(data[-8:-4], "little"), len(data))
    data[at] ^= 1 << rng.randrange(8)
    part.write_bytes(data)
    need = readable(folder, original) & truth
    verify(folder)
    repair(folder, force=True)
    after = of_book(folder)
    assert not need - after, at
    assert not truth - after or verify(folder), at


def test_what_is_lost_in_a_part_of_a_run_stays_said_when_it_is_joined(
    originals: dict[str, tuple[Path, damaged_runs.Values]], tmp_path: Path
) -> None:
    folder = copied(originals["sealed"][0], tmp_path)
    part = Path(shutil.copytree(folder, tmp_path / "part" / folder.name))
    break_column(part_of(part), "entropy")
    repair(part)
    assert verify(folder) == []
    join(part, folder)
    join(part, folder)
    assert ["entropy in" in text for text in said(folder)] == [True]


def test_a_name_that_a_damaged_byte_has_changed_in_what_a_part_says_of_itself_ends_no_reader(
    originals: dict[str, tuple[Path, damaged_runs.Values]], tmp_path: Path
) -> None:
    """KeyError('table') came out of every read of a run; the description of a part has no checksum."""
    original, truth = originals["small"]
    metadata = pq.read_metadata(part_of(original)).metadata
    described = metadata[b"rollbook"]
    for number, name in enumerate(json.loads(described)):
        folder = copied(original, tmp_path / str(number))
        part = part_of(folder)
        quoted = b'"%s":' % name.encode()
        assert quoted in described
        changed = part.read_bytes().replace(quoted, quoted.replace(name[-1].encode() + b'"', b'~"'))
        part.write_bytes(changed)
        gone = truth - of_book(folder)  # nothing raises
        assert not gone or any(part.name in text for text in verify(folder)), name
