"""A linker for one ELF object: it concatenates sections and applies relocations."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from xetl.errors import InternalError
from xetl.records import record

_PROGBITS, _SYMTAB, _RELA, _NOBITS, _REL = 1, 2, 4, 8, 9
_WRITE, _ALLOC, _TLS = 1, 2, 0x400
_UNDEFINED, _ABSOLUTE, _COMMON = 0, 0xFFF1, 0xFFF2
_UNWIND = (".eh_frame", ".note", ".llvm", ".gcc")
"""Sections that are not needed at run time: exceptions never leave a kernel."""

_R_64, _R_PC32, _R_GOT32, _R_PLT32, _R_GOTPCREL, _R_32, _R_32S, _R_PC64 = (
    1, 2, 3, 4, 9, 10, 11, 24,
)  # fmt: skip
_R_GOTPCRELX, _R_REX_GOTPCRELX = 41, 42
_RELATIVE = {_R_PC32: 4, _R_PLT32: 4, _R_PC64: 8}
_NAMES = {_R_64: "R_X86_64_64", _R_32: "R_X86_64_32", _R_32S: "R_X86_64_32S"}
_STUB = b"\xff\x25"  # jmp *disp32(%rip)
_STUB_SIZE = 16


@record()
class _Section:
    """A row of the table of sections."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    place: int = -1
    """Its offset in the image; -1: left out."""


@record(frozen=True)
class _Symbol:
    """A row of the table of symbols."""

    name: str
    section: int
    value: int
    is_global: bool


def link(
    obj: bytes, allowed_imports: frozenset[str]
) -> tuple[bytes, dict[str, int], dict[str, int]]:
    """Resolve ``obj`` into (code, offsets of global symbols, slots of imports)."""
    return _Linker(obj, allowed_imports).run()


