"""Whether the word error rate of `assess` is right although it stops by itself: on real speech, in many orders.

    python -m benchmarks.stopping CORPUS [N]

A corpus with texts is anonymized by McAdams coefficients and transcribed, the first N recordings of every person. The
rate of all of them counts as the true value. Then recordings are drawn in random orders as `assess` does it, balanced
over people, until a look at the interval is precise enough or the last one is reached. Printed is how often the
reported interval covers the true value, with the planned levels and with 95 % at every look. `make bench` does not run
it: it takes minutes.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from veilmeter.data.corpus import Corpus
    from veilmeter.metrics.utility.words import TextErrors

ORDERS = 400
# Percentage points to either side, and recordings at the last look.
CASES = ((3.0, 52), (8.0, 240), (10.0, 240), (12.0, 480), (15.0, 480))


def main() -> None:
    from veilmeter.core.intervals import look_levels
    from veilmeter.data.corpus import read_corpus
    from veilmeter.metrics.utility.words import rate_with_interval

    whole, each = read_corpus(sys.argv[1]), int((sys.argv[2:] or ["4"])[0])
    chosen = whole.take(u.id for name in whole.speakers for u in [u for u in whole if u.speaker == name][:each])
    errors, speakers = _errors(chosen)
    truth, interval = rate_with_interval(errors.word_errors, errors.words, list(speakers))
    assert interval is not None
    print(f"{len(speakers)} recordings: {truth:.1f} % [{interval[0]:.1f}, {interval[1]:.1f}]")
    rng = np.random.default_rng(0)
    for precision, most in CASES:
        sizes = [20 * 2**step for step in range(8) if 20 * 2**step <= most / 2] + [most]
        for name, levels in (("planned levels", look_levels(sizes)), ("95 % always", [0.95] * len(sizes))):
            inside, used = 0, 0
            for _ in range(ORDERS):
                order = _order(speakers, rng)
                for size, level in zip(sizes, levels, strict=True):
                    rows = order[:size]
                    counted = errors.word_errors[rows], errors.words[rows]
                    low, high = rate_with_interval(*counted, list(speakers[rows]), level=level)[1] or (0.0, 100.0)
                    if (high - low) / 2 <= precision:
                        break
                inside += low <= truth <= high
                used += size
            print(
                f"within {precision:g} points, at most {most}, {name}: {used / ORDERS:.0f} recordings, "
                f"it covers the rate of all in {100 * inside / ORDERS:.1f} %",
                flush=True,
            )


def _errors(corpus: Corpus) -> tuple[TextErrors, np.ndarray]:
    """Word errors of each recording after anonymization, and who speaks."""
    from veilmeter.anonymizers.anonymize_corpus import anonymize_corpus
    from veilmeter.anonymizers.base import load_anonymizer
    from veilmeter.assessment.inputs import corpus_of_copies
    from veilmeter.metrics.utility.words import count_errors, normalize_text
    from veilmeter.speech.annotations import annotate_corpus, transcripts

    with tempfile.TemporaryDirectory(prefix="veilmeter-") as folder:
        done = anonymize_corpus(corpus, Path(folder, "copies"), load_anonymizer("mcadams", {"seed": 0}))
        heard = annotate_corpus(corpus_of_copies(corpus, done), Path(folder, "heard"), transcripts("moonshine", "en"))
    spoken = [u for u in corpus if u.id in heard.by_id and u.text]
    texts = [normalize_text(u.text, "en") for u in spoken]
    found = [normalize_text(str(heard.by_id[u.id].values["text"]), "en") for u in spoken]
    return count_errors(texts, found), np.array([u.speaker for u in spoken])


def _order(speakers: np.ndarray, rng: np.random.Generator) -> Sequence[int]:
    """Rows in a random order in which everybody has had a turn before anybody has another."""
    places = {name: place for place, name in enumerate(rng.permutation(np.unique(speakers)))}
    rounds: dict[str, int] = dict.fromkeys(places, 0)
    placed = []
    for row in rng.permutation(len(speakers)):
        name = speakers[row]
        placed.append((rounds[name], places[name], int(row)))
        rounds[name] += 1
    return [row for _, _, row in sorted(placed)]


if __name__ == "__main__":
    main()
