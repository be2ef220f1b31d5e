"""Corpora (who speaks, where the audio is, in which session), the options to read one, and the roles of speech."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

from veilmeter.core.errors import Problem
from veilmeter.core.option_groups import CORPUS
from veilmeter.core.options import Condition, OptionSet, declare

MIX = -1
"""A channel number that stands for the mean of all channels."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Which part of a file is meant: from `start` to `end` in seconds (None: its end), one channel counted from 0, or
    `MIX`; None where the file has one voice, so that channels that differ are an error. With `of_several` the channel
    is meant where the file has several, and a file with one channel is that channel."""

    start: float = 0.0
    end: float | None = None
    channel: int | None = None
    of_several: bool = False

    def __str__(self) -> str:
        """Nothing for a whole file, so that it may be appended to whatever names the file.

        >>> str(Stretch()), str(Stretch(0.5, 2.0, 1)), str(Stretch(channel=MIX))
        ('', '#0.5-2@1', '#0-@mix')
        """
        if self == WHOLE:
            return ""
        end = "" if self.end is None else f"{self.end:.12g}"
        channel = "" if self.channel is None else "@mix" if self.channel == MIX else f"@{self.channel}"
        channel += "?" if self.of_several else ""
        return f"#{self.start:.12g}-{end}{channel}"


WHOLE = Stretch()


@dataclass(frozen=True, slots=True)
class Utterance:
    """One recording, or a part of one (see `Stretch`). `gender` is "f", "m" or "" (unknown); `session` and `text` (its
    words) are "" where the corpus has none.

    Attributes
    ----------
    id, speaker : str
        Its id, and who speaks.
    path : Path
        The audio file.
    gender, session, text : str
        Attributes; empty where unknown.
    attributes : mapping
        Further ones, such as `accent`.
    """

    id: str
    speaker: str
    path: Path
    gender: str = ""
    session: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    start: float = 0.0
    end: float | None = None
    channel: int | None = None
    of_several: bool = False

    @property
    def stretch(self) -> Stretch:
        return Stretch(self.start, self.end, self.channel, self.of_several)

    def copy_to(self, path: Path) -> Utterance:
        """The same utterance as a separate file, which holds nothing else."""
        return replace(self, path=path, start=0.0, end=None, channel=None, of_several=False)


@dataclass(frozen=True)
class Corpus:
    """Utterances sorted by id, each id once, with what was wrong with the corpus's lists.

    `variant` distinguishes corpora read from one root: the list's name, or the part and suffix that were chosen.

    Attributes
    ----------
    root : Path
        The folder of the corpus.
    layout : str
        How it lies on disk.
    utterances : tuple of Utterance
        The recordings, sorted by id.
    problems : tuple of Problem
        Problems of its lists.

    Examples
    --------
    >>> Corpus(Path("x"), "folder", (Utterance("b/1", "b", Path("x/b/1.wav")), Utterance("a/1", "a", Path("x/1.wav"))))
    Corpus(2 utterances of 2 speakers, folder layout, x)
    """

    root: Path
    layout: str
    utterances: tuple[Utterance, ...]
    problems: tuple[Problem, ...] = ()
    variant: str = ""

    def __post_init__(self) -> None:
        kept: dict[str, Utterance] = {}
        problems = list(self.problems)
        for utterance in sorted(self.utterances, key=lambda u: (u.id, str(u.path))):
            if (first := kept.setdefault(utterance.id, utterance)) is not utterance:
                what = f"its id {utterance.id!r} is that of {first.path} too; that one is used"
                problems.append(Problem("duplicate-id", what, str(utterance.path), fix="rename or remove one"))
        object.__setattr__(self, "utterances", tuple(kept.values()))
        object.__setattr__(self, "problems", tuple(problems))

    def __len__(self) -> int:
        return len(self.utterances)

    def __iter__(self) -> Iterator[Utterance]:
        return iter(self.utterances)

    def __repr__(self) -> str:
        return f"Corpus({len(self)} utterances of {len(self.speakers)} speakers, {self.layout} layout, {self.root})"

    @cached_property
    def by_id(self) -> dict[str, Utterance]:
        return {utterance.id: utterance for utterance in self.utterances}

    @cached_property
    def by_speaker(self) -> dict[str, tuple[Utterance, ...]]:
        groups: dict[str, list[Utterance]] = {}
        for utterance in self.utterances:
            groups.setdefault(utterance.speaker, []).append(utterance)
        return {speaker: tuple(group) for speaker, group in sorted(groups.items())}

    @property
    def speakers(self) -> tuple[str, ...]:
        return tuple(self.by_speaker)

    @cached_property
    def genders(self) -> dict[str, str]:
        """Each speaker's gender: the one of most of their utterances, "" if none says."""
        gender_of = {}
        for speaker, group in self.by_speaker.items():
            counts = Counter(u.gender for u in group if u.gender)
            gender_of[speaker] = min(counts, key=lambda g: (-counts[g], g)) if counts else ""
        return gender_of

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """The languages that the corpus names (`en`, `de`), the most frequent first; none where it says nothing."""
        if self.layout in _ENGLISH:
            return ("en",)
        counts = Counter(filter(None, (language_code(u.attributes) for u in self.utterances)))
        return tuple(sorted(counts, key=lambda code: (-counts[code], code)))

    def take(self, ids: Iterable[str]) -> Corpus:
        """The part with these ids."""
        wanted = set(ids)
        chosen = tuple(u for u in self.utterances if u.id in wanted)
        return Corpus(self.root, self.layout, chosen, self.problems, self.variant)

    def relative(self, utterance: Utterance) -> Path:
        """Where the audio lies below the root; by its id if it lies elsewhere, or is a part or a side of a file."""
        try:
            below = utterance.path.relative_to(self.root)
        except ValueError:
            below = None
        a_side = utterance.channel is not None and not utterance.of_several
        if below is None or utterance.start or utterance.end is not None or a_side:
            return Path("wav", file_name(utterance.id) + utterance.path.suffix)
        return below


