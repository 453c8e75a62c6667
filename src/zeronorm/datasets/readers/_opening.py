"""Opening files: decompression, standard input and wrong endings; the result is always a plain file."""

from __future__ import annotations

import bz2
import codecs
import errno
import gzip
import lzma
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from zeronorm._messages import Message, parameter
from zeronorm.datasets._table import DataError, shown, shown_list

STANDARD_INPUT = "-"
TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".txt", ".dat", ".data", ".asc", ".gct")
COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")
MOST_LAYERS = 2  # a compressed file in an archive
# Tables shrink to a tenth, those of zeros to a hundredth. More than this is a file made to fill a disk.
MOST_EXPANSION = 1000
ALWAYS_ALLOWED_BYTES = 1 << 26
HEAD_BYTES = 1 << 16
# How files of a format begin, whatever their name says.
BEGINNINGS = (
    (b"\x1f\x8b", ".gz"),
    (b"BZh", ".bz2"),
    (b"\xfd7zXZ\x00", ".xz"),
    (b"\x28\xb5\x2f\xfd", ".zst"),
    (b"PK\x03\x04", ".zip"),
    (b"PAR1", ".parquet"),
    (b"ARROW1", ".arrow"),
    (b"\x89HDF", ".h5ad"),
    (b"\xd0\xcf\x11\xe0", ".xls"),
    (b"MATLAB 5", ".mat"),
)


@dataclass(frozen=True)
class Opened:
    """A plain file to read, and its name in messages.

    Parameters
    ----------
    path : where the plain file is.
    ending : ending of its format; empty where only the content tells.
    label : the path as the user wrote it.
    folder : folder for temporary files; it is removed after the file was read.
    notes : sentences about what was found out about the file.
    encoding : encoding of its text; None detects it from the content.
    """

    path: Path
    ending: str
    label: str
    folder: Path
    notes: tuple[str, ...] = ()
    encoding: str | None = None

    def __str__(self) -> str:
        return "standard input" if self.label == STANDARD_INPUT else f"the file {shown(self.label)}"

    @property
    def subject(self) -> str:
        """The name of the file at the beginning of a sentence."""
        return str(self)[0].upper() + str(self)[1:]

    @property
    def size(self) -> int:
        """Bytes of the plain file."""
        return self.path.stat().st_size

    def noted(self, note: str) -> Opened:
        """The same file with one more note."""
        return replace(self, notes=(*self.notes, note))


@contextmanager
def opened(path: Path, encoding: str | None = None) -> Iterator[Opened]:
    """A plain file with the content of ``path``, decompressed where needed; "-" is standard input."""
    _check_encoding(encoding)
    with tempfile.TemporaryDirectory(prefix="zeronorm-", ignore_cleanup_errors=True) as name:
        folder, label = Path(name), str(path)
        if label == STANDARD_INPUT:
            path = _copy_of_standard_input(folder)
        check_readable(path)
        file = Opened(path, _ending(path), label, folder, encoding=encoding)
        for _ in range(MOST_LAYERS):
            found = _true_ending(file)
            if found not in COMPRESSED:
                break
            file = _decompressed(file, found, max(ALWAYS_ALLOWED_BYTES, MOST_EXPANSION * path.stat().st_size))
        ending = _true_ending(file)
        if ending in COMPRESSED:
            raise DataError(
                f"{file.subject} is compressed more than {MOST_LAYERS} times, one within the other. Decompress it "
                "first, and give the table in it."
            )
        yield replace(file, ending=ending)


def check_readable(path: Path) -> None:
    """Refuse what is missing, a directory, unreadable or empty."""
    if not path.exists():
        raise DataError(
            f"There is no file {shown(str(path))}. Check the path; `zeronorm datasets` lists the data sets that have "
            "a name."
        )
    if path.is_dir():
        raise DataError(f"{shown(str(path))} is a directory. Give the path of one file in it.")
    try:
        with path.open("rb") as stream:
            empty = not stream.read(1)
    except OSError as error:
        raise DataError(
            f"The file {shown(str(path))} cannot be read: {error.strerror}. Check its permissions."
        ) from error
    if empty:
        raise DataError(f"The file {shown(str(path))} is empty. Give a file with a header and data.")


def beginning(path: Path) -> bytes:
    """The first bytes of a file."""
    with path.open("rb") as stream:
        return stream.read(HEAD_BYTES)


