"""`python examples/python_tour.py`: the Python interface in one file, on voices that are made up.

A type checker reads this file, and a test runs it.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

import veilmeter as vm
from veilmeter.attacks.material import Material

PEOPLE, EACH = 12, 4
NAMES = [f"s{row // EACH:02d}" for row in range(PEOPLE * EACH)]


class Nearest(vm.ScoringAttacker):
    """Compares recordings with the mean of each person's original voice."""

    name = "nearest"
    about = "compares with the mean of each voice"

    def scores(self, material: Material) -> NDArray[np.float64]:
        people = material.candidates
        means = np.stack([people.vectors[people.speakers == name].mean(0) for name in material.names])
        spoken = [material.trials[rows].mean(0) for table in material.conversations for rows in table]
        return np.asarray(means @ np.stack(spoken).T, np.float64)


@vm.measure_of("scores", unit="percent", better="higher")
def overlap(scores: vm.Scores) -> float:
    """The share of target scores below the highest impostor score."""
    return 100 * float((scores.targets < scores.impostors.max()).mean())


def measure_scores_and_embeddings(clear: vm.Embeddings, hidden: vm.Embeddings) -> None:
    rng = np.random.default_rng(1)
    scores = vm.Scores.from_arrays(rng.normal(2, 1, 100), rng.normal(0, 1, 900))
    found = vm.measure(scores, resamples=100)
    print(found["eer"], found["eer"].signature, f"{found['eer']:.2f}", float(found["eer"]), sep="\n")
    print(len(found.to_frame()), found.filter(name="cllr").value, vm.eer(scores.targets, scores.impostors))
    print(vm.measure(scores, ["eer", overlap], intervals=False))
    linked = vm.linkability(clear, hidden, lengths=[1, 3])
    print(linked, linked.at(12), linked.estimates.names, sep="\n")
    print(vm.singling_out((clear.vectors, NAMES), (hidden.vectors, NAMES), draws=1).at(12))
    print(vm.population_linkability(linked, [1000], resamples=50))
    print(vm.similarity(clear, hidden).estimates["deid"])


def assess_and_compare(clear: vm.Embeddings, hidden: vm.Embeddings, noise: vm.Embeddings, folder: Path) -> None:
    run = vm.assess(
        clear, hidden, title="weak", attackers=["ignorant", Nearest()], measures=["eer", overlap], intervals=False
    )
    other = vm.assess(
        clear, noise, title="strong", attackers=["ignorant", Nearest], measures=["eer", overlap], intervals=False,
        out=folder / "strong",
    )  # fmt: skip
    print(run, run.people, run.verdict.level, len(run.to_frame()), sep="\n")
    print(run.attackers["nearest"].estimates["overlap"])
    compared = vm.compare(run, other, labels=["B1", "ours"])
    print(compared, compared.table("latex"), sep="\n")
    print(vm.system_table(run, folder / "strong", measures=["eer"]).render("markdown"))
    outcome = vm.gate(run, max={"linkability@12": "20%"}, min={"eer": "30%"}, even_if_doubted=True)
    print("passed" if outcome else "failed", outcome, sep="\n")
    again: vm.Results = vm.read_results(folder / "strong")
    print(again == other.results)
    try:
        vm.gate(run, limits=[vm.Limit("linkability", 0.2, "max", speakers=12)])
    except vm.InputError as error:
        print(error)


def main() -> None:
    rng = np.random.default_rng(0)
    voices = np.repeat(rng.normal(size=(PEOPLE, 8)), EACH, axis=0)
    utterances = [f"{name}-{row}" for row, name in enumerate(NAMES)]
    clear, hidden, noise = (
        vm.Embeddings(kept * voices + rng.normal(size=voices.shape), utterances, NAMES) for kept in (5.0, 1.0, 0.0)
    )
    measure_scores_and_embeddings(clear, hidden)
    with TemporaryDirectory() as folder:
        assess_and_compare(clear, hidden, noise, Path(folder))


if __name__ == "__main__":
    main()
