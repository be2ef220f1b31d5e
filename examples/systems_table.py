"""The anonymizers that ship on one corpus, by every attacker and channel: docs/validation/cascade.md.

    python examples/systems_table.py CORPUS OUT [--systems mcadams cascade:voice=fast] [--extractor campplus rhythm]
                                                [--by gender,age_group] [--jobs 2] [--no-utility]

Assesses each system into a folder of OUT, and prints two tables as Markdown: EER and recordings linked by attacker;
then verdict, singling out, worst person, text floor, groups, words, quality and distinctness. A
finished run is read, a stopped one goes on. A system is NAME or NAME:OPTION=VALUE,OPTION=VALUE.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from veilmeter import assess
from veilmeter.attacks.attacker import FUSED
from veilmeter.core.errors import VeilmeterError
from veilmeter.core.estimate import Estimate
from veilmeter.results.model import AttackerResult, Results
from veilmeter.results.people import links_among_all, text_floor
from veilmeter.results.run_folder import read_results

SHIPPED = ("mcadams", "mcadams-random", "xvector-pool", "cascade:voice=fast", "cascade")
FIRST = ("original", "ignorant", "lazy-informed", "informed")
STRONGEST = (FUSED, "adaptive")


def run(corpus: Path, system: str, given: argparse.Namespace) -> Results:
    name, _, options = system.partition(":")
    out = given.out / system.replace(":", "-").replace(",", "-")
    if not (out / "results.json").is_file() or read_results(out).pending:
        assess(
            original=corpus,
            system=name,
            option=[option for option in options.split(",") if option],
            extractor=given.extractor,
            by=given.by.split(","),
            utility=given.utility,
            jobs=given.jobs,
            out=out,
        )
    return read_results(out)


def show(estimate: Estimate | None, digits: int = 1) -> str:
    if estimate is None:
        return "–"
    if estimate.interval is None:
        return f"{estimate.value:.{digits}f}"
    low, high = estimate.interval
    return f"{estimate.value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def attacker_cell(result: AttackerResult | None) -> str:
    if result is None:
        return "–"
    return f"{show(next(iter(result.estimates.points('eer')), None))} / {show(links_among_all(result.estimates))}"


def strongest(results: Results) -> AttackerResult:
    """All channels together where there are several."""
    return next(results.attackers[name] for name in STRONGEST if name in results.attackers)


def singling_out(results: Results) -> str:
    points = strongest(results).estimates.points("residual_risk")
    return show(max(points, key=lambda point: float(point.at["speakers"]), default=None))


def worst_person(results: Results) -> str:
    worst = max(results.people.persons, key=lambda person: person.risk.value)
    return show(worst.risk, 0)


def linked_by_words(results: Results) -> str:
    floor = text_floor(results.channels)
    if floor is None:
        return "–"
    linked = floor.values["linked"]
    assert isinstance(linked, Estimate)
    return f"{show(linked)} ({floor.values['channel']})"


def within(attribute: str, value: str) -> Callable[[Results], str]:
    def cell(results: Results) -> str:
        figures = strongest(results).by.get(attribute, {}).get(value)
        return "–" if figures is None else show(links_among_all(figures))

    return cell


def single(part: str, name: str, digits: int = 1) -> Callable[[Results], str]:
    return lambda results: show(results.part(part).single(name), digits)


def summary(runs: Mapping[str, Results]) -> dict[str, Callable[[Results], str]]:
    """The rows of the second table."""
    groups = sorted({(a, v) for results in runs.values() for a, by in strongest(results).by.items() for v in by})
    return {
        "verdict": lambda results: f"{results.verdict.level}, {'' if results.verdict.trustworthy else 'not '}trusted",
        "singling out beyond a rule made without the recordings, in 100 attempts": singling_out,
        "people listed as unprotected": lambda results: str(len(results.people.unprotected)),
        "worst person: linked of 100 recordings": worst_person,
        "text floor: linked of 100 by the words of the original speech": linked_by_words,
        **{f"{a} {v}: linked of 100": within(a, v) for a, v in groups},
        "word error rate beyond that of the original, points": single("utility", "d_wer"),
        "MOS": single("utility", "mos", 2),
        "voices kept apart: G_VD, dB": single("similarity", "g_vd"),
    }


def print_table(head: str, names: Sequence[str], rows: Mapping[str, Sequence[str]]) -> None:
    print(f"| {head} | " + " | ".join(f"`{name}`" for name in names) + " |")
    print("|---" * (len(names) + 1) + "|")
    for label, cells in rows.items():
        print(f"| {label} | " + " | ".join(cells) + " |")
    print()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", metavar="CORPUS", type=Path)
    parser.add_argument("out", metavar="OUT", type=Path)
    parser.add_argument("--systems", nargs="+", default=SHIPPED)
    parser.add_argument("--extractor", nargs="+", default=["campplus", "rhythm"])
    parser.add_argument("--by", default="gender")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--no-utility", dest="utility", action="store_false")
    given = parser.parse_args(arguments)
    try:
        runs = {system: run(given.corpus, system, given) for system in given.systems}
    except VeilmeterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    found = dict.fromkeys(name for results in runs.values() for name in results.attackers)
    wanted = [name for name in FIRST if name in found]
    wanted += [name for name in found if name.partition("@")[0] in STRONGEST]
    print("EER in percent / recordings linked of 100, one recording each\n")
    rows = {name: [attacker_cell(results.attackers.get(name)) for results in runs.values()] for name in wanted}
    print_table("attacker", list(runs), rows)
    figures = summary(runs)
    print_table(
        "", list(runs), {label: [cell(results) for results in runs.values()] for label, cell in figures.items()}
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
