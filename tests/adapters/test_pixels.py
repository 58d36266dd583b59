"""Layouts of pictures and films."""

from __future__ import annotations

import numpy as np
import pytest

from rollbook.adapters._pixels import as_frames, as_grid, as_picture


def test_every_layout_becomes_height_width_channels() -> None:
    picture = np.arange(4 * 6 * 3).reshape(4, 6, 3)
    assert (as_picture(picture, "HWC") == picture).all()
    assert (as_picture(picture.transpose(2, 0, 1), "chw") == picture).all()
    assert as_picture(picture[..., 0], "HW").shape == (4, 6, 1)
    assert as_picture(picture[None], "NHWC").shape == (4, 6, 3)


def test_a_batch_stands_side_by_side_in_rows_of_eight() -> None:
    pictures = np.stack([np.full((2, 3, 1), i) for i in range(10)])
    grid = as_grid(pictures)
    assert grid.shape == (4, 24, 1)
    assert grid[0, ::3, 0].tolist() == list(range(8))
    assert grid[2, :6:3, 0].tolist() == [8, 9]
    assert (grid[2:, 6:] == 0).all()


def test_films_side_by_side_keep_their_frames() -> None:
    film = np.zeros((2, 5, 3, 4, 6))
    film[1, 2] = 1.0
    frames = as_frames(film)
    assert frames.shape == (5, 4, 12, 3)
    assert frames[2, :, 6:].all()
    assert not frames[2, :, :6].any()


def test_a_layout_that_does_not_fit_is_named_with_the_shape() -> None:
    with pytest.raises(ValueError, match=r"\(4, 6\).*'CHW'"):
        as_picture(np.zeros((4, 6)), "CHW")
    with pytest.raises(ValueError, match="layout 'CHX'"):
        as_picture(np.zeros((3, 4, 6)), "CHX")
    with pytest.raises(ValueError, match=r"\(5, 3, 4, 6\)"):
        as_frames(np.zeros((5, 3, 4, 6)))
