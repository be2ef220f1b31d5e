"""VoicePrivacy data as the challenges of 2020 to 2026 lay it out: one Kaldi data folder per set and role.

`data/libri_test_enrolls`, `libri_test_trials_f`, `de_dev_trials_mixed`, `IEMOCAP_test`, `train-clean-360`,
`train_english`; an anonymized copy has a suffix (`libri_test_trials_f_mcadams`) and may hold nothing but `wav/`: its
lists are then those of the original folder beside it.

`Challenge` gathers what an assessment needs from such a folder: per set and gender the enrollment, the trials and
their anonymized copies, the training speech of both sides, and the scores that the challenge's tools left in `exp/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, Problem
from veilmeter.core.files import real_path
from veilmeter.core.findings import Finding, Reference, file_reference, warning
from veilmeter.data.corpus import Corpus, Utterance
from veilmeter.data.embeddings import Strings, strings
from veilmeter.data.formats import kaldi_data
from veilmeter.data.formats.columns import Codes, Faults
from veilmeter.data.formats.trials import read_trials
from veilmeter.data.formats.vectors import is_vector_folder
from veilmeter.data.layouts import Evidence, Layout, Reading, ReadOptions, clean_names
from veilmeter.data.matching import match_ids

# Names are matched whole: `_b` is not the suffix of `libri_test_enrolls_a_b`. A suffix begins with its underscore.
_FOLDER = re.compile(
    r"(?P<base>(?P<emotion>(?:IEMOCAP|emodata(?:_track\d)?)_(?:dev|test))"
    r"|(?P<train>train-(?:clean|other)-\d+(?:-asv)?|train_[a-z]+)"
    r"|(?P<set>[a-z]+_(?:test|dev))(?:_(?P<role>enrolls(?:_mic2)?|trials_(?:f|m|mixed|all)(?:_all|_common)?(?:_mic2)?"
    r"|asr)(?![^_]))?)"
    r"(?P<suffix>_(?!enrolls|trials).+)?"
)
_AUDIO = ("wav", "wav.scp")
_LANGUAGES = {"cn": "zh", "english": "en", "german": "de", "spanish": "es", "french": "fr"}


@dataclass(frozen=True, slots=True)
class DataFolder:
    """One data folder by its name: `set` is `libri_test`, `IEMOCAP_dev` or `train_english`; `role` is `enrolls`,
    `trials_f`, ..., `emotion`, `train`, `asr` (the trials again, for word errors) or "" (all of a set)."""

    path: Path
    base: str
    set: str
    role: str
    suffix: str

    @property
    def is_trial(self) -> bool:
        return self.role.startswith("trials")

    @property
    def is_enrollment(self) -> bool:
        return self.role.startswith("enrolls")

    @property
    def language(self) -> str:
        """The language of the set, by its name; the sets of LibriSpeech, VCTK and IEMOCAP are English."""
        word = self.set.removeprefix("train_").split("_")[0].lower()
        return _LANGUAGES.get(word, word if len(word) == 2 else "en" if self.role != "train" or "-" in word else "")

    @property
    def gender(self) -> str:
        """`f`, `m`, `mixed` or `all`, as the challenge's tables call it."""
        return self.role.split("_")[1] if self.is_trial else ""


def parse(path: Path) -> DataFolder | None:
    """The parts of a folder's name; None if a VoicePrivacy data folder is not named so.

    >>> folder = parse(Path("data/libri_test_trials_f_common_mcadams"))
    >>> folder.set, folder.role, folder.suffix
    ('libri_test', 'trials_f_common', '_mcadams')
    >>> parse(Path("de_dev_trials_mixed")).gender, parse(Path("train_english_b1")).suffix
    ('mixed', '_b1')
    """
    name = _FOLDER.fullmatch(path.name)
    if name is None:
        return None
    role = "emotion" if name["emotion"] else "train" if name["train"] else name["role"] or ""
    return DataFolder(path, name["base"], name["set"] or name["base"], role, name["suffix"] or "")


def recognizes(root: Path) -> bool:
    return root.is_dir() and any(folder.is_trial or folder.is_enrollment for folder in data_folders(root))


