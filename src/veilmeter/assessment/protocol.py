"""Which utterances an attacker knows people by, and which they try to name."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings


@dataclass(frozen=True, eq=False)
class Protocol:
    """Utterance ids for enrolment and for trials, disjoint. `key` holds the trials of a key as (enrolled speaker,
    utterance) where one was given; without, every enrolled speaker is compared with every trial utterance."""

    enrolment: tuple[str, ...]
    trials: tuple[str, ...]
    split: str
    key: frozenset[tuple[str, str]] | None = None
    same_session: float | None = None
    warnings: tuple[str, ...] = field(default=())

    def mask(self, enrolled: Sequence[str], utterances: Sequence[str]) -> NDArray[np.bool_] | None:
        """Which cells of (enrolled speakers x trial utterances) are trials."""
        if self.key is None:
            return None
        rows = {name: i for i, name in enumerate(enrolled)}
        columns = {utterance: j for j, utterance in enumerate(utterances)}
        found = np.zeros((len(rows), len(columns)), bool)
        for speaker, utterance in self.key:
            if speaker in rows and utterance in columns:
                found[rows[speaker], columns[utterance]] = True
        return found

    def to_json(self, embeddings: Embeddings) -> dict[str, Any]:
        speaker = dict(zip(embeddings.utterances, embeddings.speakers, strict=True))
        enrolled = {speaker[u] for u in self.enrolment}
        tested = {speaker[u] for u in self.trials}
        return {
            "enrolment": len(self.enrolment),
            "trials": len(self.trials),
            "speakers": len(enrolled | tested),
            "enrolled_speakers": len(enrolled),
            "trial_speakers": len(tested),
            "speakers_in_both": len(enrolled & tested),
            "split": self.split,
            "key": None if self.key is None else len(self.key),
            "same_session": self.same_session,
        }


def make_protocol(
    embeddings: Embeddings,
    *,
    enrol: Sequence[str] = (),
    trials: Sequence[str] = (),
    found_near: Sequence[str | Path] = (),
    seed: int = 0,
) -> Protocol:
    """From lists where they are given or lie with the data (as in the VoicePrivacy layout), else by a seeded split."""
    split = "lists"
    if not enrol and not trials:
        enrol, trials = lists_near(found_near)
        split = "lists found with the data"
    made = _from_lists(embeddings, enrol, trials, split) if enrol or trials else _by_chance(embeddings, seed)
    return Protocol(made.enrolment, made.trials, made.split, made.key, _same_session(embeddings, made), made.warnings)


def lists_near(folders: Sequence[str | Path]) -> tuple[list[str], list[str]]:
    """The files `enrolls` and `trials` in data folders of the VoicePrivacy layout; both or none."""
    enrol, trials = [], []
    for folder in map(Path, folders):
        for place in (folder, folder / "meta"):
            if (place / "enrolls").is_file():
                enrol.append(str(place / "enrolls"))
            if (place / "trials").is_file():
                trials.append(str(place / "trials"))
    return (enrol, trials) if enrol and trials else ([], [])


def _from_lists(embeddings: Embeddings, enrol: Sequence[str], trials: Sequence[str], split: str) -> Protocol:
    there = embeddings.utterance_rows
    speaker = dict(zip(embeddings.utterances, embeddings.speakers, strict=True))
    warnings: list[str] = []
    wanted: list[str] = []
    key: set[tuple[str, str]] = set()
    keyed = False
    for path in trials:
        for line_number, fields in _lines(path):
            if len(fields) == 3 and fields[2] in ("target", "nontarget"):
                if (speaker.get(fields[1], fields[0]) == fields[0]) != (fields[2] == "target") and fields[1] in speaker:
                    raise InputError(
                        f"{fields[1]!r} is by {speaker[fields[1]]!r}, yet the trial with {fields[0]!r} is called "
                        f"{fields[2]}",
                        path=path,
                        line=line_number,
                        fix="the key and the corpus must name the speakers alike",
                    )
                key.add((fields[0], fields[1]))
                wanted.append(fields[1])
                keyed = True
            elif len(fields) == 1:
                wanted.append(fields[0])
            else:
                raise InputError(
                    f"this is neither an utterance id nor a trial: {' '.join(fields)[:60]!r}",
                    path=path,
                    line=line_number,
                    fix="one id a line, or: speaker utterance target|nontarget",
                )
    test = list(dict.fromkeys(wanted))
    if enrol:
        known = list(dict.fromkeys(fields[0] for path in enrol for _, fields in _lines(path)))
        if not trials:
            taken = set(known)
            test = [u for u in embeddings.utterances if u not in taken]
    else:
        taken, named = set(test), {name for name, _ in key}
        known = [u for u in embeddings.utterances if u not in taken and (not named or speaker[u] in named)]
    for what, listed in (("enrolment", known), ("trial", test)):
        missing = [u for u in listed if u not in there]
        if len(missing) == len(listed):
            raise InputError(
                f"none of the {len(listed)} {what} utterances in the lists is in both corpora"
                + (f", the first is {listed[0]!r}" if listed else ""),
                path=(enrol or trials)[0],
            )
        if missing:
            warnings.append(f"{len(missing)} {what} utterances of the lists are not in both corpora and are left out")
    known, test = [u for u in known if u in there], [u for u in test if u in there]
    both = set(known) & set(test)
    if both:
        raise InputError(
            f"{len(both)} utterances are in the enrolment and in the trials, the first is {min(both)!r}",
            path=(trials or enrol)[0],
            fix="an attacker who has the very recording needs no measure",
        )
    return Protocol(tuple(known), tuple(test), split, frozenset(key) if keyed else None, None, tuple(warnings))


def _lines(path: str | Path) -> list[tuple[int, list[str]]]:
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(error.strerror or str(error), path=path) from None
    except UnicodeDecodeError:
        raise InputError("this list is not UTF-8", path=path, fix="save it as UTF-8") from None
    found = [(number, line.split()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not found:
        raise InputError("this list is empty", path=path)
    return found


def _by_chance(embeddings: Embeddings, seed: int) -> Protocol:
    """Each speaker's sessions in two halves where there are several, else their utterances in two halves; chance comes
    from the seed and the speaker's name alone, so that other speakers do not matter."""
    sessions = embeddings.attributes.get("session")
    enrolment, trials = [], []
    by_session = within = alone = 0
    for code, name in enumerate(embeddings.names):
        rows = np.flatnonzero(embeddings.codes == code)
        digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()
        rng = np.random.default_rng([seed, int.from_bytes(digest[:8], "big")])
        if len(rows) == 1:
            # Nothing is left to try: an enrolled person whom others can be mistaken for.
            enrolment += rows.tolist()
            alone += 1
            continue
        own = None if sessions is None else sessions[rows]
        parts = sorted({str(session) for session in own}) if own is not None else []
        if own is not None and len(parts) > 1 and "" not in parts:
            order = rng.permutation(len(parts))
            sizes = np.array([int((own == parts[i]).sum()) for i in order])
            # The cut that comes nearest to halves, with a session at least on either side.
            cut = 1 + int(np.abs(np.cumsum(sizes)[:-1] - len(rows) / 2).argmin())
            first = {parts[i] for i in order[:cut]}
            mine = np.array([session in first for session in own])
            enrolment += rows[mine].tolist()
            trials += rows[~mine].tolist()
            by_session += 1
        else:
            order = rng.permutation(rows)
            enrolment += np.sort(order[: len(rows) // 2]).tolist()
            trials += np.sort(order[len(rows) // 2 :]).tolist()
            within += 1
    if not trials:
        raise InputError(
            "every speaker has one utterance only: there is nothing left to try after the enrolment",
            path=embeddings.source or None,
            fix="give at least two utterances a speaker",
        )
    if by_session and within:
        split = f"by session ({by_session} speakers), random halves ({within} speakers with one session)"
    else:
        split = "by session" if by_session else "random halves"
    warnings = (f"{alone} speakers have one utterance only and serve as enrolled people only",) if alone else ()
    ids = embeddings.utterances
    return Protocol(tuple(ids[sorted(enrolment)]), tuple(ids[sorted(trials)]), split, None, None, warnings)


def _same_session(embeddings: Embeddings, made: Protocol) -> float | None:
    """The share of trial utterances whose session is also in their speaker's enrolment; None if sessions are "
    "unknown."""
    sessions = embeddings.attributes.get("session")
    if sessions is None:
        return None
    of = {u: (s, t) for u, s, t in zip(embeddings.utterances, embeddings.speakers, sessions, strict=True)}
    enrolled = {of[u] for u in made.enrolment if of[u][1]}
    people = {of[u][0] for u in made.enrolment}
    known = [of[u] for u in made.trials if of[u][1] and of[u][0] in people]
    if not known:
        return None
    return sum(pair in enrolled for pair in known) / len(known)
