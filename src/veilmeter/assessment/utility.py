"""Utility of anonymized speech: both sides are annotated by models, compared in pairs, and summed up."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.assessment.extraction import annotation_folder
from veilmeter.core.engine import Engine, Here, Progress, Say
from veilmeter.core.errors import InputError, Problem
from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import Finding, Reference, warning
from veilmeter.core.intervals import LEVEL, cluster_interval, look_levels
from veilmeter.data.corpus import Corpus, Utterance
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.matching import match_ids
from veilmeter.metrics.measure import MEASURES, compute_on_recording
from veilmeter.metrics.utility.labels import label_estimates
from veilmeter.metrics.utility.summary import ORIGINAL, UtilityTable, count_speech, pitch_correlation
from veilmeter.metrics.utility.words import TextErrors, count_errors, most_frequent, normalize_text, rate_with_interval
from veilmeter.results.model import Part
from veilmeter.speech.annotations import Annotated, Annotator, annotate_corpus, ratings, transcripts, voices
from veilmeter.speech.audio import AudioError, read_audio, read_header, read_seconds
from veilmeter.speech.recognizers.base import DEFAULT, recognizer_cost
from veilmeter.speech.recognizers.languages import Language, default_recognizer, language_of, refuse_other_language

FULL_BAND = 16_000
LABELS = ("emotion",)  # attributes of an utterance, not of a person, that should survive
_RATED = ("mos", "dnsmos_sig", "dnsmos_bak", "dnsmos_ovr")
_LOOKED_AT = 20  # files whose rate is read from their headers

Numbers = NDArray[np.float64]


BUDGET = 60.0  # processor seconds
PRECISION = 3.0  # percentage points of the word error rate, to either side
_MOS_PRECISION = 1 / 30  # of that of the word error rate: 0.1 by default
_FIRST_LOOK, _FIRST_RATED = 20, 10  # pairs; looks follow at twice as many, and twice that
_FEWEST = 2  # pairs, however small the budget
_RATED_SHARE = 0.3  # of a number of recordings that was given
# Processor seconds on an ordinary core, of which the budget is counted: not those of this machine, so that the same
# recordings are measured everywhere.
_VOICE_COST, _RATING_COST, _LEAST_RATING = 0.008, 0.15, 0.7  # per second of speech; of any recording
_USUAL_SECONDS = 10.0  # of a recording whose header does not say


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilitySettings:
    """How utility is measured: on pairs in a random order that is balanced over people, until the intervals of the word
    error rate (to either side within `precision` percentage points) and of MOS (within a thirtieth of that) are narrow
    enough, or the `budget` of processor seconds ends. `recordings` and `rated` fix how many pairs are
    annotated, and how many of them are rated for their quality."""

    recognizer: str | None = None  # by default one that knows the language
    language: str | None = None
    recordings: int | None = None
    rated: int | None = None
    precision: float = PRECISION
    budget: float = BUDGET
    groups: tuple[str, ...] = ("gender",)
    offline: bool = False
    measures: tuple[str, ...] = ()  # of recordings that are measured on request only


@dataclass(frozen=True, slots=True)
class _Side:
    """The annotations of one side."""

    words: Annotated
    voice: Annotated
    quality: Annotated | None


Pairs = Sequence[tuple[Utterance, Utterance]]


@dataclass(frozen=True, slots=True)
class Looks:
    """How many pairs are annotated before each look at the interval, and the level of the interval at that look."""

    sizes: tuple[int, ...]
    levels: tuple[float, ...]
    fixed: bool  # by a number that was given

    @classmethod
    def at(cls, sizes: Sequence[int], *, fixed: bool = False) -> Looks:
        return cls(tuple(sizes), tuple(look_levels(sizes)) if sizes else (), fixed)

    @property
    def most(self) -> int:
        return self.sizes[-1] if self.sizes else 0


def plan_looks(pairs: Pairs, settings: UtilitySettings) -> tuple[Looks, Looks]:
    """The looks for words, and those for quality. Each has half of the budget."""
    words = recognizer_cost(settings.recognizer or DEFAULT) + _VOICE_COST
    plans = []
    for fixed, share, first, cost, least in (
        (settings.recordings, 1.0, _FIRST_LOOK, words, 0.0),
        (settings.rated, _RATED_SHARE, _FIRST_RATED, _RATING_COST, _LEAST_RATING),
    ):
        if fixed is None and settings.recordings is not None:
            fixed = math.ceil(share * settings.recordings)
        spent, count = 0.0, 0
        while count < len(pairs) and (
            spent <= settings.budget / 2 or count < _FEWEST if fixed is None else count < fixed
        ):
            spent += sum(max(least, cost * header_seconds(utterance)) for utterance in pairs[count])
            count += 1
        if fixed is not None:
            plans.append(Looks.at([count] if count else [], fixed=True))
            continue
        # A look shortly before the last one would spend most of the error and save little.
        sizes = [first * 2**step for step in range(32) if first * 2**step <= count / 2]
        plans.append(Looks.at([*sizes, count]))
    return plans[0], plans[1]


def utility_cost(pairs: int, seconds: float, settings: UtilitySettings) -> float:
    """About how long an ordinary core takes at most, for so many pairs of so many seconds of speech together."""
    if not pairs:
        return 0.0
    fixed, total = settings.recordings, 0.0
    rated = math.ceil(_RATED_SHARE * fixed) if settings.rated is None and fixed is not None else settings.rated
    for number, cost, least in (
        (fixed, recognizer_cost(settings.recognizer or DEFAULT) + _VOICE_COST, 0.0),
        (rated, _RATING_COST, _LEAST_RATING),
    ):
        pair = max(2 * least, cost * seconds / pairs)
        total += min(pairs * pair, settings.budget / 2) if number is None else min(pairs, number) * pair
    return total


def header_seconds(utterance: Utterance) -> float:
    """The duration, as the list or the file's header says."""
    stretch = utterance.stretch
    if stretch.end is not None:
        return stretch.end - stretch.start
    return max(0.0, (read_seconds(utterance.path) or _USUAL_SECONDS) - stretch.start)