def _ending(path: Path) -> str:
    return path.suffix.lower()


def _copy_of_standard_input(folder: Path) -> Path:
    stream: Any = getattr(sys.stdin, "buffer", None)
    if stream is None or sys.stdin.isatty():
        raise DataError("Nothing is piped to standard input. Pipe a table in, or give the path of a file.")
    copy = folder / "input"
    with copy.open("wb") as target:
        shutil.copyfileobj(stream, target)
    if copy.stat().st_size == 0:
        raise DataError("Standard input is empty. Pipe in a table with a header and data.")
    return copy


def _true_ending(file: Opened) -> str:
    """The ending, corrected by the content where a file is called text, or nothing, and is something else."""
    if file.ending not in ("", *TEXT_ENDINGS):
        return file.ending
    head = beginning(file.path)
    found = next((ending for start, ending in BEGINNINGS if head.startswith(start)), file.ending)
    return _kind_of_zip(file) if found == ".zip" else found


def _kind_of_zip(file: Opened) -> str:
    """The format of a zip archive: workbooks and NumPy archives are zip archives too."""
    try:
        with zipfile.ZipFile(file.path) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile:
        return ".zip"
    if any(name.startswith("xl/") for name in names):
        return ".xlsx"
    if "content.xml" in names:
        return ".ods"
    return ".npz" if names and all(name.endswith(".npy") for name in names) else ".zip"


# -- Compression --------------------------------------------------------------------------------------


