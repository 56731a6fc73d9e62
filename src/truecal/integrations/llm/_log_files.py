"""Log files as others wrote them: whatever is wrong is an `InputError` that names the file and the place in it."""

from __future__ import annotations

import importlib
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from truecal.exceptions import InputError, MissingExtraError, show_value
from truecal.integrations.llm._answers import Answer

T = TypeVar("T", str, int, dict[str, Any], list[Any])

#: Limits on what an archive may unpack to: one member, and all of them (or, in a large file, a multiple of its size).
#: Logs shrink to a tenth or so when they are compressed; a few megabytes that unpack to gigabytes are no log.
_MOST_BYTES_OF_A_MEMBER, _MOST_BYTES, _MOST_EXPANSION = 2**28, 2**30, 100

#: The number of Zstandard in zip files, which `zipfile` reads from Python 3.14 on.
_ZSTANDARD = 93

#: Names of scorers and metrics that are models.
_BY_MODEL = re.compile(
    r"model_?graded|judge|(^|_)grader|(llm|gpt\d*)_?(eval|scor|grad|rat)|^(g_?eval|prometheus)", re.IGNORECASE
)

_KINDS: dict[type, str] = {
    str: "text",
    int: "a whole number",
    dict: "an object",
    list: "a list",
}


def paths_of(paths: Any, patterns: Sequence[str]) -> list[Path]:
    """Return files: a path or several, where a folder stands for its files of these patterns."""
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    files: list[Path] = []
    for path in map(Path, given):
        inside = (
            [file for pattern in patterns for file in sorted(path.rglob(pattern))]
            if path.is_dir()
            else [path]
        )
        if not inside:
            raise InputError(f"{path} has no files {' or '.join(patterns)}")
        for file in inside:
            if not file.is_file():
                raise InputError(f"{file} is not a file")
        files += inside
    return files


def names_a_model(scorer: str) -> bool:
    """Return whether the name of a scorer or a metric says that a model graded: model_graded_qa, llm_judge."""
    return _BY_MODEL.search(scorer) is not None


def read_json(content: bytes, where: str) -> Any:
    """Return the content of JSON in UTF-8."""
    try:
        return json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError(f"{where} is not UTF-8") from None
    except RecursionError:
        raise InputError(f"{where} is nested too deeply") from None
    except ValueError as error:
        raise InputError(f"{where} is not JSON: {error}") from None


def read_object(content: bytes, where: str) -> dict[str, Any]:
    """Return a JSON object."""
    return as_object(read_json(content, where), where)


def as_object(value: Any, where: str) -> dict[str, Any]:
    """Return `value` if it is a JSON object."""
    if not isinstance(value, dict):
        raise InputError(f"{where} must be an object. Got {show_value(value)} instead")
    return value


def field(record: Mapping[str, Any], name: str, kind: type[T], where: str) -> T | None:
    """Return the value of a field that has this type; None where it is absent or null."""
    value = record.get(name)
    if value is None:
        return None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InputError(f"{where}: {name!r} must be {_KINDS[kind]}. Got {show_value(value)} instead")
    return value


def identifier(record: Mapping[str, Any], name: str, where: str) -> str:
    """Return the field that names a question: a number or text."""
    value = record.get(name)
    if not isinstance(value, int | str) or isinstance(value, bool):
        raise InputError(f"{where}: {name!r} must be a whole number or text. Got {show_value(value)} instead")
    return str(value)


def refuse_repeated(rows: Iterable[tuple[str, Answer]]) -> Iterator[Answer]:
    """Yield answers that come with the place they were read from, and refuse the same one twice."""
    places: dict[tuple[str, int], str] = {}
    for where, row in rows:
        key = (row.question, row.repeat)
        if key in places:
            raise InputError(
                f"{where}: answer {row.repeat} to question {show_value(row.question)} was also in {places[key]}",
                remedy="Pass the log of one run, without copies.",
            )
        places[key] = where
        yield row


def read_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the JSON object of each line and its place; only a line feed ends a line."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    where = f"{path.name}, line {number}"
                    yield where, read_object(line, where)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None


def read_whole(path: Path) -> bytes:
    """Return the bytes of a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None


# --- Zip files --------------------------------------------------------------------------------------


def list_members(path: Path) -> dict[str, zipfile.ZipInfo]:
    """Return the members of a zip file by name, if it does not unpack to more than a log would.

    A name may come twice: Inspect writes a sample again that it has run again, and the last one counts.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = {member.filename: member for member in archive.infolist()}
        size = path.stat().st_size
    except Exception as error:  # whatever zipfile and struct raise on a damaged file
        raise _damaged(str(path), error) from None
    total, largest = 0, ""
    for name, member in members.items():
        total += member.file_size
        if member.file_size > _MOST_BYTES_OF_A_MEMBER:
            largest = f" ({name!r} alone to {member.file_size:,})"
    if largest or total > max(_MOST_BYTES, _MOST_EXPANSION * size):
        raise InputError(
            f"{path} has {size:,} bytes and would unpack to {total:,}{largest}, more than a log of Inspect does",
            remedy="Is it the right file? If so, read it with inspect_ai and write it as JSON.",
        )
    return members


def read_members(path: Path, members: Sequence[zipfile.ZipInfo]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the JSON object of each member of a zip file, and its place."""
    with zipfile.ZipFile(path) as archive:
        for member in members:
            where = f"{path.name}, {member.filename}"
            try:
                content = _unpack(archive, path, member)
            except MissingExtraError:
                raise
            except Exception as error:  # whatever zipfile, zlib and struct raise on a damaged file
                raise _damaged(where, error) from None
            yield where, read_object(content, where)


def _damaged(where: str, error: Exception) -> InputError:
    reason = str(error) or type(error).__name__
    return InputError(f"{where} is damaged: {reason}", remedy="Copy the log again from where it was written.")


def _unpack(archive: zipfile.ZipFile, path: Path, member: zipfile.ZipInfo) -> bytes:
    """Return the content of a member; never more than the directory of the archive says."""
    if member.compress_type != _ZSTANDARD or hasattr(zipfile, "ZIP_ZSTANDARD"):  # which Python 3.14 has
        return archive.read(member)
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError:
        raise MissingExtraError(
            "zstandard", extra="llm", purpose="Reading .eval files before Python 3.14"
        ) from None
    with path.open("rb") as file:
        file.seek(member.header_offset)
        # The local header has 30 bytes; the last four are the lengths of the name and of the extra field.
        lengths = struct.unpack("<HH", file.read(30)[26:])
        file.seek(sum(lengths), 1)
        packed = file.read(member.compress_size)
    # Large members consist of several frames.
    reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
    content = bytes(reader.read(member.file_size))
    if zlib.crc32(content) != member.CRC:
        raise zipfile.BadZipFile("Bad CRC-32")
    return content