def measure_utility(
    original: Corpus,
    anonymized: Corpus,
    settings: UtilitySettings | None = None,
    *,
    engine: Engine | None = None,
    say: Say | None = None,
    progress: Progress | None = None,
    real_time_factor: float | None = None,
) -> Part:
    """Words, quality, melody and timing of anonymized speech, paired by utterance with the original.

    The cache keeps annotations by corpus and model, so that the originals are annotated once for many systems.

    Parameters
    ----------
    original, anonymized : Corpus
        The same recordings before and after.
    settings : UtilitySettings, optional
        Recognizer, language, number of recordings.
    engine : Engine, optional
        Where the work is done; by default in this process.
    say, progress : callable, optional
        Called with what is done, and with how much of it.
    real_time_factor : float, optional
        Processor seconds per second of speech of the anonymizer.

    Returns
    -------
    Part
        `estimates` such as `wer` and `mos`, `by` group, and `details` per person.

    Raises
    ------
    InputError
        If no pair of recordings can be annotated.

    Examples
    --------
    >>> measure_utility(read_corpus("speech/"), read_corpus("protected/")).estimates["wer"]  # doctest: +SKIP
    """
    chosen = settings or UtilitySettings()
    tell, where = say or (lambda text: None), engine or Here()
    pairs, unmatched = _pairs(original, anonymized)
    named = original if original.languages or not anonymized.languages else anonymized
    language = language_of(named, chosen.language, offline=chosen.offline)
    recognizer = chosen.recognizer or default_recognizer(language.code)
    chosen = replace(chosen, recognizer=recognizer)
    texts = {pair[0].id: pair[0].text or pair[1].text for pair in pairs}
    with_text = [pair for pair in pairs if texts[pair[0].id]]
    from_corpus = 2 * len(with_text) >= len(pairs) and bool(with_text)
    ordered = order_over_people(with_text if from_corpus else pairs)
    looks = plan_looks(ordered, chosen)
    tell(f"annotating up to {looks[0].most} recordings of each side: {recognizer}, language {language}")
    session = _Session(original, anonymized, chosen, language, where, texts if from_corpus else None)
    session.annotate(ordered, looks, progress or (lambda done, total: None))
    usable, before, after = session.usable, session.before, session.after
    if not usable:
        raise InputError("no pair of recordings could be annotated", path=anonymized.root)
    confidences = [before.words.by_id[pair[0].id].values.get("confidence") for pair in usable]
    refuse_other_language(language, recognizer, confidences, original)
    table, counts = _table(usable, before, after, session.texts, language.code, chosen.groups)
    table = replace(table, level=session.level, levels=dict.fromkeys(_RATED, session.rated_level))
    table = _with_added_measures(table, usable, where, chosen.measures)
    estimates = table.estimates()
    if real_time_factor is not None:
        estimates += [MEASURES["real_time_factor"].estimate(real_time_factor, method="processor time over duration")]
    details = {
        "reference": "corpus" if from_corpus else "transcript of the original",
        "recognizer": {"name": recognizer, "version": before.words.version},
        "language": language.code,
        "language_from": language.source,
        "recordings": len(usable),
        "rated": session.rated,
        "available": len(unmatched.pop("matched")),
        "unmatched": {reason: len(ids) for reason, ids in unmatched.items()},
        "without_text": len(texts) - len(with_text) if from_corpus else 0,
        "looks": {"words": _look_facts(looks[0], session.level), "quality": _look_facts(looks[1], session.rated_level)},
        "people": table.people(),
        **counts,
    }
    without_text = details["without_text"]
    findings = [warning("recordings_without_text", count=without_text)] if without_text else []
    findings += [warning("language_assumed", language=language.code)] if language.source == "assumed" else []
    findings += _findings(usable, before, after, unmatched, counts)
    by = {name: table.by_group(name) for name in chosen.groups if any(table.groups.get(name, ()))}
    return Part(name="utility", estimates=estimates, by=by, details=details, findings=tuple(findings))


