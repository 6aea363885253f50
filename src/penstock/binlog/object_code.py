"""Object code of kernels → memory that can be called, without LLVM: its library takes longer to load than a small log
takes to read.

What LLVM writes for a just-in-time compiler on x86-64 Linux needs little: sections that go into memory as they are, and
64-bit absolute addresses in them (the large code model). `load` returns None for anything else, and LLVM does it.

    ELF header   … | section table 8 at 40 | … | entry size 2 at 58 | entries 2 | names' section 2
    section      name 4 | type 4 | flags 8 | address 8 | offset 8 | size 8 | link 4 | info 4 | alignment 8 | entry 8
    symbol       name 4 | info 1 | other 1 | section 2 | value 8 | size 8
    relocation   offset 8 | type 4, symbol 4 | addend 8
"""

import ctypes
import mmap
import os
import struct
import sys
from dataclasses import dataclass
from functools import cache

_PROGBITS, _SYMBOLS, _RELOCATIONS, _NOBITS = 1, 2, 4, 8
_ALLOCATED = 2  # of a section's flags
_ABSOLUTE_64 = 1  # R_X86_64_64
_X86_64 = 62
_UNDEFINED = 0


@dataclass(frozen=True, slots=True)
class LoadedCode:
    """A function in memory; the memory lives as long as this."""

    memory: mmap.mmap
    address: int


@dataclass(frozen=True, slots=True)
class _ElfSection:
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int


def load(code: bytes, name: str) -> LoadedCode | None:
    """Put object code into executable memory; None when it is more than this module knows, or the system forbids it."""
    if not _is_here(code):
        return None
    sections = _sections_of(code)
    starts, size = _lay_out(sections)
    if size is None:
        return None
    try:
        memory = mmap.mmap(-1, max(size, 1))
    except OSError:
        return None
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for index, start in starts.items():
        section = sections[index]
        if section.kind == _PROGBITS:
            memory[start : start + section.size] = code[section.offset : section.offset + section.size]
    table = next((section for section in sections if section.kind == _SYMBOLS), None)
    if table is None or not _relocate(code, sections, table, starts, memory, base):
        return None
    address = _address_of(code, sections, table, name, starts, base)
    if address is None or _libc().mprotect(
        ctypes.c_void_p(base), ctypes.c_size_t(size), mmap.PROT_READ | mmap.PROT_EXEC
    ):
        return None
    return LoadedCode(memory, address)


def _is_here(code: bytes) -> bool:
    """Tell whether it is code for this kind of machine."""
    is_elf = code.startswith(b"\x7fELF\x02\x01") and struct.unpack_from("<H", code, 18)[0] == _X86_64
    return is_elf and sys.platform == "linux" and os.uname().machine == "x86_64"


def _sections_of(code: bytes) -> list[_ElfSection]:
    (table,), (size, count) = struct.unpack_from("<Q", code, 40), struct.unpack_from("<HH", code, 58)
    sections: list[_ElfSection] = []
    for i in range(count):
        _, kind, flags, _, offset, length, link, info, alignment, _ = struct.unpack_from(
            "<IIQQQQIIQQ", code, table + i * size
        )
        sections.append(_ElfSection(kind, flags, offset, length, link, info, alignment))
    return sections


def _lay_out(sections: list[_ElfSection]) -> tuple[dict[int, int], int | None]:
    """Return where in memory each section begins, and the size of all; no size when there is one of an unknown kind."""
    starts: dict[int, int] = {}
    end = 0
    for index, section in enumerate(sections):
        if not section.flags & _ALLOCATED or not section.size:
            continue
        if section.kind not in {_PROGBITS, _NOBITS}:
            if section.kind == _RELOCATIONS:
                continue
            return {}, None
        end = -(-end // max(section.alignment, 1)) * max(section.alignment, 1)
        starts[index] = end
        end += section.size
    return starts, end


def _symbol(code: bytes, sections: list[_ElfSection], table: _ElfSection, number: int) -> tuple[str, int, int]:
    """Return a symbol's name, section and value."""
    name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", code, table.offset + 24 * number)
    texts = sections[table.link].offset
    return code[texts + name : code.index(b"\0", texts + name)].decode(), section, value


def _relocate(
    code: bytes, sections: list[_ElfSection], table: _ElfSection, starts: dict[int, int], memory: mmap.mmap, base: int
) -> bool:
    """Write every address that the code has to know; False when one is of an unknown kind or of nothing known."""
    for section in sections:
        if section.kind != _RELOCATIONS or section.info not in starts:
            continue
        for at in range(section.offset, section.offset + section.size, 24):
            offset, kind, number, addend = struct.unpack_from("<QIIq", code, at)
            name, home, value = _symbol(code, sections, table, number)
            target = _external(name) if home == _UNDEFINED else base + starts[home] + value if home in starts else None
            if kind != _ABSOLUTE_64 or target is None:
                return False
            struct.pack_into("<Q", memory, starts[section.info] + offset, (target + addend) & (1 << 64) - 1)
    return True


def _address_of(
    code: bytes, sections: list[_ElfSection], table: _ElfSection, wanted: str, starts: dict[int, int], base: int
) -> int | None:
    for number in range(1, table.size // 24):
        name, home, value = _symbol(code, sections, table, number)
        if name == wanted and home in starts:
            return base + starts[home] + value
    return None


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


@cache
def _external(name: str) -> int | None:
    """Return the address of a function of the C library."""
    if name not in EXTERNAL_NAMES:
        return None
    return ctypes.cast(getattr(_libc(), name), ctypes.c_void_p).value


EXTERNAL_NAMES = frozenset({"memcpy", "memset", "memmove"})
"""What kernels may expect from the C library."""
