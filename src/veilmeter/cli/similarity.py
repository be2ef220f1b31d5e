"""`veilmeter similarity`: voice similarity matrices with DeID, G_VD, the zoo and sessions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veilmeter.cli import options
from veilmeter.cli.lists import numbers
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding, first_speakers, warning

if TYPE_CHECKING:
    from collections.abc import Mapping

    from veilmeter.core.engine import Engine
    from veilmeter.core.estimate import Estimate
    from veilmeter.data.embeddings import Embeddings
    from veilmeter.data.matching import Matched
    from veilmeter.metrics.similarity.matrices import Similarity
    from veilmeter.metrics.similarity.zoo import Zoo

SESSIONS = "Sessions"


def command(
    ctx: typer.Context,
    original: Annotated[
        Path, options.vectors(f"Embeddings of the original speech: {options.VECTOR_FORMATS}.")
    ],
    anonymized: Annotated[
        list[Path],
        options.vectors("Embeddings of the same utterances, anonymized. Give it once for each system to compare "
                        "several."),
    ],
    form: Annotated[
        str, typer.Option(help="geometric (Noé et al. 2022) or arithmetic (Noé et al. 2020) similarity.")
    ] = "geometric",
    pairs: Annotated[
        str, typer.Option(help="all ordered pairs of utterances, or vpc: later ones only, mirrored, as the challenge.")
    ] = "all",
    backend: Annotated[str, typer.Option(help="How two vectors are compared: cosine.")] = "cosine",
    per_speaker: Annotated[
        bool, typer.Option("--per-speaker", help="Show every speaker: whose diagonal stays, and their animal.")
    ] = False,
    sessions: Annotated[
        bool,
        typer.Option("--sessions", help="Also Linkability within a session, across sessions and to the original.",
                     rich_help_panel=SESSIONS),
    ] = False,
    session_column: Annotated[
        str | None,
        typer.Option(help="The column that says the session of an utterance (session).", rich_help_panel=SESSIONS),
    ] = None,
    speakers: Annotated[
        list[str] | None,
        options.several("N", "Linkability among so many enrolled speakers; several with commas.", SESSIONS),
    ] = None,
    length: Annotated[
        int | None, typer.Option(help="Utterances in a conversation (1).", min=1, rich_help_panel=SESSIONS)
    ] = None,
    strict: options.Strict = False,
    no_intervals: options.NoIntervals = False,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    figures: Annotated[
        Path | None, options.figures("the matrices, the zoo, the speakers and DeID against G_VD")
    ] = None,
    width: options.Width = None,
    font: options.Font = None,
    font_size: options.FontSize = None,
    json: options.Json = False,
    csv: options.Csv = False,
    markdown: options.Markdown = False,
    latex: options.Latex = False,
) -> None:  # fmt: skip
    """Compare all voices before and after: is the original speaker gone (DeID), do voices stay distinct (G_VD)?

    Scores of original against original (OO), original against protected (OP) and protected against protected (PP)
    voices are calibrated and averaged for each pair of speakers. D_diag is how far the diagonal stands out.

    Examples:

        veilmeter similarity --original xvect_libri_test_trials_f --anonymized xvect_libri_test_trials_f_anon

        veilmeter similarity --original o.npz --anonymized b1.npz --anonymized b2.npz --figures figures
    """
    from contextlib import closing

    from veilmeter.cli import given, vectors
    from veilmeter.cli.output import Page, chosen_form, emit, per_speaker_reason
    from veilmeter.cli.progress import shown
    from veilmeter.core.engine import open_engine

    output = chosen_form(json=json, csv=csv, markdown=markdown, latex=latex)
    setting = options.typesetting(figures, width, font, font_size)
    _check(form, pairs, backend)
    _refuse_without_sessions(sessions, {"session-column": session_column, "speakers": speakers, "length": length})
    from veilmeter.metrics.similarity.estimates import similarity_estimates
    from veilmeter.metrics.similarity.people import details_of, doubts_of

    counts = numbers(speakers, "--speakers") or None
    warnings: list[Finding] = []
    base, entry = vectors.read(original, warnings, strict=strict)
    names = _system_names(anonymized)
    inputs: dict[str, Any] = {"original": entry}
    matrices: dict[str, Similarity] = {}
    zoos: dict[str, dict[str, Zoo]] = {}
    estimates: list[dict[str, Estimate | list[Estimate]]] = []
    with closing(open_engine(jobs, cluster)) as engine:
        for name, path in zip(names, anonymized, strict=True):
            protected, entry = vectors.read(path, warnings, strict=strict)
            inputs[f"anonymized {name}" if len(names) > 1 else "anonymized"] = entry
            both, used = _matched(base, protected, warnings)
            with shown(f"comparing voices ({name})", unit="matrices", quiet=len(used.original) < 2500) as progress:
                similarities, animals = _matrices(used, form, pairs, not no_intervals, seed, progress, engine)
            matrices[name], zoos[name] = similarities, animals
            system = name if len(names) > 1 else None
            measured: dict[str, Estimate | list[Estimate]] = dict(
                similarity_estimates(similarities, system=system, backend=backend)
            )
            if sessions:
                column, utterances = session_column or "session", length or 1
                measured |= _sessions(both, column, counts, utterances, not no_intervals, seed, system, warnings)
            estimates.append(measured)
            warnings += doubts_of(similarities, name if len(names) > 1 else "")
    files = []
    if figures is not None:
        from veilmeter.report.figures.similarity import save_all

        files = save_all(matrices, zoos, estimates, figures, setting=setting)
    merged = _merged(estimates)
    unused = {
        "per_speaker": per_speaker_reason(output),
        "seed": "nothing was drawn at random" if no_intervals and not sessions else "",
    }
    warnings += given.without_effect(ctx, unused)
    more: dict[str, Any] = {"systems": {name: details_of(matrices[name], zoos[name]) for name in names}}
    if len(names) == 1:
        more = more["systems"][names[0]]
    page = Page(
        title=_title(matrices),
        estimates=merged,
        inputs=inputs | {"form": form, "pairs": pairs, "backend": backend, "seed": None if unused["seed"] else seed},
        warnings=warnings,
        notes=_notes(matrices, zoos, no_intervals, per_speaker),
        sections=SECTIONS,
        more=more,
        figures=files,
    )
    emit(page, output)


SECTIONS = {
    "Is the original speaker gone?": ["deid", "d_diag_op", "d_diag_op_modulus", "d_diag_op_log"],
    "Do the protected voices stay distinct?": ["g_vd", "d_diag_pp", "d_diag_pp_modulus", "d_diag_pp_log"],
    "How distinct were the original voices?": ["d_diag_oo", "d_diag_oo_modulus", "d_diag_oo_log"],
    "Do protected recordings link?": [
        "linkability_within_session", "linkability_across_sessions", "linkability_to_original",
    ],
}  # fmt: skip


def _check(form: str, pairs: str, backend: str) -> None:
    for value, known, option in (
        (form, ("geometric", "arithmetic"), "--form"),
        (pairs, ("all", "vpc"), "--pairs"),
        (backend, ("cosine",), "--backend"),
    ):
        if value not in known:
            raise InputError(f"{option} {value} is not known", fix=f"choose {' or '.join(known)}")


def _system_names(paths: list[Path]) -> list[str]:
    """The last part of each path that tells them apart."""
    for depth in (1, 2, 3, 4):
        names = ["/".join(_stem(path.resolve()).parts[-depth:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    if len({path.resolve() for path in paths}) < len(paths):
        raise InputError("the same anonymized set was given twice", path=paths[0])
    return [str(path) for path in paths]


def _stem(path: Path) -> Path:
    return path.with_suffix("") if path.suffix in (".npz", ".h5", ".hdf5", ".parquet", ".scp", ".ark") else path


def _matched(base: Embeddings, protected: Embeddings, warnings: list[Finding]) -> tuple[Matched, Matched]:
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
    used: Matched, form: str, pairs: str, intervals: bool, seed: int, progress: Any, engine: Engine
) -> tuple[Similarity, dict[str, Zoo]]:
    from veilmeter.metrics.similarity.matrices import KINDS, similarity
    from veilmeter.metrics.similarity.zoo import zoo

    matrices = similarity(
        used.original.vectors,
        used.anonymized.vectors,
        used.original.speakers,
        form=form,  # type: ignore[arg-type]
        pairs=pairs,  # type: ignore[arg-type]
        spreads=intervals,
        seed=seed,
        progress=progress,
        engine=engine,
    )
    return matrices, {kind: zoo(matrices.matrix(kind), matrices.names) for kind in KINDS}


def _refuse_without_sessions(sessions: bool, asked: Mapping[str, object]) -> None:
    given = [f"--{name}" for name, value in asked.items() if value is not None]
    if given and not sessions:
        raise InputError(f"{given[0]} has no effect without --sessions", fix="give --sessions too, or leave it out")


def _sessions(
    both: Matched,
    column: str,
    counts: list[int] | None,
    length: int,
    intervals: bool,
    seed: int,
    system: str | None,
    warnings: list[Finding],
) -> dict[str, list[Estimate]]:
    from veilmeter.data.embeddings import Embeddings
    from veilmeter.metrics.legal.sessions import linkability_by_session

    protected = both.anonymized
    if column not in protected.attributes and column in both.original.attributes:
        protected = Embeddings(  # the sessions are the same, wherever they are written down
            protected.vectors, protected.utterances, protected.speakers,
            {**protected.attributes, column: both.original.attributes[column]}, protected.durations, protected.source,
        )  # fmt: skip
    by_session = linkability_by_session(protected, both.original, length=length, column=column, seed=seed)
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
    at = {} if system is None else {"system": system}
    return {
        name: [estimate.with_(at={**at, **estimate.at}) for estimate in curve]
        for name, curve in by_session.estimates(counts, intervals=intervals).items()
    }


def _merged(parts: list[dict[str, Estimate | list[Estimate]]]) -> dict[str, Estimate | list[Estimate]]:
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
) -> list[str]:
    import numpy as np

    notes = []
    for name, similarities in matrices.items():
        own = similarities.per_speaker("OP")
        order = np.argsort(-own, kind="stable")
        animals = zoos[name]["OP"].animals
        rows = order if per_speaker else order[:3]
        who = ", ".join(f"{similarities.names[row]} ({own[row]:.3f}, {animals[row]})" for row in rows)
        title = "Diagonal that stays in OP, speaker by speaker" if per_speaker else "Whose diagonal stays most in OP"
        notes.append(f"{name + ': ' if len(matrices) > 1 else ''}{title}: {who}")
        real = [
            f"{int(facts['count'])} {animal}s in {kind} (chance {facts['expected']:.1f}, p {facts['p']:.2g})"
            for kind in ("OO", "OP", "PP")
            for animal, facts in zoos[name][kind].corners().items()
            if facts["p"] < 0.01
        ]
        if real:
            notes.append(f"Animals more frequent than chance: {'; '.join(real)}")
    if not no_intervals:
        notes.append(
            "95 % intervals leave each speaker in turn out of calibration and matrices; they cover the choice of "
            "speakers, not a second run of the anonymizer. Chance: the same scores with permuted speakers."
        )
    return notes
