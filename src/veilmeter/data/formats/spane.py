"""SpAnE datafiles: JSON Lines (`.txt`) with `path` (`{root}/LibriSpeech/...`), `label` (who speaks), `text`, `gender`.
Its documentation calls the path `audio_filepath`: both are read.

`{root}` stands for the folder that `--root` names. Keys that begin with `utt_` are attributes of the utterance, others
of the speaker. Anonymized datafiles are sorted differently: ids are the paths below the root, never the rows.
"""

from __future__ import annotations

from pathlib import Path, PurePath

from veilmeter.core.errors import InputError, Problem
from veilmeter.data.corpus import Utterance, gender_code
from veilmeter.data.formats.json_lines import as_text, first_object, read_objects
from veilmeter.data.layouts import Evidence, Layout, Reading, ReadOptions, locate

_ROOT = "{root}"
_PATHS = ("path", "audio_filepath")
_KNOWN = (*_PATHS, "label", "text", "gender", "duration", "speaker_id")


def recognizes(path: Path) -> bool:
    if not path.is_file() or path.suffix.lower() not in (".txt", ".jsonl", ".json"):
        return False
    first = first_object(path)
    return any(isinstance(first.get(name), str) for name in _PATHS) and "label" in first


def read(file: Path, options: ReadOptions) -> Reading:
    reading = Reading()
    root = options.roots[0] if options.roots else None
    for number, entry in read_objects(file):
        value = next((text for name in _PATHS if (text := as_text(entry.get(name)))), "")
        label = as_text(entry.get("label"))
        if not value or not label:
            reading.problems.append(Problem("bad-line", "a path or a label is missing", str(file), number))
            continue
        if value.startswith(_ROOT):
            if root is None:
                raise InputError(
                    "paths begin with {root}, and it is unknown which folder that is",
                    path=file,
                    line=number,
                    fix="give it with --root",
                )
            value = value.removeprefix(_ROOT).lstrip("/")
            place = locate(value, root, options.roots)
        else:
            place = locate(value, file.parent, options.roots)
        if not isinstance(place, Path):
            kind, what = place
            reading.problems.append(Problem(kind, f"{value}: {what}", str(file), number))
            continue
        attributes = {key.removeprefix("utt_"): as_text(item) for key, item in entry.items() if key not in _KNOWN}
        reading.utterances.append(
            Utterance(
                PurePath(value).with_suffix("").as_posix(),
                label,
                place,
                gender_code(as_text(entry.get("gender"))),
                "",
                attributes,
                as_text(entry.get("text")),
            )
        )
    return reading


LAYOUT = Layout(recognizes, read, Evidence.LISTS, frozenset({"roots"}), has_lists=True)
