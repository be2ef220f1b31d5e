"""Shared steps of the commands `linkability` and `singling-out`: their inputs, curve sizes and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding, Reference, first_speakers, warning
from veilmeter.core.text import clean

if TYPE_CHECKING:
    from veilmeter.cli.command import Given
    from veilmeter.cli.shared_options import AttackerEmbeddings
    from veilmeter.core.estimate import Estimate
    from veilmeter.data.embeddings import Embeddings
    from veilmeter.report.figures.typesetting import Typesetting

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

    from veilmeter.cli.terminal import Progress, show_progress

    started, bar = time.monotonic(), None
    with ExitStack() as stack:

        def progress(done: int, total: int) -> None:
            nonlocal bar
            if bar is None and time.monotonic() - started > seconds:
                opened: Progress = stack.enter_context(show_progress(title, unit="scores"))
                bar = opened
            if bar is not None:
                bar(done, total)

        yield progress


def read(options: AttackerEmbeddings) -> tuple[Embeddings, Embeddings, dict[str, Any], list[Finding]]:
    """The enrollment, the test, what the results say of both, and what the reader must not miss."""
    from veilmeter.cli.shared_options import read_vectors
    from veilmeter.metrics.legal.conversations import doubts_of

    warnings: list[Finding] = []
    people, of_people = read_vectors(options.enroll, warnings, strict=options.strict)
    tested, of_tested = read_vectors(options.test, warnings, strict=options.strict)
    return people, tested, {"enroll": of_people, "test": of_tested}, warnings + doubts_of(people, tested)


def short_speakers(names: Sequence[str], least: int, length: int) -> list[Finding]:
    """Speakers who have too little speech, counted and named."""
    if not names:
        return []
    examples = first_speakers(names)
    return [
        warning("speakers_left_out", purpose="trials", count=len(names), needed=least, length=length, examples=examples)
    ]


def label(given: Given, options: AttackerEmbeddings) -> str:
    """The name of the attacker in figures; a name is refused where there are none."""
    if options.figures is None:
        given.refuse(["name"], "it names curves in figures", fix="give --figures DIR too")
    # What draws figures ends the process at a control character.
    return clean(options.name or options.test.name)


def draw(
    options: AttackerEmbeddings,
    drawn_curves: Mapping[str, Sequence[Estimate]],
    name: str,
    setting: Typesetting | None,
) -> list[Path]:
    """The figure of the paper, with curves of earlier runs in it; nothing without a folder."""
    if options.figures is None:
        if options.beside:
            raise InputError("--beside draws further curves", fix="give --figures DIR too")
        return []
    from veilmeter.report.figures.legal import save_all

    attackers: dict[str, dict[str, Sequence[Estimate]]] = {name: dict(drawn_curves)}
    for word in options.beside:  # the same name again adds the other measures of that attacker
        who, curves = _earlier(word)
        attackers[who] = {**curves, **attackers.get(who, {})}
    return save_all(attackers, options.figures, setting=setting)


def _earlier(word: str) -> tuple[str, dict[str, list[Estimate]]]:
    import json

    from veilmeter.core.estimate import Estimate

    name, _, path = word.partition("=")
    if not name or not path:
        raise InputError(f"--beside {word!r} is not NAME=FILE", fix="as in --beside ignorant=ignorant.json")
    try:
        form = json.loads(Path(path).read_text(encoding="utf-8"))
        curves = {key: points for key, points in form["estimates"].items() if isinstance(points, list)}
        return clean(name), {
            key: [Estimate.from_json(key, point) for point in points] for key, points in curves.items()
        }
    except OSError as error:
        raise InputError(f"it can't be read: {error.strerror}", path=path) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(
            "this is not what the command prints with --json", path=path, fix="run it with --json > FILE"
        ) from None


def gains(knowing: Sequence[Estimate]) -> list[Finding]:
    """The gain of an attacker who knows more."""
    findings = []
    for estimate in knowing:
        low, high = map(float, estimate.extra["gain_interval"])
        findings.append(
            Finding.of(
                "knowing_more",
                attribute=Reference("attribute", str(estimate.at["knows"])),
                gain=float(estimate.extra["gain"]),
                low=low,
                high=high,
                speakers=int(estimate.at["speakers"]),
                length=int(estimate.at["length"]),
            )
        )
    return findings
