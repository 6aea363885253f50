"""Machine code of kernels: compiled by numba once, cached on disk, loaded without numba, called through ctypes.

A file holds a checksum and the object code of one kernel for one processor. Its name ends in a digest of everything the
code was made of: the Python of the kernel and of all it calls, the constants they use, the compiler's version, the
processor. By numba's convention a function gives a status and takes result*, exception**, then each number itself and
for each array meminfo*, parent*, count, item size, data*, shape…, strides….

Where that cannot be (no ELF, code that needs numba's runtime, bounds checks) numba calls the kernel itself.
"""

import ctypes
import hashlib
import importlib.util
import logging
import os
import struct
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.binlog import object_code, processor
from penstock.binlog.kernel import IS_CHECKED, Kernel, Shared, Signature, Type
from penstock.binlog.object_code import EXTERNAL_NAMES

_OPTIONS = {"nogil": True, "inline": "never", "_nrt": False}
_SUM_BYTES = 32
_KEEP_S = 7 * 24 * 3600
_INTRINSICS = Path(__file__).with_name("intrinsics.py")
log = logging.getLogger(__name__)
_lock = threading.RLock()


def callable_of(kernel: Kernel) -> Callable[..., Any]:
    """Return the kernel as a callable: from the cache on disk, or compiled and saved there."""
    with _lock:
        if IS_CHECKED or os.name != "posix":
            return _by_numba(kernel)
        for path in _cache_files(kernel):
            code = _read_cached_code(path)
            if code is not None:
                return _Native(kernel, *_load(code))
        _announce_compilation()
        code = _compile(kernel)
        if code is None:
            return _by_numba(kernel)
        _save(kernel, code)
        return _Native(kernel, *_load(code))


@cache
def _announce_compilation() -> None:
    """Print once in a process that kernels are being compiled: it takes up to a minute without any other output."""
    log.warning("compiling kernels for this machine: the next run loads them from disk and starts at once")


# -- on disk


def _cache_files(kernel: Kernel) -> Iterator[Path]:
    """Yield where the code may be: beside the source, or in the user's cache when that cannot be written."""
    source = Path(kernel.function.__code__.co_filename)
    # One function may be compiled for several types.
    kind = hashlib.sha256(str(kernel.signature).encode()).hexdigest()[:6]
    name = f"{source.stem}.{kernel.function.__name__}.{kind}-{_digest(kernel)}.code"
    yield source.parent / "__pycache__" / name
    own = os.environ.get("XDG_CACHE_HOME")
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.home fails for a user who has none
    if own or home != "~":
        yield Path(own or Path(home) / ".cache") / "penstock" / "kernels" / name


def _read_cached_code(path: Path) -> bytes | None:
    """Return the machine code of a kernel from its file in the disk cache; None when the file cannot be read, or does
    not match its checksum."""
    try:
        raw = path.read_bytes()
    except OSError:
        return None
    code = raw[_SUM_BYTES:]
    return code if hashlib.sha256(code).digest() == raw[:_SUM_BYTES] else None


def _save(kernel: Kernel, code: bytes) -> None:
    """Write compiled code to the cache."""
    for path in _cache_files(kernel):
        try:
            from penstock.disk import open_replacement  # noqa: PLC0415 - a process that finds all code needs none

            path.parent.mkdir(parents=True, exist_ok=True)
            suffix = f".{os.urandom(4).hex()}.part"  # of each process and thread
            with open_replacement(path, suffix=suffix, is_synced=False) as file:
                file.write(hashlib.sha256(code).digest() + code)
                os.fchmod(file.fileno(), 0o644)  # it may be for all users of an installation
            _sweep(path)
        except OSError:
            continue
        return


def _sweep(path: Path) -> None:
    """Remove cached code that the kernel had before, unless another version or processor may still use it."""
    for old in path.parent.glob(f"{path.name.rpartition('-')[0]}-*.code"):
        if old != path and time.time() - old.stat().st_mtime > _KEEP_S:
            old.unlink(missing_ok=True)


def _digest(kernel: Kernel) -> str:
    """Return a digest of everything that the machine code depends on: sources, constants, compiler, processor."""
    digest = hashlib.sha256(f"{_numba_version()} {processor.describe()} {kernel.signature}".encode())
    for part in sorted(_parts(kernel.function, set())):
        digest.update(part.encode())
    return digest.hexdigest()[:20]


