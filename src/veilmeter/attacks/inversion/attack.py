"""An inversion moves anonymized vectors back to the clear ones: learned from training vectors, saved without pickle.

Before a rotation is learned, the vectors of each side are centered, projected by PCA and scaled to unit length.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter._version import __version__
from veilmeter.attacks.inversion.procrustes import (
    INITIAL_POINTS,
    Matching,
    Schedule,
    check_sets,
    initial_rotation,
    is_orthogonal,
    mutual_refinement,
    procrustes,
    wasserstein_procrustes,
)
from veilmeter.core.errors import InputError
from veilmeter.core.files import BROKEN_ARCHIVE, check_input, whole_file
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.npz import refuse_bombs
from veilmeter.data.matching import match, with_people_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """x -> (x - mean) basis, then length 1. Without centering `mean` is empty, without PCA `basis` is.

    >>> p = fit_preprocessing([[3.0, 4.0], [1.0, 0.0]])
    >>> p.apply([[3.0, 4.0]]).tolist()
    [[0.6, 0.8]]
    """

    mean: Floats
    basis: Floats
    dimension: int

    @property
    def components(self) -> int:
        """The dimension of what comes out."""
        return int(self.basis.shape[1]) if self.basis.size else self.dimension

    def project(self, vectors: ArrayLike) -> Floats:
        """Centered and projected, not yet of length 1: what an enrollment model is averaged from."""
        x = np.asarray(vectors, float)
        if x.ndim != 2 or x.shape[1] != self.dimension:
            raise InputError(f"this map was learned on {self.dimension}-d vectors, these are {x.shape}")
        if self.mean.size:
            x = x - self.mean
        return x @ self.basis if self.basis.size else x

    def apply(self, vectors: ArrayLike) -> Floats:
        """As the rotation sees them: projected, with length 1."""
        return unit_rows(self.project(vectors))


def fit_preprocessing(vectors: ArrayLike, *, pca: int | None = None, center: bool = False) -> Preprocessing:
    """Fit on one side's training vectors. PCA is exact (full SVD; signs fixed, so that nothing is left to chance)."""
    x = np.asarray(vectors, float)
    count, dimension = x.shape
    mean = x.mean(0) if center or pca else np.zeros(0)
    basis = np.zeros((0, 0))
    if pca:
        if pca < 1 or pca > min(count, dimension):
            raise InputError(
                f"PCA to {pca} dimensions needs at least {pca} training vectors of at least that dimension; "
                f"here are {count} of {dimension}-d",
                fix=f"choose at most {min(count, dimension)} or give more vectors",
            )
        _, values, vt = np.linalg.svd(x - mean, full_matrices=False)
        if values[0] <= 1e-12 * max(1.0, float(np.abs(x).max())):
            raise InputError("all training vectors are the same: there is nothing to learn from")
        basis = vt[:pca].T
        # An SVD leaves the signs open; the largest entry of each direction is made positive.
        basis = basis * np.sign(basis[np.argmax(np.abs(basis), axis=0), np.arange(pca)])
    return Preprocessing(mean, basis, dimension)


def unit_rows(vectors: ArrayLike) -> Floats:
    """Rows with length 1; a row of zeros (the mean itself, after centering) stays zero."""
    x = np.asarray(vectors, float)
    norms = np.linalg.norm(x, axis=1, keepdims=True)
    scaled: Floats = x / np.where(norms > 0, norms, 1.0)
    return scaled


FORMAT = "veilmeter-inversion-map-1"
EVERYBODY = ""


@dataclass(frozen=True, eq=False)
class Alignment:
    """One rotation W with the preprocessing of both sides: restored = prepare(anonymized) W (paper 002, eq. 2)."""

    clear: Preprocessing
    anonymized: Preprocessing
    rotation: Floats

    def __post_init__(self) -> None:
        expected = (self.anonymized.components, self.clear.components)
        if self.rotation.shape != expected or not is_orthogonal(self.rotation):
            raise InputError(f"the map's rotation must be an orthogonal {expected} matrix")

    def restore(self, anonymized: ArrayLike) -> Floats:
        """Anonymized vectors as the attacker sees their clear counterparts: length 1, in the space of `see`."""
        return self.anonymized.apply(anonymized) @ self.rotation

    def see(self, clear: ArrayLike) -> Floats:
        """Clear vectors in the space where restored ones live, with length 1."""
        return self.clear.apply(clear)

    def anonymize(self, clear: ArrayLike) -> Floats:
        """The other way round: where the rotation says that the anonymizer puts these clear vectors."""
        return self.clear.apply(clear) @ self.rotation.T


