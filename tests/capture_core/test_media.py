"""Pictures and films: what is taken, what is refused, and the files that come of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rollbook.capture.media.recorder import Media
from rollbook.errors import LoggingFailed
from rollbook.values.spool import picture_files
from rollbook.values.spool.encode import SPOOL, encode_spooled, locate, read_ledger

PIL = pytest.importorskip("PIL")
from PIL import Image  # noqa: E402

RNG = np.random.default_rng(0)


@pytest.fixture
def media(recorder: Any) -> Media:
    return Media(recorder.folder, recorder.count)


def pixels_of(path: Path | str) -> np.ndarray:
    with Image.open(path) as image:
        array = np.asarray(image)
    return array[:, :, None] if array.ndim == 2 else array


def film_of(path: Path) -> tuple[np.ndarray, dict[str, Any]]:
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    frames = ffmpeg.read_frames(str(path), pix_fmt="rgb24")
    facts = next(frames)
    width, height = facts["source_size"]
    return np.stack([np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in frames]), facts


# -- pictures


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (np.arange(12, dtype=np.uint8).reshape(3, 4), np.arange(12, dtype=np.uint8).reshape(3, 4, 1)),
        (np.full((2, 3, 1), 7, np.uint8), np.full((2, 3, 1), 7)),
        (np.full((2, 3, 3), 0.5), np.full((2, 3, 3), 128)),
        (np.full((2, 3, 4), 1.0, np.float32), np.full((2, 3, 4), 255)),
        (np.array([[True, False]]), np.array([[[255], [0]]])),
        ([[0.0, 1.0]], np.array([[[0], [255]]])),
        (np.arange(24, dtype=np.uint8).reshape(4, 6)[::2, ::3], np.array([[[0], [3]], [[12], [15]]])),
    ],
)
def test_a_picture_becomes_a_png_of_the_same_pixels(
    media: Media, recorder: Any, image: Any, expected: np.ndarray
) -> None:
    path = media.log_image(recorder, "train/frame", image, env_step=5)
    assert encode_spooled(recorder.folder)["encoded"] == 1
    assert (pixels_of(recorder.folder / path) == expected).all()
    ((table, row, clocks),) = recorder.rows
    assert table == "media"
    assert clocks == {"env_step": 5}
    assert (row["key"], row["kind"], row["path"]) == ("train/frame", "image", path)
    assert (row["height"], row["width"], row["channels"], row["frames"]) == (*expected.shape, 1)
    assert path.startswith("media/train_frame-")
    assert path.endswith(".png")


@given(hnp.arrays(np.uint8, st.tuples(st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 3, 4]))))
def test_every_pixel_survives(tmp_path_factory: pytest.TempPathFactory, image: np.ndarray) -> None:
    raw, target = tmp_path_factory.getbasetemp() / "x.raw", tmp_path_factory.getbasetemp() / "x.png"
    raw.write_bytes(image.tobytes())
    height, width, channels = image.shape
    note = {"height": height, "width": width, "channels": channels, "frames": 1, "fps": 0}
    assert picture_files.write_picture(str(raw), str(target), note) == ""
    assert (pixels_of(target) == image).all()


def test_a_large_picture_is_written_in_parts_and_read_back(media: Media, recorder: Any) -> None:
    image = RNG.integers(0, 256, (700, 900, 3), np.uint8)
    path = media.log_image(recorder, "noise", image)
    encode_spooled(recorder.folder)
    assert (pixels_of(recorder.folder / path) == image).all()


def test_channels_may_come_first(media: Media, recorder: Any) -> None:
    image = RNG.integers(0, 256, (3, 5, 7), np.uint8)
    path = media.log_image(recorder, "x", image, channels_first=True)
    encode_spooled(recorder.folder)
    assert (pixels_of(recorder.folder / path) == image.transpose(1, 2, 0)).all()


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "1", "CMYK", "LA"])
def test_pillow_images_are_pictures(media: Media, recorder: Any, mode: str) -> None:
    image = Image.fromarray(RNG.integers(0, 256, (4, 6, 3), np.uint8)).convert(mode)
    path = media.log_image(recorder, "x", image)
    encode_spooled(recorder.folder)
    expected = image if mode in ("RGB", "RGBA", "L") else image.convert("RGBA" if mode == "LA" else "RGB")
    assert (pixels_of(recorder.folder / path).squeeze() == np.asarray(expected)).all()


def test_torch_tensors_are_pictures(media: Media, recorder: Any) -> None:
    torch = pytest.importorskip("torch")
    path = media.log_image(recorder, "x", torch.full((2, 3, 3), 0.5, requires_grad=True))
    encode_spooled(recorder.folder)
    assert (pixels_of(recorder.folder / path) == 128).all()


def test_a_figure_is_drawn_at_its_size_and_stays_as_it_was(media: Media, recorder: Any) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2, 1), dpi=50)
    axes = figure.subplots()
    axes.plot([1, 2])
    canvas = figure.canvas
    with matplotlib.rc_context({"savefig.bbox": "tight"}):
        path = media.log_figure(recorder, "plot", figure)
        also = media.log_image(recorder, "axes", axes)
    encode_spooled(recorder.folder)
    pixels = pixels_of(recorder.folder / path)
    assert pixels.shape == (50, 100, 3)
    assert len(np.unique(pixels)) > 2
    assert (pixels_of(recorder.folder / also) == pixels).all()
    assert figure.canvas is canvas
    assert [row["kind"] for _, row, _ in recorder.rows] == ["figure", "image"]


@pytest.mark.parametrize(
    ("image", "said"),
    [
        (np.full((2, 2, 3), 300, np.int64), "found 300 to 300 (int64)"),
        (np.full((2, 2), -1), "found -1 to -1"),
        (np.full((2, 2), 1.5), "found 1.5 to 1.5"),
        (np.full((2, 2), 200.0), "divide by 255"),
        (np.full((2, 2), np.nan), "found nan"),
        (np.full((2, 2), -0.1), "found -0.1"),
        (np.zeros((3, 8, 8), np.uint8), "channels_first=True"),
        (np.zeros((2, 2, 2), np.uint8), r"found shape (2, 2, 2)"),
        (np.zeros((0, 4, 3), np.uint8), "no pixels"),
        (np.zeros(5, np.uint8), "a picture is"),
        ("picture.png", "a picture is"),
        (None, "a picture is"),
        ([[1, 2], [3]], "cannot be read as pixels"),
        (Image.new("I;16", (2, 2)), "mode 'I;16'"),
        (np.array([["a"]]), "found <U1"),
    ],
)
def test_what_is_no_picture_is_refused_with_what_was_found(media: Media, recorder: Any, image: Any, said: str) -> None:
    assert media.log_image(recorder, "x", image) is None
    assert recorder.counts == {"media_refused": 1}
    assert said in recorder.messages[0]
    assert recorder.rows == []
    assert os.listdir(recorder.folder / "media" / ".spool") == []


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8", "u2", "u4", "u8"])
def test_whole_numbers_from_0_to_255_are_pixels_whatever_their_type(media: Media, recorder: Any, kind: str) -> None:
    path = media.log_image(recorder, "x", np.full((2, 3), 100, kind))
    assert media.log_video(recorder, "film", np.full((2, 4, 4, 3), 100, kind)) is not None
    encode_spooled(recorder.folder)
    assert (pixels_of(recorder.folder / path) == 100).all()


def test_a_strict_run_raises_what_others_count(strict_recorder: Any) -> None:
    media = Media(strict_recorder.folder, strict_recorder.count)
    with pytest.raises(LoggingFailed, match="int64"):
        media.log_image(strict_recorder, "x", np.full((2, 2), 300, np.int64))
    with pytest.raises(LoggingFailed, match=r"takes a matplotlib figure; found builtins\.int"):
        media.log_figure(strict_recorder, "x", 3)


# -- films


def moving(frames: int, height: int, width: int) -> np.ndarray:
    film = np.zeros((frames, height, width, 3), np.uint8)
    for i in range(frames):
        film[i, :, : width // 2] = (40 * i) % 250
        film[i, height // 2 :, :, 0] = 200
    return film


@pytest.mark.parametrize(("height", "width"), [(32, 48), (33, 47), (1, 1)])
def test_a_film_becomes_an_mp4_of_its_size_made_even(media: Media, recorder: Any, height: int, width: int) -> None:
    pytest.importorskip("imageio_ffmpeg")
    film = moving(6, height, width)
    path = media.log_video(recorder, "test/episode", film, fps=15, episode_id="e1", env_step=9)
    assert path.endswith(".mp4")
    assert encode_spooled(recorder.folder)["errors"] == []
    back, facts = film_of(recorder.folder / path)
    assert back.shape == (6, height + height % 2, width + width % 2, 3)
    assert facts["fps"] == 15.0
    assert np.abs(back[:, :height, :width].astype(int) - film).mean() < 6
    row = recorder.rows[0][1]
    assert (row["kind"], row["width"], row["height"], row["frames"], row["fps"]) == ("video", width, height, 6, 15.0)
    assert row["episode_id"] == "e1"


def test_pyav_writes_the_mp4_where_imageio_ffmpeg_is_missing(
    media: Media, recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("av")
    film = moving(4, 17, 20)
    path = media.log_video(recorder, "x", film, fps=12.5, format="mp4")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "imageio_ffmpeg", None)
        assert encode_spooled(recorder.folder)["errors"] == []
    back, facts = film_of(recorder.folder / path)
    assert back.shape == (4, 18, 20, 3)
    assert facts["fps"] == 12.5
    assert np.abs(back[:, :17].astype(int) - film).mean() < 6


@pytest.mark.parametrize("kind", ["gif", "apng"])
def test_a_film_can_be_a_gif_or_an_animated_png(media: Media, recorder: Any, kind: str) -> None:
    film = moving(5, 9, 11)
    path = media.log_video(recorder, "x", film, fps=10, format=kind)
    encode_spooled(recorder.folder)
    with Image.open(recorder.folder / path) as image:
        assert image.n_frames == 5
        for i in range(5):
            image.seek(i)
            assert image.info["duration"] == pytest.approx(100)
            difference = np.abs(np.asarray(image.convert("RGB")).astype(int) - film[i])
            assert difference.max() <= (0 if kind == "apng" else 8)


@pytest.mark.parametrize("kind", ["mp4", "gif", "apng"])
def test_a_film_of_one_frame_is_a_film(media: Media, recorder: Any, kind: str) -> None:
    if kind == "mp4":
        pytest.importorskip("imageio_ffmpeg")
    path = media.log_video(recorder, "x", moving(1, 16, 16), format=kind)
    assert encode_spooled(recorder.folder)["errors"] == []
    assert (recorder.folder / path).stat().st_size > 50


def test_frames_may_come_one_by_one_grey_transparent_or_with_channels_first(media: Media, recorder: Any) -> None:
    grey = (np.full((4, 4), i / 4) for i in range(4))
    assert media.log_video(recorder, "grey", grey, format="apng")
    clear = np.zeros((2, 4, 4, 4), np.uint8)
    assert media.log_video(recorder, "clear", clear, format="gif")
    assert media.log_video(recorder, "first", np.zeros((2, 3, 4, 5), np.uint8), format="apng", channels_first=True)
    assert media.log_video(recorder, "thw", np.zeros((2, 6, 5), np.uint8), format="apng")
    encode_spooled(recorder.folder)
    sizes = [(row["frames"], row["height"], row["width"], row["channels"]) for _, row, _ in recorder.rows]
    assert sizes == [(4, 4, 4, 1), (2, 4, 4, 4), (2, 4, 5, 3), (2, 6, 5, 1)]
    with Image.open(recorder.folder / recorder.rows[1][1]["path"]) as image:
        assert np.asarray(image.convert("RGB")).min() == 255  # laid on white


@pytest.mark.parametrize(
    ("frames", "more", "said"),
    [
        ([np.zeros((4, 4), np.uint8), np.zeros((4, 5), np.uint8)], {}, "frame 1 of a video has shape (4, 5, 1)"),
        ([], {}, "at least one frame"),
        (np.zeros((0, 4, 4, 3), np.uint8), {}, "at least one frame"),
        (np.zeros((4, 4, 3), np.uint8), {}, "one picture is for log_image"),
        (np.zeros((2, 2, 4, 4, 3), np.uint8), {}, "a video is"),
        (np.zeros((2, 3, 8, 8), np.uint8), {}, "channels_first=True"),
        ("film.mp4", {}, "found str"),
        (7, {}, "found int"),
        (np.zeros((2, 4, 4, 3), np.uint8), {"fps": 0}, "fps=0"),
        (np.zeros((2, 4, 4, 3), np.uint8), {"fps": float("nan")}, "fps=nan"),
        (np.zeros((2, 4, 4, 3), np.uint8), {"fps": "fast"}, "fps='fast'"),
        (np.zeros((2, 4, 4, 3), np.uint8), {"format": "avi"}, "must be one of mp4, gif, apng"),
    ],
)
def test_what_is_no_video_is_refused_and_leaves_nothing_behind(
    media: Media, recorder: Any, frames: Any, more: dict[str, Any], said: str
) -> None:
    assert media.log_video(recorder, "x", frames, **more) is None
    assert recorder.counts == {"media_refused": 1}
    assert said in recorder.messages[0]
    spool = recorder.folder / "media" / ".spool"
    assert not spool.exists() or os.listdir(spool) == []


def test_an_iterator_that_fails_is_counted_and_leaves_nothing_behind(media: Media, recorder: Any) -> None:
    def frames() -> Any:
        yield np.zeros((4, 4), np.uint8)
        raise ZeroDivisionError("render")

    assert media.log_video(recorder, "x", frames()) is None
    assert recorder.counts == {"media_failed": 1}
    assert "ZeroDivisionError: render" in recorder.messages[0]
    assert os.listdir(recorder.folder / "media" / ".spool") == []


def test_without_encoders_a_film_is_an_animated_png(
    media: Media, recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("imageio_ffmpeg", "av", "PIL"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(picture_files, "_cached", {})
    assert media.log_video(recorder, "x", moving(3, 4, 4)).endswith(".apng")
    path = media.log_video(recorder, "y", moving(3, 4, 4), format="mp4")
    ledger = encode_spooled(recorder.folder)
    assert ledger["encoded"] == 2
    assert "mp4: ModuleNotFoundError" in ledger["errors"][0]
    assert not (recorder.folder / path).exists()
    assert locate(recorder.folder, path) == str(recorder.folder / path.replace(".mp4", ".apng"))


# -- the spool


def test_the_pixels_are_found_before_and_after_encoding(media: Media, recorder: Any) -> None:
    path = media.log_image(recorder, "x", np.zeros((4, 4), np.uint8))
    spooled = recorder.rows[0][1]["spool"]
    assert locate(recorder.folder, path) == str(recorder.folder / spooled)
    assert (recorder.folder / spooled).stat().st_size == 16
    encode_spooled(recorder.folder)
    assert locate(recorder.folder, path) == str(recorder.folder / path)
    assert not (recorder.folder / spooled).exists()
    os.unlink(recorder.folder / path)
    assert locate(recorder.folder, path) is None


def test_a_row_cannot_point_out_of_the_media_folder(recorder: Any, tmp_path: Path) -> None:
    (recorder.folder / "media").mkdir()
    (recorder.folder / "run.json").write_text("{}")
    os.symlink(recorder.folder / "run.json", recorder.folder / "media" / "link.png")
    absolute = str(recorder.folder / "run.json")
    for path in ("run.json", "../run/run.json", "media/../run.json", absolute, "media/link.png"):
        assert locate(recorder.folder, path) is None


def test_forged_notes_write_nothing_outside_and_are_set_aside(media: Media, recorder: Any) -> None:
    spool = recorder.folder / "media" / ".spool"
    spool.mkdir(parents=True)
    good = {"kind": "image", "path": "media/a.png", "width": 1, "height": 1, "channels": 1, "frames": 1, "fps": 0}
    forged: list[Any] = [
        {**good, "path": "../evil.png"},
        {**good, "path": "media/../../evil.png"},
        {**good, "path": "/elsewhere/evil.png"},
        {**good, "path": "media/run.json"},
        {**good, "width": 10**9},
        {**good, "width": -1},
        {**good, "width": 2},
        {**good, "channels": 2},
        {**good, "kind": "video", "path": "media/a.mp4", "fps": 0},
        {},
        [],
        7,
    ]
    for i, note in enumerate(forged):
        (spool / f"{i}.json").write_text(json.dumps(note))
        (spool / f"{i}.raw").write_bytes(b"x")
    (spool / "text.json").write_text("{")
    (spool / "lonely.json").write_text(json.dumps(good))
    ledger = encode_spooled(recorder.folder)
    assert (ledger["encoded"], ledger["failed"]) == (0, len(forged) + 2)
    assert not list(recorder.folder.parent.glob("evil*"))
    assert [p.name for p in (recorder.folder / "media").iterdir()] == [".spool"]
    assert encode_spooled(recorder.folder)["failed"] == len(forged) + 2  # not tried again


def test_the_oldest_files_go_beyond_the_bounds_and_the_bill_says_so(media: Media, recorder: Any) -> None:
    stranger = recorder.folder / "media" / "mine.png"
    paths = [media.log_image(recorder, f"k{i}", RNG.integers(0, 256, (50, 50), np.uint8)) for i in range(6)]
    stranger.write_bytes(b"x" * 9000)
    media.keep(files=4)
    ledger = encode_spooled(recorder.folder)
    assert [os.path.exists(recorder.folder / path) for path in paths] == [False, False, True, True, True, True]
    assert (ledger["files"], ledger["evicted"], ledger["keep_files"]) == (4, 2, 4)
    size = (recorder.folder / paths[-1]).stat().st_size
    media.keep(bytes=int(size * 2.5))
    encode_spooled(recorder.folder)
    assert [os.path.exists(recorder.folder / path) for path in paths[2:]] == [False, False, True, True]
    assert stranger.exists()
    bill = media.bill()
    assert (bill["files"], bill["evicted"], bill["keep_bytes"]) == (2, 4, int(size * 2.5))
    assert bill["bytes"] == sum((recorder.folder / path).stat().st_size for path in paths[4:])
    assert bill["spooled_bytes"] == media.bytes_kept == 6 * 2500


def test_a_run_says_how_many_files_it_keeps_and_the_bill_says_it_too(media: Media, recorder: Any) -> None:
    assert (media.bill()["keep_files"], media.bill()["keep_bytes"]) == (2000, 2 * 1024**3)
    media.keep(files=2)
    paths = [media.log_image(recorder, f"k{i}", np.zeros((4, 4), np.uint8)) for i in range(3)]
    encode_spooled(recorder.folder)
    assert [os.path.exists(recorder.folder / path) for path in paths] == [False, True, True]
    media.keep(bytes=10_000)
    bill = media.bill()
    assert (bill["files"], bill["evicted"], bill["keep_files"], bill["keep_bytes"]) == (2, 1, 2, 10_000)
    media.keep(files=0, bytes=5_000)
    assert (media.bill()["keep_files"], media.bill()["keep_bytes"]) == (2, 5_000)
    assert recorder.counts["media_bound"] == 1
    (recorder.folder / SPOOL / "keep.json").write_text('{"keep_files": "all"}')
    assert encode_spooled(recorder.folder)["keep_files"] == 2000


def test_encoding_can_be_done_in_portions_oldest_first(media: Media, recorder: Any) -> None:
    paths = [media.log_image(recorder, key, np.zeros((4, 4), np.uint8)) for key in ("z", "a", "m")]
    ledger = encode_spooled(recorder.folder, most=1)
    assert ledger["waiting"] == 2
    assert [os.path.exists(recorder.folder / path) for path in paths] == [True, False, False]
    assert encode_spooled(recorder.folder)["waiting"] == 0


def test_more_than_the_spool_holds_is_refused_until_the_keeper_has_caught_up(recorder: Any) -> None:
    media = Media(recorder.folder, recorder.count, most_spooled=5_000)
    image = np.zeros((50, 50), np.uint8)
    assert media.log_image(recorder, "x", image)
    assert media.log_image(recorder, "x", image) is None
    assert media.log_video(recorder, "x", np.zeros((9, 20, 20, 3), np.uint8)) is None
    assert recorder.counts == {"media_refused": 2}
    assert "wait for the keeper" in recorder.messages[0]
    encode_spooled(recorder.folder)
    assert media.log_image(recorder, "x", image)


def test_encoding_a_run_without_media_does_nothing(tmp_path: Path) -> None:
    assert encode_spooled(tmp_path)["files"] == 0
    assert list(tmp_path.iterdir()) == []
    assert read_ledger(tmp_path / "gone")["evicted"] == 0


def test_what_killed_processes_left_is_cleared_an_hour_later(media: Media, recorder: Any) -> None:
    media.log_image(recorder, "x", np.zeros((4, 4), np.uint8))
    folder = recorder.folder / "media"
    left = [".spool/half-1.raw", ".spool/half-2.json.tmp", "film-1.partial77.mp4"]
    for name in left:
        (folder / name).write_bytes(b"x")
    encode_spooled(recorder.folder)
    assert all((folder / name).exists() for name in left)
    for name in left:
        os.utime(folder / name, (time.time() - 4000,) * 2)
    encode_spooled(recorder.folder)
    assert not any((folder / name).exists() for name in left)


def test_threads_may_log_and_a_keeper_encode_at_the_same_time(media: Media, recorder: Any) -> None:
    done = threading.Event()

    def log() -> None:
        for i in range(20):
            media.log_image(recorder, "x", np.full((8, 8), i, np.uint8))

    def keep() -> None:
        while not done.is_set():
            encode_spooled(recorder.folder)

    threads = [threading.Thread(target=log) for _ in range(3)]
    keepers = [threading.Thread(target=keep) for _ in range(2)]
    for thread in threads + keepers:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    for thread in keepers:
        thread.join()
    encode_spooled(recorder.folder)
    assert recorder.counts == {}
    values = sorted(int(pixels_of(recorder.folder / row["path"])[0, 0, 0]) for _, row, _ in recorder.rows)
    assert values == sorted(list(range(20)) * 3)


@pytest.mark.skipif(sys.platform == "win32", reason="needs RLIMIT_FSIZE")
def test_a_full_disk_is_counted_and_leaves_nothing_behind(tmp_path: Path) -> None:
    code = f"""
import resource, sys
from pathlib import Path
import numpy as np
sys.path.insert(0, {str(Path(__file__).parent)!r})
from conftest import ToldRun
from rollbook.capture.media.recorder import Media
recorder = ToldRun(Path({str(tmp_path)!r}))
folder = recorder.folder
media = Media(folder, recorder.count)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
assert media.log_image(recorder, "x", np.zeros((100, 100), np.uint8)) is None
assert recorder.counts == {{"media_failed": 1}}, recorder.counts
assert media.log_image(recorder, "x", np.zeros((10, 10), np.uint8))
print(len(list((folder / "media" / ".spool").iterdir())))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["2"]


def test_encoding_pictures_needs_nothing_but_the_standard_library(media: Media, recorder: Any) -> None:
    media.log_image(recorder, "x", np.zeros((4, 4), np.uint8))
    code = (
        "import sys; from rollbook.values.spool.encode import encode_spooled\n"
        f"assert encode_spooled({str(recorder.folder)!r})['encoded'] == 1\n"
        "assert not {'numpy', 'PIL', 'imageio_ffmpeg', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
