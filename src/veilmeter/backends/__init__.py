"""Back ends: from speaker vectors to scores."""

from veilmeter.backends.base import Averages, Backend, CentredCosine, Cosine, average, single
from veilmeter.backends.lda import LDA
from veilmeter.backends.plda import PLDA

__all__ = ["LDA", "PLDA", "Averages", "Backend", "CentredCosine", "Cosine", "average", "single"]