@dataclass(frozen=True, eq=False)
class InversionMap:
    """The alignments by group (one for everybody, or one per gender), and how they were learned.

    `column` is the attribute that chooses the alignment; with a single alignment it is empty.
    """

    alignments: Mapping[str, Alignment]
    column: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.alignments:
            raise InputError("the map has no rotation")

    @cached_property
    def dimension(self) -> int:
        """The dimension of the vectors that `restore` gives."""
        return max(alignment.clear.components for alignment in self.alignments.values())

    def groups(self, embeddings: Embeddings) -> dict[str, NDArray[np.int64]]:
        """Which rows each alignment takes care of."""
        if not self.column:
            return {EVERYBODY: np.arange(len(embeddings))}
        values = attribute(embeddings, self.column)
        unknown = sorted(set(values) - set(self.alignments))
        if unknown:
            raise InputError(
                f"the map knows {self.column} {', '.join(sorted(self.alignments))}, not {unknown[0]!r}",
                path=embeddings.source or None,
                fix=f"leave these utterances out or learn one map for everybody (without --by-{self.column})",
            )
        return {value: np.flatnonzero(values == value) for value in self.alignments if (values == value).any()}

    def restore(self, anonymized: Embeddings) -> Embeddings:
        """The anonymized embeddings moved back; compare them with `see` of clear ones."""
        return self._each(anonymized, Alignment.restore)

    def see(self, clear: Embeddings) -> Embeddings:
        """Clear embeddings as restored ones are to be compared with."""
        return self._each(clear, Alignment.see)

    def project(self, clear: Embeddings) -> Embeddings:
        """As `see`, but without scaling to length 1: enrollment models are plain means of these."""
        return self._each(clear, lambda alignment, rows: alignment.clear.project(rows))

    def anonymize(self, clear: Embeddings) -> Embeddings:
        """The inverse: clear embeddings moved to where the anonymizer would put them."""
        return self._each(clear, Alignment.anonymize)

    def _each(self, embeddings: Embeddings, move: Any) -> Embeddings:
        out = np.zeros((len(embeddings), self.dimension))
        for group, rows in self.groups(embeddings).items():
            moved = move(self.alignments[group], embeddings.vectors[rows])
            out[rows, : moved.shape[1]] = moved
        return embeddings.with_vectors(out)

    def save(self, path: str | Path) -> None:
        """As one .npz of plain arrays and a JSON text; nothing in it is code."""
        arrays: dict[str, NDArray[Any]] = {}
        about = {
            "format": FORMAT,
            "veilmeter": __version__,
            "column": self.column,
            "groups": list(self.alignments),
            "facts": dict(self.facts),
        }
        arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
        for number, alignment in enumerate(self.alignments.values()):
            arrays[f"{number}/rotation"] = alignment.rotation
            for side, prepared in (("clear", alignment.clear), ("anonymized", alignment.anonymized)):
                arrays[f"{number}/{side}/mean"] = prepared.mean
                arrays[f"{number}/{side}/basis"] = prepared.basis
                arrays[f"{number}/{side}/dimension"] = np.array(prepared.dimension)
        with whole_file(path) as temporary, open(temporary, "wb") as handle:
            np.savez(handle, allow_pickle=False, **arrays)


def identity_map(dimension: int) -> InversionMap:
    """No inversion at all: vectors of length 1 as they are, to show what an attacker gets without a map."""
    nothing = Preprocessing(np.zeros(0), np.zeros((0, 0)), dimension)
    return InversionMap({EVERYBODY: Alignment(nothing, nothing, np.eye(dimension))}, "", {"method": "none"})


def load_map(path: str | Path) -> InversionMap:
    """A map that `InversionMap.save` wrote. Files are not trusted: no pickle, and every array is checked."""
    try:
        check_input(path)
        with zipfile.ZipFile(path) as archive:
            refuse_bombs(archive, Path(path))
        with np.load(path, allow_pickle=False) as stored:
            about = json.loads(bytes(stored["about"].astype(np.uint8)))
            if not isinstance(about, dict) or about.get("format") != FORMAT:
                raise InputError("not an inversion map, or one of another version", path=path)
            alignments = {
                str(group): Alignment(
                    _read_side(stored, f"{number}/clear"),
                    _read_side(stored, f"{number}/anonymized"),
                    _array(stored, f"{number}/rotation", 2),
                )
                for number, group in enumerate(about["groups"])
            }
            return InversionMap(alignments, str(about["column"]), dict(about["facts"]))
    except InputError as error:
        raise InputError(error.what, path=path, fix=error.fix) from None
    except BROKEN_ARCHIVE as error:
        raise InputError(f"not an inversion map: {error}", path=path) from None


