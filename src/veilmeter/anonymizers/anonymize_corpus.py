"""From a corpus to an anonymized corpus: every utterance once, however often the run is stopped and started again.

An attacker who has the anonymizer runs it again (`run_again`), with other seeds than the released run and, where the
system can, with new draws for every utterance: then copies of one person share the person and not the draw.
"""

from __future__ import annotations

import glob
import hashlib
import os
import pickle
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from veilmeter.anonymizers.base import (
    Anonymizer,
    Batches,
    Draw,
    NeedsCorpus,
    NeedsFolder,
    draw_of,
    generator,
    load_anonymizer,
    options_of,
)
from veilmeter.anonymizers.manifest import (
    NO_EFFORT,
    Effort,
    Entry,
    Item,
    TimedEngine,
    Timings,
    read_journal,
    read_manifest,
    read_timings,
    write_manifest,
    write_side_files,
    write_timings,
)
from veilmeter.anonymizers.treatment import NOT_ANONYMIZED, Treated, Treatment, file_hash, is_refused_unheard
from veilmeter.core.engine import Engine, Here, Progress
from veilmeter.core.errors import InputError, Problem, VeilmeterError, foreign_errors
from veilmeter.core.files import Journal, make_folder, only_one, plain
from veilmeter.core.user_code import files_to_load, version_of
from veilmeter.data.corpus import Corpus, Utterance, file_name
from veilmeter.data.layouts import LAYOUTS, MEDIA_SUFFIXES, SUFFIXES, inside
from veilmeter.speech.audio import LONGEST_SECONDS
from veilmeter.speech.recordings import map_corpus, refusal, refuse_unusable


def plan(
    corpus: Corpus,
    anonymizer: Anonymizer,
    audio: str,
    before: Mapping[str, Entry],
    rate: int | None = None,
    draws: Mapping[str, int] | None = None,
) -> list[Item]:
    """The work to do; `draws` are those that utterances get in place of the anonymizer's own."""
    taken: set[str] = set()
    name, version, draw = anonymizer.name, version_of(anonymizer), str(draw_of(anonymizer))
    items = []
    for utterance in corpus:
        parameters, refusal = {}, ""
        try:
            with foreign_errors(f"{name} failed"):
                parameters = dict(plain(anonymizer.parameters(utterance)))
                if draws is not None:
                    parameters = _with_draw(parameters, draws[utterance.id], name)
        except InputError as error:
            refusal = error.what
        pseudo = parameters.get("pseudo_speaker")
        entry = Entry(
            utterance=utterance.id,
            speaker=utterance.speaker,
            source=_source_name(corpus, utterance),
            source_sha256=None,
            output=_output_name(corpus, utterance, audio, taken),
            output_sha256=None,
            system=name,
            version=version,
            parameters=parameters,
            pseudo_speaker=None if pseudo is None else str(pseudo),
            draw=draw,
            part=str(utterance.stretch),
            rate=rate,
        )
        items.append(Item(utterance, entry, before.get(utterance.id), refusal))
    return items


def _with_draw(parameters: dict[str, Any], draw: int, system: str) -> dict[str, Any]:
    if "draw" not in parameters:
        raise InputError(f"{system} declares choices, but has no parameter `draw`")
    return {**parameters, "draw": draw}


def _source_name(corpus: Corpus, utterance: Utterance) -> str:
    if utterance.path.is_relative_to(corpus.root):
        return utterance.path.relative_to(corpus.root).as_posix()
    return str(utterance.path)


def _output_name(corpus: Corpus, utterance: Utterance, audio: str, taken: set[str]) -> str:
    below = corpus.relative(utterance)
    known = below.suffix.lower() in SUFFIXES | MEDIA_SUFFIXES
    below = below.with_suffix(f".{audio}") if known else below.with_name(f"{below.name}.{audio}")
    if below.as_posix() in taken or ".." in below.parts:
        if not LAYOUTS[corpus.layout].has_lists:
            raise InputError(
                f"two recordings would be written to {below}", path=utterance.path, fix="rename one of them"
            )
        mark = hashlib.sha256(utterance.id.encode("utf-8", "surrogateescape")).hexdigest()[:12]
        below = Path("wav", f"{file_name(utterance.id)[:150]}-{mark}.{audio}")
    taken.add(below.as_posix())
    return below.as_posix()


