"""Take files out of a hostile tar stream: parsed block by block, never extracted, everything counted.

Only plain files and directories in plain (uncompressed) tar are accepted; GNU long names and the pax keys `path`
and `size` are understood because honest tars write them. Anything else is a typed refusal.
"""

import io
from collections.abc import Mapping
from enum import Enum, auto

from sandbox.units import format_size
from sandbox.wire.faults import Fault, WireFault
from sandbox.wire.log import printable

BLOCK = 512
NAME_CAP = 1024
PART_CAP = 255
# What is written from outputs must be easy to walk and to remove.
PARTS_CAP = 128
_SHOWN = 100
EXTENSION_CAP = 8192
PAX_RECORDS = 64
EXTENSIONS_A_MEMBER = 2
PADDING_CAP = 65_536

_ZEROS = bytes(BLOCK)


class _State(Enum):
    HEADER = auto()
    BODY = auto()
    END = auto()


class Harvest:
    """Feed it the stream; `files` holds what was taken once `finish` has passed."""

    def __init__(self, byte_cap: int, entry_cap: int) -> None:
        self._byte_cap = byte_cap
        self._entry_cap = entry_cap
        self._state = _State.HEADER
        self._block = bytearray()
        self._zero_blocks = 0
        self._padding = 0
        self._entries = 0
        self._extensions = 0
        self._kind = ""
        self._name = ""
        self._body = io.BytesIO()
        self._body_left = 0
        self._pad_left = 0
        self._long_name: str | None = None
        self._long_size: int | None = None
        self._files: dict[str, bytes] = {}
        self._folders: set[str] = {""}
        self._rooted = False
        self.count = 0

    @property
    def files(self) -> Mapping[str, bytes]:
        return self._files

    @property
    def complete(self) -> bool:
        return self._state is _State.END

    def feed(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        while view:
            match self._state:
                case _State.HEADER:
                    view = self._feed_header(view)
                case _State.BODY:
                    view = self._feed_body(view)
                case _State.END:
                    self._feed_padding(view)
                    return

    def finish(self) -> None:
        """End of the stream; an archive without its end marker is refused."""
        if self._state is not _State.END:
            raise WireFault(Fault.ARCHIVE_TRUNCATED, "the stream ended before the archive did")

    def _feed_header(self, view: memoryview) -> memoryview:
        wanted = BLOCK - len(self._block)
        self._block += view[:wanted]
        if len(self._block) == BLOCK:
            block, self._block = bytes(self._block), bytearray()
            self._open_entry(block)
        return view[wanted:]

    def _feed_body(self, view: memoryview) -> memoryview:
        taken = view[: self._body_left]
        self._body.write(taken)
        self._body_left -= len(taken)
        view = view[len(taken) :]
        if not self._body_left:
            skipped = min(self._pad_left, len(view))
            self._pad_left -= skipped
            view = view[skipped:]
            if not self._pad_left:
                self._close_entry()
        return view

    def _feed_padding(self, view: memoryview) -> None:
        self._padding += len(view)
        if self._padding > PADDING_CAP or bytes(view).strip(b"\0"):
            raise WireFault(Fault.ARCHIVE_TRAILING, "more than padding follows the end of the archive")

    def _open_entry(self, block: bytes) -> None:
        if block == _ZEROS:
            self._zero_blocks += 1
            if self._zero_blocks == 2:
                self._state = _State.END
            return
        if self._zero_blocks:
            raise WireFault(Fault.ARCHIVE_MALFORMED, "a single zero block within the archive")
        _check_sum(block)
        self._kind = chr(block[156])
        size = _octal(block[124:136])
        if self._kind in "Lx":
            self._extensions += 1
            if size > EXTENSION_CAP or self._extensions > EXTENSIONS_A_MEMBER:
                raise WireFault(Fault.ARCHIVE_MALFORMED, "name extensions that are too long or too many")
        else:
            size = self._open_member(block, size)
        self._body_left, self._pad_left, self._body = size, -size % BLOCK, io.BytesIO()
        self._state = _State.BODY
        if not size:
            self._close_entry()

    def _open_member(self, block: bytes, size: int) -> int:
        if self._long_size is not None:
            size = self._long_size
        raw = _text(block[:100])
        if block[257:263] == b"ustar\0" and block[345]:
            raw = f"{_text(block[345:500])}/{raw}"
        if self._long_name is not None:
            raw = self._long_name
        self._long_name = self._long_size = None
        self._extensions = 0
        if self._kind not in "0\x005":
            raise WireFault(Fault.ENTRY_KIND, f"type {self._kind!r} named {_shown(raw)}")
        if self._kind != "5" and raw.endswith("/"):
            self._kind = "5"
        if self._kind == "5" and size:
            raise WireFault(Fault.ARCHIVE_MALFORMED, "a directory with content")
        self._name = safe_name(raw.removesuffix("/"))
        self.count += size
        if self.count > self._byte_cap:
            raise WireFault(Fault.TOO_MANY_BYTES, f"the outputs pass their cap of {format_size(self._byte_cap)}")
        if self._name:
            self._count_entry()
        elif self._rooted:
            raise WireFault(Fault.ENTRY_TWICE, "the root")
        else:
            self._rooted = True
        return size

    def _count_entry(self) -> None:
        self._entries += 1
        if self._entries > self._entry_cap:
            raise WireFault(Fault.TOO_MANY_FILES, f"the outputs pass their cap of {self._entry_cap} entries")

    def _close_entry(self) -> None:
        self._state = _State.HEADER
        # The buffer's own bytes, not a copy: of a large file that would keep everybody waiting.
        body, self._body = self._body.getvalue(), io.BytesIO()
        if self._kind == "L":
            self._long_name = _text(body.removesuffix(b"\0"), stop_at_nul=False)
        elif self._kind == "x":
            self._read_pax(body)
        else:
            self._keep(body)

    def _keep(self, body: bytes) -> None:
        is_folder = self._kind == "5"
        parents = self._name.split("/")[:-1]
        for depth in range(1, len(parents) + 1):
            folder = "/".join(parents[:depth])
            if folder in self._files:
                raise WireFault(Fault.ENTRY_TWICE, f"{_shown(folder)} is a file and a folder")
            if folder not in self._folders:
                # A folder that is only implied costs us its name too; a deep path implies hundreds.
                self._count_entry()
                self._folders.add(folder)
        if self._name in self._files or (not is_folder and self._name in self._folders):
            raise WireFault(Fault.ENTRY_TWICE, _shown(self._name))
        if is_folder:
            self._folders.add(self._name)
        else:
            self._files[self._name] = body

    def _read_pax(self, body: bytes) -> None:
        start = 0
        for _ in range(PAX_RECORDS):
            if start == len(body):
                return
            digits, space, _ = body[start : start + 9].partition(b" ")
            if not space or not digits.isdigit() or not len(digits) + 2 < int(digits) <= len(body) - start:
                raise WireFault(Fault.ARCHIVE_MALFORMED, "a pax record with a wrong length")
            key, equals, value = body[start + len(digits) + 1 : start + int(digits)].partition(b"=")
            if not equals or not value.endswith(b"\n"):
                raise WireFault(Fault.ARCHIVE_MALFORMED, "a pax record without a value")
            self._apply_pax(key, value[:-1])
            start += int(digits)
        if start != len(body):
            raise WireFault(Fault.ARCHIVE_MALFORMED, "too many pax records")

    def _apply_pax(self, key: bytes, value: bytes) -> None:
        if key == b"path":
            self._long_name = _text(value, stop_at_nul=False)
        elif key == b"size":
            if not value.isdigit() or len(value) > 18:
                raise WireFault(Fault.ARCHIVE_MALFORMED, "a pax size that is no number")
            self._long_size = int(value)
        elif key.startswith(b"GNU.sparse"):
            raise WireFault(Fault.ENTRY_KIND, "a sparse file")


def safe_name(name: str) -> str:
    """The name without its leading `./`, or a refusal. The archive's own root comes back as ''."""
    while name.startswith("./"):
        name = name[2:]
    if name in ("", "."):
        return ""
    raw = name.encode("utf-8", "surrogatepass")  # our own folders may hold names that are no text
    parts = raw.split(b"/")
    plain = name.isascii() and name.isprintable()
    refused = len(raw) > NAME_CAP or "\\" in name or not (plain or (printable(raw) == name and "\t" not in name))
    refused |= len(parts) > PARTS_CAP
    for part in parts:
        refused |= part in (b"", b".", b"..") or part.startswith(b"-") or len(part) > PART_CAP
    if refused:
        raise WireFault(Fault.ENTRY_NAME, _shown(name))
    return name


def _text(raw: bytes, *, stop_at_nul: bool = True) -> str:
    if stop_at_nul:
        raw = raw.partition(b"\0")[0]
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise WireFault(Fault.ENTRY_NAME, _shown(raw)) from None


def _shown(name: str | bytes) -> str:
    """In one short line: an escape takes up to ten characters."""
    told = ascii(name[:_SHOWN])
    return told if len(name) <= _SHOWN and len(told) <= _SHOWN else f"{told[:_SHOWN]}… of {len(name):,} characters"


def _octal(raw: bytes) -> int:
    if raw[0] & 0x80:
        raise WireFault(Fault.TOO_MANY_BYTES, "a size that needs more than eight gigabytes")
    digits = raw.strip(b" \0")
    if not digits:
        return 0
    if digits.translate(None, b"01234567"):
        raise WireFault(Fault.ARCHIVE_MALFORMED, "a number that is not octal")
    return int(digits, 8)


def _check_sum(block: bytes) -> None:
    if block[148] & 0x80 or _octal(block[148:156]) != sum(block) - sum(block[148:156]) + 8 * 0x20:
        raise WireFault(Fault.ARCHIVE_MALFORMED, "a header with a wrong checksum")