def read(root: Path, options: ReadOptions) -> Reading:
    """Enrollment and trials of all sets, or of the set that `part` names (libri_test, IEMOCAP_dev, train_english), in
    one variant. Folders beside them that do not belong to it are listed."""
    there_are = data_folders(root)
    folders = [folder for folder in there_are if _chosen(folder, options.part)]
    # A set as a whole holds its enrollment and trials again, without saying which is which.
    folders = folders or [folder for folder in there_are if folder.base == options.part]
    if not folders:
        there = ", ".join(sorted({folder.set for folder in there_are}))
        raise InputError(f"no data set {options.part!r}", path=root, fix=f"there are {there}")
    wanted = _suffix(root, folders, options.suffix)
    reading = Reading()
    seen: dict[tuple[str, str], Utterance] = {}  # by set: one id in two sets is a duplicate, and said
    for folder in folders:
        if folder.suffix != wanted:
            continue
        listed = read_data_folder(folder, options.roots)
        reading.problems += listed.problems
        for utterance in listed.utterances:
            language = {"language": folder.language} if folder.language else {}
            about = {**language, **utterance.attributes, "set": folder.set, "role": folder.role}
            # VCTK's common trials are among all trials, the mixed trials are those of both genders: one recording.
            seen.setdefault((folder.set, utterance.id), replace(utterance, attributes=about))
    reading.utterances = list(seen.values())
    if options.part is None:
        reading.problems += _not_read(root, wanted)
    return reading


def _chosen(folder: DataFolder, part: str | None) -> bool:
    if folder.is_trial or folder.is_enrollment:
        return part in (None, folder.base, folder.set)
    return part == folder.base and folder.role != ""


def _suffix(root: Path, folders: Sequence[DataFolder], chosen: str | None) -> str:
    suffixes = sorted({folder.suffix for folder in folders})
    if chosen is None and len(suffixes) > 1:
        words = ", ".join(repr(suffix) if suffix else "'' (the original)" for suffix in suffixes)
        raise InputError(f"there are several variants: {words}", path=root, fix="say which with --suffix")
    wanted = suffixes[0] if chosen is None else chosen
    if wanted not in suffixes:
        there = ", ".join(map(repr, suffixes))
        raise InputError(f"no folder has the suffix {wanted!r}", path=root, fix=f"there are {there}")
    return wanted


def _not_read(root: Path, suffix: str) -> Iterator[Problem]:
    """Folders beside the sets that do not belong to the corpus: reported, so that nobody assumes they were measured."""
    reasons = {
        "train": "training speech",
        "emotion": "speech with emotions",
        "asr": "the trials once more",
        "": "a set",
    }
    for folder in data_folders(root):
        if folder.role in reasons and folder.suffix == suffix:
            what = f"this is {reasons[folder.role]} and was not read with the others"
            fix = f"to read it: --part {folder.base}"
            yield Problem("not-used", what, str(folder.path), fix=fix, fatal=False)
    yield from unknown_folders(root)


def unknown_folders(root: Path) -> Iterator[Problem]:
    """Data folders whose names no challenge uses, and those of original speech that lack audio or lists."""
    for base in (root, root / "data"):
        for path in sorted(base.iterdir()) if base.is_dir() else []:
            hidden = path.name.startswith(".") or path == root / "data"
            if not path.is_dir() or hidden or not any((path / name).exists() for name in (*_AUDIO, "utt2spk")):
                continue
            folder = parse(path)
            if folder is None:
                what = "this data folder has no name that the VoicePrivacy challenges use: it was not read"
                yield Problem("not-used", what, str(path), fix="give it as a corpus of its own", fatal=False)
            elif not _has_audio(folder):
                what = "not an anonymized copy by its name, and audio or lists (wav.scp, utt2spk) are missing"
                fix = "complete it, or if it is a copy rename it: a suffix must not be one of the challenge's words"
                yield Problem("not-used", what, str(path), fix=fix, fatal=False)


