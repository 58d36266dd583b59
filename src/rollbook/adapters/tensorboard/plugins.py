"""Summaries for TensorBoard's plugins: hyper-parameters, curves, meshes, layouts, sounds, tensors, boxed images."""

from __future__ import annotations

import io
import json
import wave

from rollbook.system.optional import need
from rollbook.values import scalar_of
from rollbook.values.arrays import host_array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType
    from typing import Any

    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.compat.proto.tensor_pb2 import TensorProto

    from rollbook.sinks.event_files import Messages
    from rollbook.values.array_types import NDArray

MOST_THRESHOLDS = 127
"""The maximum of TensorBoard's protobufs."""

_WHY = "writing event files"
_ENDED_WELL = 1
_NUMBER, _TRUTH, _TEXT = 3, 2, 1  # of the message DataType


def _part(module: str) -> ModuleType:
    return need(f"tensorboard.plugins.{module}", extra="tensorboard", why=_WHY)


def hparams(
    messages: Messages,
    parameters: Mapping[str, object],
    metrics: Mapping[str, object],
    domains: Mapping[str, Sequence[object]] | None = None,
) -> list[Summary.Value]:
    """The three summaries of the HPARAMS page: the list of parameters and metrics, these values, and a successful end.

    Args:
      parameters: numbers (also one-element tensors), booleans and texts. None is left out; anything else is written as
        its text.
      metrics: only their names are used; the numbers are logged as scalars.
      domains: parameter -> all values it may have.
    """
    api, data = _part("hparams.api_pb2"), _part("hparams.plugin_data_pb2")
    names = _part("hparams.metadata")
    struct = need("google.protobuf.struct_pb2", extra="tensorboard", why=_WHY)
    began, described = data.SessionStartInfo(), []
    for name, given in parameters.items():
        if given is None:
            continue
        number = scalar_of(given)
        if number is None and getattr(given, "dtype", None) is not None and host_array(given).size == 1:
            number = host_array(given).item()
        value = number if number is not None else str(given)
        kind = _TRUTH if isinstance(value, bool) else _TEXT if isinstance(value, str) else _NUMBER
        field = {_TRUTH: "bool_value", _TEXT: "string_value", _NUMBER: "number_value"}[kind]
        setattr(began.hparams[name], field, value)
        values = (domains or {}).get(name)
        domain = None
        if values is not None:
            domain = struct.ListValue(values=[struct.Value(**{field: each}) for each in values])
        described.append(api.HParamInfo(name=name, type=kind, domain_discrete=domain))
    looked_at = [api.MetricInfo(name=api.MetricName(tag=name)) for name in metrics]
    parts = {
        names.EXPERIMENT_TAG: {"experiment": api.Experiment(hparam_infos=described, metric_infos=looked_at)},
        names.SESSION_START_INFO_TAG: {"session_start_info": began},
        names.SESSION_END_INFO_TAG: {"session_end_info": data.SessionEndInfo(status=_ENDED_WELL)},
    }
    version = names.PLUGIN_DATA_VERSION
    return [
        messages.plugin(
            tag,
            names.PLUGIN_NAME,
            content=data.HParamsPluginData(version=version, **part).SerializeToString(),
        )
        for tag, part in parts.items()
    ]