def _decompressed(file: Opened, kind: str, most_bytes: int) -> Opened:
    inner = file.path.with_suffix("").name if _ending(file.path) == kind else file.path.name
    try:
        if kind == ".zip":
            with zipfile.ZipFile(file.path) as archive:
                member = _only_member(archive, file)
                inner = Path(member).name
                with archive.open(member) as stream:
                    return _written(file, stream, inner, most_bytes)
        with _openers()[kind](file.path) as stream:
            return _written(file, stream, inner, most_bytes)
    except (OSError, EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile, NotImplementedError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise DataError(
                f"{file.subject} cannot be decompressed: the disk of the folder {shown(tempfile.gettempdir())} is "
                "full. Free some space, or set TMPDIR to a folder on another disk."
            ) from error
        raise DataError(
            f"{file.subject} cannot be decompressed as {kind}: it is damaged, cut off, or not compressed. Copy it "
            f"again, or take {kind} off its name if it is not compressed."
        ) from error
    except RuntimeError as error:  # zipfile's answer to encrypted members
        raise DataError(f"{file.subject} is protected by a password. Extract it first.") from error


def _written(file: Opened, stream: IO[bytes], name: str, most_bytes: int) -> Opened:
    folder = Path(tempfile.mkdtemp(dir=file.folder))
    target = folder / (name or "content")
    with target.open("wb") as copy:
        while piece := stream.read(1 << 20):
            copy.write(piece)
            if copy.tell() > most_bytes:
                raise DataError(
                    f"{file.subject} grows to more than {most_bytes / 2**20:.0f} MiB when it is decompressed, over "
                    f"{MOST_EXPANSION} times its size, as no table does. If it is a table, decompress it first and "
                    "give the plain file."
                )
    if target.stat().st_size == 0:
        raise DataError(f"{file.subject} holds an empty file. Give a file with a header and data.")
    return replace(file, path=target, ending=_ending(target))


def _only_member(archive: zipfile.ZipFile, file: Opened) -> str:
    """The one data file in an archive; what file managers add does not count."""
    names = [
        name
        for name in archive.namelist()
        if not name.endswith("/") and not name.startswith("__MACOSX") and not Path(name).name.startswith(".")
    ]
    if len(names) != 1:
        listed = shown_list(names) or "none"
        raise DataError(
            f"{file.subject} holds {len(names)} files ({listed}), but one table is needed. Extract the one you want."
        )
    return names[0]


def _openers() -> dict[str, Callable[[Path], Any]]:
    return {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open, ".zst": _open_zstandard}


def _open_zstandard(path: Path) -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd

        return zstd.open(path)
    try:
        import zstandard
    except ImportError as error:
        raise DataError(
            f"Reading {shown(path.name)} needs the package zstandard. Install it with `pip install zstandard`."
        ) from error
    return _ZstandardStream(zstandard, path)


class _ZstandardStream:
    """The decompressed content; an EOFError where the file is damaged or ends too early."""

    def __init__(self, package: Any, path: Path) -> None:
        self._package = package
        self._source = path.open("rb")
        self._frame = package.ZstdDecompressor().decompressobj()
        self._rest = b""

    def __enter__(self) -> _ZstandardStream:
        return self

    def __exit__(self, *_details: object) -> None:
        self._source.close()

    def read(self, size: int = -1) -> bytes:
        """The next piece, of about ``size`` bytes of compressed data."""
        while piece := self._rest or self._source.read(size):
            if self._frame.eof:  # a file may hold several frames
                self._frame = self._package.ZstdDecompressor().decompressobj()
            try:
                content = self._frame.decompress(piece)
            except self._package.ZstdError as error:
                raise EOFError("not Zstandard data") from error
            self._rest = self._frame.unused_data if self._frame.eof else b""
            if content:
                return bytes(content)
        if not self._frame.eof:
            raise EOFError("the last frame is cut off")
        return b""


# -- Text in any encoding -----------------------------------------------------------------------------


def as_utf8(file: Opened) -> Opened:
    """The text as UTF-8 with line feeds; other encodings are recognised and noted."""
    if file.encoding is not None:
        return _rewritten(
            file, "utf-8-sig" if codecs.lookup(file.encoding).name == "utf-8" else file.encoding
        )
    head = beginning(file.path)
    encoding = _wide_encoding(head)
    if encoding is None and (b"\0" in head or _looks_binary(head)):
        raise DataError(f"{file.subject} holds binary data, not text. Give it the ending of its format.")
    has_line_feeds = b"\n" in head or b"\r" not in head
    if encoding is None and _is_utf8(file.path):
        return file if has_line_feeds else _rewritten(file, "utf-8-sig")
    if encoding is not None:
        return _rewritten(file, encoding).noted(
            f"The text is encoded as {encoding.upper()}, not as UTF-8, and was read so."
        )
    return _rewritten(file, "cp1252", errors="latin1-for-the-rest").noted(
        Message(
            "The text is not UTF-8 and was read as Windows-1252 (Latin-1). If letters look wrong, name its encoding "
            f"({parameter('encoding')}), such as cp1250 or gb18030."
        )
    )


def _check_encoding(encoding: str | None) -> None:
    """Refuse names that are no encoding of text."""
    try:
        if encoding is not None:
            "".encode(encoding)
    except (LookupError, ValueError) as error:
        raise DataError(
            "must be the name of a text encoding, such as utf-8, cp1250 or gb18030. "
            f"Got {encoding!r} instead.",
            "encoding",
        ) from error


def _wide_encoding(head: bytes) -> str | None:
    """UTF-16 or UTF-32, by the byte order mark or by where the zero bytes are."""
    for mark, name in ((codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32")):
        if head.startswith(mark):
            return name
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if odd > 0.4 * len(head) / 2 and even < 0.05 * len(head):
        return "utf-16-le"
    if even > 0.4 * len(head) / 2 and odd < 0.05 * len(head):
        return "utf-16-be"
    return None


def _looks_binary(head: bytes) -> bool:
    control = sum(head.count(code) for code in range(32) if code not in (9, 10, 11, 12, 13, 27))
    return control > 0.01 * len(head)


def _is_utf8(path: Path) -> bool:
    """Decode a file piece by piece, so that a large file is never in memory twice."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as stream:
        try:
            while piece := stream.read(1 << 24):
                decoder.decode(piece)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def _latin1(error: UnicodeError) -> tuple[str, int]:
    """Decode the few bytes that Windows-1252 does not define as Latin-1."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error("latin1-for-the-rest", _latin1)


def _rewritten(file: Opened, encoding: str, errors: str = "strict") -> Opened:
    path = file.folder / "text"
    try:
        with (
            file.path.open(encoding=encoding, errors=errors, newline=None) as source,
            path.open("w", encoding="utf-8", newline="\n") as target,
        ):
            shutil.copyfileobj(source, target, 1 << 20)
    except UnicodeError as error:
        if file.encoding is not None:
            raise DataError(
                f"{file.subject} is not text in the encoding {encoding}. Name another one ({parameter('encoding')}), "
                "or leave it out to detect it from the content."
            ) from error
        raise DataError(
            f"{file.subject} begins as {encoding.upper()} text but is damaged or cut off. Save it again, as UTF-8."
        ) from error
    return replace(file, path=path)
