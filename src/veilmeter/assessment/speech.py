"""Speech of one role: its sources, its vectors, and the recordings that could not be assessed.

Paths, lists and ids are checked before the first recording is read: lists take seconds, recordings may take hours.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from veilmeter.assessment.settings import DRAWS, TRANSCRIBED, Settings, attacker_names
from veilmeter.attacks.attacker import ATTACKERS
from veilmeter.attacks.material import DrawLevel
from veilmeter.attacks.vector_attackers import AdaptedAttacker
from veilmeter.core.engine import Say
from veilmeter.core.errors import InputError, Problem, need, refuse
from veilmeter.core.files import check_input, read_input_json, to_json, write_text
from veilmeter.core.findings import Finding, warning
from veilmeter.data.corpus import FURTHER, SIDES, CorpusReading, SpeechRole, language_code
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.table import parse_columns
from veilmeter.data.layouts import LAYOUTS, recognize
from veilmeter.data.matching import Listed, Matched, find_partners, refuse_one_speaker
from veilmeter.results.model import Input

if TYPE_CHECKING:
    from veilmeter.data.corpus import Corpus

ONE_EXTRACTOR = "use one extractor for all of them; an attacker may have its own: [attackers.informed] anonymized ="
Corpora = dict[tuple[SpeechRole, str], "Corpus"]  # the recordings at a path, by role and path


@dataclass(frozen=True, eq=False)
class Speech:
    """The vectors of one role, where they came from, and what of it could not be used.

    `parts` are the vectors of the sources one by one, which may be different passes over the same utterances; `corpora`
    are the recordings that they were extracted from.
    """

    role: SpeechRole
    embeddings: Embeddings
    facts: Input
    parts: tuple[Embeddings, ...]
    corpora: tuple[Corpus, ...] = ()
    extractor: Mapping[str, Any] | None = None
    findings: tuple[Finding, ...] = ()
    left_out: tuple[Problem, ...] = ()

    @property
    def is_audio(self) -> bool:
        return bool(self.corpora)


def content_digest(embeddings: Embeddings) -> str:
    """SHA-256 of ids, speakers, attributes and vectors: what a result depends on, wherever the file lies."""
    digest = hashlib.sha256()
    attributes = dict(sorted(embeddings.attributes.items()))
    columns = {"utterance": embeddings.utterances, "speaker": embeddings.speakers, **attributes}
    for name in columns:
        digest.update(name.encode() + b"\0" + "\n".join(map(str, columns[name])).encode("utf-8", "surrogateescape"))
    digest.update(np.ascontiguousarray(embeddings.vectors, "<f4").tobytes())
    return digest.hexdigest()


def as_list(given: Any) -> list[Any]:
    """One source, or several whose utterances belong together. `(vectors, speakers)` and `(vectors, utterances,
    speakers)` are one source."""
    if given is None:
        return []
    if isinstance(given, tuple) and given and isinstance(given[0], np.ndarray):
        return [given]
    return list(given) if isinstance(given, list | tuple) else [given]


@dataclass(frozen=True, eq=False)
class SpeechPart:
    """One source of a role: vectors, or recordings that have no vectors yet."""

    path: str
    embeddings: Embeddings | None = None
    corpus: Corpus | None = None
    extractor: Mapping[str, Any] | None = None
    problems: tuple[Problem, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def vectors(self) -> Embeddings:
        assert self.embeddings is not None, "the vectors are extracted first"
        return self.embeddings

    @property
    def kind(self) -> str:
        return "embeddings" if self.corpus is None else "corpus"

    @property
    def left_out(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.fatal or self.corpus is None)

    def findings_of(self, name: str) -> list[Finding]:
        if self.corpus is None or not self.left_out:
            return list(self.findings)
        kinds = tuple(f"{count} {kind}" for kind, count in _count_by_kind(self.left_out).items())
        count = len(self.left_out)
        return [*self.findings, warning("recordings_unusable", role=name.replace("_", " "), count=count, kinds=kinds)]


def open_source(
    source: Any, role: SpeechRole, name: str, settings: CorpusReading, corpora: Corpora
) -> list[SpeechPart]:
    """A source as it was given: its vectors, or its recordings. `corpora` are those whose lists were read before. An
    attacker's run may hold a recording several times, each time with another named draw: one part per pass."""
    from veilmeter.data.corpus import Corpus
    from veilmeter.data.formats.vectors import is_embeddings, load_embeddings, load_passes, to_embeddings

    if isinstance(source, Corpus):
        return [SpeechPart(str(source.root), corpus=source)]
    if not isinstance(source, str | Path):
        vectors = to_embeddings(source, name.replace("_", " "))
        return [SpeechPart(vectors.source or "given in Python", vectors)]
    path = Path(source)
    if not path.exists():
        raise InputError(f"there is no such file or folder ({name})", path=path)
    if not is_embeddings(path):
        corpus = corpora.get((role, str(path))) or read_source(path, role=role, settings=settings)
        return [SpeechPart(str(path), corpus=corpus)]
    extractor = _extractor_of(path)
    return [
        SpeechPart(
            str(path),
            loaded.embeddings,
            extractor=extractor,
            problems=tuple(loaded.problems),
            findings=tuple(loaded.findings()),
        )
        for loaded in (load_passes(path) if role is SpeechRole.ATTACKER_RUN else [load_embeddings(path)])
    ]


