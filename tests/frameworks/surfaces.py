"""Compares what a module of a framework offers with what stands in for it: names, methods, arguments, their places."""

from __future__ import annotations

import inspect
import types
from types import ModuleType
from typing import Any


def public_names(module: ModuleType) -> list[str]:
    """What a module defines for others: classes, functions, constants, and the modules below it."""
    listed = getattr(module, "__all__", None)
    project, names = module.__name__.partition(".")[0], []
    for name in vars(module) if listed is None else listed:
        value = getattr(module, name, None)
        if name.startswith("_") or type(value).__module__ in ("typing", "__future__"):
            continue
        if isinstance(value, ModuleType) and not value.__name__.startswith(f"{module.__name__}."):
            continue  # it is imported for use in there
        is_code = isinstance(value, (type, types.FunctionType))
        if is_code and value.__module__.partition(".")[0] != project:
            continue
        names.append(name)
    return names


def lacking_in_module(theirs: ModuleType, ours: Any, aside: dict[str, str]) -> list[str]:
    """What `theirs` has and `ours` lacks, as name, Class.method or Class.method(argument=), but what is aside."""
    found = []
    for name in public_names(theirs):
        if name in aside:
            continue
        if not hasattr(ours, name):
            found.append(name)
            continue
        theirs_value, ours_value = getattr(theirs, name), getattr(ours, name)
        if isinstance(theirs_value, type) and isinstance(ours_value, type):
            found += lacking_in_class(theirs_value, ours_value, name)
        elif inspect.isroutine(theirs_value) and callable(ours_value):
            found += lacking_arguments(theirs_value, ours_value, name)
    return [entry for entry in found if entry not in aside]


def lacking_in_class(theirs: type, ours: type, name: str) -> list[str]:
    """Public methods and properties, and the arguments of each, the constructor's too."""
    if theirs is ours:
        return []
    found = []
    inherited = set(dir(object)) - {"__init__"}
    for attribute in dir(theirs):
        if attribute in inherited or (attribute.startswith("_") and attribute != "__init__"):
            continue
        value = getattr(theirs, attribute)
        if not hasattr(ours, attribute):
            found.append(f"{name}.{attribute}")
        elif inspect.isroutine(value) and attribute != "__init__":
            found += lacking_arguments(value, getattr(ours, attribute), f"{name}.{attribute}")
    if theirs.__init__ is not object.__init__:
        found += lacking_arguments(theirs, ours, name)
    return found


def lacking_arguments(theirs: Any, ours: Any, name: str) -> list[str]:
    """Arguments that ours does not take by name, and those that do not stand in the same place."""
    try:
        wanted, given = inspect.signature(theirs).parameters, inspect.signature(ours).parameters
    except (TypeError, ValueError):
        return []
    kinds = {parameter.kind for parameter in given.values()}
    any_name, any_place = inspect.Parameter.VAR_KEYWORD in kinds, inspect.Parameter.VAR_POSITIONAL in kinds
    found = []
    names = [p.name for p in wanted.values() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    for place, argument in enumerate(names):
        if argument not in given:
            if not any_name:
                found.append(f"{name}({argument}=)")
        elif (
            wanted[argument].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
            and not any_place
            and list(given).index(argument) != place
        ):
            found.append(f"{name}({argument}, by position)")
    return found