def check_settings(items: Iterable[Item], out: Path) -> None:
    """Other settings than the earlier run's are refused; a system that itself has changed does its work again."""
    for item in items:
        earlier = item.earlier
        if earlier and earlier.output is not None and not item.refusal and not item.planned.same_settings(earlier):
            raise InputError(
                f"utterance {earlier.utterance} was made with {_describe(earlier)}, "
                f"and now {_describe(item.planned)} is asked for",
                path=out,
                fix="choose another folder, or --overwrite to do again what differs",
            )


def _describe(entry: Entry) -> str:
    settings = ", ".join(f"{key} {value}" for key, value in entry.parameters.items())
    rate = f", {entry.rate} Hz" if entry.rate else ""
    part = f", {entry.part}" if entry.part else ""
    return f"{entry.system} {entry.version} ({settings}; {Path(entry.output or '').suffix[1:]}{rate}{part})"


def check_places(corpus: Corpus, out: Path, manifest: Path) -> None:
    real_out, real_root = os.path.realpath(out), os.path.realpath(corpus.root)
    if out.exists() and not out.is_dir():
        raise InputError("the output is a file, not a folder", path=out)
    if real_out == real_root or (inside(real_out, [real_root]) and not LAYOUTS[corpus.layout].has_lists):
        raise InputError(
            "the output folder lies in the corpus, which would then hold both",
            path=out,
            fix="choose a folder outside it",
        )
    if any(inside(os.path.realpath(utterance.path), [real_out]) for utterance in corpus):
        raise InputError("the corpus lies in the output folder", path=out, fix="choose an empty folder")
    if manifest.is_dir() or manifest.is_symlink():
        raise InputError("the manifest can't be written over this", path=manifest)


FORMATS = ("flac", "wav")
RATES = (4_000, 192_000)
WORK = ".veilmeter-work"  # in the output folder while a run lasts, for systems that need files of their own
MOST_SAME_FAILURES = 10


@dataclass(frozen=True, slots=True)
class Anonymized:
    """The outcome of a run. `problems` are the corpus's and the utterances'; fatal ones name what the output lacks.

    `redone` of those written had been written before by another version of the system.
    """

    out: Path
    manifest: Path
    entries: tuple[Entry, ...]
    written: int
    kept: int
    removed: int
    redone: int
    problems: tuple[Problem, ...]

    @property
    def done(self) -> int:
        return self.written + self.kept

    @property
    def draw(self) -> Draw:
        """The units with separate draws, where all utterances agree on them."""
        levels = {entry.draw for entry in self.entries}
        return Draw(levels.pop()) if len(levels) == 1 else Draw.UNKNOWN

    @property
    def failed(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.fatal)

    @property
    def scaled(self) -> int:
        """How many outputs were beyond full scale and were scaled down."""
        return sum(entry.gain < 1 for entry in self.entries)

    @property
    def seconds(self) -> float:
        return sum(entry.seconds or 0.0 for entry in self.entries)


@dataclass(frozen=True, slots=True)
class WithDraws:
    """An anonymizer that draws from a finite set, and the draw that each utterance gets from it."""

    anonymizer: Anonymizer
    draws: Mapping[str, int]


def _other_manifest(folder: Path, manifest: Path) -> Path:
    """A manifest elsewhere; refused where the one beside the folder would no longer say what was done."""
    usual = manifest_path(folder)
    if manifest != usual and usual.exists():
        fix = "leave --manifest out, or choose another folder"
        raise InputError("--manifest: this folder has a manifest already", path=usual, fix=fix)
    return manifest


def manifest_path(out: str | Path) -> Path:
    """The default place of an output folder's manifest: beside it, as it must not be published with it.

    >>> manifest_path("data/libri-anon").as_posix()
    'data/libri-anon.manifest.jsonl'
    """
    folder = Path(os.path.abspath(out)) if Path(out).name in ("", "..") else Path(out)
    return folder.with_name(folder.name + ".manifest.jsonl")


