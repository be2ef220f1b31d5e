"""Are attackers at chance where every output is somebody else's recording? See docs/validation/cascade.md.

    python examples/shuffled_release.py CORPUS RUN TRANSCRIPTS [--extractor campplus rhythm] [--seed 0] [--jobs 1]

RUN is a folder of `veilmeter assess --original CORPUS --system ...`, TRANSCRIPTS one of `veilmeter transcribe CORPUS`.
Three systems are assessed by the adaptive attacker with the run's own copies:

- as it is
- dealt among equal lengths: a recording gets the output of a random one with as many recognized words
- dealt among all: a recording gets the output of a random one

The third hides everybody, on real speech. The second leaves nothing of a person but how long the sentences are.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from veilmeter import assess
from veilmeter.assessment.extraction import embed_whole, texts_of
from veilmeter.core.engine import Here
from veilmeter.core.errors import VeilmeterError
from veilmeter.core.estimate import Estimate
from veilmeter.data.corpus import read_corpus
from veilmeter.data.embeddings import Embeddings
from veilmeter.results.people import links_among_all
from veilmeter.speech.extractors.words import tokens

ATTACKER = "adaptive"


def deal(vectors: Embeddings, group: Callable[[str], int], rng: np.random.Generator) -> Embeddings:
    """The vectors, each assigned to a random recording of the same group."""
    groups = np.array([group(name) for name in vectors.utterances])
    order = np.arange(len(groups))
    for members in (np.flatnonzero(groups == value) for value in np.unique(groups)):
        order[members] = rng.permutation(members)
    return replace(vectors, vectors=vectors.vectors[order])


def release_of(folder: Path) -> Path:
    """The recordings of a run's folder, which are named like their corpus."""
    return next(path for path in folder.iterdir() if path.is_dir())


def deals(heard: Mapping[str, str]) -> Iterator[tuple[str, Callable[[str], int] | None]]:
    yield "as it is", None
    yield "dealt among equal lengths", lambda name: len(tokens(heard.get(name, "")))
    yield "dealt among all", lambda _: 0


def show(estimate: Estimate | None) -> str:
    if estimate is None or estimate.interval is None:
        return "–"
    return f"{estimate.value:.1f} [{estimate.interval[0]:.1f}, {estimate.interval[1]:.1f}]"


def print_row(original: Embeddings, copies: Sequence[Embeddings], label: str, jobs: int) -> None:
    results = assess(
        original,
        copies[0],
        attacker_run=list(copies[1:]),
        attackers=[ATTACKER],
        measures=["scores", "linkability"],
        lengths=[1],
        jobs=jobs,
    ).results
    estimates = results.attackers[ATTACKER].estimates
    print(f"| {label} | {show(next(iter(estimates.points('eer'))))} | {show(links_among_all(estimates))} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", metavar="CORPUS", type=Path)
    parser.add_argument("run", metavar="RUN", type=Path)
    parser.add_argument("transcripts", metavar="TRANSCRIPTS", type=Path)
    parser.add_argument("--extractor", nargs="+", default=["campplus", "rhythm"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args(arguments)
    try:
        heard = texts_of(given.transcripts)
        folders = [given.run / "release", *sorted((given.run / "attacker_runs").glob("run-*"))]
        places = [given.corpus, *map(release_of, folders)]
        print("| channel, release | EER, % | linked of 100 |\n|---|---:|---:|")
        for extractor in given.extractor:
            original, *copies = (embed_whole(read_corpus(place), extractor, Here())[0] for place in places)
            rng = np.random.default_rng(given.seed)
            for label, group in deals(heard):
                dealt = copies if group is None else [deal(copy, group, rng) for copy in copies]
                print_row(original, dealt, f"{extractor}, {label}", given.jobs)
    except VeilmeterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
