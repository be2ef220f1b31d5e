"""What listening tells about copies: anonymized recordings that are their original, trials that are in the enrollment.

Vectors tell whether two recordings are equal; only the sound tells whether one is the other with another level, delay
or coding.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from veilmeter.assessment.case import AssessmentCase
from veilmeter.assessment.speech import Speech, joined_corpora
from veilmeter.core.engine import Engine
from veilmeter.core.files import cache_folder, make_folder, write_json
from veilmeter.core.keys import key_of
from veilmeter.data.corpus import Utterance
from veilmeter.data.ids import match_ids
from veilmeter.speech.compare_recordings import same_recordings, unchanged_speech


@dataclass(frozen=True, slots=True)
class HeardCopies:
    """Ids of originals whose anonymized recording is no other one, and of trials that are also in the enrollment."""

    unchanged: frozenset[str] = frozenset()
    repeated: frozenset[str] = frozenset()


def heard_copies(case: AssessmentCase, speech: Mapping[str, Speech], engine: Engine) -> HeardCopies | None:
    """None where one of the sides is not audio; what an earlier run heard in the same files is kept in the cache."""
    sides = [speech[role].corpora for role in ("original", "anonymized") if role in speech]
    if len(sides) != 2 or not all(sides):
        return None
    original, anonymized = (joined_corpora(side).by_id for side in sides)
    partner = match_ids(original, anonymized).partner
    assessed = [name for name in case.original.utterances if name in partner]
    pairs = [(original[name], anonymized[partner[name]]) for name in assessed]
    enrolled = [original[name] for name in case.protocol.enrollment if name in original]
    tried = [original[name] for name in case.protocol.trials if name in original]
    files = [_mark(utterance) for group in (*pairs, enrolled, tried) for utterance in group]
    place = cache_folder() / "copies" / f"{key_of(heard_copies, files, [len(pairs), len(enrolled)])}.json"
    kept = _kept(place)
    if kept is None:
        unchanged = unchanged_speech(pairs, engine).copies
        repeated = tuple(pair.second for pair in same_recordings(enrolled, tried, engine))
        kept = HeardCopies(frozenset(unchanged), frozenset(repeated))
        make_folder(place.parent)
        write_json(place, {"unchanged": sorted(kept.unchanged), "repeated": sorted(kept.repeated)})
    return kept


def _kept(place: Path) -> HeardCopies | None:
    """What was heard before; a file that is damaged counts as missing."""
    try:
        form = json.loads(place.read_text(encoding="utf-8"))
        return HeardCopies(frozenset(map(str, form["unchanged"])), frozenset(map(str, form["repeated"])))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _mark(utterance: Utterance) -> str:
    """A recording by its file and part: it is heard again when these change."""
    try:
        status = utterance.path.stat()
        mark = f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
    except OSError:
        mark = "gone"
    return f"{utterance.id}\0{mark}{utterance.stretch}"