def _parts(function: Any, seen: set[Any]) -> set[str]:
    """Return everything that the machine code of a kernel depends on, as texts: the bytecode of its functions, and the
    constants they use."""
    if function in seen:
        return set()
    seen.add(function)
    code = function.__code__
    parts = {_text(code)}
    for name in code.co_names:
        value: Any = function.__globals__.get(name)
        if isinstance(value, Shared) and value.function:
            parts |= _parts(value.function, seen) | {f"{name} {value.options}"}
        elif isinstance(value, Shared):
            parts.add(f"{value.__name__} {_intrinsics()}")
        elif isinstance(value, (int, float, bytes, np.generic)):
            parts.add(f"{name} {value!r}")
        elif isinstance(value, np.ndarray):
            parts.add(f"{name} {hashlib.sha256(value.tobytes()).hexdigest()}")
    return parts


@cache
def _text(code: types.CodeType) -> str:
    constants = [_text(value) if isinstance(value, types.CodeType) else repr(value) for value in code.co_consts]
    return f"{code.co_name} {code.co_code.hex()} {constants} {code.co_names} {code.co_varnames}"


@cache
def _numba_version() -> str:
    """Return numba's version from the name of its dist-info folder, which is faster than to parse its metadata."""
    spec = importlib.util.find_spec("numba")
    if spec is not None and spec.origin is not None:
        folders = [path.name for path in Path(spec.origin).parent.parent.glob("numba-*.dist-info")]
        if len(folders) == 1:
            return folders[0].removeprefix("numba-").removesuffix(".dist-info")
    from importlib.metadata import version  # noqa: PLC0415 - see above

    return version("numba")


@cache
def _intrinsics() -> str:
    return hashlib.sha256(_INTRINSICS.read_bytes()).hexdigest()


# -- by numba


def dispatcher_of(shared: Shared) -> Any:
    """Return a shared function as numba's dispatcher, for kernels that are being compiled."""
    from numba import njit  # noqa: PLC0415

    if shared.function is None:
        return getattr(importlib.import_module("penstock.binlog.intrinsics"), shared.__name__)
    return njit(**_OPTIONS, **shared.options)(_linked(shared.function))


def _linked(function: Any) -> Any:
    """Return the function with the shared functions that it names in the form that numba expects."""
    names = {name: value for name, value in function.__globals__.items() if isinstance(value, Shared)}
    used = {name: names[name].dispatcher for name in function.__code__.co_names if name in names}
    copy = types.FunctionType(function.__code__, function.__globals__ | used, function.__name__, function.__defaults__)
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    return copy


def _numba_type(of: Type) -> Any:
    from numba import types as nb  # noqa: PLC0415

    if of.dtype == "none":
        return nb.void
    number = getattr(nb, of.dtype)
    if of.ndim:
        return nb.Array(number, of.ndim, "C", readonly=of.is_readonly)
    return nb.UniTuple(number, of.count) if of.count > 1 else number


def _numba_signature(signature: Signature) -> Any:
    return _numba_type(signature.result)(*map(_numba_type, signature.args))


def _by_numba(kernel: Kernel) -> Callable[..., Any]:
    """Return the kernel compiled by numba in this process, where object code cannot be used."""
    from numba import njit  # noqa: PLC0415

    signature, function = _numba_signature(kernel.signature), _linked(kernel.function)
    try:
        return njit(signature, nogil=True, cache=True)(function)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        return njit(signature, nogil=True)(function)


def _compile(kernel: Kernel) -> bytes | None:
    """Compile a kernel; return the length of its name (4 bytes), the name and the object code; None when the code
    cannot stand alone."""
    from numba import njit  # noqa: PLC0415

    signature = _numba_signature(kernel.signature)
    compiler = njit(**_OPTIONS, no_cpython_wrapper=True, no_cfunc_wrapper=True)(_linked(kernel.function))
    compiler.compile(signature)
    result = compiler.overloads[tuple(signature.args)]
    name = result.fndesc.llvm_func_name
    result.library.get_pointer_to_function(name)
    _, _, (code, _) = result.library.serialize_using_object_code()
    if not code.startswith(b"\x7fELF\x02\x01") or missing_names(code) - EXTERNAL_NAMES:
        return None
    return struct.pack("<I", len(name)) + name.encode() + code


