"""The whole story on synthetic voices: speak, anonymize, attack, report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmeter.core.engine import Engine, Here, Pool
from veilmeter.core.files import make_folder
from veilmeter.demo.corpus import build

if TYPE_CHECKING:
    from veilmeter.assessment import Assessment
    from veilmeter.data.corpus import Corpus

NOTICE = "Synthetic voices: this is a demonstration, not an assessment of real people."

QUICK = ("scores", "similarity", "linkability", "singling-out")
ATTACKER_RUNS = 2  # with a draw per utterance: the strongest attackers use the anonymizer themselves
LISTENED, RATED = 30, 10  # recordings that utility is measured on: few, so that the whole story stays short

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class System:
    """An anonymizer of the demo: its folder's name, what the report calls it, and how it is loaded, with options as the
    command line gives them."""

    name: str
    title: str
    system: str
    options: tuple[str, ...] = ()


SYSTEMS = (
    System("b2", "B2 (McAdams 0.8)", "mcadams", ("alpha=0.8",)),
    System("b2r", "B2r (random McAdams)", "mcadams-random", ("alpha_range=[0.5, 0.9]", "per=utterance")),
    System("b1", "B1-inspired x-vector pool", "xvector-pool"),
    System("cascade", "Speech to text to speech", "cascade", ("voice=fast",)),
)


@dataclass(frozen=True, slots=True)
class Told:
    """The output of the demo: a run for each system, and the report to open first."""

    runs: Mapping[str, Path]
    report: Path
    headlines: Mapping[str, str]


def tell(out: str | Path, *, fast: bool = False, jobs: int = 2, seed: int = 0, offline: bool = False, say: Say) -> Told:
    """Runs the demo into `out`; what an earlier run made there is kept."""
    from veilmeter.assessment.run import run_assessment
    from veilmeter.data.corpus import read_corpus
    from veilmeter.report import write_report

    root = make_folder(out)
    systems = SYSTEMS[:1] if fast else SYSTEMS
    speakers, utterances = (12, 2) if fast else (40, 3)
    engine: Engine = Here() if jobs == 1 else Pool(jobs)
    try:
        say(f"speaking: {speakers} synthetic voices, {2 * utterances} sentences each")
        original = build(root / "original", engine, speakers=speakers, utterances=utterances, seed=seed)
        corpus = read_corpus(original / "corpus.csv")
        for system in systems:
            say(f"anonymizing with {system.title}")
            _anonymize(corpus, root / system.name, system, engine, seed, offline)
    finally:
        engine.close()
    if not fast:
        say(f"utility is measured on {LISTENED} recordings of each system, {RATED} of them rated, to keep this short")
    runs, headlines = {}, {}
    for system in systems:
        say(f"attacking {system.title}; the attackers run it {ATTACKER_RUNS} times themselves")
        folder = root / "runs" / system.name
        quick: dict[str, Any] = {"measures": QUICK, "resamples": 200} if fast else {}
        assessment = run_assessment(
            str(original / "corpus.csv"),
            str(root / system.name / "corpus.csv"),
            out=folder,
            jobs=jobs,
            argv=["veilmeter", "demo", "--out", str(out), "--seed", str(seed), *(["--fast"] if fast else [])],
            system=system.system,
            option=system.options,
            system_runs=ATTACKER_RUNS,
            title=f"{system.title} on synthetic voices",
            assessor="veilmeter demo",
            notice=NOTICE,
            lengths=[1, utterances],
            seed=seed,
            offline=offline,
            utility_recordings=LISTENED,
            utility_rated=RATED,
            **quick,
        )
        say(attack_cost(assessment))
        write_report(assessment, with_audio=True)
        runs[system.name] = folder
        headlines[system.title] = assessment.headline
    if len(runs) == 1:
        return Told(runs, next(iter(runs.values())) / "report.html", headlines)
    say("comparing the systems")
    from veilmeter.report.compare import write_comparison

    report = write_comparison(list(runs.values()), root / "report.html", with_audio=True)
    return Told(runs, report, headlines)


def attack_cost(assessment: Assessment) -> str:
    """The time that the attackers' runs of the anonymizer took, in a sentence."""
    from veilmeter.assessment.stages import Stage

    anonymizing, reading, attacking = (
        assessment.timings.get(stage, 0.0) for stage in (Stage.ATTACKER_RUNS, Stage.READING_RUNS, Stage.MEASURING)
    )
    return (
        f"the attackers' own runs took {anonymizing:.0f} s to anonymize and {reading:.0f} s to read, "
        f"all attacks and measures on them {attacking:.0f} s"
    )


def _anonymize(corpus: Corpus, out: Path, system: System, engine: Engine, seed: int, offline: bool) -> None:
    from veilmeter.anonymizers.anonymize_corpus import anonymize_corpus
    from veilmeter.anonymizers.base import load_anonymizer, parse_options

    anonymizer = load_anonymizer(system.system, {**parse_options(system.options), "seed": seed, "offline": offline})
    anonymize_corpus(corpus, out, anonymizer, engine=engine, source=corpus.root / "corpus.csv", overwrite=True)