def read_data_folder(folder: DataFolder, roots: Sequence[Path] = ()) -> Reading:
    """One data folder, with the lists of its original where it has none."""
    if not folder.suffix:
        return kaldi_data.read_folder(folder.path, roots)
    original = original_of(folder, roots)
    own = (folder.path / "utt2spk").is_file()
    if not own and original is None:
        raise InputError(
            "this folder of anonymized speech has no lists, and its original is not beside it",
            path=folder.path,
            fix=f"put {folder.base} with utt2spk beside it, or give the folder that holds it with --root",
        )
    lists = folder.path if own or original is None else original.path
    if original is not None and _names_the_original(folder, original, roots):
        if not (folder.path / "wav").is_dir():
            raise InputError(
                "its wav.scp names the recordings of the original folder: nothing here is anonymized",
                path=folder.path / "wav.scp",
                fix="list the anonymized recordings, or remove wav.scp and put them into wav/",
            )
        return _read_wav_folder(folder, lists, roots, "it names the recordings of the original folder")
    reading = kaldi_data.read_folder(folder.path, roots, lists=lists)
    if (folder.path / "wav.scp").is_file() and (folder.path / "wav").is_dir():
        rebuilt = _read_wav_folder(folder, lists, roots, "it misses recordings that lie in wav/")
        if len(rebuilt.utterances) > len(reading.utterances):
            return rebuilt
    return reading


def _read_wav_folder(folder: DataFolder, lists: Path, roots: Sequence[Path], why: str) -> Reading:
    """What lies in `wav/`, as the challenge's own check reads a folder whose wav.scp is wrong."""
    reading = kaldi_data.read_folder(folder.path, roots, lists=lists, use_scp=False)
    what = f"{why}: those in wav/ were used instead"
    reading.problems.append(Problem("stale-list", what, str(folder.path / "wav.scp"), fatal=False))
    return reading


def _names_the_original(folder: DataFolder, original: DataFolder, roots: Sequence[Path]) -> bool:
    """Whether the folder's wav.scp was copied from the original without change."""
    if not (folder.path / "wav.scp").is_file():
        return False
    mine = {real_path(u.path) for u in kaldi_data.read_folder(folder.path, roots, lists=original.path).utterances}
    other = {real_path(u.path) for u in kaldi_data.read_folder(original.path, roots).utterances}
    return bool(mine & other)


def original_of(folder: DataFolder, roots: Sequence[Path] = ()) -> DataFolder | None:
    """The folder without the suffix: beside it, or in one of the roots."""
    for place in (folder.path.parent, *roots, *(root / "data" for root in roots)):
        path = place / folder.base
        if (path / "utt2spk").is_file():
            return replace(folder, path=path, suffix="")
    return None


def data_folders(root: Path) -> list[DataFolder]:
    """Every data folder of the challenges below `root` or `root/data`, sorted by name."""
    folders = []
    for base in (root, root / "data"):
        if not base.is_dir():
            continue
        for path in sorted(base.iterdir()):
            folder = parse(path)
            if folder is not None and path.is_dir() and _has_audio(folder):
                folders.append(folder)
    return folders


def _has_audio(folder: DataFolder) -> bool:
    if kaldi_data.recognizes(folder.path):
        return True
    return bool(folder.suffix) and (folder.path / "wav").is_dir()


def variant(root: Path, *, original: bool, wanted: str | None) -> str | None:
    """Which suffix to read for the original or for the anonymized speech of an assessment, where one folder holds both:
    the original is the one without suffix, the anonymized the one that was asked for, or the only other one."""
    suffixes = {folder.suffix for folder in data_folders(root)}
    if original:
        return "" if "" in suffixes else None
    others = sorted(suffixes - {""})
    if wanted is None and len(suffixes) == 2 and len(others) == 1:
        return others[0]
    return wanted


