"""Whether options of reading decided anything about a corpus: the channel of its recordings, and further folders."""

from __future__ import annotations

from veilmeter.data.corpus import Corpus
from veilmeter.data.corpus_options import CorpusReading, ReadingFacts
from veilmeter.speech.audio import read_header


def chose_channel(corpus: Corpus) -> bool:
    """Whether the user's choice of a channel decided what was heard of some recording."""
    chosen = (read_header(utterance.path) for utterance in corpus if utterance.of_several)
    return any(header is not None and header[1] > 1 for header in chosen)


def leaves_home(corpus: Corpus) -> bool:
    """Whether the folders that audio may lie in decided anything: a recording lies elsewhere, or was left out."""
    home = corpus.root.resolve()
    return bool(corpus.problems) or not all(u.path.resolve().is_relative_to(home) for u in corpus)


def reading_facts(options: CorpusReading, *corpora: Corpus) -> ReadingFacts:
    """The facts that tell whether options of reading decided anything; not looked for where none was given."""
    return ReadingFacts(
        has_channels=options.channel is not None and any(map(chose_channel, corpora)),
        leaves_home=bool(options.root) and any(map(leaves_home, corpora)),
    )
