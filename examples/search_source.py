"""Is anything of the source left in an anonymizer's output? Compares outputs with sources: docs/validation/cascade.md.

    python examples/search_source.py CORPUS OUTPUT [--transcripts FOLDER] [--recordings 160] [--shuffles 39] [--seed 0]

Each statistic compares outputs with their own sources, and with sources shuffled among them; p is the share of shuffles
that reach the value. FOLDER is one of `veilmeter transcribe CORPUS`: the last two rows then are about the part of level
and duration that the number of letters does not explain.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.signal import correlate, resample
from scipy.stats import rankdata

from veilmeter.assessment.extraction import texts_of
from veilmeter.core.errors import VeilmeterError
from veilmeter.data.corpus import read_corpus
from veilmeter.speech.audio import RATE, read_audio

Floats = NDArray[np.float64]
HOP, FRAME, STRETCHED = RATE // 100, 512, 200


def standardize(values: Floats) -> Floats:
    result: Floats = (values - values.mean(-1, keepdims=True)) / (values.std(-1, keepdims=True) + 1e-12)
    return result


def envelope(samples: Floats) -> Floats:
    hops = samples[: len(samples) // HOP * HOP].reshape(-1, HOP)
    levels: Floats = np.log(np.sqrt(np.mean(hops**2, axis=1)) + 1e-4)
    return levels


def spectrum(samples: Floats) -> Floats:
    frames = samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME)
    return np.abs(np.fft.rfft(frames * np.hanning(FRAME), axis=1))


def stretch(samples: Floats) -> Floats:
    return np.asarray(resample(envelope(samples), STRETCHED), np.float64)


def center(rows: Sequence[Floats]) -> Floats:
    table = np.stack(rows)
    centered: Floats = table - table.mean(0)
    return centered


def agree(sources: Floats, outputs: Floats) -> Floats:
    """Cosine of every output (columns) with every source (rows)."""
    units = [table / np.linalg.norm(table, axis=1, keepdims=True) for table in (sources, outputs)]
    cosines: Floats = units[0] @ units[1].T
    return cosines


def cross_correlate(sources: Sequence[Floats], outputs: Sequence[Floats]) -> Callable[[int, int], float]:
    def largest(source: int, output: int) -> float:
        one, two = sources[source], outputs[output]
        found = np.abs(correlate(one, two, method="fft")).max()
        return float(found / (np.linalg.norm(one) * np.linalg.norm(two)))

    return largest


def pairwise(table: Floats) -> Callable[[int, int], float]:
    return lambda source, output: float(table[source, output])


def by_rank(sources: Floats, outputs: Floats, letters: Floats | None = None) -> Callable[[int, int], float]:
    """Products whose mean is the rank correlation, of what letters don't explain where they are given."""
    ranks = []
    for values in (sources, outputs):
        rank = rankdata(values)
        if letters is not None:
            known = rankdata(letters)
            rank = rank - np.polyval(np.polyfit(known, rank, 1), known)
        ranks.append(standardize(rank))
    return lambda source, output: float(ranks[0][source] * ranks[1][output])


def statistics(
    sources: Sequence[Floats], outputs: Sequence[Floats], letters: Floats | None
) -> Mapping[str, Callable[[int, int], float]]:
    def both(measure: Callable[[Floats], Floats]) -> tuple[Floats, Floats]:
        return center([measure(samples) for samples in sources]), center([measure(samples) for samples in outputs])

    def numbers(measure: Callable[[Floats], float]) -> tuple[Floats, Floats]:
        return np.array([measure(samples) for samples in sources]), np.array([measure(samples) for samples in outputs])

    levels, lengths = numbers(lambda samples: float(np.percentile(envelope(samples), 75))), numbers(len)
    stretched = [np.stack([standardize(stretch(samples)) for samples in side]) for side in (sources, outputs)]
    found = {
        "waveform, largest cross-correlation": cross_correlate(sources, outputs),
        "long-term spectrum, cosine": pairwise(agree(*both(lambda samples: np.log(spectrum(samples).mean(0) + 1e-7)))),
        "spectrum of the noise floor, cosine": pairwise(
            agree(*both(lambda samples: np.log(np.percentile(spectrum(samples), 10, axis=0) + 1e-7)))
        ),
        "envelopes stretched to one length, correlation": pairwise(agree(*stretched)),
        "level, rank correlation": by_rank(*levels),
        "duration, rank correlation": by_rank(*lengths),
    }
    if letters is not None:
        found["level beyond the number of letters"] = by_rank(*levels, letters)
        found["duration beyond the number of letters"] = by_rank(*lengths, letters)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", metavar="CORPUS", type=Path)
    parser.add_argument("output", metavar="OUTPUT", type=Path)
    parser.add_argument("--transcripts", metavar="FOLDER", type=Path)
    parser.add_argument("--recordings", type=int, default=160)
    parser.add_argument("--shuffles", type=int, default=39)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    rng = np.random.default_rng(given.seed)
    try:
        places = [{u.id: u.path for u in read_corpus(folder)} for folder in (given.corpus, given.output)]
        heard = texts_of(given.transcripts) if given.transcripts else {}
        ids = sorted(name for name in places[0].keys() & places[1].keys() if not heard or name in heard)
        ids = [ids[row] for row in sorted(rng.permutation(len(ids))[: given.recordings])]
        sources, outputs = ([read_audio(place[name]).astype(np.float64) for name in ids] for place in places)
    except VeilmeterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    letters = np.array([float(len(heard[name])) for name in ids]) if heard else None
    shuffles = [rng.permutation(len(ids)) for _ in range(given.shuffles)]
    print(f"| statistic of {len(ids)} outputs | own source | other sources | p |\n|---|---:|---:|---:|")
    for label, statistic in statistics(sources, outputs, letters).items():
        own = np.mean([statistic(row, row) for row in range(len(ids))])
        others = [np.mean([statistic(other, row) for row, other in enumerate(order)]) for order in shuffles]
        low, high = np.percentile(others, [2.5, 97.5])
        share = (1 + sum(other >= own for other in others)) / (1 + len(others))
        print(f"| {label} | {own:.3f} | {np.mean(others):.3f} [{low:.3f}, {high:.3f}] | {share:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