def _array(stored: Any, name: str, dimensions: int) -> Floats:
    array = np.asarray(stored[name])
    if array.dtype.kind != "f" or array.ndim != dimensions or not np.isfinite(array).all():
        raise InputError(f"the map's {name} is not a table of finite numbers")
    return array.astype(float)


def _read_side(stored: Any, prefix: str) -> Preprocessing:
    dimension = int(stored[f"{prefix}/dimension"])
    mean, basis = _array(stored, f"{prefix}/mean", 1), _array(stored, f"{prefix}/basis", 2)
    if mean.size not in (0, dimension) or (basis.size and basis.shape[0] != dimension):
        raise InputError(f"the map's {prefix} has parts that do not fit together")
    return Preprocessing(mean, basis, dimension)


def attribute(embeddings: Embeddings, column: str) -> NDArray[np.object_]:
    """A column that every utterance must have."""
    values = embeddings.attributes.get(column)
    if values is None or not all(values):
        raise InputError(
            f"not every utterance has a {column}",
            path=embeddings.source or None,
            fix=f"add a {column} column (Kaldi: meta/spk2{column}) or learn one map for everybody",
        )
    return values


Method = Literal["procrustes", "wasserstein"]


@dataclass(frozen=True, slots=True)
class InversionSettings:
    """How the attack learns. `by` names an attribute (gender): one map for each of its values.

    `procrustes` knows which anonymized training vector belongs to which clear one, `wasserstein` does not. `rounds`
    sharpen the map on vectors that are each other's nearest; supervised, on all training vectors, paired or not.
    """

    method: Method = "procrustes"
    pca: int | None = None
    center: bool = False
    by: str = ""
    reflections: bool = True
    seed: int = 0
    matching: Matching = "assignment"
    schedule: Schedule | None = None
    rounds: int = 0

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise InputError(
                f"unknown inversion method {self.method!r}",
                fix=f"choose among {', '.join(get_args(Method))}",
            )

    @property
    def supervised(self) -> bool:
        return self.method == "procrustes"


@dataclass(frozen=True, eq=False)
class Restoration:
    """`restored` are the anonymized trials moved back, to be compared with `map.see(clear)`."""

    map: InversionMap
    restored: Embeddings


def attack(
    clear_train: Embeddings,
    anonymized_train: Embeddings,
    anonymized_trials: Embeddings,
    *,
    method: Method = "procrustes",
    pca: int | None = None,
    center: bool = False,
    by_gender: bool = False,
    reflections: bool = True,
    seed: int = 0,
) -> Restoration:
    """Learn to undo the anonymizer on the training vectors and undo it on the trials.

    Compare `restored` with `map.see(clear)`, or with enrollment models that are means of `map.project(clear)`.
    """
    settings = InversionSettings(method, pca, center, "gender" if by_gender else "", reflections, seed)
    learnt = learn(clear_train, anonymized_train, settings)
    return Restoration(learnt, learnt.restore(with_people_of(anonymized_trials, [clear_train])))


def learn(
    clear: Embeddings, anonymized: Embeddings, settings: InversionSettings, *, pairs: Sequence[str] | None = None
) -> InversionMap:
    """The map from anonymized to clear embeddings. Supervised: pairs are utterances with the same id in both.

    With `pairs` only these utterances are known as pairs; the other vectors still serve to fit the preprocessing and,
    with `settings.rounds`, to sharpen the map.
    """
    return learn_seeds(clear, anonymized, settings, [settings.seed], pairs=pairs)[0]


