"""Speech of an assessment: where it is read from, its vectors, and the recordings that could not be assessed."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from veilmeter.assessment.settings import TRAINING, Settings
from veilmeter.core.errors import InputError, Problem
from veilmeter.core.files import to_json, write_text
from veilmeter.core.findings import Finding, warning
from veilmeter.data.corpus import CorpusReading
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.table import parse_columns
from veilmeter.data.layouts import LAYOUTS, recognize
from veilmeter.data.matching import Matched
from veilmeter.results.model import Input

if TYPE_CHECKING:
    from veilmeter.data.corpus import Corpus

ONE_EXTRACTOR = "use one extractor for all of them; an attacker may have its own: [attackers.informed] anonymized ="
Embed = Callable[["Corpus"], tuple[Embeddings, dict[str, Any]]]
Read = Callable[[Path], "Corpus"]


@dataclass(frozen=True, eq=False)
class Speech:
    """The vectors of one role, where they came from, and what of it could not be used.

    `parts` are the sources one by one, as far as they are different passes over the same utterances; `corpora` the
    audio they were heard in.
    """

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


def _from_arrays(source: Any, role: str) -> Embeddings:
    """Embeddings of arrays; without ids, an utterance is known by the number of its row."""
    name = role.replace("_", " ")
    if isinstance(source, tuple) and len(source) in (2, 3) and isinstance(source[0], np.ndarray):
        vectors, *ids = source
        speakers = ids[-1]
        utterances = ids[0] if len(ids) == 2 else [str(row) for row in range(len(vectors))]
        return Embeddings(vectors, utterances, speakers, source=f"{name}, given in Python")
    raise InputError(
        f"{name}: a {type(source).__name__} does not say who speaks",
        fix="give a path, a Corpus, Embeddings, or arrays as (vectors, speakers) or (vectors, utterances, speakers)",
    )


@dataclass(frozen=True, eq=False)
class _Source:
    """One source as it was read."""

    embeddings: Embeddings
    path: str
    corpus: Corpus | None = None
    extractor: Mapping[str, Any] | None = None
    problems: tuple[Problem, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def kind(self) -> str:
        return "embeddings" if self.corpus is None else "corpus"

    @property
    def left_out(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.fatal or self.corpus is None)

    def findings_of(self, role: str) -> list[Finding]:
        if self.corpus is None or not self.left_out:
            return list(self.findings)
        kinds = tuple(f"{count} {kind}" for kind, count in _count_by_kind(self.left_out).items())
        count = len(self.left_out)
        return [*self.findings, warning("recordings_unusable", role=role.replace("_", " "), count=count, kinds=kinds)]


def load(given: Any, *, role: str, embed: Embed, read: Read) -> Speech | None:
    """All sources of one role as one set; `read` and `embed` are called for audio. None if nothing was given."""
    sources = [_load_one(source, role, embed, read) for source in as_list(given)]
    if not sources:
        return None
    parts = [source.embeddings for source in sources]
    distinct = _passes(parts) if role in TRAINING else parts
    merged = distinct[0] if len(distinct) == 1 else merge(distinct, role)
    kinds = list(dict.fromkeys(source.kind for source in sources))
    first = sources[0].corpus
    problems = [problem for source in sources for problem in source.problems]
    return Speech(
        merged,
        Input(
            role=role,
            kind=" and ".join(sorted(kinds)),
            path=", ".join(source.path for source in sources),
            sha256=content_digest(merged),
            speakers=len(merged.names),
            utterances=len(merged),
            hours=None if merged.durations is None else round(float(np.nansum(merged.durations)) / 3600, 4),
            layout=None if first is None else first.layout,
            variant=None if first is None else first.variant or None,
            dimension=merged.dimension,
            attributes=tuple(sorted(merged.attributes)),
            problems=_count_by_kind(problems),
        ),
        tuple(parts),
        tuple(source.corpus for source in sources if source.corpus is not None),
        next((source.extractor for source in sources if source.extractor), None),
        tuple(finding for source in sources for finding in source.findings_of(role)),
        tuple(problem for source in sources for problem in source.left_out),
    )


def _load_one(source: Any, role: str, embed: Embed, read: Read) -> _Source:
    from veilmeter.data.corpus import Corpus

    if not isinstance(source, str | Path | Embeddings | Corpus):
        source = _from_arrays(source, role)
    if isinstance(source, Embeddings):
        return _Source(source, source.source or "given in Python")
    if isinstance(source, str | Path):
        from veilmeter.data.formats.vectors import is_embeddings, load_embeddings

        path = Path(source)
        if not path.exists():
            raise InputError(f"there is no such file or folder ({role})", path=path)
        if is_embeddings(path):
            loaded = load_embeddings(path)
            return _Source(
                loaded.embeddings,
                str(path),
                extractor=_extractor_of(path),
                problems=tuple(loaded.problems),
                findings=tuple(loaded.findings()),
            )
        source, place = read(path), str(path)
    else:
        place = str(source.root)
    embeddings, extractor = embed(source)
    problems = extractor.pop("problems")
    return _Source(embeddings, place, source, extractor, tuple(problems))


def _extractor_of(path: Path) -> dict[str, Any] | None:
    """The extractor of a store that `embed` wrote."""
    try:
        about = json.loads((path / "embeddings.json").read_text(encoding="utf-8"))
        return {"name": str(about["extractor"]), "version": str(about["version"]), "dimension": int(about["dimension"])}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def join_corpora(corpora: Sequence[Corpus]) -> Corpus:
    """The recordings of several places as one corpus."""
    if len(corpora) == 1:
        return corpora[0]
    utterances = tuple(utterance for corpus in corpora for utterance in corpus.utterances)
    return replace(corpora[0], utterances=utterances)


def refuse_mixtures(speech: Mapping[str, Speech]) -> None:
    """All vectors must be of one extractor: others can't be compared, even where their length is the same."""
    first = speech["original"]
    for role, other in speech.items():
        name = role.replace("_", " ")
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
    """Training speech may hold an utterance several times, each time anonymized with a new draw: one part per pass."""
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