def missing_names(code: bytes) -> set[str]:
    """Return the names that object code (64-bit ELF, little-endian) expects from elsewhere."""
    (table,), (size, count) = struct.unpack_from("<Q", code, 40), struct.unpack_from("<HH", code, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, table + i * size) for i in range(count)]
    names: set[str] = set()
    for _, kind, _, _, start, length, link, *_ in sections:
        if kind == 2:  # symbols
            texts = sections[link][4]
            for at in range(start + 24, start + length, 24):
                name, _, _, section = struct.unpack_from("<IBBH", code, at)
                if section == 0:
                    names.add(code[texts + name : code.index(b"\0", texts + name)].decode())
    return names


# -- in memory


class _Engine:
    """Loads object code with LLVM; there is one for the process."""

    def __init__(self) -> None:
        from llvmlite import binding  # noqa: PLC0415 - takes its time

        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        machine = binding.Target.from_default_triple().create_target_machine()
        self._binding = binding
        self._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)

    def address(self, name: str, code: bytes) -> int:
        """Load object code and return the address of a function in it."""
        self._engine.add_object_file(self._binding.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        return self._engine.get_function_address(name)


_engines: list[_Engine] = []


def _load(raw: bytes) -> tuple[Any, int]:
    """Return what must live as long as the code, and the address of the code."""
    (length,) = struct.unpack_from("<I", raw)
    name, code = raw[4 : 4 + length].decode(), raw[4 + length :]
    loaded = object_code.load(code, name)
    if loaded is not None:
        return loaded, loaded.address
    if not _engines:
        _engines.append(_Engine())
    return _engines[0], _engines[0].address(name, code)


_DATA_AT = 16  # in an array object of CPython's numpy: after its reference count and its type


def _plain_address_of(array: NDArray[Any]) -> int:
    return array.__array_interface__["data"][0]


def _quick_address_of(array: NDArray[Any]) -> int:
    """Return the memory address of an array from numpy's own structure, seven times as fast as by its attributes."""
    return _pointer_at(id(array) + _DATA_AT).value or 0


def _is_quick_right() -> bool:
    """Return whether `_quick_address_of` finds the right addresses: it relies on how CPython and numpy lay out an
    array."""
    if sys.implementation.name != "cpython":
        return False
    arrays = [np.arange(7, dtype=np.int64)[2:], np.zeros((2, 3), np.uint8), np.frombuffer(b"abc", np.uint8)]
    return all(_quick_address_of(array) == _plain_address_of(array) for array in arrays)


_pointer_at = ctypes.c_void_p.from_address
_address_of = _quick_address_of if _is_quick_right() else _plain_address_of


class _Native:
    """Calls machine code with numbers and arrays, after checking their types."""

    def __init__(self, kernel: Kernel, engine: Any, address: int) -> None:
        pointer, number, signature = ctypes.c_void_p, ctypes.c_int64, kernel.signature
        kinds: list[Any] = []
        for argument in signature.args:
            kinds += (
                [pointer, pointer, number, number, pointer, *[number] * (2 * argument.ndim)]
                if argument.ndim
                else [number]
            )
        prototype = ctypes.PYFUNCTYPE if kernel.is_brief else ctypes.CFUNCTYPE
        self._call = prototype(ctypes.c_int32, pointer, pointer, *kinds)(address)
        self._args = [(argument.ndim, np.dtype(argument.dtype), argument.is_readonly) for argument in signature.args]
        self._count = signature.result.count if signature.result.dtype != "none" else 0
        self._engine = engine

    def __call__(self, *args: Any) -> Any:
        flat: list[Any] = []
        for value, (ndim, dtype, is_readonly) in zip(args, self._args, strict=True):
            if not ndim:
                flat.append(int(value))
                continue
            flags = value.flags
            if value.dtype != dtype or value.ndim != ndim or not flags.c_contiguous:
                raise TypeError(
                    f"a kernel wants {dtype} of {ndim} dimensions in C order, not {value.dtype} {value.shape}"
                )
            if not is_readonly and not flags.writeable:
                raise TypeError("a kernel would write into an array that is read-only")
            flat += (None, None, value.size, value.itemsize, _address_of(value))
            flat += value.shape
            flat += value.strides
        result, problem = (ctypes.c_int64 * max(self._count, 1))(), ctypes.c_void_p()
        status = self._call(ctypes.addressof(result), ctypes.addressof(problem), *flat)
        if status:
            raise RuntimeError(f"a kernel failed with status {status}")
        if self._count > 1:
            return tuple(result)
        return result[0] if self._count else None
