"""assess(): original and anonymized speech in, a complete assessment out."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmeter._version import __version__
from veilmeter.assessment import people, trust
from veilmeter.assessment.material import Material, Pairing, load, pair
from veilmeter.assessment.measuring import Found, Job, measure_attack
from veilmeter.assessment.plan import Inputs, Plan, key_of_job, make_plan, own_pairings
from veilmeter.assessment.protocol import Protocol, make_protocol
from veilmeter.assessment.settings import PATHS, Settings, make_settings
from veilmeter.assessment.stages import Stages, key_of
from veilmeter.assessment.verdict import strongest, verdict, worst_case
from veilmeter.attackers import ATTACKERS
from veilmeter.embeddings import Embeddings
from veilmeter.engine import Engine, Here, open_engine
from veilmeter.errors import InputError
from veilmeter.files import make_folder, plain, write_json

if TYPE_CHECKING:
    from veilmeter.corpus import Corpus

SCHEMA = 1
Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Assessment:
    """`results` is what results.json holds; `folder` where it was written, if anywhere."""

    results: dict[str, Any]
    folder: Path | None = None
    timings: dict[str, float] = field(default_factory=dict)

    @property
    def trustworthy(self) -> bool:
        return bool(self.results["verdict"]["trustworthy"])

    @property
    def headline(self) -> str:
        return str(self.results["verdict"]["headline"])

    def __repr__(self) -> str:
        doubt = "" if self.trustworthy else "not trustworthy: "
        return f"Assessment({doubt}{self.headline})"


def assess(
    original: Any = None,
    anonymized: Any = None,
    *,
    out: str | Path | None = None,
    settings: Settings | None = None,
    jobs: int = 1,
    cluster: str | None = None,
    command: Sequence[str] = (),
    say: Say | None = None,
    anonymized_again: Any = None,
    train_original: Any = None,
    train_anonymized: Any = None,
    train_similar: Any = None,
    **options: Any,
) -> Assessment:
    """Assess an anonymizer from original and anonymized speech of the same utterances.

    Every source is a path (a corpus of audio, or embeddings), a `Corpus`, an `Embeddings`, or a list of these. The
    other options are those of the command, by the same names. With `out`, everything is written there, and a run that
    was interrupted goes on where it was.
    """
    given = {
        "original": original,
        "anonymized": anonymized,
        "anonymized_again": anonymized_again,
        "train_original": train_original,
        "train_anonymized": train_anonymized,
        "train_similar": train_similar,
    }
    if settings is None:
        named = {role: _named(source) for role, source in given.items() if source is not None}
        settings = make_settings({**named, **options})
    elif options:
        raise InputError("give settings or options, not both")
    sources = {role: given[role] if given[role] is not None else getattr(settings, role) or None for role in PATHS}
    for role in ("original", "anonymized"):
        if sources[role] is None:
            raise InputError(f"there is no {role} speech", fix=f"give --{role} PATH")
    engine: Engine = Here() if jobs == 1 and cluster is None else open_engine(jobs, cluster)
    try:
        with single_threaded():
            return _Run(settings, sources, out, engine, list(command), say or (lambda text: None)).go()
    finally:
        engine.close()


def _named(source: Any) -> list[str]:
    items = source if isinstance(source, list | tuple) else [source]
    return [
        str(item) if isinstance(item, str | Path) else str(getattr(item, "source", "") or "given") for item in items
    ]


def single_threaded() -> Any:
    """Linear algebra in one thread: how a product is cut up among threads changes its last digits."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    return threadpool_limits(1)


