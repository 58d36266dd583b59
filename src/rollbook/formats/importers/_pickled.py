"""Plain values out of pickles. A pickle is a program: its instructions are read here, and none is carried out.

    value_of_pickle(data)     {"rewards": [1.0, 2.0], "model": Unknown("torch.nn.Linear")}

Numbers, texts, lists and mappings are what they are; numpy's arrays and numbers are read from their bytes. Whatever
else a class or a function would have made is `Unknown`: its name is kept, and nothing of it is called.
"""

from __future__ import annotations

import pickletools
from typing import Any

_MOST_INSTRUCTIONS = 20_000_000
_MOST_NUMBERS = 50_000_000
_LITTLE, _BIG = "<", ">"

_MAPPINGS = frozenset({"collections.OrderedDict", "collections.defaultdict", "collections.Counter"})
_LISTS = frozenset({"collections.deque", "builtins.list", "builtins.set", "builtins.tuple", "builtins.frozenset"})


class Unknown:
    """What a class or a function would have made.

    Attributes:
      name: of the class or function.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Unknown({self.name!r})"


class _Named:
    """The name of a class or a function."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class _Type:
    """The type of an array's numbers."""

    __slots__ = ("order", "text")

    def __init__(self, text: str) -> None:
        self.text, self.order = text, _LITTLE


class _Array:
    """An array whose numbers come later."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: Any = Unknown("numpy.ndarray")


_MARK = object()


def value_of_pickle(data: bytes) -> Any:
    """The value that a pickle says, with numpy's arrays as lists, nested as their dimensions.

    Args:
      data: the whole file.
    Raises:
      ValueError: it is no pickle, it is damaged, or it has too many instructions.
    """
    try:
        return _without_arrays(_Reading().run(data), {})
    except (ArithmeticError, AttributeError, LookupError, TypeError, UnicodeError, RecursionError) as err:
        raise ValueError(f"no pickle, or damaged: {err}") from None


class _Reading:
    """The stack and the memory of the machine that a pickle is written for."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memory: dict[int, Any] = {}

    def run(self, data: bytes) -> Any:
        """The value on the stack at the end."""
        for n, (instruction, arg, _index) in enumerate(pickletools.genops(data)):
            if n > _MOST_INSTRUCTIONS:
                raise ValueError(f"more than {_MOST_INSTRUCTIONS:,} instructions")
            name = instruction.name
            if name == "STOP":
                return self._stack.pop()
            if name in _CONSTANTS:
                self._stack.append(arg)
            else:
                getattr(self, f"_{name.lower()}", self._other)(arg)
        raise ValueError("its end is missing")

    def _other(self, arg: object) -> None:
        raise ValueError(f"an instruction that is not known ({arg!r})")

    def _marked(self) -> list[Any]:
        """What is above the last mark, which is removed with it."""
        for n in range(len(self._stack) - 1, -1, -1):
            if self._stack[n] is _MARK:
                above = self._stack[n + 1 :]
                del self._stack[n:]
                return above
        raise ValueError("a mark is missing")

    def _proto(self, _arg: object) -> None:
        pass

    _frame = _proto

    def _none(self, _arg: object) -> None:
        self._stack.append(None)

    def _newtrue(self, _arg: object) -> None:
        self._stack.append(True)

    def _newfalse(self, _arg: object) -> None:
        self._stack.append(False)

    def _mark(self, _arg: object) -> None:
        self._stack.append(_MARK)

    def _pop(self, _arg: object) -> None:
        self._stack.pop()

    def _pop_mark(self, _arg: object) -> None:
        self._marked()

    def _dup(self, _arg: object) -> None:
        self._stack.append(self._stack[-1])

    # -- memory

    def _put(self, arg: int) -> None:
        self._memory[arg] = self._stack[-1]

    _binput = _long_binput = _put

    def _memoize(self, _arg: object) -> None:
        self._memory[len(self._memory)] = self._stack[-1]

    def _get(self, arg: int) -> None:
        self._stack.append(self._memory[arg])

    _binget = _long_binget = _get

    # -- lists, mappings

    def _empty_list(self, _arg: object) -> None:
        self._stack.append([])

    _empty_set = _empty_list

    def _empty_dict(self, _arg: object) -> None:
        self._stack.append({})

    def _empty_tuple(self, _arg: object) -> None:
        self._stack.append(())

    def _list(self, _arg: object) -> None:
        self._stack.append(self._marked())

    _frozenset = _list

    def _tuple(self, _arg: object) -> None:
        self._stack.append(tuple(self._marked()))

    def _tuple1(self, _arg: object) -> None:
        self._stack[-1:] = [tuple(self._stack[-1:])]

    def _tuple2(self, _arg: object) -> None:
        self._stack[-2:] = [tuple(self._stack[-2:])]

    def _tuple3(self, _arg: object) -> None:
        self._stack[-3:] = [tuple(self._stack[-3:])]

    def _dict(self, _arg: object) -> None:
        self._stack.append({})
        above = self._marked_before_last()
        self._set(above)

    def _marked_before_last(self) -> list[Any]:
        made = self._stack.pop()
        above = self._marked()
        self._stack.append(made)
        return above

    def _append(self, _arg: object) -> None:
        value = self._stack.pop()
        self._extend([value])

    def _appends(self, _arg: object) -> None:
        self._extend(self._marked())

    _additems = _appends

    def _extend(self, values: list[Any]) -> None:
        if isinstance(self._stack[-1], list):
            self._stack[-1].extend(values)

    def _setitem(self, _arg: object) -> None:
        pair = self._stack[-2:]
        del self._stack[-2:]
        self._set(pair)

    def _setitems(self, _arg: object) -> None:
        self._set(self._marked())

    def _set(self, flat: list[Any]) -> None:
        made = self._stack[-1]
        for key, value in zip(flat[::2], flat[1::2], strict=True):
            if isinstance(made, dict) and isinstance(key, (str, int, float, bool, bytes, type(None))):
                made[key] = value

    # -- classes and functions, none of which is looked up

    def _global(self, arg: str) -> None:
        self._stack.append(_Named(arg.replace(" ", ".", 1)))

    def _stack_global(self, _arg: object) -> None:
        module, name = self._stack[-2:]
        self._stack[-2:] = [_Named(f"{module}.{name}")]

    def _ext1(self, arg: object) -> None:
        self._stack.append(_Named(f"extension {arg}"))

    _ext2 = _ext4 = _ext1

    def _persid(self, arg: object) -> None:
        self._stack.append(Unknown(f"a value kept elsewhere ({arg})"))

    def _binpersid(self, _arg: object) -> None:
        self._persid(self._stack.pop())

    def _reduce(self, _arg: object) -> None:
        named, args = self._stack[-2:]
        self._stack[-2:] = [_made(named, args)]

    _newobj = _reduce

    def _newobj_ex(self, _arg: object) -> None:
        named = self._stack[-3]
        self._stack[-3:] = [_made(named, ())]

    def _inst(self, arg: str) -> None:
        self._marked()
        self._stack.append(Unknown(arg))

    def _obj(self, _arg: object) -> None:
        above = self._marked()
        self._stack.append(_made(above[0], ()))

    def _build(self, _arg: object) -> None:
        state = self._stack.pop()
        made = self._stack[-1]
        if isinstance(made, _Type) and isinstance(state, tuple) and state[1] in (_LITTLE, _BIG):
            made.order = state[1]
        elif isinstance(made, _Array) and isinstance(state, tuple) and len(state) == 5:
            _version, shape, kind, is_fortran, content = state
            made.value = _array(content, kind, shape, is_fortran=bool(is_fortran))


