"""From a corpus to embeddings on disk: on all cores, resumable, and the same bytes whatever happened on the way."""

from veilmeter.extraction.run import Embedded, embed_corpus

__all__ = ["Embedded", "embed_corpus"]