def read_corpus(
    path: str | Path,
    layout: str | None = None,
    *,
    roots: Sequence[str | Path] = (),
    part: str | None = None,
    suffix: str | None = None,
    columns: Mapping[str, str] | None = None,
    channel: str | None = None,
    own_names: bool = False,
) -> Corpus:
    """The corpus at `path`, its layout recognized by what is there or named.

    Relative paths in lists and links must stay below `path` or below one of `roots`; what leads elsewhere is listed as
    a problem and left out. Absolute paths in a list lead where its author says, unless `roots` confines them. `part`
    chooses among the parts of a corpus that has several (LibriSpeech's `test-clean`, Common Voice's `test`,
    VoicePrivacy's `libri_test`), `suffix` among VoicePrivacy's variants (`_anon`); `columns` says what columns of a
    table are called there (`{"path": "audio_path"}`). An option that the layout has no use for is an error. `channel`
    is that of every recording with several channels whose list names none: a number from 0, or `mix` for the mean of
    all. With `own_names` a table that has not the `columns` may have veilmeter's own names for them instead, as the
    lists of anonymized copies do.

    Parameters
    ----------
    path : str or Path
        The folder, or a list in it.
    layout : str, optional
        Its layout, if it is not recognized.
    roots : sequence of str or Path
        Further folders that may hold audio.
    part, suffix : str, optional
        The part and the variant, where there are several.
    columns : mapping, optional
        What columns of a table are called there.
    channel : str, optional
        The channel of recordings with several.
    own_names : bool
        Whether a table may have veilmeter's own names of columns instead.

    Returns
    -------
    Corpus
        The utterances, and problems of the lists.

    Raises
    ------
    InputError
        If nothing is recognized there, or an option does not fit the layout.

    Examples
    --------
    >>> read_corpus("speech/list.csv")  # doctest: +SKIP
    Corpus(80 utterances of 20 speakers, csv layout, speech)
    """
    from veilmeter.data import layouts  # which needs Utterance

    options = layouts.ReadOptions(
        part, suffix, tuple(Path(root) for root in roots), dict(columns or {}), channel, own_names
    )
    return layouts.read(Path(path), layout, options)


_ENGLISH = ("librispeech", "vctk")  # corpora of English speech


def language_code(attributes: Mapping[str, str]) -> str:
    """The language an utterance is said to be in, as the first part of its tag.

    >>> language_code({"language": "de-CH"}), language_code({"locale": "en"}), language_code({"age": "20"})
    ('de', 'en', '')
    """
    tag = attributes.get("language") or attributes.get("locale") or ""
    return tag.strip().lower().replace("_", "-").split("-")[0]