def learn_seeds(
    clear: Embeddings,
    anonymized: Embeddings,
    settings: InversionSettings,
    seeds: Sequence[int],
    *,
    pairs: Sequence[str] | None = None,
) -> list[InversionMap]:
    """One map a seed; what does not depend on the seed is computed once."""
    parts: dict[str, tuple[Embeddings, Embeddings]] = {EVERYBODY: (clear, anonymized)}
    if settings.by:
        anonymized = with_people_of(anonymized, [clear])
        values, other = attribute(clear, settings.by), attribute(anonymized, settings.by)
        if set(values) != set(other):
            raise InputError(
                f"the clear training set has {settings.by} {_list(values)}, the anonymized one {_list(other)}",
                path=anonymized.source or None,
            )
        parts = {value: (clear.take(values == value), anonymized.take(other == value)) for value in sorted(set(values))}
    learnt = {group: _align(*sides, settings, seeds, pairs) for group, sides in parts.items()}
    facts = {k: v for k, v in asdict(settings).items() if k not in ("schedule", "by")}
    return [
        InversionMap(
            {group: by_seed[number][0] for group, by_seed in learnt.items()},
            settings.by,
            facts | {"seed": seed, "learnt": {group: by_seed[number][1] for group, by_seed in learnt.items()}},
        )
        for number, seed in enumerate(seeds)
    ]


def objective(learnt: InversionMap) -> float:
    """How well the sets match after an unsupervised map, known without labels (lower is better)."""
    return float(sum(group_facts.get("objective", 0.0) for group_facts in learnt.facts["learnt"].values()))


def _align(
    clear: Embeddings,
    anonymized: Embeddings,
    settings: InversionSettings,
    seeds: Sequence[int],
    pairs: Sequence[str] | None,
) -> list[tuple[Alignment, dict[str, Any]]]:
    every_clear, every_anonymized = clear, anonymized
    if settings.supervised and pairs is None:
        clear, anonymized = take_pairs(clear, anonymized)
    before = fit_preprocessing(clear.vectors, pca=settings.pca, center=settings.center)
    after = fit_preprocessing(anonymized.vectors, pca=settings.pca, center=settings.center)
    if before.components != after.components:
        raise InputError(
            f"the clear vectors are {before.components}-d and the anonymized ones {after.components}-d: "
            "no rotation leads from one to the other",
            fix="use PCA to the same dimension on both sides (--pca 70), or extractors of one dimension",
        )
    if settings.supervised and pairs is not None:
        wanted = set(pairs)
        clear, anonymized = take_pairs(clear.take(np.array([u in wanted for u in clear.utterances])), anonymized)
    x, y = before.apply(clear.vectors), after.apply(anonymized.vectors)
    facts: dict[str, Any] = {"clear": len(x), "anonymized": len(y), "dimension": before.components}
    if settings.supervised:
        _some_difference(x, y)
        rotation = procrustes(y, x, reflections=settings.reflections)
        if settings.rounds:
            rotation = mutual_refinement(
                after.apply(every_anonymized.vectors),
                before.apply(every_clear.vectors),
                rotation,
                rounds=settings.rounds,
                reflections=settings.reflections,
            )
        return [(Alignment(before, after, rotation), facts)] * len(seeds)
    return [
        (Alignment(before, after, rotation), facts | more) for rotation, more in _learn_unpaired(x, y, settings, seeds)
    ]


def _learn_unpaired(
    clear: Floats, anonymized: Floats, settings: InversionSettings, seeds: Sequence[int]
) -> list[tuple[Floats, dict[str, Any]]]:
    x, y = check_sets(clear, anonymized)
    plan = settings.schedule or Schedule()
    shared = None
    if max(len(x), len(y)) <= INITIAL_POINTS:
        shared = initial_rotation(x, y, steps=plan.initial_steps, regularization=plan.regularization)
    matches = [
        wasserstein_procrustes(
            x,
            y,
            seed=seed,
            matching=settings.matching,
            reflections=settings.reflections,
            schedule=plan,
            initial=shared,
            rounds=settings.rounds,
        )
        for seed in seeds
    ]
    return [
        (matched.rotation.T, {"objective": matched.objective, "history": list(matched.history)}) for matched in matches
    ]


def take_pairs(clear: Embeddings, anonymized: Embeddings) -> tuple[Embeddings, Embeddings]:
    """The utterances that are in both, in the order of the clear set."""
    both = match(clear, anonymized)
    return both.original, both.anonymized


def _some_difference(*sets: Floats) -> None:
    for vectors in sets:
        if len(vectors) > 1 and np.allclose(vectors, vectors[0], rtol=0, atol=1e-9):
            raise InputError(
                "all training vectors of one side are the same: there is nothing to learn from",
                fix="check the extractor's output",
            )


def _list(values: NDArray[np.object_]) -> str:
    return ", ".join(sorted(set(values)))
