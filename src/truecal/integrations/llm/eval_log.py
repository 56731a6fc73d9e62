"""Reader of the logs of Inspect (the package inspect_ai): `.eval` and `.json` files."""

from __future__ import annotations

import importlib
import json
import math
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from truecal._lib.text import listing
from truecal.exceptions import InputError, MissingExtraError
from truecal.integrations.llm.answers import Answer, Answers, paths_of

#: The number of Zstandard in zip files, which `zipfile` reads from Python 3.14 on.
_ZSTANDARD = 93

#: Where a confidence is looked for, one after the other.
Finder = Callable[[Mapping[str, Any], Mapping[str, Any]], Any]


def read_eval_log(
    path: str | Path,
    *,
    scorer: str | None = None,
    confidence: str | Finder = "confidence",
    cluster: str | None = None,
    scale: str = "fraction",
) -> Answers:
    """Read the answers of an evaluation that Inspect logged. inspect_ai itself is not needed.

    The id of a sample is its question, and epochs are repeated answers to it.

    Parameters
    ----------
    path : str or Path
        A log file, ``.eval`` or ``.json``, or a folder that has one.
    scorer : str, optional
        Name of the scorer whose grade is used; needed if there are several.
    confidence : str or callable
        The confidence is ``score.metadata[confidence]`` or ``score.value[confidence]``; without such a key it is read
        from the text that the model wrote. A function ``(sample, score) -> str, float or None`` gets both as the
        dictionaries of the log.
    cluster : str, optional
        Key of the sample's metadata that names what questions belong together by, such as a passage. By default
        each question is a cluster.
    scale : {"fraction", "percent"}
        As in `parse_confidence`.

    Returns
    -------
    Answers
    """
    files = paths_of(path, ["*.eval", "*.json"])
    if len(files) > 1:
        raise InputError(
            f"{path} has {len(files)} logs: {listing([file.name for file in files], 5)}",
            remedy="Pass one of them.",
        )
    header, samples = _open(files[0])
    find = confidence if callable(confidence) else _finder(confidence)
    rows = [_row(sample, scorer, find, cluster) for sample in samples]
    described = header.get("eval", {})
    return Answers.from_rows(
        rows, model=described.get("model", ""), task=described.get("task", ""), scale=scale
    )


def grade(value: Any) -> bool | None:
    """Return whether a score of Inspect means right or wrong; None for anything else, such as partial credit.

    Parameters
    ----------
    value : object
        ``Score.value``.

    Examples
    --------
    >>> [grade(value) for value in ("C", "I", 1, 0.0, True, "P", 0.5)]
    [True, False, True, False, True, None, None]
    """
    if isinstance(value, str):
        return {"C": True, "I": False}.get(value)
    if isinstance(value, Mapping):
        return grade(value.get("correct"))
    return bool(value) if isinstance(value, int | float) and value in (0, 1) else None


def is_refusal(score: Mapping[str, Any]) -> bool:
    """Return whether a score says that the model did not answer.

    Parameters
    ----------
    score : mapping
        A score of the log.
    """
    return score.get("value") == "N" or score.get("reason") in ("refusal", "no_response")


def stated(score: Mapping[str, Any], key: str) -> Any:
    """Return the confidence that a scorer stored with its score, or None.

    Parameters
    ----------
    score : mapping
        A score of the log.
    key : str
        Its name in the metadata or in the value.
    """
    value = score.get("value")
    for place in (score.get("metadata") or {}, value if isinstance(value, Mapping) else {}):
        if key in place:
            return place[key]
    return None


def _finder(key: str) -> Finder:
    def find(sample: Mapping[str, Any], score: Mapping[str, Any]) -> Any:
        found = stated(score, key)
        return _completion(sample) if found is None else found

    return find


def _completion(sample: Mapping[str, Any]) -> str | None:
    output = sample.get("output") or {}
    if output.get("completion"):
        return str(output["completion"])
    for choice in output.get("choices") or []:
        content = choice.get("message", {}).get("content")
        if isinstance(content, list):
            content = "\n".join(part.get("text", "") for part in content if part.get("type") == "text")
        return content if content else None
    return None


def _row(sample: Mapping[str, Any], scorer: str | None, find: Finder, cluster: str | None) -> Answer:
    question, repeat = str(sample["id"]), int(sample.get("epoch", 1))
    group = None
    if cluster is not None:
        metadata = sample.get("metadata") or {}
        if cluster not in metadata:
            raise InputError(f"Sample {question} has no {cluster!r} in its metadata", argument=None)
        group = str(metadata[cluster])
    scores = sample.get("scores") or {}
    if not scores:  # the sample ended with an error
        return Answer(question, repeat, None, None, cluster=group)
    if scorer is None and len(scores) > 1:
        raise InputError(f"The log has the scorers {', '.join(scores)}; choose one with scorer=")
    if scorer is not None and scorer not in scores:
        raise InputError(f"The log has no scorer {scorer!r}; it has {', '.join(scores)}", argument=None)
    score = scores[scorer] if scorer else next(iter(scores.values()))
    return Answer(question, repeat, grade(score.get("value")), find(sample, score), is_refusal(score), group)


# --- Files ------------------------------------------------------------------------------------------


def _open(path: Path) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """Return the header of a log, and its samples one by one."""
    if not path.is_file():
        raise InputError(f"{path} is not a file")
    if not zipfile.is_zipfile(path):
        try:
            log = json.loads(path.read_text(encoding="utf-8"), parse_constant=_constant)
        except (ValueError, UnicodeDecodeError):
            raise InputError(f"{path} is not a log of Inspect: neither a zip file nor JSON") from None
        if not isinstance(log, dict) or "samples" not in log:
            raise InputError(f"{path} is not a log of Inspect: it has no samples")
        return log, iter(log["samples"] or [])
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    if "header.json" not in names and "_journal/start.json" not in names:
        raise InputError(f"{path} is not a log of Inspect: it has no header.json")
    first = "header.json" if "header.json" in names else "_journal/start.json"
    members = [name for name in names if name.startswith("samples/") and name.endswith(".json")]
    return next(_members(path, [first])), _members(path, members)


def _members(path: Path, names: list[str]) -> Iterator[dict[str, Any]]:
    with zipfile.ZipFile(path) as archive:
        for name in names:
            info = archive.getinfo(name)
            is_packed = info.compress_type == _ZSTANDARD and not hasattr(
                zipfile, "ZIP_ZSTANDARD"
            )  # before 3.14
            content = _unpack(path, info) if is_packed else archive.read(info)
            yield json.loads(content, parse_constant=_constant)


def _unpack(path: Path, info: zipfile.ZipInfo) -> bytes:
    """Return a member of a zip file that is compressed with Zstandard."""
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError:
        raise MissingExtraError(
            "zstandard", extra="llm", purpose="Reading .eval files before Python 3.14"
        ) from None
    with path.open("rb") as file:
        file.seek(info.header_offset)
        # The local header has 30 bytes; the last four are the lengths of the name and of the extra field.
        lengths = struct.unpack("<HH", file.read(30)[26:])
        file.seek(sum(lengths), 1)
        packed = file.read(info.compress_size)
    # Large members consist of several frames.
    reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
    return bytes(reader.read())


def _constant(name: str) -> float:
    return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}[name]
