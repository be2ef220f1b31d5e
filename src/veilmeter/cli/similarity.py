"""`veilmeter similarity`: voice similarity matrices with DeID, G_VD, the zoo and sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmeter.cli.command import Given
from veilmeter.cli.shared_options import SAMPLED, TABLE_ONLY, FormFacts, typesetting, vectors
from veilmeter.core import option_groups
from veilmeter.core.errors import InputError
from veilmeter.core.files import real_path
from veilmeter.core.findings import Finding, Reference, about, first_speakers, warning
from veilmeter.core.option_groups import VECTOR_FORMATS, Figures, OutputForms, Workers
from veilmeter.core.options import Condition, declare
from veilmeter.data.corpus import strict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from veilmeter.core.engine import Engine
    from veilmeter.core.estimate import Estimate
    from veilmeter.data.embeddings import Embeddings
    from veilmeter.data.matching import Matched
    from veilmeter.metrics.similarity.matrices import Similarity
    from veilmeter.metrics.similarity.zoo import Zoo

SESSIONS = "Sessions"


@dataclass(frozen=True, kw_only=True)
class SimilarityOptions(Figures, OutputForms, Workers):
    """The options of the command."""

    original: Path = vectors(f"Embeddings of the original speech: {VECTOR_FORMATS}.", example="other.npz")
    anonymized: tuple[Path, ...] = vectors(
        "Embeddings of the same utterances anonymized; repeat to compare several systems.", example="again.npz"
    )
    form: str = declare(
        "geometric", help="geometric (Noé et al. 2022) or arithmetic (Noé et al. 2020) similarity.", metavar="FORM",
        choices=("geometric", "arithmetic"), example="arithmetic",
    )  # fmt: skip
    pairs: str = declare(
        "all", help="all ordered pairs of utterances, or vpc: later ones only, mirrored, as in the challenge.",
        metavar="PAIRS", choices=("all", "vpc"), example="vpc",
    )  # fmt: skip
    backend: str = declare(
        "cosine", help="How two vectors are compared: cosine.", metavar="NAME", choices=("cosine",), example="plda"
    )
    per_speaker: bool = declare(
        False,
        help="Show each speaker: how much of the original voice remains, and their zoo animal.",
        acts_when=(TABLE_ONLY,),
        example=True,
    )
    sessions: bool = declare(
        False,
        help="Measure Linkability within a session, across sessions and to the original.",
        group=SESSIONS,
        example=True,
    )
    session_column: str = declare(
        "session", help="Column that names the session of an utterance.", metavar="COLUMN", group=SESSIONS,
        example="gender",
    )  # fmt: skip
    speakers: tuple[int, ...] = declare(
        (), help="Numbers of enrolled speakers for Linkability.", group=SESSIONS, least=1, example=5
    )
    lengths: tuple[int, ...] = declare(
        (1,), help="Utterances in a conversation, one or several numbers.", metavar="L", group=SESSIONS, least=1,
        example=2,
    )  # fmt: skip
    strict: bool = strict()
    intervals: bool = option_groups.intervals()
    seed: int = option_groups.seed(
        acts_when=(Condition(lambda options, facts: options.intervals or options.sessions, SAMPLED),)
    )
    figures: Path | None = option_groups.figures("the matrices, the zoo, the speakers and DeID against G_VD")


OPTIONS = (SimilarityOptions,)


def command(given: Given) -> None:
    """Compare all voices before and after anonymization: DeID, G_VD.

    DeID is how well the original voices are hidden, G_VD how distinct the new voices are from each other. Scores of
    original against original (OO), original against protected (OP) and protected against protected (PP) voices are
    calibrated and averaged for each pair of speakers. D_diag is how much more similar speakers are to themselves than
    to others.

    Examples:

        veilmeter similarity --original xvect_libri_test_trials_f --anonymized xvect_libri_test_trials_f_anon

        veilmeter similarity --original o.npz --anonymized b1.npz --anonymized b2.npz --figures figures
    """
    from contextlib import closing

    from veilmeter.cli.output import Page, emit, output_form
    from veilmeter.cli.shared_options import read_vectors
    from veilmeter.cli.terminal import show_progress
    from veilmeter.core.engine import open_engine

    options = given.build(SimilarityOptions)
    output = output_form(options)
    setting = typesetting(options)
    if not options.sessions:
        given.refuse(["session_column", "speakers", "lengths"], "--sessions is not given", fix="give --sessions too")
    from veilmeter.metrics.similarity.matrices import similarity_estimates
    from veilmeter.metrics.similarity.zoo import details_of, doubts_of

    counts = sorted(set(options.speakers)) or None
    warnings: list[Finding] = []
    base, entry = read_vectors(options.original, warnings, strict=options.strict)
    names = _system_names(options.anonymized)
    inputs: dict[str, Any] = {"original": entry}
    matrices: dict[str, Similarity] = {}
    zoos: dict[str, dict[str, Zoo]] = {}
    estimates: list[dict[str, Estimate | list[Estimate]]] = []
    with closing(open_engine(options.jobs, options.cluster)) as engine:
        for name, path in zip(names, options.anonymized, strict=True):
            protected, entry = read_vectors(path, warnings, strict=options.strict)
            inputs[f"anonymized {name}" if len(names) > 1 else "anonymized"] = entry
            both, used = _match(base, protected, warnings)
            with show_progress(
                f"comparing voices ({name})", unit="matrices", quiet=len(used.original) < 2500
            ) as progress:
                similarities, animals = _matrices(used, options, progress, engine)
            matrices[name], zoos[name] = similarities, animals
            system = name if len(names) > 1 else None
            measured: dict[str, Estimate | list[Estimate]] = dict(
                similarity_estimates(similarities, system=system, backend=options.backend)
            )
            if options.sessions:
                measured |= _sessions(both, options, counts, system, warnings)
            estimates.append(measured)
            warnings += doubts_of(similarities, name if len(names) > 1 else "")
    files = []
    if options.figures is not None:
        from veilmeter.report.figures.similarity import save_all

        files = save_all(matrices, zoos, estimates, options.figures, setting=setting)
    merged = _merge(estimates)
    warnings += given.find_unused(options, FormFacts(output))
    more: dict[str, Any] = {"systems": {name: details_of(matrices[name], zoos[name]) for name in names}}
    if len(names) == 1:
        more = more["systems"][names[0]]
    page = Page(
        title=_title(matrices),
        estimates=merged,
        inputs=inputs
        | {name: getattr(options, name) for name in ("form", "pairs", "backend")}
        | {"seed": options.seed if options.intervals or options.sessions else None},
        warnings=warnings,
        notes=_notes(matrices, zoos, not options.intervals, options.per_speaker),
        sections=SECTIONS,
        more=more,
        figures=files,
    )
    emit(page, output)


SECTIONS = {
    "Is the original voice hidden?": ["deid", "d_diag_op", "d_diag_op_modulus", "d_diag_op_log"],
    "Do the protected voices stay distinct?": ["g_vd", "d_diag_pp", "d_diag_pp_modulus", "d_diag_pp_log"],
    "How distinct were the original voices?": ["d_diag_oo", "d_diag_oo_modulus", "d_diag_oo_log"],
    "Do protected recordings link?": [
        "linkability_within_session", "linkability_across_sessions", "linkability_to_original",
    ],
}  # fmt: skip


def _system_names(paths: Sequence[Path]) -> list[str]:
    """The last part of each path that tells them apart."""
    for depth in (1, 2, 3, 4):
        names = ["/".join(_stem(real_path(path)).parts[-depth:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    if len({real_path(path) for path in paths}) < len(paths):
        raise InputError("the same anonymized set was given twice", path=paths[0])
    return [str(path) for path in paths]


def _stem(path: Path) -> Path:
    return path.with_suffix("") if path.suffix in (".npz", ".h5", ".hdf5", ".parquet", ".scp", ".ark") else path


def _match(base: Embeddings, protected: Embeddings, warnings: list[Finding]) -> tuple[Matched, Matched]:
    """The utterances of both sets; and of these, those of speakers with at least two."""
    import numpy as np

    from veilmeter.data.matching import Matched, match

    if base.dimension != protected.dimension:
        raise InputError(
            f"its vectors have {protected.dimension} numbers, those of {base.source} {base.dimension}",
            path=protected.source,
            fix="both must come from the same extractor",
        )
    both = match(base, protected)
    warnings += both.findings()
    sizes = np.bincount(both.original.codes)
    alone = [both.original.names[code] for code in np.flatnonzero(sizes < 2)]
    if not alone:
        return both, both
    keep = sizes[both.original.codes] >= 2
    if not keep.any():
        raise InputError("every speaker has a single utterance: nobody can be compared with themselves",
                         path=base.source)  # fmt: skip
    warnings.append(
        warning("speakers_left_out", purpose="similarity", count=len(alone), needed=2, examples=first_speakers(alone))
    )
    return both, Matched(both.original.take(keep), both.anonymized.take(keep), both.unmatched)


def _matrices(
    used: Matched, options: SimilarityOptions, progress: Any, engine: Engine
) -> tuple[Similarity, dict[str, Zoo]]:
    from veilmeter.metrics.similarity.matrices import KINDS, similarity
    from veilmeter.metrics.similarity.zoo import zoo

    matrices = similarity(
        used.original.vectors,
        used.anonymized.vectors,
        used.original.speakers,
        form=options.form,  # type: ignore[arg-type]
        pairs=options.pairs,  # type: ignore[arg-type]
        spreads=options.intervals,
        seed=options.seed,
        progress=progress,
        engine=engine,
    )
    return matrices, {kind: zoo(matrices.matrix(kind), matrices.names) for kind in KINDS}


def _sessions(
    both: Matched,
    options: SimilarityOptions,
    counts: list[int] | None,
    system: str | None,
    warnings: list[Finding],
) -> dict[str, list[Estimate]]:
    from veilmeter.data.embeddings import Embeddings
    from veilmeter.metrics.legal.sessions import linkability_by_session

    column, protected = options.session_column, both.anonymized
    if column not in protected.attributes and column in both.original.attributes:
        protected = Embeddings(  # the sessions are the same, wherever they are written down
            protected.vectors, protected.utterances, protected.speakers,
            {**protected.attributes, column: both.original.attributes[column]}, protected.durations, protected.source,
        )  # fmt: skip
    at = {} if system is None else {"system": system}
    curves: dict[str, list[Estimate]] = {}
    for length in options.lengths:
        by_session = linkability_by_session(protected, both.original, length=length, column=column, seed=options.seed)
        if lost := by_session.left_out:
            warnings.append(
                warning(
                    "speakers_left_out",
                    purpose="sessions",
                    count=len(lost),
                    needed=2 * length,
                    examples=first_speakers(lost),
                )
            )
        for name, curve in by_session.estimates(counts, intervals=options.intervals).items():
            curves.setdefault(name, []).extend(estimate.with_(at={**at, **estimate.at}) for estimate in curve)
    return curves


def _merge(parts: list[dict[str, Estimate | list[Estimate]]]) -> dict[str, Estimate | list[Estimate]]:
    if len(parts) == 1:
        return parts[0]
    merged: dict[str, Estimate | list[Estimate]] = {}
    for name in parts[0]:
        curves = [part[name] for part in parts]
        merged[name] = [estimate for curve in curves for estimate in (curve if isinstance(curve, list) else [curve])]
    return merged


def _title(systems_matrices: Mapping[str, Similarity]) -> str:
    first = next(iter(systems_matrices.values()))
    systems = next(iter(systems_matrices)) if len(systems_matrices) == 1 else f"{len(systems_matrices)} systems"
    return f"{systems}: {first.utterances:,} utterances of {len(first.names):,} speakers, before and after"


def _notes(
    matrices: Mapping[str, Similarity],
    zoos: Mapping[str, Mapping[str, Zoo]],
    no_intervals: bool,
    per_speaker: bool,
) -> list[Finding]:
    import numpy as np

    notes = []
    for name, similarities in matrices.items():
        own = similarities.per_speaker("OP")
        order = np.argsort(-own, kind="stable")
        animals = zoos[name]["OP"].animals
        rows = order if per_speaker else order[:3]
        stays = Finding.of(
            "diagonal_stays",
            every_speaker=per_speaker,
            speakers=first_speakers([similarities.names[row] for row in rows], most=len(rows)),
            diagonals=tuple(float(own[row]) for row in rows),
            animals=tuple(str(animals[row]) for row in rows),
        )
        notes.append(about(stays, system=Reference("run", name)) if len(matrices) > 1 else stays)
        real = [
            (kind, animal, facts)
            for kind in ("OO", "OP", "PP")
            for animal, facts in zoos[name][kind].corners().items()
            if facts["p"] < 0.01
        ]
        if real:
            notes.append(
                Finding.of(
                    "animals_frequent",
                    matrices=tuple(kind for kind, _, _ in real),
                    animals=tuple(str(animal) for _, animal, _ in real),
                    counts=tuple(int(facts["count"]) for _, _, facts in real),
                    expected=tuple(float(facts["expected"]) for _, _, facts in real),
                    p=tuple(float(facts["p"]) for _, _, facts in real),
                )
            )
    if not no_intervals:
        notes.append(Finding("intervals_of_similarity"))
    return notes