def _look_facts(looks: Looks, level: float) -> dict[str, Any]:
    """The planned looks, and the level of the intervals at the last one that was needed."""
    return {"planned": list(looks.sizes), "fixed": looks.fixed, "level": level}


def utility_limits(part: Part) -> dict[str, bool]:
    """Whether the measurement of utility could stop before its end, and whether its budget ended it."""
    looks = part.details["looks"]
    planned = [looks[name]["planned"] for name in looks if not looks[name]["fixed"]]
    return {
        "could_stop": any(len(sizes) > 1 for sizes in planned),
        "is_cut": any(sizes[-1] < part.details["available"] for sizes in planned),
    }


def _pairs(original: Corpus, anonymized: Corpus) -> tuple[list[tuple[Utterance, Utterance]], dict[str, list[str]]]:
    """The utterances of both sides by id, and the ids that have no partner. Speakers are those of the original."""
    partner = match_ids([u.id for u in original], [u.id for u in anonymized]).partner
    if not partner:
        raise InputError(
            f"no recording of {original.root} has a partner: it has ids such as {original.utterances[0].id!r}, this "
            f"one such as {anonymized.utterances[0].id!r}",
            path=anonymized.root,
            fix="an anonymized recording keeps the utterance id of its original",
        )
    reached = set(partner.values())
    unmatched = {
        "matched": list(partner),
        "only_original": [u.id for u in original if u.id not in partner],
        "only_anonymized": [u.id for u in anonymized if u.id not in reached],
    }
    return [(original.by_id[name], anonymized.by_id[other]) for name, other in partner.items()], unmatched


