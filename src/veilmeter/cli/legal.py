"""What the commands `linkability` and `singling-out` share: their inputs, their ladders, and their doubts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmeter.core.errors import InputError

if TYPE_CHECKING:
    from veilmeter.core.estimate import Estimate
    from veilmeter.data.embeddings import Embeddings

LADDER = (20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 1_000_000)


def ladder(largest: int) -> list[int]:
    """Round numbers of speakers, and everybody.

    >>> ladder(130), ladder(8)
    ([20, 50, 100, 130], [2, 4, 8])
    """
    few = [n for n in LADDER if n < largest]
    if not few:
        few = [n for n in (2, 4, 8, 16) if n < largest]
    return [*few, largest]


@contextmanager
def later(title: str, seconds: float = 2.0) -> Iterator[Callable[[int, int], None]]:
    """A progress bar that appears only when the work takes longer than this."""
    import time

    from veilmeter.cli.progress import Progress, shown

    started, bar = time.monotonic(), None
    with ExitStack() as stack:

        def progress(done: int, total: int) -> None:
            nonlocal bar
            if bar is None and time.monotonic() - started > seconds:
                opened: Progress = stack.enter_context(shown(title, unit="scores"))
                bar = opened
            if bar is not None:
                bar(done, total)

        yield progress


def read(enrol: Path, test: Path, *, strict: bool) -> tuple[Embeddings, Embeddings, dict[str, Any], list[str]]:
    """The enrolment, the test, what the results say of both, and what the reader must not miss."""
    from veilmeter.cli import vectors

    warnings: list[str] = []
    people, of_people = vectors.read(enrol, warnings, strict=strict)
    said, of_said = vectors.read(test, warnings, strict=strict)
    return people, said, {"enrol": of_people, "test": of_said}, warnings + doubts(people, said)


def doubts(enrol: Embeddings, test: Embeddings) -> list[str]:
    """What makes these two sets a poor test; different dimensions are an error."""
    import numpy as np

    if enrol.dimension != test.dimension:
        raise InputError(
            f"the enrolment has {enrol.dimension} dimensions and the test {test.dimension}",
            fix="both must come from the same extractor",
        )
    said = []
    both = [u for u in test.utterances if u in enrol.utterance_rows]
    if both:
        rows = np.array([enrol.utterance_rows[u] for u in both])
        mine = np.array([test.utterance_rows[u] for u in both])
        same = int(np.count_nonzero((enrol.vectors[rows] == test.vectors[mine]).all(axis=1)))
        if same:
            said.append(
                f"{same} utterances are the same recording in the enrolment and in the test: an attacker who has the "
                "very recording needs no voice. Risks are overstated; enrol other utterances"
            )
        elif len(both):
            said.append(
                f"{len(both)} utterances are in the enrolment and in the test under the same id: if the enrolment is "
                "the same speech before protection, it links by words and channel too; enrol other utterances"
            )
    enrolled = set(enrol.names)
    strangers = [name for name in test.names if name not in enrolled]
    if strangers:
        said.append(f"{len(strangers)} test speakers are not enrolled ({_few(strangers)}): nobody looks for them")
    return said


def dropped(names: Sequence[str], least: int, length: int) -> list[str]:
    """Speakers who have too little speech, counted and named."""
    if not names:
        return []
    return [f"{len(names)} test speakers have fewer than {least} utterances (length {length}): {_few(names)}; left out"]


def _few(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def draw(
    folder: Path | None, found: Mapping[str, Sequence[Estimate]], name: str, beside: Sequence[str] | None
) -> list[Path]:
    """The figure of the paper, with curves of earlier runs in it; nothing without a folder."""
    if folder is None:
        if beside:
            raise InputError("--beside draws further curves", fix="give --figures DIR too")
        return []
    from veilmeter.report.figures.legal import save_all

    attackers: dict[str, dict[str, Sequence[Estimate]]] = {name: dict(found)}
    for word in beside or []:  # the same name again adds the other measures of that attacker
        who, curves = _earlier(word)
        attackers[who] = {**curves, **attackers.get(who, {})}
    return save_all(attackers, folder)


def _earlier(word: str) -> tuple[str, dict[str, list[Estimate]]]:
    import json

    from veilmeter.core.estimate import Estimate

    name, _, path = word.partition("=")
    if not name or not path:
        raise InputError(f"--beside {word!r} is not NAME=FILE", fix="as in --beside ignorant=ignorant.json")
    try:
        form = json.loads(Path(path).read_text(encoding="utf-8"))
        curves = {key: one for key, one in form["estimates"].items() if isinstance(one, list)}
        return name, {key: [Estimate.from_json(key, point) for point in one] for key, one in curves.items()}
    except OSError as error:
        raise InputError(f"it can't be read: {error.strerror}", path=path) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(
            "this is not what the command prints with --json", path=path, fix="run it with --json > FILE"
        ) from None


def each(
    name: str,
    people: Iterable[tuple[str, float, Mapping[str, int]]],
    *,
    speakers: int,
    length: int,
    method: str,
    null: float | None = None,
) -> list[Estimate]:
    """The measure of each person (who, value, counts behind it) among so many speakers, the most exposed first."""
    from veilmeter.metrics.registry import estimate_of

    return [
        estimate_of(
            f"{name}_per_speaker",
            float(value),
            null=null,
            method=method,
            n=counts,
            at={"speaker": who, "speakers": speakers, "length": length},
        )
        for who, value, counts in sorted(people, key=lambda one: (-one[1], one[0]))
    ]


def gains(knowing: Sequence[Estimate]) -> list[str]:
    """What an attacker gains by knowing more, in a sentence each."""
    said = []
    for one in knowing:
        low, high = one.extra["gain_interval"]
        said.append(
            f"Knowing {one.at['knows']} adds {one.extra['gain']:+.3f} [{low:+.3f}, {high:+.3f}] among "
            f"{one.at['speakers']} (length {one.at['length']})."
        )
    return said


def spoken(test: Embeddings, lengths: Sequence[int]) -> dict[int, int]:
    """For each length, how many test speakers have two conversations of it."""
    import numpy as np

    counts = np.bincount(test.codes)
    return {length: int(np.count_nonzero(counts >= 2 * length)) for length in lengths}