def join_parts(role: SpeechRole, name: str, sources: Sequence[SpeechPart]) -> Speech:
    """All sources of an input as one set; `name` is the input's name in results.json."""
    parts = [source.vectors for source in sources]
    distinct = _passes(parts) if role.is_training or role is SpeechRole.ATTACKER_RUN else parts
    merged = distinct[0] if len(distinct) == 1 else merge(distinct, name)
    kinds = list(dict.fromkeys(source.kind for source in sources))
    first = sources[0].corpus
    problems = [problem for source in sources for problem in source.problems]
    return Speech(
        role,
        merged,
        Input(
            role=name,
            kind=" and ".join(sorted(kinds)),
            path=", ".join(dict.fromkeys(source.path for source in sources)),
            sha256=content_digest(merged),
            speakers=len(merged.names),
            utterances=len(merged),
            hours=None if merged.durations is None else round(float(np.nansum(merged.durations)) / 3600, 4),
            layout=None if first is None else first.layout,
            variant=None if first is None else first.variant or None,
            dimension=merged.dimension,
            attributes=tuple(sorted(merged.attributes)),
            problems=_count_by_kind(problems),
            details={"languages": spoken} if (spoken := _languages(sources)) else {},
        ),
        tuple(parts),
        tuple(source.corpus for source in sources if source.corpus is not None),
        next((source.extractor for source in sources if source.extractor), None),
        tuple(finding for source in sources for finding in source.findings_of(name)),
        tuple(problem for source in sources for problem in source.left_out),
    )


def _languages(sources: Sequence[SpeechPart]) -> list[str]:
    """The languages that corpora and vectors name, in the order of the alphabet."""
    named = {code for source in sources if source.corpus is not None for code in source.corpus.languages}
    for source in sources:
        columns = (source.vectors.attributes.get(name, ()) for name in ("language", "locale"))
        named |= {language_code({"language": str(tag)}) for column in columns for tag in set(column)}
    return sorted(named - {""})


def _extractor_of(path: Path) -> dict[str, Any] | None:
    """The extractor of a store that `embed` wrote."""
    try:
        about = read_input_json(path / "embeddings.json")
        return {"name": str(about["extractor"]), "version": str(about["version"]), "dimension": int(about["dimension"])}
    except (InputError, ValueError, KeyError, TypeError):
        return None


