"""Which utterances an attacker knows people by, and which they try to name."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError
from veilmeter.core.files import read_input_text
from veilmeter.core.findings import Finding, warning
from veilmeter.data.embeddings import Embeddings
from veilmeter.results.model import ProtocolFacts


@dataclass(frozen=True, eq=False)
class Protocol:
    """Utterance ids for enrollment and for trials, disjoint. `key` holds the trials of a key as (enrolled speaker,
    utterance) where one was given; without, every enrolled speaker is compared with every trial utterance. `eer_rules`
    are further rules that the EER is measured by, `common_trials` says that score files may lack trials, and
    `distractors` counts the enrolled people who were given to be mistaken for others."""

    enrollment: tuple[str, ...]
    trials: tuple[str, ...]
    split: Finding
    key: frozenset[tuple[str, str]] | None = None
    same_session: float | None = None
    findings: tuple[Finding, ...] = ()
    eer_rules: tuple[str, ...] = ()
    common_trials: bool = False
    distractors: int = 0

    def mask(self, enrolled: Sequence[str], utterances: Sequence[str]) -> NDArray[np.bool_] | None:
        """Which cells of (enrolled speakers x trial utterances) are trials."""
        if self.key is None:
            return None
        rows = {name: i for i, name in enumerate(enrolled)}
        columns = {utterance: j for j, utterance in enumerate(utterances)}
        asked = np.zeros((len(rows), len(columns)), bool)
        for speaker, utterance in self.key:
            if speaker in rows and utterance in columns:
                asked[rows[speaker], columns[utterance]] = True
        return asked

    def facts(self, embeddings: Embeddings) -> ProtocolFacts:
        """For the results; what attackers had is added by the plan."""
        speaker = dict(zip(embeddings.utterances, embeddings.speakers, strict=True))
        enrolled = {speaker[u] for u in self.enrollment}
        tried = {speaker[u] for u in self.trials}
        return ProtocolFacts(
            split=self.split,
            enrolled_speakers=len(enrolled),
            trial_speakers=len(tried),
            enrollment_utterances=len(self.enrollment),
            trial_utterances=len(self.trials),
            same_session=self.same_session,
            details={
                "speakers": len(enrolled | tried),
                "speakers_in_both": len(enrolled & tried),
                "key": None if self.key is None else len(self.key),
                "distractors": self.distractors,
            },
        )


@dataclass(frozen=True, eq=False)
class GivenProtocol:
    """A protocol that was decided before: utterances that people are known by, trials as (enrolled speaker, utterance,
    of one person or not), and the files that hold these trials, as keys of score files. By each of the `eer_rules` the
    EER is measured too; with `common_trials`, trials without a score in a score file are left out."""

    enrollment: tuple[str, ...]
    trials: tuple[tuple[str, str, bool], ...]
    split: Finding
    keys: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    eer_rules: tuple[str, ...] = ()
    common_trials: bool = False

    def on(self, embeddings: Embeddings) -> Protocol:
        """The protocol of the utterances that have vectors; others are reported."""
        speaker = dict(zip(embeddings.utterances, embeddings.speakers, strict=True))
        trials = [(name, utterance) for name, utterance, _ in self.trials if utterance in speaker]
        for name, utterance, is_target in self.trials:
            if utterance in speaker and (speaker[utterance] == name) != is_target:
                label = "target" if is_target else "nontarget"
                raise _wrong_key(name, utterance, label, speaker[utterance], self.keys[0] if self.keys else None)
        known = tuple(utterance for utterance in self.enrollment if utterance in speaker)
        tried = tuple(dict.fromkeys(utterance for _, utterance in trials))
        if not known or not tried:
            what = "trial" if known else "enrollment"
            raise InputError(f"none of the {what} utterances is in both corpora", path=embeddings.source or None)
        findings = list(self.findings)
        listed = len({utterance for _, utterance, _ in self.trials})
        for what, lost in (("enrollment", len(self.enrollment) - len(known)), ("trial", listed - len(tried))):
            if lost:
                findings.append(warning("listed_utterances_missing", list=what, count=lost))
        key = frozenset(trials)
        return Protocol(known, tried, self.split, key, None, tuple(findings), self.eer_rules, self.common_trials)


def make_protocol(
    embeddings: Embeddings,
    *,
    enroll: Sequence[str] = (),
    trials: Sequence[str] = (),
    found_near: Sequence[str | Path] = (),
    seed: int = 0,
    given: GivenProtocol | None = None,
    distractors: Collection[str] = (),
) -> Protocol:
    """As it was given, or from lists where they are given or lie with the data (as in the VoicePrivacy layout), else by
    a seeded split. All recordings of `distractors` are enrollment."""
    if distractors:
        is_further = np.array([speaker in distractors for speaker in embeddings.speakers])
        protocol = make_protocol(
            embeddings.take(~is_further), enroll=enroll, trials=trials, found_near=found_near, seed=seed, given=given
        )
        further = tuple(embeddings.utterances[is_further])
        people = len(set(embeddings.speakers[is_further]))
        findings = (*protocol.findings, Finding.of("distractors_enrolled", count=people, recordings=len(further)))
        return replace(protocol, enrollment=protocol.enrollment + further, findings=findings, distractors=people)
    split = Finding.of("split_by_lists", found=False)
    if not enroll and not trials and given is None:
        enroll, trials = lists_near(found_near)
        split = Finding.of("split_by_lists", found=True)
    if given is not None:
        protocol = given.on(embeddings)
    else:
        protocol = _from_lists(embeddings, enroll, trials, split) if enroll or trials else _by_chance(embeddings, seed)
    return replace(
        protocol,
        same_session=_same_session(embeddings, protocol),
        findings=(*protocol.findings, *_unlike_people(embeddings, protocol)),
    )


def lists_near(folders: Sequence[str | Path]) -> tuple[list[str], list[str]]:
    """The files `enrolls` and `trials` in data folders of the VoicePrivacy layout; both or none."""
    enroll, trials = [], []
    for folder in map(Path, folders):
        for place in (folder, folder / "meta"):
            if (place / "enrolls").is_file():
                enroll.append(str(place / "enrolls"))
            if (place / "trials").is_file():
                trials.append(str(place / "trials"))
    return (enroll, trials) if enroll and trials else ([], [])


def _from_lists(embeddings: Embeddings, enroll: Sequence[str], trials: Sequence[str], split: Finding) -> Protocol:
    speaker = dict(zip(embeddings.utterances, embeddings.speakers, strict=True))
    test, key = _read_trials(trials, speaker)
    if enroll:
        known = _read_enrollment(enroll)
        if not trials:
            taken = set(known)
            test = [u for u in embeddings.utterances if u not in taken]
    else:
        taken, named = set(test), {name for name, _ in key or ()}
        known = [u for u in embeddings.utterances if u not in taken and (not named or speaker[u] in named)]
    findings = []
    for what, listed in (("enrollment", known), ("trial", test)):
        missing = [u for u in listed if u not in speaker]
        if len(missing) == len(listed):
            raise InputError(
                f"none of the {len(listed)} {what} utterances in the lists is in both corpora"
                + (f", the first is {listed[0]!r}" if listed else ""),
                path=(enroll or trials)[0],
            )
        if missing:
            findings.append(warning("listed_utterances_missing", list=what, count=len(missing)))
    known, test = [u for u in known if u in speaker], [u for u in test if u in speaker]
    both = set(known) & set(test)
    if both:
        raise InputError(
            f"{len(both)} utterances are in the enrollment and in the trials, the first is {min(both)!r}",
            path=(trials or enroll)[0],
            fix="enroll other recordings of these people",
        )
    return Protocol(tuple(known), tuple(test), split, key, None, tuple(findings))


def _read_enrollment(paths: Sequence[str]) -> list[str]:
    known: dict[str, None] = {}
    for path in paths:
        for line, fields in _lines(path):
            if len(fields) > 1:
                raise InputError(
                    f"there are {len(fields)} words on this line, not one utterance id: {' '.join(fields)[:60]!r}",
                    path=path,
                    line=line,
                    fix="write one utterance id per line; ids have no white space",
                )
            known[fields[0]] = None
    return list(known)


def _read_trials(
    paths: Sequence[str], speaker: Mapping[str, str]
) -> tuple[list[str], frozenset[tuple[str, str]] | None]:
    """The utterances to name, from plain lists or from keys, which also say with whom each is compared."""
    wanted: dict[str, None] = {}
    key: set[tuple[str, str]] = set()
    plain = ""
    for path in paths:
        for line, fields in _lines(path):
            if len(fields) == 3 and fields[2] in ("target", "nontarget"):
                _refuse_wrong_key(fields, speaker, path, line)
                key.add((fields[0], fields[1]))
                wanted[fields[1]] = None
            elif len(fields) == 1:
                plain = path
                wanted[fields[0]] = None
            else:
                raise InputError(
                    f"this is neither an utterance id nor a trial: {' '.join(fields)[:60]!r}",
                    path=path,
                    line=line,
                    fix="one id per line, or: speaker utterance target|nontarget",
                )
    if key and plain:
        raise InputError(
            "a plain list of utterances was given together with a key, which says whom to compare each one with",
            path=plain,
            fix="give keys for all of them, or plain lists only",
        )
    return list(wanted), frozenset(key) if key else None


def _refuse_wrong_key(fields: Sequence[str], speaker: Mapping[str, str], path: str, line: int) -> None:
    name, utterance, label = fields
    if utterance in speaker and (speaker[utterance] == name) != (label == "target"):
        raise _wrong_key(name, utterance, label, speaker[utterance], path, line)


def _wrong_key(
    name: str, utterance: str, label: str, speaker: str, path: str | None, line: int | None = None
) -> InputError:
    return InputError(
        f"{utterance!r} is by {speaker!r}, yet the trial with {name!r} is called {label}",
        path=path,
        line=line,
        fix="use the same speaker names in the key and in the corpus",
    )


def _unlike_people(embeddings: Embeddings, protocol: Protocol) -> list[Finding]:
    """People who are enrolled and never tried, or tried and not enrolled."""
    speaker = dict(zip(embeddings.utterances, embeddings.speakers, strict=True))
    enrolled = {speaker[u] for u in protocol.enrollment}
    tried = {speaker[u] for u in protocol.trials}
    findings = []
    if untried := len(enrolled - tried):
        findings.append(warning("people_never_tried", count=untried))
    if strangers := len(tried - enrolled):
        findings.append(warning("people_tried_not_enrolled", count=strangers))
    return findings


def _lines(path: str | Path) -> list[tuple[int, list[str]]]:
    text = read_input_text(path)
    numbered = [(number, line.split()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not numbered:
        raise InputError("this list is empty", path=path)
    return numbered


def _by_chance(embeddings: Embeddings, seed: int) -> Protocol:
    """Each speaker's sessions in two halves where there are several, else their utterances in two halves; chance comes
    from the seed and the speaker's name alone, so that other speakers do not matter."""
    sessions = embeddings.attributes.get("session")
    enrollment, trials = [], []
    by_session = within = alone = 0
    for code, name in enumerate(embeddings.names):
        rows = np.flatnonzero(embeddings.codes == code)
        digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()
        rng = np.random.default_rng([seed, int.from_bytes(digest[:8], "big")])
        if len(rows) == 1:
            # Nothing is left to try: an enrolled person whom others can be mistaken for.
            enrollment += rows.tolist()
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
            enrollment += rows[mine].tolist()
            trials += rows[~mine].tolist()
            by_session += 1
        else:
            order = rng.permutation(rows)
            enrollment += np.sort(order[: len(rows) // 2]).tolist()
            trials += np.sort(order[len(rows) // 2 :]).tolist()
            within += 1
    if not trials:
        raise InputError(
            "every speaker has one utterance only: there is nothing left to try after the enrollment",
            path=embeddings.source or None,
            fix="give at least two utterances per speaker",
        )
    split = Finding.of("split_by_session", by_session=by_session, in_halves=within)
    findings = (warning("people_with_one_utterance", count=alone),) if alone else ()
    ids = embeddings.utterances
    return Protocol(tuple(ids[sorted(enrollment)]), tuple(ids[sorted(trials)]), split, None, None, findings)


def _same_session(embeddings: Embeddings, protocol: Protocol) -> float | None:
    """The percentage of trial utterances whose session is also in their speaker's enrollment; None if sessions are
    unknown."""
    sessions = embeddings.attributes.get("session")
    if sessions is None:
        return None
    of = {u: (s, t) for u, s, t in zip(embeddings.utterances, embeddings.speakers, sessions, strict=True)}
    enrolled = {of[u] for u in protocol.enrollment if of[u][1]}
    people = {of[u][0] for u in protocol.enrollment}
    known = [of[u] for u in protocol.trials if of[u][1] and of[u][0] in people]
    if not known:
        return None
    return 100 * sum(pair in enrolled for pair in known) / len(known)