def gender_code(text: str) -> str:
    """The many ways to write a gender as "f", "m" or "".

    >>> [gender_code(text) for text in ("F", "female_feminine", "Male", "other", "")]
    ['f', 'f', 'm', '', '']
    """
    word = text.strip().lower()
    if word in ("f", "w", "female", "woman", "female_feminine"):
        return "f"
    return "m" if word in ("m", "male", "man", "male_masculine") else ""


def clean_id(text: str) -> str:
    """An id without white space or control characters, which trial lists and Kaldi's files can't hold.

    >>> clean_id("anna/first take")
    'anna/first_take'
    """
    # Composed, as file systems differ in how they store accents, and an original must find its anonymized partner.
    return "".join(c if c.isprintable() and not c.isspace() else "_" for c in unicodedata.normalize("NFC", text))


def file_name(text: str) -> str:
    """An id as the name of one file.

    >>> file_name("../a/b")
    '__a_b'
    """
    name = clean_id(text).replace("/", "_").replace("\\", "_")
    while name.startswith("."):
        name = name.replace("..", "_", 1) if name.startswith("..") else "_" + name[1:]
    return name


@dataclass(frozen=True)
class ReadingFacts:
    """Facts about the inputs: speech or scores alone, recordings or vectors, whether a channel had to be chosen, and
    whether recordings lie outside their corpus."""

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
        (), help="Additional folder that may hold audio. Kaldi folders may refer to audio in these folders only.",
        metavar="FOLDER", group=CORPUS, path=True, comparable=True, acts_when=(SPEECH, AUDIO, OTHER_FOLDERS),
        example="cache",
    )  # fmt: skip
    columns: tuple[str, ...] = declare(
        (), help="Names of the columns of a table, as in path=audio_path,speaker=speaker_id.",
        metavar="MEANING=COLUMN", group=CORPUS, parse=list_columns, acts_when=(SPEECH, AUDIO), example="speaker=gender",
    )  # fmt: skip
    channel: str | None = declare(
        None, help="Channel to use if channels differ: a number from 0, or mix for their mean.",
        metavar="N|mix", group=CORPUS, parse=name_channel, acts_when=(SPEECH, AUDIO, SEVERAL_CHANNELS), example="1",
    )  # fmt: skip

    def __post_init__(self) -> None:
        from veilmeter.data.formats.table import parse_columns

        super().__post_init__()
        parse_columns(self.columns)

    @property
    def roots(self) -> tuple[Path, ...]:
        return tuple(map(Path, self.root))


class SpeechRole(StrEnum):
    """What speech is given for; the value is the name of the option, and of the input in results.json."""

    ORIGINAL = "original"
    ANONYMIZED = "anonymized"
    DISTRACTORS_ORIGINAL = "distractors_original"
    DISTRACTORS = "distractors"
    ATTACKER_RUN = "attacker_run"
    TRAIN_ORIGINAL = "train_original"
    TRAIN_ANONYMIZED = "train_anonymized"
    TRAIN_SIMILAR = "train_similar"

    @property
    def is_training(self) -> bool:
        """Whether it is speech of other people, to train attackers on."""
        return self in (SpeechRole.TRAIN_ORIGINAL, SpeechRole.TRAIN_ANONYMIZED, SpeechRole.TRAIN_SIMILAR)

    @property
    def is_original(self) -> bool:
        return self in (SpeechRole.ORIGINAL, SpeechRole.DISTRACTORS_ORIGINAL, SpeechRole.TRAIN_ORIGINAL)

    @property
    def is_released(self) -> bool:
        """Whether it is the output of the anonymizer that is assessed, of one variant of VoicePrivacy data."""
        return self in (SpeechRole.ANONYMIZED, SpeechRole.DISTRACTORS)


SIDES = (SpeechRole.ORIGINAL, SpeechRole.ANONYMIZED)
FURTHER = {SpeechRole.ORIGINAL: SpeechRole.DISTRACTORS_ORIGINAL, SpeechRole.ANONYMIZED: SpeechRole.DISTRACTORS}
"""Speech of further people who are enrolled and never tried, for each side."""
