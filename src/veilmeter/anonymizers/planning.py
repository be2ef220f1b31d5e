"""What is to be done to each utterance of a corpus, and where the result goes, before anything is done."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from veilmeter.anonymizers.base import Anonymizer, draw_of
from veilmeter.anonymizers.manifest import Entry
from veilmeter.core.errors import InputError
from veilmeter.core.files import plain
from veilmeter.core.user_code import version_of
from veilmeter.data.corpus import Corpus, Utterance, file_name
from veilmeter.data.formats.locate import inside
from veilmeter.data.formats.walk import MEDIA_SUFFIXES, SUFFIXES
from veilmeter.data.layouts import LAYOUTS


@dataclass(frozen=True, slots=True)
class Item:
    """An utterance to do: the plan, what an earlier run did to it, and why the system refuses it if it does."""

    utterance: Utterance
    planned: Entry
    earlier: Entry | None
    refusal: str = ""


def plan(
    corpus: Corpus, anonymizer: Anonymizer, audio: str, before: Mapping[str, Entry], rate: int | None = None
) -> list[Item]:
    taken: set[str] = set()
    name, version, draw = anonymizer.name, version_of(anonymizer), str(draw_of(anonymizer))
    items = []
    for utterance in corpus:
        parameters, refusal = {}, ""
        try:
            parameters = plain(anonymizer.parameters(utterance))
        except InputError as error:
            refusal = error.what
        pseudo = parameters.get("pseudo_speaker")
        entry = Entry(
            utterance=utterance.id,
            speaker=utterance.speaker,
            source=_source_name(corpus, utterance),
            source_sha256=None,
            output=_output_name(corpus, utterance, audio, taken),
            output_sha256=None,
            system=name,
            version=version,
            parameters=parameters,
            pseudo_speaker=None if pseudo is None else str(pseudo),
            draw=draw,
            part=str(utterance.stretch),
            rate=rate,
        )
        items.append(Item(utterance, entry, before.get(utterance.id), refusal))
    return items


def _source_name(corpus: Corpus, utterance: Utterance) -> str:
    if utterance.path.is_relative_to(corpus.root):
        return utterance.path.relative_to(corpus.root).as_posix()
    return str(utterance.path)


def _output_name(corpus: Corpus, utterance: Utterance, audio: str, taken: set[str]) -> str:
    below = corpus.relative(utterance)
    known = below.suffix.lower() in SUFFIXES | MEDIA_SUFFIXES
    below = below.with_suffix(f".{audio}") if known else below.with_name(f"{below.name}.{audio}")
    if below.as_posix() in taken or ".." in below.parts:
        if not LAYOUTS[corpus.layout].has_lists:
            raise InputError(
                f"two recordings would be written to {below}", path=utterance.path, fix="rename one of them"
            )
        mark = hashlib.sha256(utterance.id.encode("utf-8", "surrogateescape")).hexdigest()[:12]
        below = Path("wav", f"{file_name(utterance.id)[:150]}-{mark}.{audio}")
    taken.add(below.as_posix())
    return below.as_posix()


def check_settings(items: Iterable[Item], out: Path) -> None:
    """Other settings than the earlier run's are refused; a system that itself has changed does its work again."""
    for item in items:
        earlier = item.earlier
        if earlier and earlier.output is not None and not item.refusal and not item.planned.same_settings(earlier):
            raise InputError(
                f"utterance {earlier.utterance} was made with {_described(earlier)}, "
                f"and now {_described(item.planned)} is asked for",
                path=out,
                fix="choose another folder, or --overwrite to do again what differs",
            )


def _described(entry: Entry) -> str:
    settings = ", ".join(f"{key} {value}" for key, value in entry.parameters.items())
    rate = f", {entry.rate} Hz" if entry.rate else ""
    part = f", {entry.part}" if entry.part else ""
    return f"{entry.system} {entry.version} ({settings}; {Path(entry.output or '').suffix[1:]}{rate}{part})"


def check_places(corpus: Corpus, out: Path, manifest: Path) -> None:
    real_out, real_root = os.path.realpath(out), os.path.realpath(corpus.root)
    if out.exists() and not out.is_dir():
        raise InputError("the output is a file, not a folder", path=out)
    if real_out == real_root or (inside(real_out, [real_root]) and not LAYOUTS[corpus.layout].has_lists):
        raise InputError(
            "the output folder lies in the corpus, which would then hold both",
            path=out,
            fix="choose a folder outside it",
        )
    if any(inside(os.path.realpath(utterance.path), [real_out]) for utterance in corpus):
        raise InputError("the corpus lies in the output folder", path=out, fix="choose an empty folder")
    if manifest.is_dir() or manifest.is_symlink():
        raise InputError("the manifest can't be written over this", path=manifest)