def order_over_people(pairs: Pairs) -> list[tuple[Utterance, Utterance]]:
    """In a random order, the same one in every run, in which everybody has had a turn before anybody has another."""
    rounds: dict[str, int] = {}
    placed = []
    for pair in sorted(pairs, key=lambda pair: _draw(pair[0].id)):
        number = rounds.get(pair[0].speaker, 0)
        rounds[pair[0].speaker] = number + 1
        placed.append((number, _draw(pair[0].speaker), pair))
    placed.sort(key=lambda entry: entry[:2])
    return [pair for _, _, pair in placed]


def _draw(name: str) -> str:
    """A key for an order unrelated to that of the names, as the first utterances may all be of one chapter."""
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()


class _Session:
    """Both sides annotated by the models, look by look, until the intervals are narrow enough."""

    def __init__(
        self,
        original: Corpus,
        anonymized: Corpus,
        settings: UtilitySettings,
        language: Language,
        engine: Engine,
        texts: Mapping[str, str] | None,
    ) -> None:
        self._corpora = (original, anonymized)
        self._settings, self._language, self._engine = settings, language, engine
        self.texts = texts
        self.usable: list[tuple[Utterance, Utterance]] = []
        self.level = self.rated_level = LEVEL
        self.rated = 0
        self._show: Callable[[int], None] = lambda done: None

    def annotate(self, ordered: Pairs, looks: tuple[Looks, Looks], show: Progress) -> None:
        """Annotate the pairs in their order until a look is precise enough, or the last one."""
        words, rated = looks
        total = 4 * words.most + 2 * rated.most  # both sides: words, voice, and quality of some
        self._show = lambda done: show(done, total)
        settings, offline = self._settings, self._settings.offline
        load_words = transcripts(settings.recognizer or DEFAULT, self._language.code, offline=offline)
        for size, level in zip(words.sizes, words.levels, strict=True):
            pairs, self.level = ordered[:size], level
            heard = [self._annotate(side, pairs, load_words, side * size) for side in (0, 1)]
            if size == words.most or self._known_words(pairs, heard, level):
                break
        spoken = [
            self._annotate(side, pairs, voices(offline=offline), 2 * words.most + side * len(pairs)) for side in (0, 1)
        ]
        rates: list[Annotated | None] = [None, None]
        for size, level in zip(rated.sizes, rated.levels, strict=True):
            self.rated, self.rated_level = min(size, len(pairs)), level
            done = 4 * words.most
            rates = [
                self._annotate(side, pairs[:size], ratings(offline=offline), done + side * size) for side in (0, 1)
            ]
            if size >= len(pairs) or self._is_known_quality(pairs[:size], rates[1], level):
                break
        self._show(total)
        self.before, self.after = (_Side(heard[side], spoken[side], rates[side]) for side in (0, 1))
        shown = [p for p in pairs if _is_annotated(self.before, p[0].id) and _is_annotated(self.after, p[1].id)]
        self.usable = sorted(shown, key=lambda pair: pair[0].id)

    def _annotate(self, side: int, pairs: Pairs, load: Callable[[], Annotator], before: int) -> Annotated:
        """One model over one side; `before` is how much of all work was done before."""
        corpus = self._corpora[side].take(pair[side].id for pair in pairs)
        return annotate_corpus(
            corpus,
            annotation_folder(corpus),
            load,
            engine=self._engine,
            progress=lambda done, total: self._show(before + done),
        )

    def _known_words(self, pairs: Pairs, heard: Sequence[Annotated], level: float) -> bool:
        """Whether the interval of the word error rate is narrow enough."""
        both = [pair for pair in pairs if all(pair[side].id in heard[side].by_id for side in (0, 1))]
        texts = [_texts([pair[side].id for pair in both], heard[side], self._language.code) for side in (0, 1)]
        if self.texts is not None:
            texts[0] = [normalize_text(self.texts[pair[0].id], self._language.code) for pair in both]
        errors = _without_wordless(count_errors(texts[0], texts[1]), texts[0])
        if not errors.words.sum():
            return False
        speakers = [pair[0].speaker for pair in both]
        _, interval = rate_with_interval(errors.word_errors, errors.words, speakers, level=level)
        return interval is not None and (interval[1] - interval[0]) / 2 <= self._settings.precision

    def _is_known_quality(self, pairs: Pairs, rates: Annotated | None, level: float) -> bool:
        """Whether the interval of the predicted quality is narrow enough."""
        values = _column(rates, [pair[1].id for pair in pairs], "mos")
        known = np.isfinite(values)
        if not known.any():
            return False
        low, high = cluster_interval(values[known], np.array([pair[0].speaker for pair in pairs])[known], level=level)
        return (high - low) / 2 <= self._settings.precision * _MOS_PRECISION


