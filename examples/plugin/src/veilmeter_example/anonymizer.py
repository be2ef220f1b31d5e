"""An anonymizer: every recording softer, by an amount drawn for each speaker or utterance."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter import Utterance
from veilmeter.anonymizers.base import Draw, generator


class Softer:
    name, version = "softer", "1"

    def __init__(self, seed: int = 0, per: str = "speaker") -> None:
        self.seed, self.per, self.draws = seed, per, Draw(per)

    def parameters(self, utterance: Utterance) -> dict[str, Any]:
        """All chance is here, from the seed and an id alone, so that the order of the work changes nothing."""
        whose = utterance.speaker if self.per == "speaker" else utterance.id
        return {"factor": float(generator(self.seed, whose).uniform(0.3, 0.9))}

    def anonymize(self, samples: NDArray[np.float32], parameters: dict[str, Any]) -> NDArray[np.float32]:
        return samples * np.float32(parameters["factor"])