if TYPE_CHECKING:
    from veilmeter.data.corpus import Corpus


def read_sources(places: Iterable[tuple[str, Path]], settings: CorpusReading) -> dict[tuple[str, str], Corpus]:
    """The audio at several places, each with its role, by role and path.

    `--columns` must hold for the first table among them. The others, such as the lists that lie beside anonymized
    copies, may have veilmeter's own names for the same columns.
    """
    corpora: dict[tuple[str, str], Corpus] = {}
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


def read_source(path: Path, *, role: str, settings: CorpusReading, own_names: bool = False) -> Corpus:
    """The audio at a path. One folder of VoicePrivacy data may hold the original and the anonymized speech."""
    from veilmeter.data.corpus import read_corpus

    layout = settings.layout or recognize(path, named_columns=bool(settings.columns))
    suffix = settings.suffix if role == "anonymized" else None
    if layout == "vpc":
        from veilmeter.data.formats import vpc

        suffix = vpc.variant(path, original=role.endswith("original"), wanted=suffix)
    part = None if role in TRAINING else settings.part
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


def write_left_out(place: Path, speech: Mapping[str, Speech], matched: Matched) -> None:
    """Every recording that was given and not assessed, with the reason, one per line; no file if there is none. Ids and
    paths are for the user alone: they are written here, not to results.json, which the report is made from."""
    lines: list[dict[str, Any]] = [
        {"role": role, "path": problem.path, "line": problem.line, "kind": problem.kind, "what": problem.what}
        for role, given in speech.items()
        for problem in given.left_out
    ]
    lines += [{"role": "matching", "utterance": utterance, "kind": why} for utterance, why in matched.left_out]
    if lines:
        write_text(place, "".join(to_json(line, indent=None) + "\n" for line in lines))
    else:
        place.unlink(missing_ok=True)
