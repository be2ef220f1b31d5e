"""Map a task over a corpus: one way for embedding, transcribing, rating and anonymizing.

A task gets a few items at a time, in any process, and returns one result per item. `map_corpus` cuts the items into
chunks, runs them on the engine, hands over results as they come so that they can be stored, and reports progress.
`to_do` says which recordings an earlier run leaves to do; `problem_of` and `refusal` describe those that can't be used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from veilmeter.core.engine import Engine, Progress
from veilmeter.core.errors import InputError, Problem, refuse
from veilmeter.data.corpus import Corpus
from veilmeter.speech.recordings import Record, Source, still_holds

LARGEST_CHUNK = 8
CHUNKS_PER_WORKER = 16  # at least, so that no process waits long for another at the end

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_corpus(
    task: Callable[[tuple[Item, ...]], Sequence[Result]],
    items: Sequence[Item],
    store: Callable[[Sequence[Result]], None],
    *,
    engine: Engine,
    path: Callable[[Item], Path],
    part: Callable[[Item], int] = lambda item: 0,
    chunk: int | None = None,
    total: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Run `task` on all items and give each chunk's results to `store`, in the order in which they are finished.

    Items go out part by part, so that parts are completed early, and within a part the largest files first: file size
    stands for duration. `chunk` fixes the number of items per call; `total` counts items that were done before, too.
    """
    size = chunk or max(1, min(LARGEST_CHUNK, len(items) // (CHUNKS_PER_WORKER * engine.workers)))
    queue = sorted(items, key=lambda item: (part(item), -_file_size(path(item))))  # stable: the corpus's order
    chunks = [tuple(queue[start : start + size]) for start in range(0, len(queue), size)]
    total = len(items) if total is None else total
    done = total - len(items)
    report = progress or (lambda done, total: None)
    report(done, total)
    for _, results in engine.run(task, chunks):
        store(results)
        done += len(results)
        report(done, total)


def to_do(corpus: Corpus, known: Mapping[str, Record], max_seconds: float) -> list[Source]:
    """The recordings that an earlier run did not do, or whose files have changed since."""
    return [
        Source.of(utterance, known.get(utterance.id))
        for utterance in corpus
        if utterance.id not in known or not still_holds(known[utterance.id], utterance, max_seconds)
    ]


def refuse_unusable(corpus: Corpus, *, strict: bool) -> None:
    """An empty corpus can't be mapped over; in strict mode, neither can one with broken entries."""
    if not len(corpus):
        raise InputError("there are no utterances in this corpus", path=corpus.root)
    if strict:
        refuse(corpus.problems)


def problem_of(corpus: Corpus, record: Record, *, fatal: bool) -> Problem:
    """What is wrong with a recording, as it is listed."""
    path = str(corpus.by_id[record.utterance].path)
    return Problem(record.kind, record.what, path, fix=record.remedy, fatal=fatal)


def refusal(problem: Problem) -> InputError:
    """The error that ends a strict run."""
    what = f"{problem.what} [{problem.kind}]"
    fix = problem.fix or "fix it, or run without --strict to leave it out"
    return InputError(what, path=problem.path, line=problem.line, fix=fix)


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return 0