def anonymize_corpus(
    corpus: Corpus,
    out: str | Path,
    anonymizer: Anonymizer | WithDraws | Callable[..., Any] | str,
    *,
    audio: str = "flac",
    rate: int | None = None,
    engine: Engine | None = None,
    manifest: str | Path | None = None,
    overwrite: bool = False,
    source: str | Path | None = None,
    max_seconds: float = LONGEST_SECONDS,
    strict: bool = False,
    progress: Progress | None = None,
) -> Anonymized:
    """Anonymize every utterance into `out`, in the corpus's layout and with its ids, as 16-bit FLAC or WAV.

    The anonymizer may be an object, a name such as `mcadams`, `file.py:name`, or a function of samples.
    Each has the sampling rate and the channels of its source, or `rate`; a part of a file becomes a separate file,
    and a channel that was chosen one with one channel. Systems hear and give 16 kHz: nothing above 8 kHz is kept.
    What an earlier run with the same settings and the same version of the system did is kept if source and output are
    unchanged; what another version did is done again. Other settings than the earlier run's are an error, or with
    `overwrite` do those utterances again. Recordings that can't be used are reported and left out, or with `strict` end
    the run. `source` is the path the corpus was read from, if a file.

    Parameters
    ----------
    corpus : Corpus
        The recordings, as `read_corpus` gives them.
    out : str or Path
        The folder for the anonymized corpus.
    anonymizer : str, function or Anonymizer
        A name such as `mcadams`, `file.py:name`, a function of samples, or an object.
    audio : {"flac", "wav"}
        The format of the recordings.
    rate : int, optional
        Their sampling rate; by default that of the source.
    engine : Engine, optional
        Where the work is done; by default in this process.
    manifest : str or Path, optional
        Another place for the manifest.
    overwrite : bool
        Whether to replace what other settings made.
    source : str or Path, optional
        The list that the corpus was read from.
    max_seconds : float
        Recordings that are longer are left out.
    strict : bool
        Stop at the first recording that can't be used, instead of leaving it out.
    progress : callable, optional
        Called with how many recordings are done, and how many there are.

    Returns
    -------
    Anonymized
        The files written, and the recordings that could not be used.

    Raises
    ------
    InputError
        If the anonymizer can't be loaded, or the folder holds something else.

    Examples
    --------
    >>> anonymize_corpus(read_corpus("speech/"), "protected", "mcadams")  # doctest: +SKIP
    """
    draws = None
    if isinstance(anonymizer, WithDraws):
        draws = anonymizer.draws
        anonymizer = anonymizer.anonymizer
    anonymizer = anonymizer if isinstance(anonymizer, Anonymizer) else load_anonymizer(anonymizer)
    folder = Path(out)
    place = manifest_path(folder) if manifest is None else _other_manifest(folder, Path(manifest))
    _check_request(corpus, audio, rate, strict)
    check_places(corpus, folder, place)
    with only_one(place.with_name(place.name + ".lock"), folder):
        journal = Journal(place.with_name(place.name + ".part"))
        before = (read_manifest(place) if place.exists() else {}) | read_journal(journal.path)
        if not (before or overwrite or journal.path.exists()):
            _check_empty(folder, place)
        timed = TimedEngine(engine or Here())
        if isinstance(anonymizer, NeedsCorpus):
            anonymizer = anonymizer.prepare(_within(corpus, max_seconds), timed)
        items = plan(corpus, anonymizer, audio, before, rate, draws)
        if not overwrite:
            check_settings(items, folder)
        make_folder(folder)
        _remove_leftovers(folder, items, place)
        if isinstance(anonymizer, NeedsFolder):
            anonymizer = anonymizer.working_in(folder / WORK)
        journal.open(entry.line() for entry in before.values())
        watch = _Watch(journal, strict, len(items))
        try:
            treatment = Treatment(pickle.dumps(anonymizer), files_to_load(), folder, max_seconds, rate)
            outcomes = _run(items, anonymizer, treatment, engine or Here(), watch, progress)
            entries = [outcome.entry for outcome in outcomes]
            _write_lists(corpus, Path(source or corpus.root), folder, entries)
            removed = _remove_outdated(folder, before, entries)
            write_manifest(place, entries)
        except BaseException:
            journal.close()
            raise
        finally:
            shutil.rmtree(folder / WORK, ignore_errors=True)
            _note_timings(folder, anonymizer, timed.seconds, watch)
        journal.close(remove=True)
    return _summary(corpus, folder, place, outcomes, before, removed)


def _within(corpus: Corpus, max_seconds: float) -> Corpus:
    """Without the recordings that will be refused: nobody need listen to hours that are not anonymized."""
    usable = [utterance for utterance in corpus if not is_refused_unheard(utterance, max_seconds)]
    return replace(corpus, utterances=tuple(usable))


def _write_lists(corpus: Corpus, source: Path, folder: Path, entries: Iterable[Entry]) -> None:
    outputs = {entry.utterance: Path(entry.output) for entry in entries if entry.output is not None}
    if outputs:
        write_side_files(corpus, source, folder, outputs)


