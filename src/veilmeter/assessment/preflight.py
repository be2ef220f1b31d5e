"""What was given is looked at before the first recording is listened to: paths, lists, ids and partners.

Listening takes hours, reading lists takes seconds: whatever these can tell is said at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmeter.assessment.attacker_runs import split_draw
from veilmeter.assessment.settings import Settings
from veilmeter.assessment.sources import read_sources
from veilmeter.assessment.speech import as_list
from veilmeter.core.engine import Say
from veilmeter.core.errors import InputError, refuse
from veilmeter.data.matching import Listed, find_partners

if TYPE_CHECKING:
    from veilmeter.data.corpus import Corpus

Corpora = dict[tuple[str, str], "Corpus"]
"""The recordings at a path, by role and path."""


def look_ahead(sources: Mapping[str, Any], settings: Settings, say: Say) -> Corpora:
    """Everything that was given as recordings, read from its lists; or an error that listening would come to later."""
    from veilmeter.data.formats.vectors import is_embeddings

    for name, options in settings.attackers.items():
        own = [*options.original, *options.anonymized, *(split_draw(source)[0] for source in options.attacker_run)]
        for place in own:
            _refuse_missing(Path(place), f"attackers.{name}")
    audio: list[tuple[str, Path]] = []
    for role, given in sources.items():
        for path in _paths(role, given):
            _refuse_missing(path, role)
            if not is_embeddings(path):
                audio.append((role, path))
    corpora = read_sources(audio, settings)
    for (role, _), corpus in corpora.items():
        _name_problems(corpus, role, settings, say)
    if not corpora:
        return corpora  # vectors are read in seconds, and matched then
    sides = [_listed(role, sources.get(role), corpora) for role in ("original", "anonymized")]
    if all(sides):
        places = ", ".join(map(str, _paths("anonymized", sources.get("anonymized"))))
        find_partners(Listed.joined(sides[0]), Listed.joined(sides[1]), places)
    return corpora


def _paths(role: str, given: Any) -> list[Path]:
    named = [source for source in as_list(given) if isinstance(source, str | Path)]
    return [Path(split_draw(str(source))[0] if role == "attacker_run" else source) for source in named]


def _refuse_missing(path: Path, role: str) -> None:
    if not path.exists():
        raise InputError(f"there is no such file or folder ({role})", path=path)


def _name_problems(corpus: Corpus, role: str, settings: Settings, say: Say) -> None:
    """What is wrong with the lists, such as recordings that are not there, is said now and left out later."""
    fatal = [problem for problem in corpus.problems if problem.fatal]
    if settings.strict:
        refuse(fatal)
    if fatal:
        lines = f"{len(fatal)} recordings or lines of its lists can't be used"
        say(f"{role.replace('_', ' ')}: {lines}; the first: {fatal[0]}")


def _listed(role: str, given: Any, corpora: Corpora) -> list[Listed]:
    """What a side lists; nothing where arrays without ids are given."""
    return [listed for source in as_list(given) for listed in _of_source(role, source, corpora)]


def _of_source(role: str, source: Any, corpora: Corpora) -> Iterator[Listed]:
    from veilmeter.data.corpus import Corpus
    from veilmeter.data.embeddings import Embeddings

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


def refuse_missing_files(settings: Settings) -> None:
    """A file that was named and is not there is an error before anything else is done."""
    named = [("enroll", settings.enroll), ("trials", settings.trials)]
    for name, options in settings.attackers.items():
        for option in ("plda", "mean", "lda", "scores", "trials"):
            value = getattr(options, option)
            files = (value,) if isinstance(value, str) else value or ()
            named.append((f"attackers.{name}: {option}", files))
    for option, files in named:
        for file in files:
            if not Path(file).is_file():
                raise InputError(f"there is no such file ({option})", path=file)
