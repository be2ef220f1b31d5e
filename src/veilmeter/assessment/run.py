"""assess(): original and anonymized speech in, a complete assessment out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmeter._version import __version__
from veilmeter.assessment.material import Material, as_list, load, refuse_mixtures
from veilmeter.assessment.pieces import relabeled_of
from veilmeter.assessment.plan import Inputs, Plan, all_pieces, attackers_of, make_plan, own_pairings
from veilmeter.assessment.protocol import Protocol, lists_near, make_protocol
from veilmeter.assessment.settings import PATHS, Settings, make_settings, who_attacks
from veilmeter.assessment.sources import folders_near, read_source, write_left_out
from veilmeter.assessment.stages import Stages
from veilmeter.assessment.tasks import NOT_POSSIBLE, Result, Task, perform
from veilmeter.core.engine import Engine, open_engine
from veilmeter.core.errors import InputError, refuse
from veilmeter.core.files import make_folder, only_one, plain, remove_leftovers, write_json
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.matching import Matched, match
from veilmeter.metrics.copies import copies, unchanged
from veilmeter.metrics.legal.chance import joint_chance
from veilmeter.results.chance import with_chance
from veilmeter.results.from_plain import results_of
from veilmeter.results.model import Results
from veilmeter.results.people import Traits
from veilmeter.results.run_folder import write_results
from veilmeter.results.trust import TrustFacts
from veilmeter.results.verdict import conclude

if TYPE_CHECKING:
    from veilmeter.data.corpus import Corpus

LEFT_OUT = "left_out.jsonl"
Say = Callable[[str], None]
Shown = Callable[[str], AbstractContextManager[Callable[[int, int], None] | None]]


SECOND_RUN = "a second run of the anonymizer, as an attacker would make it who does not know the released run's draws"
RELEASED_RUN = (
    "the released run itself: if the anonymizer draws voices at random, attackers share these draws, which is more "
    "than a stranger has (--anonymized-again gives them a run of their own)"
)


@dataclass(frozen=True, eq=False)
class Assessment:
    """`results` is everything that was measured and concluded; `folder` where it was written, if anywhere."""

    results: Results
    folder: Path | None = None
    timings: dict[str, float] = field(default_factory=dict)

    @property
    def trustworthy(self) -> bool:
        return self.results.verdict.trustworthy

    @property
    def headline(self) -> str:
        return self.results.verdict.headline

    def __repr__(self) -> str:
        doubt = "" if self.trustworthy else "not trustworthy: "
        return f"Assessment({doubt}{self.headline})"

    def _repr_html_(self) -> str:
        return self.results._repr_html_()


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
    progress: Shown | None = None,
    anonymized_again: Any = None,
    train_original: Any = None,
    train_anonymized: Any = None,
    train_similar: Any = None,
    **options: Any,
) -> Assessment:
    """Assess an anonymizer from original and anonymized speech of the same utterances.

    Every source is a path (a corpus of audio, or embeddings), a `Corpus`, an `Embeddings`, arrays as `(vectors,
    speakers)` or `(vectors, utterances, speakers)`, or a list of these. The other options are those of the command, by
    the same names. With `out`, everything is written there, and a run that was interrupted goes on where it was.
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
    with closing(open_engine(jobs, cluster)) as engine, single_threaded():
        run = _Run(settings, sources, out, engine, list(command), say or (lambda text: None), progress or _no_progress)
        return run.go()


def _no_progress(title: str) -> AbstractContextManager[None]:
    return nullcontext()


