"""VoicePrivacy data as the challenges of 2020 to 2026 lay it out: one Kaldi data folder per set and role.

`data/libri_test_enrolls`, `libri_test_trials_f`, `de_dev_trials_mixed`, `IEMOCAP_test`, `train-clean-360`,
`train_english`; an anonymized copy has a suffix (`libri_test_trials_f_mcadams`) and may hold nothing but `wav/`: its
lists are then those of the original folder beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from veilmeter.core.errors import InputError, Problem
from veilmeter.data.corpus import Utterance
from veilmeter.data.formats import kaldi_data
from veilmeter.data.layouts import Evidence, Layout, Reading, ReadOptions

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
    """What a folder's name says; None if it is no name of a VoicePrivacy data folder.

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
    one variant. Folders beside them that are no part of it are listed."""
    there_are = data_folders(root)
    folders = [folder for folder in there_are if _chosen(folder, options.part)]
    # A set as a whole holds its enrollment and trials again, without saying which is which.
    folders = folders or [folder for folder in there_are if folder.base == options.part]
    if not folders:
        there = ", ".join(sorted({folder.set for folder in there_are}))
        raise InputError(f"there is no data set {options.part!r}", path=root, fix=f"there are {there}")
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
    """What lies beside the sets and is no part of the corpus: said, so that nobody takes it for measured."""
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
                what = "by its name this is no anonymized copy, and audio or lists (wav.scp, utt2spk) are missing"
                fix = "complete it, or if it is a copy rename it: a suffix is no word of the challenge's own"
                yield Problem("not-used", what, str(path), fix=fix, fatal=False)


def read_data_folder(folder: DataFolder, roots: Sequence[Path] = ()) -> Reading:
    """One data folder with the lists of its original where it has none of its own."""
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
    mine = {u.path.resolve() for u in kaldi_data.read_folder(folder.path, roots, lists=original.path).utterances}
    other = {u.path.resolve() for u in kaldi_data.read_folder(original.path, roots).utterances}
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
