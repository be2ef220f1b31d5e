"""Utility of anonymized speech: both sides are annotated by models, compared in pairs, and summed up."""

from __future__ import annotations

import hashlib
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
from veilmeter.data.corpus import Corpus, Utterance
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.matching import match_ids
from veilmeter.metrics.measure import MEASURES, compute_on_recording
from veilmeter.metrics.utility.labels import label_estimates
from veilmeter.metrics.utility.summary import ORIGINAL, UtilityTable, count_speech, pitch_correlation
from veilmeter.metrics.utility.words import TextErrors, count_errors, most_frequent, normalize_text
from veilmeter.results.model import Part
from veilmeter.speech.annotations import Annotated, Annotator, annotate_corpus, ratings, transcripts, voices
from veilmeter.speech.audio import AudioError, read_audio, read_header
from veilmeter.speech.recognizers.base import DEFAULT, Language, resolve_language

FULL_BAND = 16_000
LABELS = ("emotion",)  # attributes of an utterance, not of a person, that should survive
_RATED = ("mos", "dnsmos_sig", "dnsmos_bak", "dnsmos_ovr")
_LOOKED_AT = 20  # files whose rate is read from their headers

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilitySettings:
    """How utility is measured. At most `recordings` are annotated, and the quality of at most `rated` of them is
    estimated, which takes longest; they are spread evenly over people."""

    recognizer: str = DEFAULT
    language: str | None = None
    recordings: int = 100
    rated: int = 30
    groups: tuple[str, ...] = ("gender",)
    offline: bool = False


@dataclass(frozen=True, slots=True)
class _Side:
    """The annotations of one side."""

    words: Annotated
    voice: Annotated
    quality: Annotated | None


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
    """
    chosen = settings or UtilitySettings()
    tell, show, where = say or (lambda text: None), progress or (lambda done, total: None), engine or Here()
    pairs, unmatched = _pairs(original, anonymized)
    language = resolve_language(chosen.language, original.languages or anonymized.languages)
    texts = {pair[0].id: pair[0].text or pair[1].text for pair in pairs}
    with_text = [pair for pair in pairs if texts[pair[0].id]]
    from_corpus = 2 * len(with_text) >= len(pairs) and bool(with_text)
    pairs = spread_over_people(with_text if from_corpus else pairs, chosen.recordings)
    rated = spread_over_people(pairs, chosen.rated)
    tell(f"annotating {len(pairs)} recordings of each side: {chosen.recognizer}, language {language}")
    passes = 2 * (2 * len(pairs) + len(rated))  # both sides: words, voice, and quality of some
    models = _Models(chosen, language, where, lambda done: show(done, passes))
    before = models.annotate(original, [pair[0] for pair in pairs], [pair[0] for pair in rated])
    after = models.annotate(anonymized, [pair[1] for pair in pairs], [pair[1] for pair in rated])
    usable = [p for p in pairs if _is_annotated(before, p[0].id) and _is_annotated(after, p[1].id)]
    if not usable:
        raise InputError("no pair of recordings could be annotated", path=anonymized.root)
    table, counts = _table(usable, before, after, texts if from_corpus else None, language.code, chosen.groups)
    table = _with_added_measures(table, usable, where)
    estimates = table.estimates()
    if real_time_factor is not None:
        estimates += [MEASURES["real_time_factor"].estimate(real_time_factor, method="processor time over duration")]
    details = {
        "reference": "corpus" if from_corpus else "transcript of the original",
        "recognizer": {"name": chosen.recognizer, "version": before.words.version},
        "language": language.code,
        "language_from": language.source,
        "recordings": len(usable),
        "rated": len(rated),
        "available": len(unmatched.pop("matched")),
        "unmatched": {reason: len(ids) for reason, ids in unmatched.items()},
        "without_text": len(texts) - len(with_text) if from_corpus else 0,
        "people": table.people(),
        **counts,
    }
    without_text = details["without_text"]
    findings = [warning("recordings_without_text", count=without_text)] if without_text else []
    findings += _findings(usable, before, after, unmatched, counts)
    by = {name: table.by_group(name) for name in chosen.groups if any(table.groups.get(name, ()))}
    return Part(name="utility", estimates=estimates, by=by, details=details, findings=tuple(findings))


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


def spread_over_people(pairs: Sequence[tuple[Utterance, Utterance]], most: int) -> list[tuple[Utterance, Utterance]]:
    """At most `most` pairs, spread evenly over people, in the order of their ids; the same ones in every run."""
    if len(pairs) <= most:
        return list(pairs)
    rounds: dict[str, int] = {}
    placed = []
    for pair in sorted(pairs, key=lambda pair: _draw(pair[0].id)):
        number = rounds.get(pair[0].speaker, 0)
        rounds[pair[0].speaker] = number + 1
        placed.append((number, _draw(pair[0].speaker), pair))
    placed.sort(key=lambda entry: entry[:2])
    return sorted((pair for _, _, pair in placed[:most]), key=lambda pair: pair[0].id)


def _draw(name: str) -> str:
    """A key for an order unrelated to that of the names, as the first utterances may all be of one chapter."""
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()


class _Models:
    """The models, one after the other over both sides."""

    def __init__(
        self, settings: UtilitySettings, language: Language, engine: Engine, progress: Callable[[int], None]
    ) -> None:
        self._settings, self._language, self._engine, self._progress = settings, language, engine, progress
        self._done = 0  # recordings of the passes before

    def annotate(self, corpus: Corpus, utterances: Sequence[Utterance], to_rate: Sequence[Utterance]) -> _Side:
        offline = self._settings.offline
        part = corpus.take(u.id for u in utterances)
        words = self._annotate(part, transcripts(self._settings.recognizer, self._language.code, offline=offline))
        voice = self._annotate(part, voices(offline=offline))
        rated = corpus.take(u.id for u in to_rate)
        quality = self._annotate(rated, ratings(offline=offline)) if len(rated) else None
        return _Side(words, voice, quality)

    def _annotate(self, corpus: Corpus, load: Callable[[], Annotator]) -> Annotated:
        before = self._done
        annotated = annotate_corpus(
            corpus,
            annotation_folder(corpus),
            load,
            engine=self._engine,
            progress=lambda done, total: self._progress(before + done),
        )
        self._done += len(corpus)
        return annotated


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
    words_before = [normalize_text(_text(before, u.id), language) for u, _ in pairs]
    words_after = [normalize_text(_text(after, u.id), language) for _, u in pairs]
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


def _text(side: _Side, name: str) -> str:
    return str(side.words.by_id[name].values.get("text", ""))


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
    table: UtilityTable, pairs: Sequence[tuple[Utterance, Utterance]], engine: Engine
) -> UtilityTable:
    names = tuple(measure.name for measure in MEASURES.of_kind("recordings"))
    if not names:
        return table
    values = np.empty((len(pairs), len(names)))
    for number, row in engine.run(_AddedMeasures(names), pairs):
        values[number] = row
    numbers = {**table.numbers, **{name: values[:, column] for column, name in enumerate(names)}}
    return UtilityTable(
        table.speakers, table.errors, table.errors_original, numbers, table.by_chance, table.groups, table.methods
    )


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