def audio(messages: Messages, tag: str, sound: object, rate: int = 44100) -> object:
    """A sound of one channel.

    Args:
      sound: samples in [-1, 1]; louder ones are clipped. Axes of length 1 are ignored.
      rate: samples per second.
    Raises:
      ValueError: more than one channel.
    """
    import numpy as np

    samples = host_array(sound).squeeze()
    if samples.ndim != 1:
        raise ValueError(f"a sound has one axis of samples besides axes of length 1; this one has {samples.shape}")
    data = io.BytesIO()
    with wave.open(data, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((samples.clip(-1, 1) * np.iinfo(np.int16).max).astype("<i2").tobytes())
    return messages.audio(tag, data.getvalue(), rate, len(samples))


def precision_recall(
    messages: Messages,
    tag: str,
    labels: object,
    predictions: object,
    thresholds: int = MOST_THRESHOLDS,
    weights: object = None,
) -> object:
    """A precision-recall curve of predictions.

    Args:
      labels: the true class, 0 or 1.
      predictions: in [0, 1], of the same shape.
      thresholds: the number of thresholds, evenly from 0 to 1; at most 127.
      weights: of the predictions; None: all equal.
    """
    import numpy as np

    thresholds = min(thresholds, MOST_THRESHOLDS)
    truth = host_array(labels).astype(np.float64)
    reached = np.floor(host_array(predictions) * (thresholds - 1)).astype(np.int32)
    weight = 1.0 if weights is None else host_array(weights)

    def at_least(kind_of_case: NDArray) -> NDArray:
        """The weight of one class at or above each threshold."""
        counts, _ = np.histogram(reached, thresholds, (0, thresholds - 1), weights=kind_of_case * weight)
        return counts[::-1].cumsum()[::-1]

    true_positive, false_positive = at_least(truth), at_least(1.0 - truth)
    false_negative, true_negative = true_positive[0] - true_positive, false_positive[0] - false_positive
    small = 1e-7  # 0 of 0 counts as 0
    precision = true_positive / np.maximum(small, true_positive + false_positive)
    recall = true_positive / np.maximum(small, true_positive + false_negative)
    rows = (true_positive, false_positive, true_negative, false_negative, precision, recall)
    return curve(messages, tag, rows, thresholds)


def curve(messages: Messages, tag: str, rows: Sequence[object], thresholds: int = MOST_THRESHOLDS) -> object:
    """A precision-recall curve that is already computed.

    Args:
      rows: at each threshold: true positives, false positives, true negatives, false negatives, precision, recall.
    """
    import numpy as np

    data = np.stack([host_array(row) for row in rows])
    about = _part("pr_curve.plugin_data_pb2").PrCurvePluginData(
        version=0, num_thresholds=min(thresholds, MOST_THRESHOLDS)
    )
    return messages.plugin(tag, "pr_curves", _floats(messages, data), about.SerializeToString())


def mesh(
    messages: Messages, tag: str, vertices: object, colors: object = None, faces: object = None, config: object = None
) -> list[Summary.Value]:
    """A mesh or a point cloud: one summary each for vertices, faces and colours.

    Args:
      vertices: [batch, points, 3].
      colors: the same shape, 0 to 255.
      faces: [batch, faces, 3], indices of vertices.
      config: settings of the scene, as JSON data.
    """
    metadata, kinds = _part("mesh.metadata"), _part("mesh.plugin_data_pb2").MeshPluginData
    given = ((vertices, kinds.VERTEX), (faces, kinds.FACE), (colors, kinds.COLOR))
    parts = [(host_array(array), kind) for array, kind in given if array is not None]
    components = metadata.get_components_bitmask([kind for _, kind in parts])
    settings = "{}" if config is None else json.dumps(config, sort_keys=True)
    summaries = []
    for array, kind in parts:
        about = metadata.create_summary_metadata(tag, None, kind, components, array.shape, None, json_config=settings)
        summaries.append(
            messages.summaries.Summary.Value(
                tag=metadata.get_instance_name(tag, kind), tensor=_floats(messages, array), metadata=about
            )
        )
    return summaries


def custom_scalars(messages: Messages, layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> Summary.Value:
    """The layout of the page CUSTOM SCALARS.

    Args:
      layout: category -> chart -> ("Multiline", tags) or ("Margin", (value, lower, upper)).
    Raises:
      ValueError: a chart of kind "Margin" does not have three tags.
    """
    parts = _part("custom_scalar.layout_pb2")
    categories = []
    for category, charts in layout.items():
        drawn = []
        for title, (kind, tags, *_) in charts.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise ValueError(
                        f"the margin chart {title!r} takes three tags (value, lower, upper); it was given {list(tags)}"
                    )
                series = parts.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
                drawn.append(parts.Chart(title=title, margin=parts.MarginChartContent(series=[series])))
            else:
                drawn.append(parts.Chart(title=title, multiline=parts.MultilineChartContent(tag=tags)))
        categories.append(parts.Category(title=category, chart=drawn))
    text = messages.tensors.TensorProto(
        dtype=messages.kinds.DT_STRING,
        string_val=[parts.Layout(category=categories).SerializeToString()],
        tensor_shape=messages.shape(),
    )
    return messages.plugin("custom_scalars__config__", "custom_scalars", text)


_FIELDS = {
    "float16": ("DT_HALF", "half_val"),
    "float32": ("DT_FLOAT", "float_val"),
    "float64": ("DT_DOUBLE", "double_val"),
    "int8": ("DT_INT8", "int_val"),
    "int16": ("DT_INT16", "int_val"),
    "int32": ("DT_INT32", "int_val"),
    "int64": ("DT_INT64", "int64_val"),
    "uint8": ("DT_UINT8", "int_val"),
    "bool": ("DT_BOOL", "bool_val"),
    "complex64": ("DT_COMPLEX64", "scomplex_val"),
    "complex128": ("DT_COMPLEX128", "dcomplex_val"),
}


def tensor(messages: Messages, tag: str, values: object) -> Summary.Value:
    """A tensor with all of its elements.

    Raises:
      ValueError: event files do not support this type of element.
    """
    import numpy as np

    array = host_array(values)
    if array.dtype.name not in _FIELDS:
        raise ValueError(
            f"add_tensor({tag!r}): an event file holds no {array.dtype.name}; it knows {', '.join(_FIELDS)}"
        )
    kind, field = _FIELDS[array.dtype.name]
    flat = array.reshape(-1)
    if array.dtype.kind == "c":
        flat = np.stack([flat.real, flat.imag], axis=-1).reshape(-1)
    elif array.dtype.name == "float16":
        flat = flat.view(np.uint16)
    proto = messages.tensors.TensorProto(
        **{"dtype": kind, "tensor_shape": messages.shape(*array.shape), field: flat.tolist()}
    )
    return messages.plugin(tag, "tensor", proto)


def boxed(picture_HWC: NDArray, boxes: object, labels: Sequence[str] | str | None = None) -> NDArray:
    """An image with red boxes drawn on it.

    Args:
      picture_HWC: [height, width, 3] uint8.
      boxes: [n, 4]: left, top, right, bottom, in pixels.
      labels: a text for each box, written at its lower left; ignored if their number differs.
    """
    import numpy as np

    image = need("PIL.Image", extra="tensorboard", why="add_image_with_boxes()")
    draw = need("PIL.ImageDraw", extra="tensorboard", why="add_image_with_boxes()")
    corners = host_array(boxes).reshape(-1, 4)
    texts = [labels] if isinstance(labels, str) else list(labels or ())
    canvas = image.fromarray(picture_HWC)
    pen = draw.Draw(canvas)
    for number, (left, top, right, bottom) in enumerate(corners.tolist()):
        pen.line([(left, top), (left, bottom), (right, bottom), (right, top), (left, top)], fill="red", width=2)
        if len(texts) == len(corners):
            place = pen.textbbox((left, bottom), texts[number], anchor="lb")
            pen.rectangle(place, fill="red")
            pen.text((left, bottom), texts[number], fill="black", anchor="lb")
    return np.asarray(canvas)


def _floats(messages: Messages, array: NDArray) -> TensorProto:
    return messages.tensors.TensorProto(
        dtype="DT_FLOAT", float_val=array.reshape(-1).tolist(), tensor_shape=messages.shape(*array.shape)
    )
