"""The submission to a VoicePrivacy challenge: folders of anonymized speech, and an archive of results.

The rules are those of the challenges' own checks: a copy needs `wav/*.wav` with one file per utterance of the original
folder, called as the utterance; lists that it lacks are taken from the original. What the tools would stumble over is
found here, before they run.
"""

from __future__ import annotations

import re
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from veilmeter.core.errors import InputError, Problem
from veilmeter.core.files import open_input, whole_file
from veilmeter.data.formats.kaldi_data import read_table
from veilmeter.data.formats.vpc import DataFolder, data_folders, parse, read_trial_list

YEARS = ("2024", "2026")
RATE = 16_000  # Hz, of all recordings of the challenges
LISTS = ("utt2spk", "spk2utt", "spk2gender", "text", "utt2emo")
LANGUAGES = ("en", "de", "fr", "es")
OPTIONAL_LANGUAGES = ("cn", "ja")
TRAINING = ("english", "german", "spanish", "french")
_SPLITS = ("dev", "test")


@dataclass(frozen=True, slots=True)
class Track:
    """The folders of one track of a challenge, without the suffix: those that must be there, and those that may."""

    year: str
    name: str
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()


def _sets(names: Sequence[str], roles: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{name}_{split}_{role}" for name in names for split in _SPLITS for role in roles)


_LABELED = tuple(f"IEMOCAP_{split}" for split in _SPLITS)
_MIXED = ("enrolls", "trials_mixed")
TRACKS = (
    Track("2024", "", (*_sets(["libri"], ("enrolls", "trials_f", "trials_m")), *_LABELED, "train-clean-360")),
    Track("2026", "1", (*_sets(["libri"], _MIXED), *_LABELED, "train-clean-360")),
    Track(
        "2026",
        "2",
        (
            *_sets(LANGUAGES, _MIXED),
            *(f"emodata_track2_{split}" for split in _SPLITS),
            *(f"train_{language}" for language in TRAINING),
        ),
        _sets(OPTIONAL_LANGUAGES, _MIXED),
    ),
)


@dataclass(frozen=True, slots=True)
class FolderCheck:
    """One folder of anonymized speech: how many recordings the original has, how many are there, and what is wrong."""

    name: str
    expected: int
    there: int
    rates: tuple[int, ...]
    problems: tuple[Problem, ...]
    optional: bool = False

    @property
    def is_complete(self) -> bool:
        return not any(problem.fatal for problem in self.problems)

    @property
    def verdict(self) -> str:
        if self.is_complete:
            return "complete"
        return "not complete" if self.there else "missing"


@dataclass(frozen=True, slots=True)
class SubmissionCheck:
    """Every folder of a track, and what concerns all of them."""

    track: Track
    suffix: str
    folders: tuple[FolderCheck, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def is_complete(self) -> bool:
        fatal = any(problem.fatal for problem in self.problems)
        return not fatal and all(folder.is_complete for folder in self.folders)


def check_submission(data: str | Path, suffix: str, year: str, track: str | None = None) -> tuple[SubmissionCheck, ...]:
    """Check the anonymized folders of a submission as the organizers' tools will.

    Parameters
    ----------
    data
        The folder `data/` of the challenge's tools, with original and anonymized folders side by side.
    suffix
        The suffix of the anonymized folders, with its underscore.
    year
        "2024" or "2026".
    track
        "1" or "2" of 2026; by default every track of which an anonymized folder is there.

    Returns
    -------
    tuple of SubmissionCheck
        One per track: every folder with its recordings and problems.

    Raises
    ------
    InputError
        If the suffix has no underscore, or no folder of the challenge has it.

    Examples
    --------
    >>> check_submission("data", "mine", "2024")
    Traceback (most recent call last):
        ...
    veilmeter.core.errors.InputError: the suffix 'mine' has no underscore in front (write _mine)
    """
    root = Path(data)
    check_suffix(suffix)
    if (root / "data").is_dir() and not any(parse(path) for path in root.iterdir() if path.is_dir()):
        root = root / "data"
    tracks = [known for known in TRACKS if known.year == year and track in (None, known.name)]
    if not tracks:
        raise InputError(f"the challenge of {year} has no track {track!r}", fix="leave out --track")
    begun = [known for known in tracks if any((root / f"{name}{suffix}").is_dir() for name in known.required)]
    if not begun:
        there = sorted({folder.suffix for folder in data_folders(root)} - {""}) if root.is_dir() else []
        raise InputError(
            f"no folder of the challenge of {year} has the suffix {suffix!r}",
            path=root,
            fix=f"there are {', '.join(there)}" if there else f"a copy is called <folder>{suffix}",
        )
    return tuple(_check_track(root, suffix, known) for known in (tracks if track else begun))


def check_suffix(suffix: str) -> None:
    """The suffix becomes part of names of folders and files, so that it must be one.

    >>> check_suffix("_../x")
    Traceback (most recent call last):
        ...
    veilmeter.core.errors.InputError: the suffix '_../x' can't be part of a folder's name (use letters, digits, . + - _)
    """
    if not suffix.startswith("_") or len(suffix) < 2:
        raise InputError(
            f"the suffix {suffix!r} has no underscore in front", fix=f"write _{suffix.strip('_') or 'name'}"
        )
    if not re.fullmatch(r"[\w.+-]+", suffix):
        raise InputError(f"the suffix {suffix!r} can't be part of a folder's name", fix="use letters, digits, . + - _")


def _check_track(root: Path, suffix: str, track: Track) -> SubmissionCheck:
    optional = [name for name in track.optional if (root / f"{name}{suffix}").is_dir()]
    folders = [_check_folder(root, name, suffix, optional=name in optional) for name in (*track.required, *optional)]
    return SubmissionCheck(track, suffix, tuple(folders), tuple(_check_names(root, suffix, track)))


def _check_names(root: Path, suffix: str, track: Track) -> Iterator[Problem]:
    """Names that the challenges' tools take for something else."""
    for path in sorted(root.iterdir()):
        name = path.name.removesuffix(suffix)
        if path.is_dir() and path.name.endswith(suffix) and name not in (*track.required, *track.optional):
            folder = parse(path)
            if folder is not None and folder.suffix not in ("", suffix):
                what = f"the tools take every folder that ends in {suffix} for this variant, also this one"
                yield Problem("confusing-name", what, str(path), fix="move it, or choose another suffix", fatal=False)
    if track.year == "2024" and "asr" in suffix:
        what = f"the tools of 2024 do not complete folders whose name contains 'asr', as those with {suffix} do"
        yield Problem("confusing-name", what, str(root), fix="choose another suffix")


def _check_folder(root: Path, name: str, suffix: str, *, optional: bool) -> FolderCheck:
    original, copy = root / name, root / f"{name}{suffix}"
    wanted: set[str] = set()
    problems: list[Problem] = []
    if (original / "utt2spk").is_file():
        wanted = set(_read_list(original / "utt2spk"))
    else:
        what = "the original folder has no utt2spk here, so that nothing can be compared"
        problems.append(Problem("no-original", what, str(original), fix="check where the challenge's data lie"))
    if not copy.is_dir():
        problems.append(Problem("missing-folder", "this folder of anonymized speech is missing", str(copy)))
        return FolderCheck(name + suffix, len(wanted), 0, (), tuple(problems), optional)
    files: dict[str, Path] = {}
    for path in sorted(copy.rglob("*.wav")):
        if path.stem in files:
            what = f"two recordings are called {path.stem}"
            problems.append(Problem("duplicate", what, str(path), fix="keep one", fatal=False))
        files.setdefault(path.stem, path)
    problems += _check_ids(copy, wanted, files)
    rates, faults = _check_sound([files[name] for name in sorted(wanted & files.keys())])
    problems += faults
    problems += _check_lists(original, copy, wanted)
    return FolderCheck(name + suffix, len(wanted), len(wanted & files.keys()), rates, tuple(problems), optional)


def _read_list(path: Path) -> dict[str, str]:
    """The lines of a list by their first word; what is wrong with it otherwise is for `veilmeter check`."""
    return read_table(path, [])


def _check_ids(copy: Path, wanted: set[str], files: dict[str, Path]) -> Iterator[Problem]:
    if missing := sorted(wanted - files.keys()):
        what = f"{len(missing)} of {len(wanted)} recordings are missing, the first is {missing[0]}"
        flacs = sum(1 for path in copy.rglob("*.flac"))
        fix = f"the tools find .wav only, and {flacs} .flac are here" if flacs else "anonymize them"
        yield Problem("missing-recordings", what, str(copy), fix=fix)
    if wanted and (extra := sorted(files.keys() - wanted)):
        what = f"{len(extra)} recordings are of no utterance of the original, the first is {extra[0]}: they are ignored"
        yield Problem("extra-recordings", what, str(copy), fatal=False)


def _check_sound(paths: Sequence[Path]) -> tuple[tuple[int, ...], list[Problem]]:
    """The sampling rates, and recordings that are empty, damaged or of another kind than the challenge's."""
    import soundfile

    found: dict[str, list[Path]] = {"empty": [], "unreadable": [], "stereo": []}
    by_rate: dict[int, list[Path]] = {}
    for path in paths:
        is_empty = False
        try:
            with open_input(path) as handle:  # a pipe would wait for a writer
                is_empty = not handle.read(1)
            about = soundfile.info(str(path))
        except (InputError, OSError, RuntimeError):
            found["empty" if is_empty else "unreadable"].append(path)
            continue
        by_rate.setdefault(int(about.samplerate), []).append(path)
        if about.frames == 0:
            found["empty"].append(path)
        if about.channels != 1:
            found["stereo"].append(path)
    texts = {
        "empty": ("are empty", "anonymize them again"),
        "unreadable": ("can't be read as WAV", "anonymize them again"),
        "stereo": ("have more than one channel", "write one channel"),
    }
    problems = [
        Problem(kind, f"{len(named)} recordings {texts[kind][0]}", str(named[0]), fix=texts[kind][1])
        for kind, named in found.items()
        if named
    ]
    for rate, named in by_rate.items():
        if rate != RATE:
            what = f"{len(named)} recordings have {rate} Hz, and the challenge's extractors expect {RATE}"
            problems.append(Problem("rate", what, str(named[0]), fix=f"resample them to {RATE} Hz"))
    return tuple(sorted(by_rate)), problems


def _check_lists(original: Path, copy: Path, wanted: set[str]) -> Iterator[Problem]:
    """Lists of the copy: those of the original, or none, which the tools copy."""
    for name in LISTS:
        both = (copy / name).is_file() and (original / name).is_file()
        if both and _read_list(copy / name) != _read_list(original / name):
            what = f"{name} is not that of the original folder"
            yield Problem("other-list", what, str(copy / name), fix="remove it: the tools copy the original's")
    if (copy / "wav.scp").is_file() and wanted:
        listed = _read_list(copy / "wav.scp")
        dead = [path for path in listed.values() if not _exists(path, copy)]
        if set(listed) != wanted or dead:
            what = (
                f"wav.scp lists {len(listed)} recordings, {len(dead)} of them not found; there should be {len(wanted)}"
            )
            fix = "the tools rebuild it from wav/, or remove it"
            yield Problem("other-list", what, str(copy / "wav.scp"), fix=fix, fatal=False)
    if (original / "trials").is_file():
        for finding in read_trial_list(original / "trials").findings:
            from veilmeter.wording import sentence

            yield Problem("trials", sentence(finding), str(original / "trials"), fatal=False)


def _exists(listed: str, copy: Path) -> bool:
    """A path of a list is relative to where the tools run: beside the folder of the data."""
    return any((place / listed).is_file() for place in (copy.parent.parent, Path(), copy))


def find_originals(data: str | Path, sets: Sequence[str] = ()) -> list[DataFolder]:
    """The folders of original speech that a submission anonymizes: all, or those of these sets (`libri_test`,
    `libri_test_trials_f`, `train-clean-360`)."""
    folders = [folder for folder in data_folders(Path(data)) if not folder.suffix and folder.role not in ("", "asr")]
    known = sorted({name for folder in folders for name in (folder.set, folder.base)})
    if not folders:
        raise InputError("no folder of original speech of a challenge", path=data, fix="give its folder data/")
    if unknown := [name for name in sets if name not in known]:
        raise InputError(f"no set {unknown[0]!r}", path=data, fix=f"there are {', '.join(known)}")
    return [folder for folder in folders if not sets or {folder.set, folder.base} & set(sets)]


# --- the archive of results


@dataclass(frozen=True, slots=True)
class SubmissionArchive:
    """The archive that is sent in: `official` files come from the challenge's tools, `own` from veilmeter."""

    path: Path
    official: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    missing: tuple[str, ...] = field(default=())


# As the tools' own script collects them; {0} is the suffix.
OFFICIAL = (
    "asr/*{0}", "asr/*{0}.csv", "ser/*{0}.csv", "ser_emotion2vec/*{0}.csv", "results_summary/*{0}*",
    "results_summary/track*/*{0}*", "asv_orig/*{0}", "asv_orig/*{0}.csv", "asv_ssl/*{0}", "asv_ssl/*{0}.csv",
    "asv_anon{0}", "asv_anon_track2_*{0}",
)  # fmt: skip


def write_archive(data: str | Path, suffix: str, out: str | Path, run: str | Path | None = None) -> SubmissionArchive:
    """Collect results for the organizers in `result_for_submission<suffix>.zip`.

    Parameters
    ----------
    data
        The folder `data/`; `exp/` is in it or beside it.
    suffix
        The suffix of the anonymized folders.
    out
        The folder that the archive is written to.
    run
        What `assess --vpc` wrote, whose tables are added under `veilmeter/`: they are not the challenge's figures.

    Returns
    -------
    SubmissionArchive
        The archive, its files, and what the challenge's tools did not leave.

    Raises
    ------
    InputError
        If there is nothing to collect.

    Examples
    --------
    >>> write_archive("data", "_x", "out", run="run")  # doctest: +SKIP
    """
    root = Path(data)
    check_suffix(suffix)
    exp = next((place for place in (root / "exp", root.parent / "exp") if place.is_dir()), None)
    files: dict[str, Path] = {}
    missing = []
    for pattern in (text.format(suffix) for text in OFFICIAL) if exp is not None else ():
        assert exp is not None
        found = [file for path in sorted(exp.glob(pattern)) for file in _files_below(path)]
        files |= {f"exp/{file.relative_to(exp).as_posix()}": file for file in found}
        if (
            not found
            and pattern.startswith(("asr/", "ser/", "results_summary/", "asv_anon"))
            and "track" not in pattern
        ):
            missing.append(f"exp/{pattern}")
    official = tuple(files)
    tables = [] if run is None else [p for p in sorted(Path(run).glob(f"*{suffix}*")) if p.is_file()]
    tables += [] if run is None else sorted(Path(run).glob("emotions.csv"))
    own = {f"veilmeter/{path.name}": path for path in tables if path.suffix != ".zip"}
    if run is not None and not own:
        raise InputError(f"no table of the variant {suffix}", path=run, fix="give the --out of `assess --vpc`")
    if not files and not own:
        fix = "run the challenge's evaluation, or give --run with what `assess --vpc` wrote"
        raise InputError(f"--suffix {suffix}: there are no results to collect", path=exp or root, fix=fix)
    place = Path(out) / f"result_for_submission{suffix}.zip"
    place.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(place) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sorted((files | own).items()):
            about = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the same files, the same archive
            about.compress_type = zipfile.ZIP_DEFLATED
            with open_input(path, most=LARGEST_SENT) as content, archive.open(about, "w") as entry:
                shutil.copyfileobj(content, entry)
    return SubmissionArchive(place, official, tuple(own), tuple(missing))


LARGEST_SENT = 1 << 30  # bytes of a file in the archive
_NOT_SENT = (".wav", ".flac", ".ckpt", ".pt")  # recordings, and models of gigabytes


def _files_below(path: Path) -> list[Path]:
    inside = sorted(path.rglob("*")) if path.is_dir() and not path.is_symlink() else [path]
    return [file for file in inside if file.is_file() and not file.is_symlink() and file.suffix not in _NOT_SENT]
