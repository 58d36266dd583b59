"""Files of TensorBoard's embedding projector: points, labels and images, and the list of all of them.

<folder>/projector_config.pbtxt
<folder>/<step, five digits>/<tag>/tensors.tsv, metadata.tsv, sprite.png
"""

from __future__ import annotations

import math
import os

from rollbook.system.optional import need
from rollbook.values.arrays import host_array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from rollbook.values.array_types import NDArray

_WHY = "add_embedding()"


class Projector:
    """Keeps the list of embeddings of one folder of event files.

    Args:
      folder: the folder of the event files.
    """

    def __init__(self, folder: str) -> None:
        parts = need("tensorboard.plugins.projector.projector_config_pb2", extra="tensorboard", why=_WHY)
        self._folder, self._config = folder, parts.ProjectorConfig()

    def add(
        self,
        points_ND: Any,
        labels: Sequence[Any] | None = None,
        pictures_NCHW: Any = None,
        step: Any = None,
        tag: str = "default",
        header: Sequence[str] | None = None,
    ) -> None:
        """Write the files of one embedding and list it. An earlier one at the same step and tag is overwritten.

        Args:
          points_ND: [n, dimensions].
          labels: a label for each point; with a `header`, a row of labels for each.
          pictures_NCHW: [n, 1 or 3, height, width], uint8 or floats in [0, 1].
        Raises:
          ValueError: the number of labels or images differs from that of points, or points do not have two axes.
        """
        points = host_array(points_ND)
        if points.ndim != 2:
            raise ValueError(f"points have the axes [n, dimensions]; these have the shape {points.shape}")
        n = len(points)
        for name, given in (("metadata", labels), ("label_img", pictures_NCHW)):
            if given is not None and len(given) != n:
                raise ValueError(f"{name} has {len(given)} entries for {n} points")
        subfolder = f"{int(step or 0):05d}/{_escaped(tag)}"
        place = os.path.join(self._folder, subfolder)
        os.makedirs(place, exist_ok=True)
        embedding = self._config.embeddings.add(
            tensor_name=f"{tag}:{int(step or 0):05d}", tensor_path=os.path.join(subfolder, "tensors.tsv")
        )
        _write(os.path.join(place, "tensors.tsv"), (map(str, point) for point in points.tolist()))
        if labels is not None:
            rows = [[str(label)] for label in labels] if not header else [list(map(str, row)) for row in labels]
            if header:
                rows.insert(0, list(header))
            _write(os.path.join(place, "metadata.tsv"), rows)
            embedding.metadata_path = os.path.join(subfolder, "metadata.tsv")
        if pictures_NCHW is not None:
            pictures = host_array(pictures_NCHW)
            _write_sprite(os.path.join(place, "sprite.png"), pictures)
            embedding.sprite.image_path = os.path.join(subfolder, "sprite.png")
            embedding.sprite.single_image_dim.extend([pictures.shape[3], pictures.shape[2]])
        text_format = need("google.protobuf.text_format", extra="tensorboard", why=_WHY)
        with open(os.path.join(self._folder, "projector_config.pbtxt"), "w", encoding="utf-8") as file:
            file.write(text_format.MessageToString(self._config))


def _escaped(tag: str) -> str:
    """A tag as the name of a folder."""
    for letter in "%/\\":
        tag = tag.replace(letter, f"%{ord(letter):02x}")
    return tag


def _write(path: str, rows: Any) -> None:
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        file.writelines("\t".join(row) + "\n" for row in rows)


def _write_sprite(path: str, pictures_NCHW: NDArray) -> None:
    """All images in one square grid, row by row."""
    import numpy as np

    n, channels, height, width = pictures_NCHW.shape
    pictures = pictures_NCHW.astype(np.float64) * (1.0 if pictures_NCHW.dtype == np.uint8 else 255.0)
    across = math.ceil(math.sqrt(n))
    side = across * width
    square = np.zeros((max(side, math.ceil(n / across) * height), side, 3), dtype=np.uint8)
    for i in range(n):
        top, left = i // across * height, i % across * width
        picture = pictures[i].clip(0, 255).astype(np.uint8).transpose(1, 2, 0)
        square[top : top + height, left : left + width] = picture if channels == 3 else picture[..., :1]
    need("PIL.Image", extra="tensorboard", why=_WHY).fromarray(square).save(path, format="PNG")