def _named(source: Any) -> list[str]:
    items = as_list(source)
    return [
        str(item)
        if isinstance(item, str | Path)
        else str(getattr(item, "source", "") or getattr(item, "root", "") or "given")
        for item in items
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
        progress: Shown,
    ) -> None:
        self.settings = settings
        self.sources = sources
        self.folder = None if out is None else make_folder(out)
        self.engine = engine
        self.command = command
        self.workers = engine.workers
        self._say = say
        self._progress = progress
        self.stages = Stages(None if self.folder is None else self.folder / "stages")
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
        if self.folder is None:
            return self.assessed()
        with only_one(self.folder / ".lock", self.folder):
            for folder in (self.folder, make_folder(self.folder / "stages"), self.folder / "tables"):
                remove_leftovers(folder)
            return self.assessed()

    def assessed(self) -> Assessment:
        if who := who_attacks(self.settings):
            self._say(who)
        materials = self.read()
        refuse_mixtures(materials)
        pairing = match(materials["original"].embeddings, materials["anonymized"].embeddings)
        self.stage("choosing enrolment and trials")
        self.warnings += pairing.warnings()
        near = folders_near(self.sources["original"], self.settings)
        protocol = make_protocol(
            pairing.original,
            enrol=self.settings.enrol,
            trials=self.settings.trials,
            found_near=near,
            seed=self.settings.seed,
        )
        self.warnings += protocol.warnings
        tuned, words = self.fine_tune(materials)
        inputs = Inputs(
            pairing,
            {role: material for role, material in materials.items() if role.startswith("train_")},
            own_pairings(pairing, self.read_own() | tuned),
            words,
            materials["anonymized_again"].embeddings if "anonymized_again" in materials else None,
        )
        plan = make_plan(inputs, protocol, self.settings)
        keys = self.settings.trials or tuple(lists_near(near)[1])
        pieces = all_pieces(plan, inputs, protocol, self.settings, keys)
        done = self.perform(pieces)
        for name in [name for name, (values, _) in done.items() if NOT_POSSIBLE in values]:
            reason = done.pop(name)[0][NOT_POSSIBLE]
            what = f"{name.removeprefix('attacker-')} attacker" if name.startswith("attacker-") else name
            plan.not_tested.append(f"{what}: {reason}")
        for entry in done.get("inference", ({}, {}))[0].values():
            if "not_possible" in entry:
                plan.not_tested.append(f"inference: {entry['not_possible']}")
        results = self.assemble(materials, pairing, protocol, plan, done)
        if self.folder is not None:
            write_left_out(self.folder / LEFT_OUT, materials, pairing)
        return self.finish(results)

    def read(self) -> dict[str, Material]:
        found: dict[str, Material] = {}
        for role, source in self.sources.items():
            if source is None:
                continue
            self.stage(f"reading {role.replace('_', ' ')}")
            material = load(
                source,
                role=role,
                embed=self.embedding(role),
                read=partial(read_source, role=role, settings=self.settings),
            )
            if material is not None:
                if self.settings.strict:
                    refuse(material.left_out)
                found[role] = material
                self.warnings += material.warnings
        return found

    def read_own(self) -> dict[str, tuple[Embeddings | None, Embeddings | None]]:
        found: dict[str, tuple[Embeddings | None, Embeddings | None]] = {}
        for name, options in self.settings.attackers.items():
            if options.original or options.anonymized:
                self.stage(f"reading the vectors of the {name} attacker")
                embed = self.embedding(name)
                loaded = [
                    load(given, role=name, embed=embed, read=partial(read_source, role=side, settings=self.settings))
                    for side, given in (("original", options.original), ("anonymized", options.anonymized))
                ]
                if self.settings.strict:
                    refuse(problem for one in loaded if one is not None for problem in one.left_out)
                found[name] = (
                    None if loaded[0] is None else loaded[0].embeddings,
                    None if loaded[1] is None else loaded[1].embeddings,
                )
        return found

    def fine_tune(
        self, materials: Mapping[str, Material]
    ) -> tuple[dict[str, tuple[Embeddings | None, Embeddings | None]], dict[str, str]]:
        """For attackers whose extractor is fine-tuned: the anonymized speech as that extractor hears it, and on what it
        was tuned."""
        from veilmeter.assessment.tuning import tuned_vectors, wanted

        found: dict[str, tuple[Embeddings | None, Embeddings | None]] = {}
        words: dict[str, str] = {}
        for name in wanted(self.settings):
            self.stage(f"fine-tuning the extractor of the {name} attacker")
            folder = None if self.folder is None else self.folder / "finetuned" / name
            with self._progress(f"fine-tuning for the {name} attacker") as progress:
                vectors, said = tuned_vectors(name, materials, self.settings, folder, self.engine, progress)
            found[name], words[name] = (None, vectors), said
        return found, words

    def embedding(self, role: str) -> Callable[[Corpus], tuple[Embeddings, dict[str, Any]]]:
        """How audio of this role becomes vectors: training speech is cut into pieces, so that a speaker with one
        recording gives several."""
        settings = self.settings

        def embed(corpus: Corpus) -> tuple[Embeddings, dict[str, Any]]:
            from veilmeter.assessment.audio import embed_segments, embed_whole

            with self._progress(f"listening to {corpus.root.name}") as progress:
                if role.startswith("train_"):
                    return embed_segments(
                        corpus,
                        settings.extractor,
                        self.engine,
                        settings.segments,
                        offline=settings.offline,
                        progress=progress,
                        say=self._say,
                    )
                return embed_whole(
                    corpus,
                    settings.extractor,
                    self.engine,
                    offline=settings.offline,
                    strict=settings.strict,
                    progress=progress,
                    say=self._say,
                )

        return embed

    def perform(self, tasks: Sequence[Task]) -> dict[str, Result]:
        """Do every task that is not kept from an earlier run; wherever the engine runs them."""
        done: dict[str, Result] = {}
        for task in tasks:
            kept = self.stages.get(task.name, task.key)
            if kept is not None:
                done[task.name] = kept
        left = [task for task in tasks if task.name not in done]
        if done:
            self._say(f"{len(done)} of {len(tasks)} parts are kept from an earlier run")
        if left:
            self.stage(f"measuring {len(left)} parts: {', '.join(task.name for task in left)}")
        for number, (values, arrays) in self.engine.run(perform, left):
            task = left[number]
            done[task.name] = (self.stages.put(task.name, task.key, values, arrays), arrays)
            self._say(f"measured: {task.name} ({len(done)} of {len(tasks)})")
        return done

    def assemble(
        self,
        materials: Mapping[str, Material],
        pairing: Matched,
        protocol: Protocol,
        plan: Plan,
        done: Mapping[str, Result],
    ) -> Results:
        self.stage("drawing conclusions")
        settings = self.settings
        attackers, rows = attackers_of(plan, done)
        results: dict[str, Any] = {
            "version": __version__,
            "title": settings.title or _title(materials),
            "command": without_place(self.command),
            "seed": settings.seed,
            "parameters": settings.to_json(),
            "inputs": {role: material.facts for role, material in materials.items()}
            | {"matched": len(pairing.original), "unmatched": pairing.unmatched},
            "extractor": materials["original"].extractor,
            "protocol": protocol.to_json(pairing.original)
            | {
                "training": plan.training,
                "folds": plan.folds,
                "anonymized_enrolment": SECOND_RUN if "anonymized_again" in materials else RELEASED_RUN,
            },
            "attackers": attackers,
        }
        for part in ("similarity", "zebra", "inversion", "inference", "sessions", "runs"):
            if part in done:
                results[part] = {key: value for key, value in done[part][0].items() if key not in ("names", "deid")}
        if "inversion" in results and "inversion-curve" in done:
            results["inversion"] |= done["inversion-curve"][0]
        said = {name: done[f"attacker-{name}"][0]["warnings"] for name in attackers}
        for name, texts in said.items():
            # What holds for every attacker is said once.
            common = [text for text in texts if all(text in others for others in said.values())]
            self.warnings += common + [f"{name}: {text}" for text in texts if text not in common]
        results["warnings"] = list(dict.fromkeys(self.warnings))
        genders = dict(zip(pairing.original.speakers, pairing.original.attributes.get("gender", []), strict=False))
        self.tables(plan, done, rows, genders)
        zoo = done["similarity"][0] if "similarity" in done else {}
        traits = Traits(
            gender=genders,
            animal={animal["speaker"]: animal["animal"] for animal in zoo.get("zoo", ())},
            deid=zoo.get("deid", {}),
        )
        evidence = self.evidence(materials, pairing, protocol)
        relabeled = [made for name in rows if (made := relabeled_of(done[f"attacker-{name}"])) is not None]
        measured = with_chance(results_of(plain(results), rows), joint_chance(relabeled, seed=settings.seed))
        return conclude(measured, evidence, not_tested=plan.not_tested, traits=traits)

    def tables(
        self,
        plan: Plan,
        done: Mapping[str, Result],
        rows: Mapping[str, Sequence[Mapping[str, Any]]],
        genders: Mapping[str, str],
    ) -> None:
        if self.folder is None:
            return
        from veilmeter.assessment.tables import write_matrices, write_scores, write_speakers

        folder = self.folder / "tables"
        write_speakers(folder / "speakers.parquet", rows, genders)
        for name in rows:
            job = plan.jobs[name]
            write_scores(folder / f"scores-{name}.parquet", job, done[f"attacker-{name}"][1]["scores"])
        if "similarity" in done:
            values, arrays = done["similarity"]
            write_matrices(folder / "matrices.parquet", values["names"], arrays)

    def evidence(self, materials: Mapping[str, Material], pairing: Matched, protocol: Protocol) -> TrustFacts:
        """What the trust checks need beside the estimates."""
        known, tried = (pairing.original.of_utterances(ids) for ids in (protocol.enrolment, protocol.trials))
        same = unchanged(pairing.original, pairing.anonymized)
        assessed = set(pairing.original.names)
        return TrustFacts(
            compared=len(pairing.original),
            unchanged=None if same is None else int(same.sum()),
            trials=len(tried),
            copies=int(copies(known, tried).sum()),
            overlap={
                role: len(assessed & set(material.embeddings.names))
                for role, material in materials.items()
                if role.startswith("train_")
            },
            own_runs=int("anonymized_again" in materials),
        )

    def finish(self, results: Results) -> Assessment:
        if self.folder is not None:
            results = write_results(self.folder, results)
            self.stage("done")
            write_json(
                self.folder / "timings.json",
                {
                    "seconds": self.timings,
                    "total": round(time.monotonic() - self.started, 3),
                    "command": self.command,
                    "workers": self.workers,
                    "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                },
            )
        return Assessment(results, self.folder, self.timings)


# Options of the command that say where it runs and what it prints. Results must not depend on them, to the byte.
PLACE = {"--out": 1, "--jobs": 1, "--cluster": 1, "--quiet": 0, "--json": 0, "--no-report": 0}


def without_place(command: Sequence[str]) -> list[str]:
    """The command without what can't change a result.

    >>> without_place(["veilmeter", "assess", "a.toml", "--jobs", "4", "--out=run", "--seed", "1", "--quiet"])
    ['veilmeter', 'assess', 'a.toml', '--seed', '1']
    """
    kept: list[str] = []
    words = iter(command)
    for word in words:
        name, equals, _ = word.partition("=")
        if name not in PLACE:
            kept.append(word)
        elif PLACE[name] and not equals:
            next(words, None)
    return kept


def _title(materials: Mapping[str, Material]) -> str:
    def short(role: str) -> str:
        paths = materials[role].facts["path"].split(", ")
        return Path(paths[0]).name + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")

    names = {role: short(role) for role in ("anonymized", "original")}
    if names["anonymized"] == names["original"] and (variant := materials["anonymized"].facts["variant"]):
        names["anonymized"] += f" ({variant})"
    return f"{names['anonymized']} against {names['original']}"