class _Linker:
    """The state of linking one object."""

    def __init__(self, obj: bytes, allowed_imports: frozenset[str]) -> None:
        if obj[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<HH", obj, 16) != (
            1,
            62,
        ):
            raise InternalError("not a relocatable ELF object for x86-64")
        self.obj = obj
        self.allowed = allowed_imports
        self.sections = _read_sections(obj)
        self.symbols = list(self._read_symbols())
        self.code = bytearray()
        self.imports: dict[str, int] = {}
        """Offset of the stub of each imported function."""

    def run(self) -> tuple[bytes, dict[str, int], dict[str, int]]:
        """Lay out and relocate; return the code and its tables."""
        self._lay_out()
        for section in self.sections:
            if section.kind == _REL:
                raise InternalError("the object has relocations without addends")
            if section.kind == _RELA and self.sections[section.info].place >= 0:
                self._relocate(section)
        offsets = {
            symbol.name: self._address(symbol)
            for symbol in self.symbols
            if symbol.is_global and 0 < symbol.section < len(self.sections)
            and self.sections[symbol.section].place >= 0
        }  # fmt: skip
        slots = {name: stub + 8 for name, stub in self.imports.items()}
        return bytes(self.code), offsets, slots

    def _read_symbols(self) -> Iterator[_Symbol]:
        table = next((s for s in self.sections if s.kind == _SYMTAB), None)
        if table is None:
            return
        strings = self.sections[table.link].offset
        for at in range(table.offset, table.offset + table.size, 24):
            name, info, _, section, value, _ = struct.unpack_from(
                "<IBBHQQ", self.obj, at
            )
            text = _string(self.obj, strings + name)
            yield _Symbol(text, section, value, info >> 4 != 0)

    def _lay_out(self) -> None:
        """Copy every section that is needed at run time, code first."""
        kept = [s for s in self.sections if self._is_kept(s)]
        for section in sorted(kept, key=lambda each: each.name != ".text"):
            alignment = max(section.alignment, 16)
            self.code.extend(bytes(-len(self.code) % alignment))
            section.place = len(self.code)
            data = self.obj[section.offset : section.offset + section.size]
            self.code.extend(data)

    def _is_kept(self, section: _Section) -> bool:
        if not section.flags & _ALLOC or section.size == 0:
            return False
        if section.name.startswith(_UNWIND):
            return False
        if section.flags & (_WRITE | _TLS) or section.kind == _NOBITS:
            raise InternalError(
                f"the code has variables (section `{section.name}`), "
                "which an image cannot hold"
            )
        return section.kind == _PROGBITS

    def _relocate(self, table: _Section) -> None:
        start = self.sections[table.info].place
        for at in range(table.offset, table.offset + table.size, 24):
            offset, info, addend = struct.unpack_from("<QQq", self.obj, at)
            symbol = self.symbols[info >> 32]
            self._apply(info & 0xFFFFFFFF, start + offset, symbol, addend)

    def _apply(self, kind: int, place: int, symbol: _Symbol, addend: int) -> None:
        if kind in {_R_GOTPCREL, _R_GOTPCRELX, _R_REX_GOTPCRELX}:
            self._relax(place, symbol)
        elif kind not in _RELATIVE:
            name = _NAMES.get(kind, f"relocation {kind}")
            what = symbol.name or self.sections[symbol.section].name
            raise InternalError(
                f"the code needs {name} of `{what}`: it is not position-independent"
            )
        width = _RELATIVE.get(kind, 4)
        value = self._address(symbol) + addend - place
        self.code[place : place + width] = value.to_bytes(width, "little", signed=True)

    def _relax(self, place: int, symbol: _Symbol) -> None:
        """Replace a load of an address from a table by the address itself."""
        before = bytes(self.code[place - 2 : place])
        if before[0] == 0x8B:  # mov sym@GOT(%rip), reg: lea sym(%rip), reg
            self.code[place - 2] = 0x8D
        elif before == b"\xff\x15":  # call *sym@GOT(%rip): addr32 call sym
            self.code[place - 2 : place] = b"\x67\xe8"
        elif before == b"\xff\x25":  # jmp *sym@GOT(%rip): addr32 jmp sym
            self.code[place - 2 : place] = b"\x67\xe9"
        else:
            raise InternalError(
                f"the code reads the address of `{symbol.name}` "
                f"in a way that is not supported ({before.hex()})"
            )

    def _address(self, symbol: _Symbol) -> int:
        if symbol.section == _UNDEFINED:
            return self._stub(symbol.name)
        if symbol.section in (_ABSOLUTE, _COMMON):
            raise InternalError(f"`{symbol.name}` is a variable or an absolute address")
        section = self.sections[symbol.section]
        if section.place < 0:
            raise InternalError(f"the code refers to section `{section.name}`")
        return section.place + symbol.value

    def _stub(self, name: str) -> int:
        """Return a jump to an imported function; loading fills in the address."""
        if name not in self.allowed:
            raise InternalError(f"the code calls `{name}`, which nobody defines")
        if name not in self.imports:
            self.code.extend(bytes(-len(self.code) % _STUB_SIZE))
            self.imports[name] = len(self.code)
            # The slot is at byte 8 of the stub, 2 bytes behind the 6-byte jump.
            stub = _STUB + (2).to_bytes(4, "little")
            self.code.extend(stub.ljust(_STUB_SIZE, b"\0"))
        return self.imports[name]


def _read_sections(obj: bytes) -> list[_Section]:
    (table,) = struct.unpack_from("<Q", obj, 40)
    size, count, names = struct.unpack_from("<HHH", obj, 58)
    raw = [
        struct.unpack_from("<IIQQQQIIQQ", obj, table + index * size)
        for index in range(count)
    ]
    strings = raw[names][4]
    return [
        _Section(_string(obj, strings + name), kind, flags, offset, bytes_, *rest)
        for name, kind, flags, _, offset, bytes_, *rest, _ in raw
    ]


def _string(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()
