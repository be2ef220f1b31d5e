"""What a folder of VoicePrivacy data holds for an assessment: per set and gender the enrollment, the trials and their
anonymized copies, and the training speech of both sides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, Problem
from veilmeter.core.findings import Finding, Reference, file_reference, warning
from veilmeter.data.corpus import Corpus, Utterance
from veilmeter.data.embeddings import Strings, strings
from veilmeter.data.formats.columns import Codes, Faults
from veilmeter.data.formats.trials import read_trials
from veilmeter.data.formats.vpc import DataFolder, data_folders, read_data_folder, unknown_folders
from veilmeter.data.ids import match_ids
from veilmeter.data.layouts import cleaned


@dataclass(frozen=True, eq=False, slots=True)
class TrialList:
    """Enrolled speakers, trial utterances and whether each pair is of one person; each pair once.

    `repeated` counts lines that say again what another line says, `contradicted` pairs that have both labels.
    """

    path: Path
    speakers: Strings
    utterances: Strings
    is_target: NDArray[np.bool_]
    repeated: int = 0
    contradicted: int = 0
    examples: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.is_target)

    @property
    def findings(self) -> list[Finding]:
        findings = []
        file = file_reference(self.path)
        if self.repeated:
            findings.append(Finding.of("trials_repeated", file=file, count=self.repeated))
        if self.contradicted:
            example = Reference("text", self.examples[0])
            findings.append(warning("trials_contradicted", file=file, count=self.contradicted, example=example))
        return findings


def read_trial_list(path: Path) -> TrialList:
    """The trials of a list with lines such as `1462 1462-170142-0000 target`."""
    codes, notes = Codes(), Faults()
    table = read_trials(path, layout="vpc", codes=codes, findings=notes)
    notes.raise_first()
    names = strings(codes.names())
    pairs = table.enrol * np.int64(len(names)) + table.test
    distinct, backwards = np.unique(pairs[::-1], return_index=True)
    last = len(pairs) - 1 - backwards  # the last line of each pair
    order = np.argsort(last)
    targets = np.bincount(np.searchsorted(distinct, pairs), table.is_target, minlength=len(distinct))
    lines = np.bincount(np.searchsorted(distinct, pairs), minlength=len(distinct))
    both = (targets > 0) & (targets < lines)
    rows = last[order]
    examples = [f"{names[table.enrol[row]]} {names[table.test[row]]}" for row in np.sort(last[both])[:3]]
    return TrialList(
        path,
        names[table.enrol[rows]],
        names[table.test[rows]],
        table.is_target[rows],
        int((lines - 1)[~both].sum()),
        int(both.sum()),
        tuple(examples),
    )


@dataclass(frozen=True, slots=True)
class TwoSides:
    """One data folder of the original speech and its anonymized copy."""

    original: DataFolder
    anonymized: DataFolder

    @property
    def name(self) -> str:
        return self.original.base

    @property
    def sides(self) -> tuple[DataFolder, DataFolder]:
        return self.original, self.anonymized

    def corpora(self, roots: Sequence[Path] = ()) -> tuple[Corpus, Corpus]:
        return read_folders([self.original], roots), read_folders([self.anonymized], roots)


@dataclass(frozen=True, slots=True)
class ChallengeSet:
    """One line of the challenge's table: a set such as `libri_test` and a gender (`f`, `m` or `mixed`)."""

    enrollment: TwoSides
    trials: TwoSides

    @property
    def name(self) -> str:
        """As in `libri_test_trials_f`."""
        return self.trials.name

    @property
    def set(self) -> str:
        return self.trials.original.set

    @property
    def gender(self) -> str:
        return self.trials.original.gender

    def corpora(self, roots: Sequence[Path] = ()) -> tuple[Corpus, Corpus]:
        """Original and anonymized recordings of enrollment and trials."""
        original = read_folders([self.enrollment.original, self.trials.original], roots)
        return original, read_folders([self.enrollment.anonymized, self.trials.anonymized], roots)

    def trial_list(self) -> TrialList:
        """The trials; they are always those of the original folder."""
        path = self.trials.original.path / "trials"
        if not path.is_file():
            raise InputError("the list of trials is missing", path=path)
        return read_trial_list(path)

    def protocol(self, corpus: Corpus) -> ChallengeProtocol:
        """Enrollment, trials and key in the ids of the original corpus; what has no recording is said."""
        enrolled = {u.id for u in corpus if u.attributes["role"].startswith("enrolls")}
        tried = [u.id for u in corpus if u.attributes["role"].startswith("trials")]
        trials = self.trial_list()
        listed = list(dict.fromkeys(trials.utterances))
        matched = match_ids(listed, tried)
        findings = [*trials.findings, *matched.findings("the trials", "the recordings")]
        file = file_reference(trials.path)
        if missing := [name for name in listed if name not in matched.partner]:
            first = Reference("recording", missing[0])
            findings.append(
                warning("trials_without_recording", file=file, count=len(missing), listed=len(listed), example=first)
            )
        key = tuple(
            (speaker, matched.partner[utterance], bool(is_target))
            for speaker, utterance, is_target in zip(trials.speakers, trials.utterances, trials.is_target, strict=True)
            if utterance in matched.partner
        )
        named = {speaker for speaker, _, _ in key}  # a list of one gender's trials enrolls that gender
        known = [u.id for u in corpus if u.id in enrolled and u.speaker in named]
        if strangers := named - {u.speaker for u in corpus if u.id in enrolled}:
            first = Reference("speaker", min(strangers))
            findings.append(
                warning("trial_speakers_without_enrollment", file=file, count=len(strangers), example=first)
            )
        return ChallengeProtocol(tuple(sorted(known)), key, tuple(findings))