def _summary(
    corpus: Corpus, out: Path, manifest: Path, outcomes: Sequence[Treated], before: Mapping[str, Entry], removed: int
) -> Anonymized:
    written = [outcome for outcome in outcomes if not outcome.kept and outcome.entry.output is not None]
    return Anonymized(
        out,
        manifest,
        tuple(outcome.entry for outcome in outcomes),
        written=len(written),
        kept=sum(outcome.kept for outcome in outcomes),
        removed=removed,
        redone=sum(_is_other_version(before.get(outcome.entry.utterance), outcome.entry) for outcome in written),
        problems=(*corpus.problems, *(problem for outcome in outcomes for problem in outcome.problems)),
    )


def _is_other_version(earlier: Entry | None, entry: Entry) -> bool:
    return earlier is not None and earlier.output is not None and earlier.version != entry.version


def _check_request(corpus: Corpus, audio: str, rate: int | None, strict: bool) -> None:
    if audio not in FORMATS:
        raise InputError(f"audio is not written as {audio!r}", fix=f"choose {' or '.join(FORMATS)}")
    if rate is not None and not RATES[0] <= rate <= RATES[1]:
        raise InputError(f"a rate of {rate} Hz is not a sampling rate of speech", fix=f"give {RATES[0]} to {RATES[1]}")
    refuse_unusable(corpus, strict=strict)


def _check_empty(folder: Path, manifest: Path) -> None:
    if folder.is_dir() and any(folder.iterdir()):
        raise InputError(
            f"the folder is not empty, and the manifest {manifest.name} of an earlier run is missing",
            path=folder,
            fix="choose another folder, or --overwrite",
        )


class _Watch:
    """Notes every outcome as it comes, and stops a run that can't come to anything."""

    def __init__(self, journal: Journal, strict: bool, total: int) -> None:
        self._journal, self._strict, self._total = journal, strict, total
        self._done = 0
        self._failures: list[Problem] = []
        self.effort = NO_EFFORT  # of the system, on what this run made
        self.kept, self.speech_seconds = 0, 0.0

    def note(self, outcome: Treated) -> None:
        if not outcome.kept:
            self._journal.add([outcome.entry.line()])
        self.effort += outcome.effort
        self.kept += outcome.kept
        self.speech_seconds += outcome.entry.seconds or 0.0
        self._done += 1
        if self._strict and outcome.entry.output is None:
            raise refusal(outcome.problems[0])
        self._count_failures(outcome)

    @property
    def is_complete(self) -> bool:
        return self._done == self._total

    def _count_failures(self, outcome: Treated) -> None:
        """A system that fails on one recording after the other, the same way, will fail on all of them."""
        failure = next((problem for problem in outcome.problems if problem.kind == NOT_ANONYMIZED), None)
        if failure is None:
            if outcome.entry.output is not None and not outcome.kept:
                self._failures.clear()
            return
        if self._failures and failure.what != self._failures[0].what:
            self._failures.clear()
        self._failures.append(failure)
        if len(self._failures) == MOST_SAME_FAILURES:
            first = self._failures[0]
            raise InputError(
                f"{MOST_SAME_FAILURES} recordings in a row failed the same way, so it was stopped: {first.what}",
                path=first.path,
                fix=first.fix or "fix it and run the same command again; what was done is kept",
            )


def _run(
    items: Sequence[Item],
    anonymizer: Anonymizer,
    treatment: Treatment,
    engine: Engine,
    watch: _Watch,
    progress: Progress | None,
) -> list[Treated]:
    """All outcomes in the plan's order."""
    outcomes: dict[str, Treated] = {}

    def store(treated: Sequence[Treated]) -> None:
        for outcome in treated:
            outcomes[outcome.entry.utterance] = outcome
            watch.note(outcome)

    map_corpus(
        treatment,
        items,
        store,
        engine=engine,
        path=lambda item: item.utterance.path,
        chunk=anonymizer.batch_size if isinstance(anonymizer, Batches) else 1,
        progress=progress,
    )
    return [outcomes[item.planned.utterance] for item in items]


def _note_timings(folder: Path, anonymizer: Anonymizer, preparing: float, watch: _Watch) -> None:
    """How long the system worked, a stopped run included. Where nothing was made, what is known stays."""
    if not watch.effort.speech_seconds:
        return
    prepared = Effort(preparing, watch.speech_seconds) if watch.is_complete else NO_EFFORT
    with suppress(VeilmeterError):  # no run should fail, or hide why it failed, because of how long it took
        timings = Timings(anonymizer.name, version_of(anonymizer), prepared, watch.effort)
        write_timings(folder, timings.after(read_timings(folder) if watch.kept else None))


