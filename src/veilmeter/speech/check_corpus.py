"""Checks a corpus: who speaks how much, and every recording that can't be used, before any long run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from veilmeter.core.engine import Engine, Here, Pool, cores
from veilmeter.core.errors import InputError, Problem
from veilmeter.core.options import unused_options
from veilmeter.data.checks import Checked
from veilmeter.data.corpus import Corpus, CorpusReading, Stretch, read_corpus
from veilmeter.data.layouts import NotACorpus, recognize, sample
from veilmeter.speech.audio import LONGEST_SECONDS, AudioError, clipping_problem, read_recording, reading_facts

Progress = Callable[[int, int], None]

_FIRST = 3  # places named of each kind of problem
_CHUNK = 16
_WORTH_A_POOL = 500  # recordings; below, starting processes takes longer than reading


@dataclass(frozen=True, slots=True)
class Heard:
    """What one recording is like."""

    seconds: float
    rate: int
    channels: int
    problem: Problem | None = None


def check(
    path: Path,
    *,
    layout: str | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
    part: str | None = None,
    suffix: str | None = None,
    roots: Sequence[Path] = (),
    columns: Mapping[str, str] | None = None,
    channel: str | None = None,
) -> Checked | None:
    """The problems of a corpus with its counts; None if it is none."""
    if layout is None and not _is_corpus(path, named_columns=bool(columns)):
        return None
    corpus = read_corpus(path, layout, roots=roots, part=part, suffix=suffix, columns=columns, channel=channel)
    heard = listen(corpus, engine, progress)
    usable = [entry for entry in heard if entry.problem is None or not entry.problem.fatal]
    problems = [*corpus.problems, *(entry.problem for entry in heard if entry.problem)]
    problems += remarks(corpus, heard)
    reading = CorpusReading(root=tuple(map(str, roots)), channel=channel)
    for option, reason in unused_options(reading, reading_facts(reading, corpus)).items():
        problems.append(Problem("no-effect", f"--{option} had no effect: {reason}", str(path), fatal=False))
    facts = describe(corpus, heard, problems)
    if not usable:
        return Checked("corpus", f"{corpus.layout} layout, nothing usable", group_problems(problems), facts)
    return Checked("corpus", _summary(facts), group_problems(problems), facts, rest=len(usable))


def remarks(corpus: Corpus, heard: list[Heard]) -> list[Problem]:
    """What makes a corpus useless to measure with though every recording is well; often it is the wrong folder."""
    each = Counter(u.speaker for u, h in zip(corpus, heard, strict=True) if h.problem is None or not h.problem.fatal)
    alone = sum(count == 1 for count in each.values())
    problems = []
    if len(each) == 1:
        what = f"all recordings are by one speaker, {next(iter(each))!r}: there is nobody to distinguish them from"
        fix = f"read as {corpus.layout} layout; if that is wrong, give another folder, or --layout"
        problems.append(Problem("one-speaker", what, str(corpus.root), fix=fix, fatal=False))
    elif alone:
        who = "every speaker has" if alone == len(each) else f"{alone} of {len(each)} speakers have"
        what = f"{who} one usable recording only: enough to train with, not to be recognized by"
        problems.append(Problem("one-recording", what, str(corpus.root), fatal=False))
    return problems


def listen(corpus: Corpus, engine: Engine | None = None, progress: Progress | None = None) -> list[Heard]:
    """Read every recording, on all cores and telling the progress when there are many."""
    paths = [(str(utterance.path), utterance.stretch) for utterance in corpus]
    chunks = [tuple(paths[start : start + _CHUNK]) for start in range(0, len(paths), _CHUNK)]
    own = None
    if engine is None:
        engine = own = Pool(cores()) if len(paths) > _WORTH_A_POOL and cores() > 1 else Here()
    by_chunk: dict[int, list[Heard]] = {}
    try:
        for number, heard in engine.run(_listen, chunks):
            by_chunk[number] = heard
            if progress is not None and len(paths) > _WORTH_A_POOL:
                progress(min(len(by_chunk) * _CHUNK, len(paths)), len(paths))
    finally:
        if own is not None:
            own.close()
    return [entry for number in range(len(chunks)) for entry in by_chunk[number]]


def _listen(paths: tuple[tuple[str, Stretch], ...]) -> list[Heard]:
    heard = []
    for path, stretch in paths:
        try:
            recording = read_recording(path, stretch=stretch, max_seconds=LONGEST_SECONDS, keep_seconds=0.0)
        except AudioError as error:
            heard.append(Heard(0.0, 0, 0, error.problem()))
        else:
            remark = clipping_problem(path, recording)
            heard.append(Heard(recording.seconds, recording.rate, recording.channels, remark))
    return heard


def describe(corpus: Corpus, heard: list[Heard], problems: list[Problem]) -> dict[str, Any]:
    """The corpus in numbers; recordings that can't be used don't count."""
    usable = [(u, h) for u, h in zip(corpus, heard, strict=True) if h.problem is None or not h.problem.fatal]
    seconds = np.array([h.seconds for _, h in usable])
    each = Counter(u.speaker for u, _ in usable)
    counts = np.array(sorted(each.values()))
    genders = Counter(corpus.genders[speaker] or "unknown" for speaker in each)
    sessions = {(u.speaker, u.session) for u, _ in usable if u.session}
    return {
        "layout": corpus.layout,
        "speakers": len(each),
        "utterances": len(usable),
        "hours": round(float(seconds.sum()) / 3600, 4),
        "speakers_by_gender": {name: genders[name] for name in ("f", "m", "unknown") if genders[name]},
        "sessions": len(sessions),
        "utterances_per_speaker": _spread(counts),
        "seconds_per_utterance": _spread(seconds),
        "rates": {str(rate): n for rate, n in sorted(Counter(h.rate for _, h in usable).items())},
        "channels": {str(c): n for c, n in sorted(Counter(h.channels for _, h in usable).items())},
        "problems": dict(sorted(Counter(problem.kind for problem in problems).items())),
    }


def _spread(values: np.ndarray[Any, Any]) -> dict[str, float]:
    if not len(values):
        return {}
    return {
        "least": round(float(values.min()), 3),
        "median": round(float(np.median(values)), 3),
        "most": round(float(values.max()), 3),
    }


def _summary(facts: dict[str, Any]) -> str:
    genders = ", ".join(f"{count} {name}" for name, count in facts["speakers_by_gender"].items())
    each, length = facts["utterances_per_speaker"], facts["seconds_per_utterance"]
    per_speaker = " to ".join(dict.fromkeys(f"{each[end]:g}" for end in ("least", "most")))
    sessions = f", {facts['sessions']} sessions" if facts["sessions"] else ""
    return (
        f"{facts['layout']} layout, {facts['speakers']} speakers ({genders}), {facts['utterances']} utterances "
        f"({per_speaker} per speaker){sessions}, {facts['hours']:.2f} hours "
        f"({length['least']:.1f} to {length['most']:.1f} s, median {length['median']:.1f} s)"
    )


def group_problems(problems: list[Problem]) -> list[Problem]:
    """One entry per kind: how many, and the first places. What can't be used comes first."""
    kinds: dict[tuple[bool, str], list[Problem]] = {}
    for problem in problems:
        kinds.setdefault((not problem.fatal, problem.kind), []).append(problem)
    merged = []
    for (remark, kind), group in sorted(kinds.items(), key=lambda item: (item[0][0], -len(item[1]), item[0][1])):
        first = group[0]
        if len(group) == 1:
            merged.append(first)
            continue
        places = ", ".join(p.path + ("" if p.line is None else f":{p.line}") for p in group[1:_FIRST])
        rest = f", and {len(group) - _FIRST} more" if len(group) > _FIRST else ""
        what = f"{first.what} [{len(group)} times {kind}; also {places}{rest}]"
        merged.append(Problem(kind, what, first.path, first.line, first.fix, fatal=not remark))
    return merged


def _is_corpus(path: Path, *, named_columns: bool) -> bool:
    """Whether it looks like a corpus; a folder with audio whose speakers nobody can tell is one that is wrong."""
    try:
        recognize(path, named_columns=named_columns)
    except NotACorpus:
        return path.is_dir() and bool(sample(path, 1))
    except InputError:
        pass  # ambiguous, or unreadable: reading says it
    return True