def join_corpora(corpora: Sequence[Corpus]) -> Corpus:
    """The recordings of several places as one corpus."""
    if len(corpora) == 1:
        return corpora[0]
    utterances = tuple(utterance for corpus in corpora for utterance in corpus.utterances)
    return replace(corpora[0], utterances=utterances)


def refuse_mixtures(speech: Sequence[Speech]) -> None:
    """All vectors must be of one extractor: others can't be compared, even where their length is the same."""
    first = next(given for given in speech if given.role is SpeechRole.ORIGINAL)
    for other in speech:
        name = other.facts.role.replace("_", " ")
        if other.embeddings.dimension != first.embeddings.dimension:
            sizes = f"{first.embeddings.dimension} numbers, those of {name} {other.embeddings.dimension}"
            raise InputError(f"the original vectors have {sizes}", path=other.facts.path, fix=ONE_EXTRACTOR)
        if first.extractor and other.extractor and _differ(first.extractor, other.extractor):
            both = [f"{known['name']} ({known['version']})" for known in (first.extractor, other.extractor)]
            raise InputError(
                f"the original vectors are of {both[0]}, those of {name} of {both[1]}",
                path=other.facts.path,
                fix=ONE_EXTRACTOR,
            )


def _differ(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """One's own function has a name for each way to it, but one version: its source."""
    if first["version"] != second["version"]:
        return True
    return bool(first["name"] != second["name"] and ":" not in first["name"] + second["name"])


def _passes(parts: Sequence[Embeddings]) -> list[Embeddings]:
    """Copies may hold an utterance several times, each time anonymized with a new draw: one part per pass."""
    seen: set[str] = set()
    passes = []
    for number, part in enumerate(parts):
        ids = list(part.utterances)
        if seen & set(ids):
            ids = [f"{utterance}#{number + 1}" for utterance in ids]
        seen |= set(ids)
        passes.append(Embeddings(part.vectors, ids, part.speakers, part.attributes, part.durations, part.source))
    return passes


def _count_by_kind(problems: Sequence[Problem]) -> dict[str, int]:
    return dict(sorted(Counter(problem.kind for problem in problems).items()))


def merge(parts: Sequence[Embeddings], role: str = "") -> Embeddings:
    """Several sets as one; an utterance may be in one only."""
    dimensions = {part.dimension for part in parts}
    if len(dimensions) > 1:
        raise InputError(
            f"the vectors of {role} have different dimensions: {', '.join(map(str, sorted(dimensions)))}",
            fix="use one extractor for all of them",
        )
    names = sorted({name for part in parts for name in part.attributes})
    attributes = {
        name: [value for part in parts for value in part.attributes.get(name, [""] * len(part))] for name in names
    }
    durations = None
    if all(part.durations is not None for part in parts):
        durations = np.concatenate([part.durations for part in parts if part.durations is not None])
    return Embeddings(
        np.concatenate([part.vectors for part in parts]),
        [u for part in parts for u in part.utterances],
        [s for part in parts for s in part.speakers],
        attributes,
        durations,
        " and ".join(dict.fromkeys(part.source for part in parts if part.source)),
    )


def side_vectors(speech: Mapping[SpeechRole, Speech]) -> tuple[Embeddings, Embeddings]:
    """The vectors of both sides, those of distractors behind them."""
    sides = []
    for side in SIDES:
        own, further = speech[side].embeddings, speech.get(FURTHER[side])
        if further is not None:
            assessed = set(own.names)
            both = [name for name in further.embeddings.names if name in assessed]
            if both:
                raise InputError(
                    f"{both[0]!r} is a distractor and assessed"
                    + f", and so are {len(both) - 1} more" * (len(both) > 1),
                    path=further.facts.path,
                    fix="a distractor is somebody else: leave them out of one of the two",
                )
            own = merge([own, further.embeddings], f"{side} speech and distractors")
        sides.append(own)
    return sides[0], sides[1]


def distractors_of(speech: Mapping[SpeechRole, Speech]) -> frozenset[str]:
    """The speakers who are enrolled and never tried."""
    return frozenset(name for role in FURTHER.values() if role in speech for name in speech[role].embeddings.names)


def read_sources(places: Iterable[tuple[SpeechRole, Path]], settings: CorpusReading) -> Corpora:
    """The audio at several places, each with its role, by role and path.

    `--columns` must hold for the first table among them. The others, such as the lists that lie beside anonymized
    copies, may have veilmeter's own names for the same columns.
    """
    corpora: Corpora = {}
    has_table = False
    for role, path in places:
        corpus = read_source(path, role=role, settings=settings, own_names=has_table)
        has_table = has_table or "columns" in LAYOUTS[corpus.layout].understands
        corpora[role, str(path)] = corpus
    if settings.columns and corpora and not has_table:
        first = next(iter(corpora.values()))
        raise InputError(
            f"--columns means nothing in the {first.layout} layout, and no other list of columns is read",
            path=first.root,
            fix="leave the option out, or give the table itself",
        )
    return corpora


def read_source(path: Path, *, role: SpeechRole, settings: CorpusReading, own_names: bool = False) -> Corpus:
    """The audio at a path. One folder of VoicePrivacy data may hold the original and the anonymized speech."""
    from veilmeter.data.corpus import read_corpus

    layout = settings.layout or recognize(path, named_columns=bool(settings.columns))
    suffix = settings.suffix if role.is_released else None
    if layout == "vpc":
        from veilmeter.data.formats import vpc

        suffix = vpc.variant(path, original=role.is_original, wanted=suffix)
    part = settings.part if role in (*SIDES, SpeechRole.ATTACKER_RUN) else None
    columns = parse_columns(settings.columns) if "columns" in LAYOUTS[layout].understands else None
    return read_corpus(
        path,
        layout,
        roots=settings.root,
        part=part,
        suffix=suffix,
        columns=columns,
        channel=settings.channel,
        own_names=own_names,
    )


def split_draw(source: str) -> tuple[str, DrawLevel]:
    """A run with what one draw of it covers, as `DIR:per-speaker` says it.

    >>> split_draw("again:per-speaker"), split_draw("again")
    (('again', 'speaker'), ('again', 'unknown'))
    """
    path, colon, word = source.rpartition(":")
    if colon and word in DRAWS and path:
        level: DrawLevel = DRAWS[word]  # type: ignore[assignment]
        return path, level
    if colon and word.startswith("per-"):
        raise InputError(f"{source}: one draw covers a speaker or an utterance", fix=f"write {' or '.join(DRAWS)}")
    return source, "unknown"


def check_inputs(sources: Mapping[SpeechRole, Any], settings: Settings, say: Say) -> Corpora:
    """All corpora of recordings, read from their lists; an error that reading the recordings would run into later is
    raised now."""
    from veilmeter.data.formats.vectors import is_embeddings

    for name, options in settings.attackers.items():
        own = [*options.original, *options.anonymized, *(split_draw(source)[0] for source in options.attacker_run)]
        for place in own:
            _refuse_missing(Path(place), f"attackers.{name}")
    audio: list[tuple[SpeechRole, Path]] = []
    for role, given in sources.items():
        for path in _paths(role, given):
            _refuse_missing(path, role)
            if not is_embeddings(path):
                audio.append((role, path))
    corpora = read_sources(audio, settings)
    refuse_tuning(sources, settings, corpora)
    _ask_language(settings, [corpus for (role, _), corpus in corpora.items() if role in SIDES], say)
    for (role, _), corpus in corpora.items():
        _report_problems(corpus, role, settings, say)
    if not corpora:
        return corpora  # vectors are read in seconds, and matched then
    sides = [_list_side(role, sources.get(role), corpora) for role in SIDES]
    if all(sides):
        places = ", ".join(map(str, _paths(SpeechRole.ANONYMIZED, sources.get(SpeechRole.ANONYMIZED))))
        find_partners(Listed.concatenate(sides[0]), Listed.concatenate(sides[1]), places)
    if sides[0]:
        refuse_one_speaker([speaker for part in sides[0] for speaker in part.speakers], _first_path(sources))
    return corpora


def _first_path(sources: Mapping[SpeechRole, Any]) -> Path | None:
    return next(iter(_paths(SpeechRole.ORIGINAL, sources.get(SpeechRole.ORIGINAL))), None)


def attackers_to_tune(settings: Settings) -> list[str]:
    """The adapted attackers that shall be fine-tuned and whose vectors were not given."""
    names = []
    for name in attacker_names(settings):
        options, known = settings.of_attacker(name), ATTACKERS[name]
        how = options.adaptation or settings.adaptation
        if isinstance(known, AdaptedAttacker) and how == "finetune" and not options.anonymized and not options.plda:
            if getattr(settings, known.training) or (settings.runs_system and settings.train_original):
                names.append(name)
            elif known.cross_validates:
                raise InputError(
                    f"the {name} attacker can't be fine-tuned without training speech",
                    fix="give --train-anonymized CORPUS (audio), or --adaptation backend",
                )
    return names


def refuse_tuning(sources: Mapping[SpeechRole, Any], settings: Settings, corpora: Corpora) -> None:
    """Refuse fine-tuning that would fail after hours of extraction: of a network that can't be trained, without torch,
    or on vectors."""
    names = attackers_to_tune(settings)
    if not names:
        return
    need("torch", "safetensors")
    from veilmeter.attacks.finetune import Training
    from veilmeter.speech.extractors.campplus import refuse_untrainable

    Training.of(settings.tuning, epochs=settings.epochs, seed=settings.seed, device=settings.device)
    refuse_untrainable(settings.network or settings.first_extractor)
    for name in names:
        training = ATTACKERS[name].training
        roles = [SpeechRole.ANONYMIZED, *([SpeechRole(training)] if training is not None else [])]
        for role in roles:
            for source in as_list(sources.get(role)):
                is_path = isinstance(source, str | Path)
                if isinstance(source, Embeddings | tuple) or (is_path and (role, str(Path(source))) not in corpora):
                    raise InputError(
                        f"the {name} attacker can't be fine-tuned on vectors ({role.replace('_', ' ')})",
                        fix="give corpora of audio, or --adaptation backend",
                    )


def _ask_language(settings: Settings, sides: Sequence[Corpus], say: Say) -> None:
    """Where words will be transcribed: ask for the language that no corpus names, and refuse one that the recognizer
    does not know, before anything is computed."""
    from veilmeter.speech.recognizers.base import refuse_recognizer
    from veilmeter.speech.recognizers.languages import AUTO, FIX, default_recognizer, resolve_language

    if not sides or not (settings.wants("utility") or TRANSCRIBED & set(settings.extractor)):
        return
    if settings.language is not None:
        code = "en" if settings.language == AUTO else resolve_language(settings.language, ()).code
        refuse_recognizer(settings.recognizer or default_recognizer(code), code)
        if settings.language == AUTO:
            need("ctranslate2")
    elif not any(corpus.languages for corpus in sides):
        say(f"! Which language is it? The corpus does not say, and words are taken for English: {FIX}")


def _paths(role: SpeechRole, given: Any) -> list[Path]:
    named = [source for source in as_list(given) if isinstance(source, str | Path)]
    return [Path(split_draw(str(source))[0] if role is SpeechRole.ATTACKER_RUN else source) for source in named]


def _refuse_missing(path: Path, role: str) -> None:
    if not path.exists():
        raise InputError(f"there is no such file or folder ({role})", path=path)


def _report_problems(corpus: Corpus, role: str, settings: Settings, say: Say) -> None:
    """Report problems of the lists, such as missing recordings, which are left out later."""
    fatal = [problem for problem in corpus.problems if problem.fatal]
    if settings.strict:
        refuse(fatal)
    if fatal:
        lines = f"{len(fatal)} recordings or lines of its lists can't be used"
        say(f"{role.replace('_', ' ')}: {lines}; the first: {fatal[0]}")


def _list_side(role: SpeechRole, given: Any, corpora: Corpora) -> list[Listed]:
    """The ids and speakers of a side; none where arrays without ids are given."""
    return [listed for source in as_list(given) for listed in _list_source(role, source, corpora)]


def _list_source(role: SpeechRole, source: Any, corpora: Corpora) -> Iterator[Listed]:
    from veilmeter.data.corpus import Corpus

    if isinstance(source, str | Path):
        corpus = corpora.get((role, str(Path(source))))
        if corpus is not None:
            source = corpus
        else:
            from veilmeter.data.formats.vectors import load_embeddings

            source = load_embeddings(Path(source)).embeddings
    if isinstance(source, Corpus):
        yield Listed([u.id for u in source], [u.speaker for u in source])
    elif isinstance(source, Embeddings):
        yield Listed(list(source.utterances), list(source.speakers))


def refuse_missing_sides(sources: Mapping[SpeechRole, Any], settings: Settings) -> None:
    """Refuse speech of one side alone; the anonymized side may be made by the anonymizer."""
    for role in SIDES:
        if sources[role] is None and not (role is SpeechRole.ANONYMIZED and settings.runs_system):
            given = [f"--{name.replace('_', '-')}" for name, source in sources.items() if source is not None]
            given += [f"--{name}" for name in ("system", "command") if getattr(settings, name) is not None]
            needed = f", which {', '.join(given)} needs" if given else ""
            fix = f"give --{role} PATH, or --scores ATTACKER=FILE alone"
            raise InputError(f"there is no {role} speech{needed}", fix=fix)


def refuse_missing_files(settings: Settings) -> None:
    """Refuse settings that name a missing file, before anything else is done."""
    named = [("enroll", settings.enroll), ("trials", settings.trials)]
    for name, options in settings.attackers.items():
        for option in ("plda", "mean", "lda", "scores", "trials"):
            value = getattr(options, option)
            files = (value,) if isinstance(value, str) else value or ()
            named.append((f"attackers.{name}: {option}", files))
    for option, files in named:
        for file in files:
            try:
                check_input(file)
            except InputError as error:
                raise InputError(f"{error.what} ({option})", path=error.path, fix=error.fix) from None


def folders_near(original: Any, settings: Settings) -> list[Path]:
    """Folders of the original speech that may hold lists of enrollment and trials."""
    from veilmeter.data.formats import vpc

    nearby: list[Path] = []
    for source in as_list(original):
        if isinstance(source, str | Path):
            path = Path(source)
            nearby.append(path)
            if path.is_dir():
                suffix = vpc.variant(path, original=True, wanted=None)
                folders = [folder for folder in vpc.data_folders(path) if suffix is None or folder.suffix == suffix]
                nearby += [folder.path for folder in folders if settings.part in (None, folder.set, folder.base)]
    return nearby


def write_left_out(place: Path, speech: Sequence[Speech], matched: Matched) -> None:
    """Every recording that was given and not assessed, with the reason, one per line; no file if there is none. Ids and
    paths are for the user alone: they are written here, not to results.json, which the report is made from."""
    lines: list[dict[str, Any]] = [
        {
            "role": given.facts.role,
            "path": problem.path,
            "line": problem.line,
            "kind": problem.kind,
            "what": problem.what,
        }
        for given in speech
        for problem in given.left_out
    ]
    lines += [{"role": "matching", "utterance": utterance, "kind": why} for utterance, why in matched.left_out]
    if lines:
        write_text(place, "".join(to_json(line, indent=None) + "\n" for line in lines))
    else:
        place.unlink(missing_ok=True)
