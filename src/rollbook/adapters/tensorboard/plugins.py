"""Hyper-parameters as TensorBoard's HPARAMS page reads them."""

from __future__ import annotations

from rollbook.system.optional import need
from rollbook.values import scalar_of
from rollbook.values.arrays import host_array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

    from tensorboard.compat.proto.summary_pb2 import Summary

    from rollbook.sinks.event_files import Messages

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