class _Run:
    """One assessment, stage by stage."""

    def __init__(
        self,
        settings: Settings,
        sources: Mapping[str, Any],
        out: str | Path | None,
        engine: Engine,
        command: list[str],
        say: Say,
    ) -> None:
        self.settings = settings
        self.sources = sources
        self.folder = None if out is None else make_folder(out)
        self.engine = engine
        self.command = command
        self._say = say
        self.stages = Stages(None if self.folder is None else make_folder(self.folder / "stages"))
        self.timings: dict[str, float] = {}
        self.warnings: list[str] = []
        self.started = time.monotonic()
        self._last = ""

    def stage(self, name: str) -> None:
        now = time.monotonic()
        if self._last:
            self.timings[self._last] = round(now - self.started - sum(self.timings.values()), 3)
        self._last = name
        self._say(name)

    def go(self) -> Assessment:
        materials = self.read()
        pairing = pair(materials["original"].embeddings, materials["anonymized"].embeddings)
        self.stage("choosing enrolment and trials")
        protocol = make_protocol(
            pairing.original,
            enrol=self.settings.enrol,
            trials=self.settings.trials,
            found_near=[s for s in _listed(self.sources["original"]) if isinstance(s, str | Path)],
            seed=self.settings.seed,
        )
        self.warnings += protocol.warnings
        inputs = Inputs(
            pairing,
            materials["anonymized_again"].embeddings if "anonymized_again" in materials else None,
            {role: m for role, m in materials.items() if role.startswith("train_")},
            own_pairings(self.settings, pairing, self.read_own()),
        )
        self.stage("training the attackers")
        plan = make_plan(inputs, protocol, self.settings)
        attackers, rows = self.attack(plan, inputs)
        results = self.assemble(materials, pairing, protocol, plan, attackers, rows)
        return self.finish(results)

    def read(self) -> dict[str, Material]:
        found: dict[str, Material] = {}
        for role, source in self.sources.items():
            if not source:
                continue
            self.stage(f"reading {role.replace('_', ' ')}")
            material = load(source, role=role, embed=self.embed)
            if material is not None:
                found[role] = material
                self.warnings += material.warnings
        return found

    def read_own(self) -> dict[str, tuple[Embeddings | None, Embeddings | None]]:
        found: dict[str, tuple[Embeddings | None, Embeddings | None]] = {}
        for name, options in self.settings.attackers.items():
            if options.original or options.anonymized:
                self.stage(f"reading the vectors of the {name} attacker")
                loaded = [load(side, role=name, embed=self.embed) for side in (options.original, options.anonymized)]
                found[name] = (
                    None if loaded[0] is None else loaded[0].embeddings,
                    None if loaded[1] is None else loaded[1].embeddings,
                )
        return found

    def embed(self, corpus: Corpus) -> tuple[Embeddings, dict[str, Any]]:
        raise InputError("audio can't be assessed yet", path=str(corpus.root))

    def attack(self, plan: Plan, inputs: Inputs) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
        """Measure every attacker, those in parallel that are not kept from an earlier run."""
        keys = {
            name: key_of(**key_of_job(job, plan.about[name], self.settings, inputs.training))
            for name, job in plan.jobs.items()
        }
        values: dict[str, Any] = {}
        arrays: dict[str, Any] = {}
        for name in plan.jobs:
            kept = self.stages.get(f"attacker-{name}", keys[name])
            if kept is not None:
                values[name], arrays[name] = kept
        left = [name for name in plan.jobs if name not in values]
        if left:
            self.stage("measuring: " + ", ".join(left))
        for number, found in self.engine.run(measure_attack, [plan.jobs[name] for name in left]):
            name = left[number]
            values[name] = self.stages.put(
                f"attacker-{name}", keys[name], _plain_found(found), {"scores": found.scores}
            )
            arrays[name] = {"scores": found.scores}
            self._say(f"measured the {name} attacker")
        attackers = {}
        rows = {}
        for name in plan.jobs:
            one = values[name]
            attackers[name] = plan.about[name] | {
                key: one[key]
                for key in ("backend", "estimates", "by", "profile", "det", "ties")
                if one[key] or key != "by"
            }
            rows[name] = one["people"]
            self.warnings += [f"{name}: {text}" for text in one["warnings"]]
            self.table(name, plan.jobs[name], arrays[name]["scores"])
        return attackers, rows

    def table(self, name: str, job: Job, scores: Any) -> None:
        if self.folder is not None:
            from veilmeter.assessment.tables import write_scores

            write_scores(self.folder / "tables" / f"scores-{name}.parquet", job, scores)

    def assemble(
        self,
        materials: Mapping[str, Material],
        pairing: Pairing,
        protocol: Protocol,
        plan: Plan,
        attackers: dict[str, Any],
        rows: dict[str, list[dict[str, Any]]],
    ) -> dict[str, Any]:
        self.stage("drawing conclusions")
        settings = self.settings
        results: dict[str, Any] = {
            "schema": SCHEMA,
            "version": __version__,
            "title": settings.title or _title(materials),
            "command": self.command,
            "seed": settings.seed,
            "parameters": settings.to_json(),
            "inputs": {role: material.facts for role, material in materials.items()}
            | {"matched": len(pairing.original), "unmatched": pairing.unmatched},
            "extractor": materials["original"].extractor,
            "protocol": protocol.to_json(pairing.original) | {"training": plan.training, "folds": plan.folds},
            "attackers": attackers,
        }
        results["worst_case"] = worst_case(results)
        results["trust"] = [check.to_json() for check in self.checks(results, materials, pairing, protocol)]
        results["verdict"] = verdict(results, plan.not_tested)
        genders = dict(zip(pairing.original.speakers, pairing.original.attributes.get("gender", []), strict=False))
        attacks = {name: found for name, found in rows.items() if name != "original"}
        results["speakers"] = people.risks(attacks, genders)
        results["unprotected"] = people.unprotected(results["speakers"], list(attacks))
        results["warnings"] = list(dict.fromkeys(self.warnings))
        return plain(results)  # type: ignore[no-any-return]

    def checks(
        self, results: Mapping[str, Any], materials: Mapping[str, Material], pairing: Pairing, protocol: Protocol
    ) -> list[trust.Check]:
        estimates = {name: one["estimates"] for name, one in results["attackers"].items()}
        attacks = {name: one for name, one in estimates.items() if name != "original"}
        eers = {name: one["eer"] for name, one in attacks.items() if "eer" in one}
        worst = strongest(results, "linkability")
        training = {
            role: material.embeddings.names for role, material in materials.items() if role.startswith("train_")
        }
        return trust.ordered(
            [
                trust.strong_on_original(estimates.get("original", {}).get("eer"), self.settings.weak_attacker),
                trust.adapted_not_worse(eers, [name for name in eers if ATTACKERS[name].adapted]),
                trust.not_identical(pairing.original, pairing.anonymized),
                trust.enough_speakers(None if worst is None else worst[1], self.settings.precision),
                trust.training_disjoint(pairing.original.names, training),
                trust.other_sessions(protocol.same_session),
                trust.no_ties({name: results["attackers"][name]["ties"] for name in attacks}),
                trust.not_inverted({name: one["d_ece"] for name, one in attacks.items() if "d_ece" in one}),
            ]
        )

    def finish(self, results: dict[str, Any]) -> Assessment:
        if self.folder is not None:
            from veilmeter.assessment.tables import write_speakers

            write_speakers(self.folder / "tables" / "speakers.parquet", results["speakers"])
            write_json(self.folder / "results.json", results)
            self.stage("done")
            write_json(
                self.folder / "timings.json",
                {"seconds": self.timings, "total": round(time.monotonic() - self.started, 3), "finished": time.time()},
            )
        return Assessment(results, self.folder, self.timings)


def _listed(source: Any) -> list[Any]:
    return list(source) if isinstance(source, list | tuple) else [source]


def _plain_found(found: Found) -> dict[str, Any]:
    return {
        "backend": found.backend,
        "estimates": found.estimates,
        "by": found.by,
        "profile": found.profile,
        "det": found.det,
        "people": found.people,
        "warnings": found.warnings,
        "ties": found.ties,
    }


def _title(materials: Mapping[str, Material]) -> str:
    def short(role: str) -> str:
        paths = materials[role].facts["path"].split(", ")
        return Path(paths[0]).name + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")

    return f"{short('anonymized')} against {short('original')}"


def read_results(folder: str | Path) -> dict[str, Any]:
    """results.json of a run, checked for its schema."""
    path = Path(folder)
    file = path / "results.json" if path.is_dir() else path
    try:
        results: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            "there are no results here", path=file, fix="run `veilmeter assess ... --out RUN` first"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"these results can't be read: {error}", path=file) from None
    if not isinstance(results, dict) or results.get("schema") != SCHEMA:
        raise InputError("these are not results of this version", path=file, fix="run the assessment again")
    return results
