"""assess(): every option of an assessment as a parameter. `make reference` writes its signature from the declarations
in `settings.py`, and a test compares the two."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Never

from veilmeter.assessment.run import run_assessment
from veilmeter.assessment.settings import MEASURES, Settings
from veilmeter.attacks.attacker import Attacker
from veilmeter.core.options import options_of, refuse_unknown_options
from veilmeter.data.corpus import Corpus
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.measure import Measure
from veilmeter.results.run_folder import Assessment

# Speech of one role: a path, a corpus, embeddings, a frame, arrays that say who speaks, or a list of these.
Speech = str | Path | Corpus | Embeddings | tuple[Any, ...] | Sequence[Any] | Any
Code = str | Callable[..., Any] | Any  # a name, file.py:name, a function or an object

# --- written by `make reference`


def assess(
    original: Speech = None,
    anonymized: Speech = None,
    *,
    attacker_run: Speech = None,
    train_original: Speech = None,
    train_anonymized: Speech = None,
    train_similar: Speech = None,
    distractors: Speech = None,
    distractors_original: Speech = None,
    suffix: str | None = None,
    enroll: str | Sequence[str] = (),
    trials: str | Sequence[str] = (),
    segments: float = 4.0,
    system: Code | None = None,
    option: str | Sequence[str] = (),
    command: str | None = None,
    system_runs: int | None = None,
    attackers: str | Attacker | Sequence[str | Attacker | type[Attacker]] | Mapping[str, Any] | None = None,
    extractor: Code | Sequence[Code] = ("campplus",),
    backend: str = "cosine",
    adaptation: str = "backend",
    adapted_backend: str = "lda",
    network: Code | None = None,
    epochs: int = 5,
    tuning: str | Sequence[str] = (),
    folds: int = 5,
    measures: str | Measure | Sequence[str | Measure] = MEASURES,
    eer_method: str = "rocch",
    lengths: int | Sequence[int] = (1, 3, 30),
    speakers: str | int | Sequence[int] = (),
    population: int | Sequence[int] = (),
    by: str | Sequence[str] | None = None,
    attributes: str | Sequence[str] | None = None,
    recognizer: Code | None = None,
    language: str | None = None,
    utility: bool = True,
    utility_precision: float = 3.0,
    utility_budget: float | None = None,
    utility_recordings: int | None = None,
    utility_rated: int | None = None,
    weak_attacker: float | str = 15.0,
    precision: float | str = 10.0,
    release_size: int | None = None,
    candidates: int | None = None,
    threshold: float | str | None = None,
    title: str = "",
    system_name: str = "",
    assessor: str = "",
    notice: str = "",
    annex: Mapping[str, Any] | None = None,
    recipients: Sequence[Mapping[str, Any]] | None = None,
    seed: int = 0,
    resamples: int = 1000,
    intervals: bool = True,
    offline: bool = False,
    device: str = "auto",
    strict: bool = False,
    layout: str | None = None,
    part: str | None = None,
    root: str | Sequence[str] = (),
    columns: str | Sequence[str] = (),
    channel: str | None = None,
    out: str | Path | None = None,
    jobs: int = 1,
    cluster: str | None = None,
    **unknown: Never,
) -> Assessment:
    """Assess an anonymizer from original and anonymized speech of the same utterances.

    Every attacker tries to recognize people in the anonymized speech, and every measure is reported for each of them,
    the worst case first. The options are those of `veilmeter assess`, by the same names.

    Parameters
    ----------
    original : path, Corpus, Embeddings, arrays, or a list of these, optional
        Original speech: audio or embeddings, one or several.
    anonymized : path, Corpus, Embeddings, arrays, or a list of these, optional
        The same utterances anonymized, one or several.
    attacker_run : path, Corpus, Embeddings, arrays, or a list of these, optional
        The attacker's own run of the same anonymizer. Without a manifest, DRAW says what one draw covers: per-speaker
        or per-utterance.
    train_original : path, Corpus, Embeddings, arrays, or a list of these, optional
        Original speech of other people.
    train_anonymized : path, Corpus, Embeddings, arrays, or a list of these, optional
        Speech of other people anonymized by the same system: trains the informed attacker.
    train_similar : path, Corpus, Embeddings, arrays, or a list of these, optional
        Speech of other people anonymized by a similar system: trains the semi-informed attacker.
    distractors : path, Corpus, Embeddings, arrays, or a list of these, optional
        Anonymized speech of further people who are enrolled but never tried; with --vpc the name of a folder, such as
        train-clean-360.
    distractors_original : path, Corpus, Embeddings, arrays, or a list of these, optional
        The same speech of the --distractors, original.
    suffix : str, optional
        Anonymized variant (_anon...) where a folder of VoicePrivacy data holds several.
    enroll : str or Sequence[str]
        List of the enrollment utterances.
    trials : str or Sequence[str]
        List of the trial utterances, or a trial key.
    segments : float
        Length in seconds of the pieces into which training speech is cut.
    system : str, function or object, optional
        Let the attackers run this anonymizer (see `anonymize`); without --anonymized it also makes the release.
    option : str or Sequence[str]
        Option passed to the system.
    command : str, optional
        Program to run as the system, such as 'myanon {input} {output}'.
    system_runs : int, optional
        Runs of the system that the attackers make.
    attackers : str or Attacker or Sequence[str or Attacker or type[Attacker]] or Mapping[str, Any], optional
        Attackers to run (see `veilmeter attackers`).
    extractor : str, function, object, or a list of these
        Extractors, each used alone and all together (names: `veilmeter embed --help`).
    backend : str
        Back end of attackers that are not adapted: cosine, centered-cosine, cosine:best or cosine:normalized.
    adaptation : str
        Part that adapted attackers train: backend, or finetune (needs audio).
    adapted_backend : str
        Back end of adapted attackers: lda or plda.
    network : str, function or object, optional
        Network to train: campplus, ecapa, ecapa:scratch, vpc2026:FOLDER (a WavLM model) or module:function.
    epochs : int
        Epochs of fine-tuning.
    tuning : str or Sequence[str]
        Further settings of fine-tuning, such as batch=256 or learning_rate=0.001.
    folds : int
        Folds of the cross-validation where no training speech is given.
    measures : str or Measure or Sequence[str or Measure]
        Families of measures, single measures of scores, embeddings or recordings, or file.py:name for your own.
    eer_method : str
        rocch (convex hull of the ROC), roc (scikit-learn's), interpolated, or speechbrain (VoicePrivacy's rule).
    lengths : int or Sequence[int]
        Utterances in a conversation.
    speakers : str or int or Sequence[int]
        Numbers of people for curves, or `all` for every number in exact curves.
    population : int or Sequence[int]
        Population sizes to which Linkability is extrapolated.
    by : str or Sequence[str], optional
        Also measure within each value of this attribute; of several, also of all together.
    attributes : str or Sequence[str], optional
        Attributes to infer.
    recognizer : str, function or object, optional
        Recognizer whose transcripts measure utility (see `transcribe`).
    language : str, optional
        Language of the speech, such as de, or auto to have it recognized by Whisper.
    utility : bool
        If False: Do not measure utility.
    utility_precision : float
        Stop measuring utility when the word error rate is known within this many percentage points.
    utility_budget : float, optional
        Processor seconds to spend on utility, on an ordinary core.
    utility_recordings : int, optional
        Fixed number of recordings that utility is measured on.
    utility_rated : int, optional
        Fixed number of recordings among them that are rated for their quality.
    weak_attacker : float or str
        Highest EER on original speech, in percent, at which an attacker is trusted.
    precision : float or str
        Precision, in percentage points, that a linking rate needs for the verdict to rely on it.
    release_size : int, optional
        People in the real release.
    candidates : int, optional
        People of whom an attacker has recordings; more than were assessed are extrapolated.
    threshold : float or str, optional
        Accepted risk of being linked (9%, say), chosen before the results are seen.
    title : str
        Title of the report.
    system_name : str
        Name of the anonymizer in the report, with its version.
    assessor : str
        Name of the assessor, for the report.
    notice : str
        Remark at the top of the report, such as DRAFT.
    annex : Mapping[str, Any], optional
        Entries of the annex: a table [annex].
    recipients : Sequence[Mapping[str, Any]], optional
        Recipients of the speech, with what they have: tables [[recipients]].
    seed : int
        Random seed.
    resamples : int
        Bootstrap resamples for the intervals.
    intervals : bool
        If False: Compute the values without intervals, which is faster.
    offline : bool
        Fetch nothing, not even an extractor's weights.
    device : str
        Device that models run on: auto (a GPU if there is one), cpu or cuda.
    strict : bool
        Stop at the first recording or vector that can't be used, instead of leaving it out.
    layout : str, optional
        Layout of the corpus on disk, if it is not recognized: folder, kaldi, vpc, csv, ...
    part : str, optional
        Part of the corpus: test-clean, test, libri_test, mic1, ...
    root : str or Sequence[str]
        Additional folder that may hold audio. Kaldi folders may refer to audio in these folders only.
    columns : str or Sequence[str]
        Names of the columns of a table, as in path=audio_path,speaker=speaker_id.
    channel : str, optional
        Channel to use if channels differ: a number from 0, or mix for their mean.
    out : str or Path, optional
        Folder for results and report; an interrupted run continues there. Without one, everything is in memory.
    jobs : int
        Processes on this machine. Results do not depend on it.
    cluster : str, optional
        Dask cluster to run on: tcp://host:8786, `local`, or slurm, oar, pbs.

    Returns
    -------
    Assessment
        The results, with `verdict`, `people`, `to_frame()` and `report()`.

    Raises
    ------
    InputError
        If an input can't be read or an option is unknown or out of bounds; it says what is wrong and how to fix it.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> voices, names = np.repeat(rng.normal(size=(12, 8)), 4, axis=0), [f"s{row // 4}" for row in range(48)]
    >>> run = assess((voices + 0.1 * rng.normal(size=(48, 8)), names), (rng.normal(size=(48, 8)), names),
    ...              attackers=["ignorant"], measures=["eer", "linkability"], intervals=False)
    >>> run.attackers["ignorant"].estimates["eer"].unit
    'percent'
    """
    refuse_unknown_options(unknown, options_of(Settings))
    return run_assessment(
        original,
        anonymized,
        attacker_run=attacker_run,
        train_original=train_original,
        train_anonymized=train_anonymized,
        train_similar=train_similar,
        distractors=distractors,
        distractors_original=distractors_original,
        suffix=suffix,
        enroll=enroll,
        trials=trials,
        segments=segments,
        system=system,
        option=option,
        command=command,
        system_runs=system_runs,
        attackers=attackers,
        extractor=extractor,
        backend=backend,
        adaptation=adaptation,
        adapted_backend=adapted_backend,
        network=network,
        epochs=epochs,
        tuning=tuning,
        folds=folds,
        measures=measures,
        eer_method=eer_method,
        lengths=lengths,
        speakers=speakers,
        population=population,
        by=by,
        attributes=attributes,
        recognizer=recognizer,
        language=language,
        utility=utility,
        utility_precision=utility_precision,
        utility_budget=utility_budget,
        utility_recordings=utility_recordings,
        utility_rated=utility_rated,
        weak_attacker=weak_attacker,
        precision=precision,
        release_size=release_size,
        candidates=candidates,
        threshold=threshold,
        title=title,
        system_name=system_name,
        assessor=assessor,
        notice=notice,
        annex=annex,
        recipients=recipients,
        seed=seed,
        resamples=resamples,
        intervals=intervals,
        offline=offline,
        device=device,
        strict=strict,
        layout=layout,
        part=part,
        root=root,
        columns=columns,
        channel=channel,
        out=out,
        jobs=jobs,
        cluster=cluster,
    )


# --- end
