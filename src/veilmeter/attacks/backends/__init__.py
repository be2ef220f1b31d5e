"""Back ends: from speaker vectors to scores."""

from veilmeter.attacks.backends.base import Averages, Backend, CenteredCosine, Cosine, average, single
from veilmeter.attacks.backends.lda import LDA, PLDA

__all__ = ["LDA", "PLDA", "Averages", "Backend", "CenteredCosine", "Cosine", "average", "single"]