LAYOUT = Layout(recognizes, read, Evidence.LISTS, frozenset({"part", "suffix", "roots"}), has_lists=True)


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
    pairs = table.enroll * np.int64(len(names)) + table.test
    distinct, backwards = np.unique(pairs[::-1], return_index=True)
    last = len(pairs) - 1 - backwards  # the last line of each pair
    order = np.argsort(last)
    targets = np.bincount(np.searchsorted(distinct, pairs), table.is_target, minlength=len(distinct))
    lines = np.bincount(np.searchsorted(distinct, pairs), minlength=len(distinct))
    both = (targets > 0) & (targets < lines)
    rows = last[order]
    examples = [f"{names[table.enroll[row]]} {names[table.test[row]]}" for row in np.sort(last[both])[:3]]
    return TrialList(
        path,
        names[table.enroll[rows]],
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
        """Enrollment, trials and key in the ids of the original corpus; missing recordings are reported."""
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
        raise InputError(f"no set {unknown[0]!r}", path=place, fix=f"there are {', '.join(sorted(known))}")
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
            what = f"{trials.base} can't be assessed: no folder {base}{mark}"
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
        what = "it does not belong to the sets that were assessed"
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
    corpus = Corpus(folders[0].path.parent, "vpc", tuple(clean_names(utterances)), tuple(problems), variant)
    if not len(corpus):
        first = f"; {problems[0]}" if problems else ""
        raise InputError(f"no usable recording{first}", path=folders[0].path)
    return corpus


@dataclass(frozen=True, slots=True)
class ScoreFile:
    """Scores that the challenge's tools left: where, by which attacker, of which enrollment and trials."""

    path: Path
    system: str
    enrollment: DataFolder
    trials: DataFolder

    @property
    def attacker(self) -> str | None:
        """The attacker with these scores, by the challenge's own names. `original` compares original speech alone, to
        see whether the extractor works at all.

        The tools also apply the extractor trained on a system's anonymized speech to original speech, and possibly to
        another system's: no attacker would, so None.
        """
        if VectorFolder.is_adapted(self.system):
            suffixes = {self.enrollment.suffix, self.trials.suffix}
            trained_on = all(suffix and self.system.endswith(suffix) for suffix in suffixes)
            return "semi-informed" if trained_on and len(suffixes) == 1 else None
        if not self.trials.suffix:
            return "original"
        return "lazy-informed" if self.enrollment.suffix else "ignorant"


@dataclass(frozen=True, slots=True)
class VectorFolder:
    """Vectors that the challenge's tools left of the utterances of one data folder, by one extractor (`system`)."""

    path: Path
    system: str
    folder: DataFolder

    @staticmethod
    def is_adapted(system: str) -> bool:
        """Whether the extractor was trained on anonymized speech."""
        return system.startswith("asv_anon")


def find_vectors(exp: str | Path) -> list[VectorFolder]:
    """Every folder of vectors of utterances below `exp/asv_*`; what an interrupted run left is none."""
    folders = []
    for path in sorted(Path(exp).glob("asv_*/*_out/*/*/utt-level")):
        folder = parse(path.parent)
        if folder is not None and is_vector_folder(path):
            folders.append(VectorFolder(path, path.relative_to(exp).parts[0], folder))
    return folders


def find_scores(exp: str | Path, suffix: str | None = None) -> list[ScoreFile]:
    """Every score file below `exp/asv_*`, of the 2024 and 2026 tools and of VoicePAT; with `suffix` those that have
    nothing to do with another variant."""
    score_files = []
    for pattern in ("asv_*/*/scores", "asv_*/*_out/*/scores"):
        for path in sorted(Path(exp).glob(pattern)):
            sides = _two_folders(path.parent.name)
            if sides is None or not path.is_file():
                continue
            if suffix is None or {side.suffix for side in sides} <= {"", suffix}:
                score_files.append(ScoreFile(path, path.relative_to(exp).parts[0], *sides))
    return score_files


def _two_folders(name: str) -> tuple[DataFolder, DataFolder] | None:
    """`libri_dev_enrolls_mcadams-libri_dev_trials_f_mcadams` as its two folders."""
    for at, letter in enumerate(name):
        if letter == "-":
            enrollment, trials = parse(Path(name[:at])), parse(Path(name[at + 1 :]))
            if enrollment and trials and enrollment.is_enrollment and trials.is_trial:
                return enrollment, trials
    return None
