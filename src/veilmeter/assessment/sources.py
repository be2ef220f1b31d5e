"""Where the speech of an assessment comes from, and what of it could not be assessed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmeter.assessment.settings import Settings
from veilmeter.assessment.speech import Speech, as_list
from veilmeter.core.errors import InputError
from veilmeter.core.files import to_json, write_text
from veilmeter.data.corpus_options import CorpusReading
from veilmeter.data.formats.table import parse_columns
from veilmeter.data.layouts import LAYOUTS, recognize
from veilmeter.data.matching import Matched

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
    part = None if role.startswith("train_") else settings.part
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
    paths are for the user alone: they stand here, not in results.json, which the report is made from."""
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
