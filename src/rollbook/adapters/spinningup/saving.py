"""Spinning Up's files of a trained agent (vars.pkl, pyt_save/, tf1_save/), each replaced atomically."""

from __future__ import annotations

import os
import shutil
import warnings
from importlib import import_module

from rollbook.errors import MissingExtra
from rollbook.system.files import replacing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType
    from typing import Any


def _need(package: str, why: str) -> ModuleType:
    """Import a package that the user chooses; no extra of rollbook installs it."""
    try:
        return import_module(package)
    except ModuleNotFoundError as err:
        if (err.name or "").partition(".")[0] != package:
            raise
        message = f"{why} of the Spinning Up adapter needs {package}, which is not installed: pip install {package}"
        raise MissingExtra(message) from None


def suffix(itr: int | None) -> str:
    """The suffix of a numbered save; "" without a number."""
    return "" if itr is None else f"{int(itr)}"


def _dump(value: object, path: str) -> None:
    """Pickle with joblib, as `load_policy_and_env` expects, or with the standard library, which it also reads."""
    try:
        writer = import_module("joblib")
    except ImportError:
        writer = import_module("pickle")
    with open(path, "wb") as file:  # a file object: joblib would derive a compression from the name
        writer.dump(value, file)


def save_vars(state: object, folder: str, itr: int | None) -> str:
    """Write vars<itr>.pkl and return its path. Errors of pickling are raised; the older file stays intact."""
    path = os.path.join(folder, f"vars{suffix(itr)}.pkl")
    with replacing(path) as temporary:
        _dump(state, temporary)
    return path


def save_model(model: object, folder: str, itr: int | None) -> str:
    """Write pyt_save/model<itr>.pt, the whole object as pickled by torch; returns its path."""
    torch = _need("torch", "setup_pytorch_saver()")
    where = os.path.join(folder, "pyt_save")
    os.makedirs(where, exist_ok=True)
    path = os.path.join(where, f"model{suffix(itr)}.pt")
    with replacing(path) as temporary, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about source code that cannot be saved with it
        torch.save(model, temporary)
    return path


def _tensorflow() -> ModuleType:
    """The TensorFlow 1 interface: of TensorFlow 1 itself, or the one that TensorFlow 2 includes."""
    tf = _need("tensorflow", "setup_tf_saver()")
    return tf if hasattr(getattr(tf, "saved_model", None), "simple_save") else tf.compat.v1


def save_tf_graph(
    elements: Mapping[str, Any], info: Mapping[str, Mapping[str, Any]], folder: str, itr: int | None
) -> str:
    """Write tf1_save<itr>/ (the graph, and model_info.pkl with tensor names); returns its path.

    Args:
      elements: session, inputs, outputs, as in `simple_save`.
      info: {"inputs": {name: tensor name}, "outputs": …}.
    """
    path = os.path.join(folder, f"tf1_save{suffix(itr)}")
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        _tensorflow().saved_model.simple_save(export_dir=temporary, **elements)
        _dump(info, os.path.join(temporary, "model_info.pkl"))
        shutil.rmtree(path, ignore_errors=True)
        os.replace(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return path


def restore_tf_graph(sess: object, fpath: str) -> dict[str, object]:
    """Load a graph written by `save_tf_graph` into a session. Returns its input and output tensors by name.

    Reads a pickle: only for files you trust.

    Args:
      sess: the session.
      fpath: the folder tf1_save<itr>.
    """
    tf = _tensorflow()
    tf.saved_model.loader.load(sess, [tf.saved_model.tag_constants.SERVING], fpath)
    joblib = _need("joblib", "restore_tf_graph()")
    info = joblib.load(os.path.join(fpath, "model_info.pkl"))
    graph = tf.get_default_graph()
    names = {**info["inputs"], **info["outputs"]}
    return {key: graph.get_tensor_by_name(name) for key, name in names.items()}
