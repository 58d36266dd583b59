"""Verbs of a SummaryWriter whose values a book has no table for: they reach the event files, and are counted."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

__all__ = ["FileVerbs"]


class FileVerbs:
    """Arguments are those of torch's and tensorboardX's writers; see there for what they mean."""

    def _only_file(self, verb: str, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError

    def _place(self, global_step: Any, walltime: float | None) -> tuple[Any, float | None]:
        raise NotImplementedError

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: Any = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """A sound of one channel, samples in [-1, 1]."""
        global_step, walltime = self._place(global_step, walltime)
        self._only_file("add_audio", tag, snd_tensor, global_step, sample_rate, walltime)

    def add_tensor(self, tag: str, tensor: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """A tensor with all of its elements."""
        global_step, walltime = self._place(global_step, walltime)
        self._only_file("add_tensor", tag, tensor, global_step, walltime)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """A precision-recall curve of predictions in [0, 1]."""
        global_step, walltime = self._place(global_step, walltime)
        self._only_file("add_pr_curve", tag, labels, predictions, global_step, num_thresholds, weights, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """A precision-recall curve that was computed already."""
        global_step, walltime = self._place(global_step, walltime)
        counts = (true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts)
        rest = (precision, recall, global_step, num_thresholds, weights, walltime)
        self._only_file("add_pr_curve_raw", tag, *counts, *rest)

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: Mapping[str, Any] | None = None,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """A mesh, or a cloud of points."""
        global_step, walltime = self._place(global_step, walltime)
        self._only_file("add_mesh", tag, vertices, colors, faces, config_dict, global_step, walltime)

    def add_embedding(
        self,
        mat: Any,
        metadata: Sequence[Any] | None = None,
        label_img: Any = None,
        global_step: Any = None,
        tag: str = "default",
        metadata_header: Sequence[str] | None = None,
    ) -> None:
        """Points for the projector, each with a label and a picture."""
        global_step, _ = self._place(global_step, None)
        self._only_file("add_embedding", mat, metadata, label_img, global_step, tag, metadata_header)

    def add_custom_scalars(self, layout: Mapping[str, Any]) -> None:
        """The layout of the page CUSTOM SCALARS."""
        self._only_file("add_custom_scalars", layout)

    def add_custom_scalars_multilinechart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """One chart of several curves."""
        self._only_file("add_custom_scalars_multilinechart", tags, category, title)

    def add_custom_scalars_marginchart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """One chart of a curve with its lower and upper bound."""
        self._only_file("add_custom_scalars_marginchart", tags, category, title)

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """The graph of a torch module."""
        self._only_file("add_graph", model, input_to_model, verbose, use_strict_trace)

    def add_onnx_graph(self, prototxt: Any = None, *, onnx_model_file: Any = None) -> None:
        """The graph of an ONNX file."""
        self._only_file("add_onnx_graph", onnx_model_file if prototxt is None else prototxt)

    def add_openvino_graph(self, xmlname: Any) -> None:
        """The graph of an OpenVINO file."""
        self._only_file("add_openvino_graph", xmlname)
