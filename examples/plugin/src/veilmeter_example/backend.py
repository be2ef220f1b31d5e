"""A back end: the Euclidean distance of unit vectors."""

from dataclasses import dataclass

from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from veilmeter import Embeddings
from veilmeter.attacks.backends.base import Array, Averages, unit64


@dataclass(frozen=True)
class Euclidean:
    name: str = "Euclidean distance"

    def project(self, vectors: ArrayLike) -> Array:
        return unit64(vectors)

    def compare(self, enrollment: Averages, test: Averages) -> Array:
        return -cdist(enrollment.vectors, test.vectors)


class EuclideanKind:
    about = "the Euclidean distance of mean unit vectors"
    needs_training = False

    def build(self, enroll: Embeddings, test: Embeddings) -> tuple[Euclidean, None]:
        return Euclidean(), None

    def train(self, training: Embeddings, dimension: int | None) -> Euclidean:
        return Euclidean()


KIND = EuclideanKind()
