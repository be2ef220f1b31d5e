"""The options with which a corpus is read, and the facts that tell whether they decided anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veilmeter.core.option_groups import CORPUS
from veilmeter.core.options import Condition, OptionSet, declare


@dataclass(frozen=True)
class ReadingFacts:
    """What was read: speech or scores alone, recordings or vectors, whether a channel had to be chosen, and whether
    recordings lie outside their corpus."""

    scores_only: bool = False
    is_audio: bool = True
    has_channels: bool = False
    leaves_home: bool = False


SPEECH = Condition(lambda settings, facts: not facts.scores_only, "only scores were given, no speech")
AUDIO = Condition(lambda settings, facts: facts.is_audio, "vectors were given, no recordings")
SEVERAL_CHANNELS = Condition(
    lambda settings, facts: facts.has_channels, "no recording has several channels that a list leaves open"
)
OTHER_FOLDERS = Condition(
    lambda settings, facts: facts.leaves_home, "every recording lies below the corpus's own folder"
)


def list_columns(value: Any) -> Any:
    """A table of a TOML file, or a dict, as MEANING=COLUMN."""
    return [f"{meaning}={column}" for meaning, column in value.items()] if isinstance(value, Mapping) else value


def name_channel(value: Any) -> Any:
    return str(value) if type(value) is int else value


def strict(**declared: Any) -> Any:
    return declare(
        False, help="Stop at the first recording or vector that can't be used, instead of leaving it out.",
        group=CORPUS, role="computation", comparable=True, example=True, **declared,
    )  # fmt: skip


def max_seconds() -> Any:
    return declare(
        3600.0, help="Longest recording in seconds; longer ones are left out.", least=1, group=CORPUS, example=1
    )


@dataclass(frozen=True, kw_only=True)
class CorpusReading(OptionSet):
    """How a corpus is read."""

    layout: str | None = declare(
        None, help="Layout of the corpus on disk, if it is not recognized: folder, kaldi, vpc, csv, ...", group=CORPUS,
        publishable=True, acts_when=(SPEECH, AUDIO), example="vctk",
    )  # fmt: skip
    part: str | None = declare(
        None, help="Part of the corpus: test-clean, test, libri_test, mic1, ...", group=CORPUS,
        acts_when=(SPEECH, AUDIO), example="nonsense",
    )  # fmt: skip
    suffix: str | None = declare(
        None, help="Variant of VoicePrivacy data: '' is the original, or _anon...", group=CORPUS,
        acts_when=(SPEECH, AUDIO), example="_anon",
    )  # fmt: skip
    root: tuple[str, ...] = declare(
        (), help="Further folder that may hold audio; Kaldi folders may refer to audio in these folders only.",
        metavar="FOLDER", group=CORPUS, path=True, comparable=True, acts_when=(SPEECH, AUDIO, OTHER_FOLDERS),
        example="cache",
    )  # fmt: skip
    columns: tuple[str, ...] = declare(
        (), help="Names of the columns of a table, as in path=audio_path,speaker=speaker_id.",
        metavar="MEANING=COLUMN", group=CORPUS, parse=list_columns, acts_when=(SPEECH, AUDIO), example="speaker=gender",
    )  # fmt: skip
    channel: str | None = declare(
        None, help="Channel of recordings with several that differ, from 0, or their mean; a list may name it too.",
        metavar="N|mix", group=CORPUS, parse=name_channel, acts_when=(SPEECH, AUDIO, SEVERAL_CHANNELS), example="1",
    )  # fmt: skip

    def __post_init__(self) -> None:
        from veilmeter.data.formats.table import parse_columns

        super().__post_init__()
        parse_columns(self.columns)

    @property
    def roots(self) -> tuple[Path, ...]:
        return tuple(map(Path, self.root))