_CONSTANTS = frozenset(
    instruction.name
    for instruction in pickletools.opcodes
    if instruction.arg is not None
    and instruction.stack_before == []
    and instruction.name.startswith(
        ("INT", "BININT", "LONG1", "LONG4", "LONG", "FLOAT", "BINFLOAT", "STRING", "BINSTRING", "SHORT_BIN", "BINBYTES",
         "BINUNICODE", "UNICODE", "BYTEARRAY")
    )
    and not instruction.name.startswith("LONG_BIN")
)  # fmt: skip
"""Instructions that put their argument on the stack."""


def _made(named: object, args: object) -> Any:
    """What a class or a function would have made, if it is plain; nothing is called but what is written here."""
    name = named.name if isinstance(named, _Named) else ""
    given = args if isinstance(args, tuple) else ()
    last = name.rpartition(".")[2]
    if name.startswith("numpy."):
        if last == "_reconstruct":
            return _Array()
        if last == "dtype" and given:
            return _Type(str(given[0]))
        if last == "scalar" and len(given) == 2:
            numbers = _array(given[1], given[0], (1,))
            return numbers[0] if isinstance(numbers, list) else numbers
        if last == "_frombuffer" and len(given) == 4:
            return _array(given[0], given[1], given[2], is_fortran=given[3] == "F")
    if name in _MAPPINGS:
        pairs = given[0] if given and isinstance(given[0], (list, tuple, dict)) else ()
        return dict(pairs) if isinstance(pairs, dict) or all(len(pair) == 2 for pair in pairs) else {}
    if name in _LISTS or name.replace("__builtin__", "builtins") in _LISTS:
        return list(given[0]) if given and isinstance(given[0], (list, tuple)) else []
    if name == "_codecs.encode" and given and isinstance(given[0], str):
        return given[0].encode("latin-1")
    return Unknown(name or "something")


def _array(content: object, kind: object, shape: object, *, is_fortran: bool = False) -> Any:
    """The numbers of an array as lists; `Unknown` for other arrays."""
    import numpy as np

    if isinstance(content, list):  # of objects
        return content
    if isinstance(content, str):  # as Python 2 wrote it
        content = content.encode("latin-1")
    if not isinstance(content, (bytes, bytearray)) or not isinstance(kind, _Type) or not isinstance(shape, tuple):
        return Unknown("numpy.ndarray")
    try:
        dtype = np.dtype(kind.text).newbyteorder(">" if kind.order == _BIG else "<")
        if dtype.kind not in "fiub" or len(content) // dtype.itemsize > _MOST_NUMBERS:
            return Unknown(f"numpy.ndarray of {kind.text}")
        numbers = np.frombuffer(content, dtype)
        return numbers.reshape(shape, order="F" if is_fortran else "C").tolist()
    except (TypeError, ValueError):
        return Unknown("numpy.ndarray")


def _without_arrays(value: Any, done: dict[int, Any]) -> Any:
    """The value with the numbers of its arrays. What is in several lists at once is done once.

    Args:
      done: identity of a value -> (the value, what became of it).
    """
    if isinstance(value, _Array):
        return value.value
    if not isinstance(value, (dict, list, tuple)):
        return value
    if id(value) in done:
        return done[id(value)][1]
    made: Any = {} if isinstance(value, dict) else []
    done[id(value)] = (value, made)
    if isinstance(value, dict):
        made.update((str(key), _without_arrays(inner, done)) for key, inner in value.items())
    elif all(type(inner) in (float, int) for inner in value):
        made.extend(value)
    else:
        made.extend(_without_arrays(inner, done) for inner in value)
    return made
