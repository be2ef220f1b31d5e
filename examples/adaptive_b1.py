"""The adaptive attacker on the x-vectors of the VoicePrivacy 2020 baseline B1, beside Champion et al. 2021.

    python examples/adaptive_b1.py DATA [--draws 12] [--json]

DATA holds the x-vectors of the VoicePrivacy 2020 protocol, original and anonymized with baseline B1, in
`extractor-original/` and `extractor-retrained/`, each with `xvect_libri_test_{enrolls,trials_f,trials_m}[_anon]/`.

B1 gave one pseudo-voice to each speaker, and one run is given, so the attacker has what is least useful to it: one run
with one draw per speaker. Intervals are over speakers. The last lines attack perfect anonymizers, where chance is
right: trials replaced by other people's, and by noise.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

import numpy as np

from veilmeter.attacks.adaptive.learning import measure_effort
from veilmeter.attacks.attacker import ATTACKERS, perform
from veilmeter.attacks.material import AttackerRun, Material
from veilmeter.core.errors import VeilmeterError
from veilmeter.core.estimate import Estimate
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.vectors import read_embeddings

COMPARED = (
    "adaptive", "two-view-lda", "softmax", "ridge", "ridge-to-mean", "centered-lazy", "adaptive-unlabeled",
    "adaptive-pseudonyms",
)  # fmt: skip
# The best lines of the paper's Table 2 that are not oracles: EER of women and men.
PAPER = {"original": (25.4, 24.4), "retrained": (14.6, 13.1)}


def load(data: Path, extractor: str, gender: str) -> tuple[Material, Embeddings]:
    """The attacker's material, and the trials with their speakers, which it does not see."""

    def vectors(kind: str, part: str) -> Embeddings:
        return read_embeddings(data / f"extractor-{kind}" / f"xvect_libri_test_{part}")

    originals = vectors("original", "enrolls")
    originals = originals.take(originals.attributes["gender"] == gender)
    copies = vectors(extractor, "enrolls_anon").of_utterances(list(originals.utterances))
    trials = vectors(extractor, f"trials_{gender}_anon")
    material = Material(
        candidates=originals,
        trials=trials.vectors,
        conversations=(np.arange(len(trials))[:, None],),
        runs=(AttackerRun(vectors=copies, draw="speaker", name="B1"),),
        pseudonyms=trials.codes,
    )
    return material, trials


def attack(name: str, material: Material, spoken: np.ndarray, *, intervals: bool = True) -> list[Estimate]:
    scores = perform(ATTACKERS[name], material).scores
    return measure_effort(scores, material.names, spoken, {}, intervals=intervals, seed=0)


def real(data: Path) -> Iterator[dict[str, object]]:
    for extractor in ("original", "retrained"):
        for gender in "fm":
            material, trials = load(data, extractor, gender)
            for name in COMPARED:
                eer, linked = attack(name, material, trials.speakers)
                yield {
                    "extractor": extractor, "gender": gender, "attacker": name, "people": len(material.names),
                    "eer": [eer.value, *(eer.interval or ())],
                    "linked": [linked.value, *(linked.interval or ())],
                    "paper": PAPER[extractor]["fm".index(gender)],
                }  # fmt: skip


def perfect(data: Path, draws: int) -> Iterator[dict[str, object]]:
    """Trials that have nothing to do with the people they are said to be of."""
    for extractor, gender in (("original", "f"), ("retrained", "m")):
        material, trials = load(data, extractor, gender)
        others = load(data, extractor, "m" if gender == "f" else "f")[1].vectors
        copies = material.runs[0].vectors.vectors
        for kind in ("other people's", "noise"):
            values = []
            for draw in range(draws):
                rng = np.random.default_rng(draw)
                if kind == "noise":
                    vectors = copies.mean(0) + rng.standard_normal((len(trials), copies.shape[1])) * copies.std(0)
                else:
                    vectors = others[rng.integers(0, len(others), len(trials))]
                false = replace(material, trials=vectors.astype(np.float32))
                scores = perform(ATTACKERS["adaptive"], false).scores
                eer, linked = measure_effort(scores, material.names, trials.speakers, {}, intervals=False, seed=0)
                values.append((eer.value, linked.value, 100 * guessing(scores, material.names, trials)))
            eers, links, guesses = zip(*values, strict=True)
            yield {
                "extractor": extractor, "gender": gender, "trials": kind, "draws": draws,
                "eer": [fmean(eers), stdev(eers)], "linked": [fmean(links), stdev(links)],
                "chance": fmean(guesses),
            }  # fmt: skip


def guessing(scores: np.ndarray, names: Sequence[str], trials: Embeddings) -> float:
    """What these answers give when they have nothing to do with the questions: some people are named more often, and
    some are tried more often, so it is not 1 / people."""
    tried = np.array([np.sum(trials.speakers == name) for name in names], float)
    known = np.isin(trials.speakers.astype(str), list(names))
    named = np.bincount(scores[:, known].argmax(axis=0), minlength=len(names))
    return float(tried / tried.sum() @ (named / named.sum()))


def show(row: dict[str, object]) -> str:
    eer, linked = row["eer"], row["linked"]
    assert isinstance(eer, list)
    assert isinstance(linked, list)
    place = f"{row['extractor']:10} {row['gender']}"
    if "draws" in row:
        return (
            f"{place} perfect ({row['trials']}): EER {eer[0]:.1f} +- {eer[1]:.1f}, linked {linked[0]:.1f} +- "
            f"{linked[1]:.1f} (chance {row['chance']:.1f})"
        )
    return (
        f"{place} {row['attacker']:20} EER {eer[0]:4.1f} [{eer[1]:.1f}, {eer[2]:.1f}] (paper {row['paper']}), linked "
        f"{linked[0]:.0f} [{linked[1]:.0f}, {linked[2]:.0f}] of 100 among {row['people']}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", metavar="DATA", type=Path)
    parser.add_argument("--draws", type=int, default=12, help="of perfect anonymizers (default 12, 0 for none)")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    given = parser.parse_args(arguments)
    try:
        for rows in (real(given.data), perfect(given.data, given.draws) if given.draws > 1 else iter(())):
            for row in rows:
                print(json.dumps(row) if given.json else show(row), flush=True)
    except VeilmeterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
