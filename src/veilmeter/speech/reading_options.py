"""Whether options of reading decided anything about a corpus: the channel of its recordings, and further folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from veilmeter.data.corpus import Corpus
from veilmeter.speech.audio import read_header

NO_CHANNELS = "no recording has several channels that a list leaves open"
ALL_AT_HOME = "every recording lies below the corpus's own folder"


def chose_channel(corpus: Corpus) -> bool:
    """Whether the user's choice of a channel decided what was heard of some recording."""
    chosen = (read_header(utterance.path) for utterance in corpus if utterance.of_several)
    return any(header is not None and header[1] > 1 for header in chosen)


def leaves_home(corpus: Corpus) -> bool:
    """Whether the folders that audio may lie in decided anything: a recording lies elsewhere, or was left out."""
    home = corpus.root.resolve()
    return bool(corpus.problems) or not all(u.path.resolve().is_relative_to(home) for u in corpus)


def unused_options(corpus: Corpus, roots: Sequence[str | Path], channel: str | None) -> dict[str, str]:
    """The options of reading that were given and decided nothing, and why."""
    unused = {}
    if roots and not leaves_home(corpus):
        unused["root"] = ALL_AT_HOME
    if channel is not None and not chose_channel(corpus):
        unused["channel"] = NO_CHANNELS
    return unused