def _is_annotated(side: _Side, name: str) -> bool:
    return name in side.words.by_id and name in side.voice.by_id


def _table(
    pairs: Sequence[tuple[Utterance, Utterance]],
    before: _Side,
    after: _Side,
    texts: Mapping[str, str] | None,
    language: str,
    groups: Iterable[str],
) -> tuple[UtilityTable, dict[str, Any]]:
    """One row per pair, and details: counts of recordings without speech, and substituted words."""
    words_before = _texts([u.id for u, _ in pairs], before.words, language)
    words_after = _texts([u.id for _, u in pairs], after.words, language)
    references = words_before if texts is None else [normalize_text(texts[u.id], language) for u, _ in pairs]
    silent = [after.words.by_id[u.id].silent for _, u in pairs]
    errors = _without_wordless(count_errors(references, words_after), references)
    errors_original = None if texts is None else _without_wordless(count_errors(references, words_before), references)
    numbers, by_chance = _numbers(pairs, before, after)
    names = [u.speaker for u, _ in pairs]
    values = {name: tuple(_attribute(u, name) for u, _ in pairs) for name in groups}
    recognizer = before.words.annotator.removeprefix("transcripts-")
    reference = "the corpus's text" if texts is not None else "its own transcript of the original"
    methods = {
        "words": f"{recognizer} against {reference}",
        "mos": "Distill-MOS, mean over recordings",
        **dict.fromkeys(_RATED[1:], "DNSMOS P.835, mean over recordings"),
        "pitch_correlation": "SwiftF0, best lag, mean over recordings",
    }
    table = UtilityTable(tuple(names), errors, errors_original, numbers, by_chance, values, methods)
    facts = {
        "speech": count_speech(references, words_after, words_before, silent).to_json(),
        "substitutions": most_frequent(errors.substitutions),
        "deleted_words": int(errors.deletions.sum()),
        "inserted_words": int(errors.insertions.sum()),
    }
    return table, facts


def _texts(names: Sequence[str], heard: Annotated, language: str) -> list[str]:
    return [normalize_text(str(heard.by_id[name].values.get("text", "")), language) for name in names]


def _attribute(utterance: Utterance, name: str) -> str:
    plain = {"gender": utterance.gender, "session": utterance.session}
    return plain.get(name) or utterance.attributes.get(name, "")


def _without_wordless(errors: TextErrors, references: Sequence[str]) -> TextErrors:
    """The errors without those of rows whose reference has no words."""
    has_words = np.array([bool(text) for text in references])
    return TextErrors(
        errors.words,
        np.where(has_words, errors.word_errors, 0),
        np.where(has_words, errors.deletions, 0),
        np.where(has_words, errors.insertions, 0),
        errors.characters,
        np.where(has_words, errors.character_errors, 0),
        errors.substitutions,
    )