_LEFTOVER = re.compile(r"\..+\.\w{8}\.part")


def _remove_leftovers(folder: Path, items: Iterable[Item], manifest: Path) -> None:
    """Files that a killed run had begun to write."""
    folders = {folder}
    for item in items:
        folders.update(folder / parent for parent in Path(item.planned.output or "").parents)
    for place in folders:
        if place.is_dir():
            for file in place.iterdir():
                if _LEFTOVER.fullmatch(file.name):
                    file.unlink(missing_ok=True)
    for file in manifest.parent.glob(f".{glob.escape(manifest.name[:80])}*.part"):
        file.unlink(missing_ok=True)


def _remove_outdated(folder: Path, before: dict[str, Entry], entries: Iterable[Entry]) -> int:
    """Outputs of earlier runs whose source is gone or no longer usable, if they are still as that run left them."""
    current = {entry.output for entry in entries}
    root, removed = os.path.realpath(folder), 0
    for earlier in before.values():
        if earlier.output is None or earlier.output in current:
            continue
        path = folder / earlier.output
        if inside(os.path.realpath(path), [root]) and file_hash(path) == earlier.output_sha256 is not None:
            path.unlink()
            removed += 1
            for parent in path.relative_to(folder).parents:
                if parent != Path() and not any((folder / parent).iterdir()):
                    (folder / parent).rmdir()
    return removed


def run_again(
    corpus: Corpus,
    out: str | Path,
    system: str,
    options: Mapping[str, Any] | None = None,
    *,
    seed: int,
    per: Draw = Draw.UTTERANCE,
    engine: Engine | None = None,
    offline: bool = False,
    source: str | Path | None = None,
    progress: Progress | None = None,
    draws: Mapping[str, int] | None = None,
) -> Anonymized:
    """A run of `system` over `corpus` with this seed and, where the system can, a draw per utterance or speaker;
    `Anonymized.draw` says what they were. `options` are those of the released run; its seed and draws are replaced, of
    a finite set by `draws` (see `turns`)."""
    chosen = dict(options or {}) | {"seed": seed, "offline": offline}
    if "per" in options_of(system, chosen):
        chosen["per"] = str(per)
    # An output of an earlier run in this folder with other draws is of no use to anybody: it is made again.
    anonymizer = load_anonymizer(system, chosen)
    return anonymize_corpus(
        corpus,
        out,
        anonymizer if draws is None else WithDraws(anonymizer, draws),
        engine=engine,
        overwrite=True,
        source=source,
        progress=progress,
    )


MOST_TURNS = 50  # draws of a finite set that attackers try on everybody


def turns(corpora: Sequence[Corpus], choices: int, runs: int) -> list[dict[str, int]]:
    """Which draw each utterance gets in each of the attackers' runs, so that everybody gets every draw of a finite set:
    a speaker's utterances take turns. After `runs` runs over everything, there are only utterances whose turn is left.

    Sets of more than `MOST_TURNS` draws are gone through in a random order, as far as `runs` runs lead.
    """
    spoken: dict[str, list[str]] = {}
    for corpus in corpora:
        for utterance in corpus:
            spoken.setdefault(utterance.speaker, []).append(utterance.id)
    wanted = choices if choices <= MOST_TURNS else 0
    made: list[dict[str, int]] = [{} for _ in range(runs)]
    for speaker, ids in spoken.items():
        order = generator(0, f"turns:{speaker}").permutation(choices)
        for turn in range(max(runs * len(ids), wanted)):
            number, place = divmod(turn, len(ids))
            made += [{} for _ in range(number + 1 - len(made))]
            made[number][ids[place]] = int(order[turn % choices])
    return made


def own_seeds(released: int, count: int) -> tuple[int, ...]:
    """Seeds for further runs, none of them the released run's.

    >>> len({7, *own_seeds(7, 20)})
    21
    """
    seeds: list[int] = []
    number = 0
    while len(seeds) < count:
        digest = hashlib.sha256(f"own run {number} beside {released}".encode()).digest()
        seed = int.from_bytes(digest[:4]) >> 1
        if seed != released and seed not in seeds:
            seeds.append(seed)
        number += 1
    return tuple(seeds)