@dataclass(frozen=True, slots=True)
class ChallengeProtocol:
    """Utterances that speakers are enrolled by, and the trials: enrolled speaker, utterance, of one person or not."""

    enrollment: tuple[str, ...]
    key: tuple[tuple[str, str, bool], ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Challenge:
    """All that one variant (a suffix) of the data offers. `problems` list what is there and was not used, and why."""

    root: Path
    suffix: str
    sets: tuple[ChallengeSet, ...]
    training: tuple[TwoSides, ...]
    emotion: tuple[TwoSides, ...]
    problems: tuple[Problem, ...]


def find_sets(root: str | Path, suffix: str, sets: Iterable[str] = ()) -> Challenge:
    """The sets of a data folder with this suffix (`_mcadams`), all or those named (`libri_test`,
    `libri_test_trials_f`); a copy that is missing is a problem, and an error where nothing is left."""
    place, wanted = Path(root), list(sets)
    folders = data_folders(place)
    originals = {folder.base: folder for folder in folders if not folder.suffix}
    copies = {folder.base: folder for folder in folders if folder.suffix == suffix}
    if not suffix or not copies:
        there = sorted({folder.suffix for folder in folders} - {""})
        raise InputError(
            f"no folder of anonymized speech has the suffix {suffix!r}",
            path=place,
            fix=f"there are {', '.join(there)}" if there else "anonymized folders are called <original>_<system>",
        )
    known = {name for folder in originals.values() for name in (folder.set, folder.base)}
    if unknown := [name for name in wanted if name not in known]:
        raise InputError(f"there is no set {unknown[0]!r}", path=place, fix=f"there are {', '.join(sorted(known))}")
    chosen = [f for f in originals.values() if f.is_trial and (not wanted or {f.set, f.base} & set(wanted))]
    problems: list[Problem] = []
    challenge_sets = [
        challenge_set
        for trials in chosen
        if (challenge_set := _challenge_set(trials, originals, copies, suffix, problems)) is not None
    ]
    if not challenge_sets:
        first = f"; {problems[0]}" if problems else ""
        raise InputError(f"no set has enrollment and trials on both sides{first}", path=place)
    used = {side.path for challenge_set in challenge_sets for pair in (challenge_set.enrollment, challenge_set.trials)
            for side in pair.sides}  # fmt: skip
    training, emotion = (_pairs(role, originals, copies, suffix, problems) for role in ("train", "emotion"))
    used |= {side.path for pair in (*training, *emotion) for side in pair.sides}
    used |= {Path(problem.path) for problem in problems}
    problems += [_not_used(folder, suffix) for folder in folders if folder.path not in used]
    problems += unknown_folders(place)
    return Challenge(place, suffix, tuple(challenge_sets), training, emotion, tuple(problems))


def _challenge_set(
    trials: DataFolder,
    originals: dict[str, DataFolder],
    copies: dict[str, DataFolder],
    suffix: str,
    problems: list[Problem],
) -> ChallengeSet | None:
    """The set of a folder of trials with its enrollment; None, and why in `problems`, if a part is missing."""
    microphone = "_mic2" if trials.role.endswith("_mic2") else ""
    enrollment = f"{trials.set}_enrolls{microphone}"
    for base, side, mark in ((enrollment, originals, ""), (enrollment, copies, suffix), (trials.base, copies, suffix)):
        if base not in side:
            what = f"{trials.base} can't be assessed: there is no folder {base}{mark}"
            begun = enrollment in copies or trials.base in copies  # else nobody meant to release it
            problems.append(Problem("missing-folder", what, str(trials.path), fatal=begun))
            return None
    return ChallengeSet(TwoSides(originals[enrollment], copies[enrollment]), TwoSides(trials, copies[trials.base]))


def _pairs(
    role: str,
    originals: dict[str, DataFolder],
    copies: dict[str, DataFolder],
    suffix: str,
    problems: list[Problem],
) -> tuple[TwoSides, ...]:
    """Folders of a role that are there on both sides."""
    pairs = []
    for base, folder in originals.items():
        if folder.role == role and base in copies:
            pairs.append(TwoSides(folder, copies[base]))
        elif folder.role == role:
            what = f"{base} has no anonymized copy {base}{suffix}: it was not used"
            problems.append(Problem("missing-folder", what, str(folder.path), fatal=False))
    return tuple(pairs)


def _not_used(folder: DataFolder, suffix: str) -> Problem:
    if folder.suffix not in ("", suffix):
        what = f"it is of the variant {folder.suffix!r}, which was not asked for"
    elif folder.role == "asr":
        what = "it holds the trials again, for word errors"
    elif folder.role == "":
        what = "its enrollment and trials are folders of their own"
    else:
        what = "it is no part of the sets that were assessed"
    return Problem("not-used", what, str(folder.path), fatal=False)


def read_folders(folders: Sequence[DataFolder], roots: Sequence[Path] = ()) -> Corpus:
    """Several data folders as one corpus, with `set` and `role` as attributes."""
    utterances: list[Utterance] = []
    problems: list[Problem] = []
    for folder in folders:
        reading = read_data_folder(folder, roots)
        problems += reading.problems
        about = {"set": folder.set, "role": folder.role}
        utterances += [replace(u, attributes={**u.attributes, **about}) for u in reading.utterances]
    variant = "+".join(folder.path.name for folder in folders)
    corpus = Corpus(folders[0].path.parent, "vpc", tuple(cleaned(utterances)), tuple(problems), variant)
    if not len(corpus):
        first = f"; {problems[0]}" if problems else ""
        raise InputError(f"there is no usable recording{first}", path=folders[0].path)
    return corpus
