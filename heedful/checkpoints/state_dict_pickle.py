"""The pickle in a file of torch.save, interpreted without running it.

A pickle is a program for a small stack machine, and the danger lies in the opcodes that call what they name. This
interpreter knows the opcodes that a dictionary of tensors needs and the few names that torch writes for it. It imports
nothing: a name stands for a function of this file, and any other name is refused. What comes out describes tensors, and
no number of them is read.

ValueError says that the pickle is not sound; HeedfulError, that it asks for something else than tensors.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from heedful.errors import HeedfulError

# Far more than the largest encoders need (about 40 opcodes a tensor), and little enough to be done with in seconds.
MOST_BYTES = 20_000_000
MOST_OPCODES = 500_000
MOST_ON_STACK = 100_000
MOST_DIMENSIONS = 64
_LONGEST_STRING = 65_536
_LONGEST_NAME = 1_000
_LONGEST_INTEGER = 16  # bytes


@dataclass(frozen=True)
class StorageRef:
    """A storage, or the run of `length` numbers from `first` on in it, that tensors are views of."""

    key: str
    dtype: str
    count: int
    first: int
    length: int


@dataclass(frozen=True)
class TensorRef:
    """A tensor as a view of a storage; offset and strides count numbers, not bytes."""

    storage: StorageRef
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


@dataclass(frozen=True)
class _Name:
    """What a name in the pickle stands for: a call, or the type of the numbers in a storage."""

    call: Callable[..., Any] | None = None
    dtype: str | None = None


def read_pickle(data: memoryview, start: int, where: object) -> tuple[Any, int]:
    """The value of the pickle that starts at a byte of `data`, and the byte after its end."""
    machine = _Machine(data[start : start + MOST_BYTES], where)
    return machine.run(), start + machine.position


def _ordered_dict(*pairs: Any) -> dict[Any, Any]:
    """Python 3 makes it empty and fills it later; Python 2 gave a list of pairs."""
    if not pairs:
        return {}
    (items,) = pairs
    if not isinstance(items, list) or not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in items):
        raise ValueError("an ordered dictionary is made of something else than pairs")
    return {_as_key(key): value for key, value in items}


def _tensor(storage: Any, offset: Any, shape: Any, stride: Any, *_: Any) -> TensorRef:
    """torch._utils._rebuild_tensor_v2, with everything checked that a read relies on."""
    if not isinstance(storage, StorageRef):
        raise ValueError("a tensor has no storage")
    if not (isinstance(shape, tuple) and isinstance(stride, tuple) and len(shape) == len(stride) <= MOST_DIMENSIONS):
        raise ValueError("a tensor has no sound shape")
    if not all(type(number) is int and number >= 0 for number in (offset, *shape, *stride)):
        raise ValueError("a tensor has no sound shape")
    last = offset + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
    count = math.prod(shape)
    if count > storage.length or (count and last >= storage.length):
        what = f"a tensor of the shape {list(shape)} does not fit into its storage of {storage.length} numbers"
        raise ValueError(what)
    return TensorRef(storage, storage.first + offset, shape, stride)


def _parameter(tensor: Any, *_: Any) -> TensorRef:
    """torch._utils._rebuild_parameter."""
    if not isinstance(tensor, TensorRef):
        raise ValueError("a parameter is made of something else than a tensor")
    return tensor


_NAMES: Mapping[str, _Name] = {
    "collections.OrderedDict": _Name(call=_ordered_dict),
    "torch._utils._rebuild_tensor_v2": _Name(call=_tensor),
    "torch._utils._rebuild_parameter": _Name(call=_parameter),
    "torch.DoubleStorage": _Name(dtype="F64"),
    "torch.FloatStorage": _Name(dtype="F32"),
    "torch.HalfStorage": _Name(dtype="F16"),
    "torch.BFloat16Storage": _Name(dtype="BF16"),
    "torch.LongStorage": _Name(dtype="I64"),
    "torch.IntStorage": _Name(dtype="I32"),
    "torch.ShortStorage": _Name(dtype="I16"),
    "torch.CharStorage": _Name(dtype="I8"),
    "torch.ByteStorage": _Name(dtype="U8"),
    "torch.BoolStorage": _Name(dtype="BOOL"),
}


@dataclass
class _Machine:
    """The stack machine: `stack` above the newest mark, and below each mark a stack that waits."""

    data: memoryview
    where: object
    position: int = 0
    stack: list[Any] = field(default_factory=list)
    waiting: list[list[Any]] = field(default_factory=list)
    depth: int = 0  # numbers of values on stacks that wait
    memo: dict[int, Any] = field(default_factory=dict)

    def run(self) -> Any:
        """The value on top when the pickle says stop."""
        for _ in range(MOST_OPCODES):
            if self.position >= len(self.data):
                raise ValueError("the pickle has no end")
            opcode = self.data[self.position]
            self.position += 1
            if opcode == _STOP:
                return self.pop()
            if opcode not in _OPCODES:
                raise ValueError(f"the opcode {bytes([opcode])!r} at byte {self.position - 1} is none of a state dict")
            _OPCODES[opcode](self)
            if len(self.stack) + self.depth + len(self.waiting) > MOST_ON_STACK:
                raise ValueError(f"more than {MOST_ON_STACK} values wait on its stack")
        raise ValueError(f"it has more than {MOST_OPCODES} steps")

    def take(self, count: int) -> bytes:
        """The next bytes."""
        taken = bytes(self.data[self.position : self.position + count])
        if len(taken) < count:
            raise ValueError("the pickle has no end")
        self.position += count
        return taken

    def number(self, size: int) -> int:
        """The next bytes as a number that is not negative."""
        return int.from_bytes(self.take(size), "little")

    def line(self) -> str:
        """The text up to the next end of a line."""
        content = bytes(self.data[self.position : self.position + _LONGEST_NAME])
        text, found, _ = content.partition(b"\n")
        if not found:
            raise ValueError("a name in it has no end")
        self.position += len(text) + 1
        return text.decode("utf-8")

    def text(self, size: int) -> str:
        """A string of so many bytes."""
        if size > _LONGEST_STRING:
            raise ValueError(f"a string in it has {size} bytes")
        return self.take(size).decode("utf-8")

    def push(self, value: Any) -> None:
        """Put a value on the stack."""
        self.stack.append(value)

    def pop(self) -> Any:
        """Take the value from the top of the stack."""
        if not self.stack:
            raise ValueError("it takes a value from an empty stack")
        return self.stack.pop()

    def pop_all(self) -> list[Any]:
        """Take all values above the newest mark, and the mark."""
        if not self.waiting:
            raise ValueError("it goes back to a mark that was not set")
        values, self.stack = self.stack, self.waiting.pop()
        self.depth -= len(self.stack)
        return values

    def mark(self) -> None:
        """Begin a new stack above this one."""
        self.waiting.append(self.stack)
        self.depth += len(self.stack)
        self.stack = []

    def top(self, kind: type) -> Any:
        """The value on top of the stack, which has to be of a kind."""
        value = self.stack[-1] if self.stack else None
        if not isinstance(value, kind):
            raise ValueError(f"it fills a {kind.__name__} where there is none")
        return value

    def named(self, module: str, name: str) -> _Name:
        """What a name stands for."""
        full = f"{module}.{name}"
        if full not in _NAMES:
            raise HeedfulError(
                f"the file asks for {full[:200]!r}, which no dictionary of tensors needs; nothing of it was run",
                where=self.where,
                remedy="use a file that holds only the weights, and do not trust where this one comes from",
            )
        return _NAMES[full]

    def stack_global(self) -> None:
        """A name whose two parts lie on the stack."""
        name, module = self.pop(), self.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise ValueError("a name in it is no text")
        self.push(self.named(module, name))

    def instance(self) -> None:
        """The oldest way to call a name, which torch never wrote: known only to tell whom it asks for."""
        self.named(self.line(), self.line())
        raise ValueError("it makes an object in a way that torch does not")

    def put(self, place: int) -> None:
        """Remember the top of the stack."""
        self.memo[place] = self.top(object)

    def get(self, place: int) -> None:
        """Put what was remembered on the stack."""
        if place not in self.memo:
            raise ValueError("it asks for a value that it did not keep")
        self.push(self.memo[place])

    def reduce(self) -> None:
        """Call what a name stands for."""
        arguments, name = self.pop(), self.pop()
        if not isinstance(name, _Name) or name.call is None or not isinstance(arguments, tuple):
            raise ValueError("it calls what cannot be called")
        try:
            self.push(name.call(*arguments))
        except TypeError as error:
            raise ValueError("it calls something with too few or too many values") from error

    def build(self) -> None:
        """Attributes for an object; torch sets one, `_metadata` of an ordered dictionary, which nobody needs."""
        state = self.pop()
        self.top(dict)
        if not isinstance(state, dict):
            raise ValueError("it sets attributes that have no names")

    def set_items(self, items: list[Any]) -> None:
        """Put keys and values by turns into the dictionary on top."""
        if len(items) % 2:
            raise ValueError("a key in it has no value")
        target = self.top(dict)
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[_as_key(key)] = value

    def set_item(self) -> None:
        """Put one key and its value into the dictionary below them."""
        value, key = self.pop(), self.pop()
        self.set_items([key, value])

    def append(self) -> None:
        """Put one value into the list below it."""
        value = self.pop()
        self.top(list).append(value)

    def append_all(self) -> None:
        """Put all values above the mark into the list below it."""
        values = self.pop_all()
        self.top(list).extend(values)

    def tuple_of(self, count: int) -> None:
        """Make a tuple of the values on top."""
        self.push(tuple([self.pop() for _ in range(count)][::-1]))

    def storage(self) -> None:
        """A persistent id: ("storage", its type, key, device, count of numbers), in old files with a view of it."""
        found = self.pop()
        if not isinstance(found, tuple) or len(found) not in (5, 6) or found[0] != "storage":
            raise ValueError("it refers to something that is no storage")
        _, kind, key, _, count, *views = found
        if not isinstance(kind, _Name) or kind.dtype is None or not isinstance(key, str) or type(count) is not int:
            raise ValueError("it refers to a storage of no known type")
        first, length = 0, count
        if views and views[0] is not None:
            if not isinstance(views[0], tuple) or len(views[0]) != 3:
                raise ValueError("it refers to a view of a storage that is none")
            _, first, length = views[0]
        if type(first) is not int or type(length) is not int or not 0 <= first <= first + length <= count:
            raise ValueError("a view is larger than its storage")
        self.push(StorageRef(key, kind.dtype, count, first, length))

    def integer(self, size: int) -> int:
        """A number of any length, which may be negative."""
        if size > _LONGEST_INTEGER:
            raise ValueError(f"a number in it has {size} bytes")
        return int.from_bytes(self.take(size), "little", signed=True)


def _as_key(key: Any) -> str | int:
    """Nested values as keys could take forever to compare."""
    if not isinstance(key, str | int):
        raise ValueError("a key in it is neither text nor a number")
    return key


_STOP = ord(".")
_OPCODES: Mapping[int, Callable[[_Machine], Any]] = {
    0x80: lambda m: m.take(1),  # the protocol
    0x95: lambda m: m.take(8),  # the length of a frame
    ord("("): _Machine.mark,
    ord("N"): lambda m: m.push(None),
    0x88: lambda m: m.push(True),
    0x89: lambda m: m.push(False),
    ord("J"): lambda m: m.push(m.integer(4)),
    ord("K"): lambda m: m.push(m.number(1)),
    ord("M"): lambda m: m.push(m.number(2)),
    0x8A: lambda m: m.push(m.integer(m.number(1))),
    ord("G"): lambda m: m.push(struct.unpack(">d", m.take(8))[0]),
    ord("X"): lambda m: m.push(m.text(m.number(4))),
    0x8C: lambda m: m.push(m.text(m.number(1))),
    ord("T"): lambda m: m.push(m.text(m.number(4))),  # strings of Python 2
    ord("U"): lambda m: m.push(m.text(m.number(1))),
    ord(")"): lambda m: m.push(()),
    ord("t"): lambda m: m.push(tuple(m.pop_all())),
    0x85: lambda m: m.tuple_of(1),
    0x86: lambda m: m.tuple_of(2),
    0x87: lambda m: m.tuple_of(3),
    ord("]"): lambda m: m.push([]),
    ord("a"): _Machine.append,
    ord("e"): _Machine.append_all,
    ord("}"): lambda m: m.push({}),
    ord("s"): _Machine.set_item,
    ord("u"): lambda m: m.set_items(m.pop_all()),
    ord("c"): lambda m: m.push(m.named(m.line(), m.line())),
    ord("i"): _Machine.instance,
    0x93: _Machine.stack_global,
    ord("R"): _Machine.reduce,
    ord("b"): _Machine.build,
    ord("Q"): _Machine.storage,
    ord("q"): lambda m: m.put(m.number(1)),
    ord("r"): lambda m: m.put(m.number(4)),
    0x94: lambda m: m.put(len(m.memo)),
    ord("h"): lambda m: m.get(m.number(1)),
    ord("j"): lambda m: m.get(m.number(4)),
}
