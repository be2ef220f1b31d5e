"""Back ends: from speaker vectors to scores."""

from veilmeter.attacks.backends.base import Averages, Backend, CenteredCosine, Cosine, average, single
from veilmeter.attacks.backends.lda import LDA
from veilmeter.attacks.backends.plda import PLDA

__all__ = ["LDA", "PLDA", "Averages", "Backend", "CenteredCosine", "Cosine", "average", "single"]