def _numbers(
    pairs: Sequence[tuple[Utterance, Utterance]], before: _Side, after: _Side
) -> tuple[dict[str, Numbers], dict[str, Numbers]]:
    """A column per measure, NaN where a recording has none; and what recordings give that do not belong together."""
    columns: dict[str, Numbers] = {}
    for name in _RATED:
        columns[name] = _column(after.quality, [u.id for _, u in pairs], name)
        columns[name + ORIGINAL] = _column(before.quality, [u.id for u, _ in pairs], name)
    tracks = [before.voice.by_id[u.id].values.get("pitch", ()) for u, _ in pairs]
    others = [after.voice.by_id[u.id].values.get("pitch", ()) for _, u in pairs]
    columns["pitch_correlation"] = _correlations(tracks, others)
    # One place on: recordings that have nothing to do with each other, at the same lags.
    by_chance = {"pitch_correlation": _correlations(tracks, others[1:] + others[:1])} if len(pairs) > 1 else {}
    seconds = [(before.voice.by_id[u.id].record.seconds, after.voice.by_id[v.id].record.seconds) for u, v in pairs]
    columns["duration_ratio"] = np.array([after / before if before else np.nan for before, after in seconds])
    columns["level_difference"] = _column(after.voice, [u.id for _, u in pairs], "level") - _column(
        before.voice, [u.id for u, _ in pairs], "level"
    )
    return columns, by_chance


def _column(side: Annotated | None, names: Sequence[str], value: str) -> Numbers:
    known = {} if side is None else side.by_id
    return np.array([float(known[n].values.get(value, np.nan)) if n in known else np.nan for n in names])


def _correlations(tracks: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> Numbers:
    return np.array(
        [pitch_correlation(x, y) if len(x) and len(y) else np.nan for x, y in zip(tracks, others, strict=True)]
    )


def with_labels(utility: Part, original: Embeddings, anonymized: Embeddings) -> Part:
    """With how well labels per utterance can still be told, where the corpus has such and enough people have them."""
    points: list[Estimate] = []
    findings = list(utility.findings)
    for name in LABELS:
        if name in original.attributes:
            try:
                points += label_estimates(original, anonymized, name)
            except InputError as error:
                column = Reference("attribute", name)
                findings.append(warning("labels_not_measured", label=column, reason=Reference("text", error.what)))
    return replace(utility, estimates=utility.estimates + points, findings=tuple(findings))


# --- measures that other packages add for recordings


@dataclass(frozen=True, slots=True)
class _AddedMeasures:
    """The engine's task: the values of added measures for a pair of recordings, NaN where one can't be read."""

    names: tuple[str, ...]

    def __call__(self, pair: tuple[Utterance, Utterance]) -> list[float]:
        try:
            before, after = (read_audio(u.path, stretch=u.stretch, allow=("short", "silent")) for u in pair)
        except AudioError:
            return [float("nan")] * len(self.names)
        return [compute_on_recording(MEASURES[name], before, after, FULL_BAND) for name in self.names]


def _with_added_measures(
    table: UtilityTable, pairs: Sequence[tuple[Utterance, Utterance]], engine: Engine, asked: Sequence[str]
) -> UtilityTable:
    names = tuple(measure.name for measure in MEASURES.of_kind("recordings", asked))
    if not names:
        return table
    values = np.empty((len(pairs), len(names)))
    for number, row in engine.run(_AddedMeasures(names), pairs):
        values[number] = row
    numbers = {**table.numbers, **{name: values[:, column] for column, name in enumerate(names)}}
    return replace(table, numbers=numbers)


def _findings(
    pairs: Sequence[tuple[Utterance, Utterance]],
    before: _Side,
    after: _Side,
    unmatched: Mapping[str, Sequence[str]],
    counts: Mapping[str, Any],
) -> list[Finding]:
    """Caveats about the figures."""
    findings = []
    if count := len(unmatched["only_original"]):
        findings.append(warning("originals_without_partner", count=count))
    if silent := counts["speech"]["silent"]:
        findings.append(warning("recordings_silent", count=silent))
    problems: list[Problem] = [*before.words.skipped, *after.words.skipped]
    if problems:
        first = Reference("text", str(problems[0]))
        findings.append(warning("recordings_not_heard", count=len(problems), example=first))
    rates = {header[0] for pair in pairs[:_LOOKED_AT] for u in pair if (header := read_header(u.path))}
    narrow = sorted(rate for rate in rates if rate < FULL_BAND)
    if narrow:
        findings.append(warning("recordings_narrow_band", rate=narrow[0]))
    return findings
