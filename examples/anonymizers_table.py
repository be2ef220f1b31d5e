"""How well each anonymizer hides speakers, and how distinct they stay: docs/validation/anonymizers.md.

    python examples/anonymizers_table.py TEST_CORPUS TRAINING_CORPUS [--jobs 2] [--extractor campplus]

EERs in percent over pairs of different utterances, scored by the cosine of their embeddings:

- ignorant: original enrollment, anonymized test
- lazy-informed: both anonymized, each side with its own seed, so a speaker gets another pseudo-speaker
- informed: as lazy-informed, but the attacker's back end (LDA with within-class normalization) is trained on the
  training corpus anonymized by the same system: three pieces of 3 s of every recording, each with a voice of its own
- distinctness: both anonymized with one seed: small if voices that were different stay different
- DNSMOS: predicted overall quality (1 to 5) of two utterances per speaker
- own voice: how often an output is closer to its pseudo-speaker's x-vector than to another speaker's pseudo-speaker's
  (chance: 50); and among pseudo-speakers of one gender
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import sys
import time
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.anonymizers.base import Anonymizer, Samples, load_anonymizer
from veilmeter.anonymizers.xvector_pool import XvectorPool, world
from veilmeter.attacks.backends.lda import LDA
from veilmeter.core.engine import Engine, map_ordered, open_engine
from veilmeter.core.files import whole_file
from veilmeter.data.corpus import Corpus, Utterance, read_corpus
from veilmeter.data.embeddings import unit
from veilmeter.data.scores import Scores
from veilmeter.metrics.scores.summary import measure
from veilmeter.speech import weights
from veilmeter.speech.audio import read_audio
from veilmeter.speech.extractors.base import load_extractor

PIECES = 3
PIECE_SECONDS = 3.0
ENROLLMENT_SEED, TEST_SEED, TRAINING_SEED = 1, 2, 100
MOS_SAMPLES = int(9.01 * world.RATE)


@dataclass(frozen=True)
class Control:
    """The vocoder alone: not worth offering as an anonymizer, but a reference for those that use it."""

    warp: float
    f0: float
    seed: int = 0
    name: str = "control"
    version: str = "1"

    def parameters(self, utterance: Utterance) -> dict[str, Any]:
        return {}

    def anonymize(self, samples: Samples, parameters: dict[str, Any]) -> Samples:
        analysis = world.analyze(samples)
        moved = analysis if self.warp == self.f0 == 1.0 else world.warp(analysis, self.warp, self.f0)
        return world.synthesize(moved)


@dataclass(frozen=True)
class Row:
    """A system and its options; a `warp` makes it a control."""

    label: str
    system: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    warp: tuple[float, float] | None = None

    @property
    def random(self) -> bool:
        return self.system in ("mcadams-random", "xvector-pool")

    def make(self, seed: int, corpus: Corpus, engine: Engine, model: str) -> Anonymizer:
        if self.warp is not None:
            return Control(*self.warp, seed=seed)
        options = self.options | ({"model": model} if model and self.system == "xvector-pool" else {})
        made = load_anonymizer(self.system, options | {"seed": seed})
        if not isinstance(made, XvectorPool):
            return made
        if corpus.root not in _sources:  # the source speakers are the same for every row and seed
            _sources[corpus.root] = made.prepare(corpus, engine).sources
        return replace(made, sources=_sources[corpus.root])


_sources: dict[Path, Any] = {}


ROWS = {
    "copy": Row("copy synthesis (WORLD)", warp=(1.0, 1.0)),
    "warp": Row("fixed warp 1.12 and F0 x 1.25, no pool", warp=(1.12, 1.25)),
    "b2": Row("B2: `mcadams` 0.8", "mcadams", {"alpha": 0.8}),
    "b2r": Row(
        "B2r: `mcadams-random` 0.5-0.9, per speaker", "mcadams-random", {"alpha_range": (0.5, 0.9), "per": "speaker"}
    ),
    "b2r-narrow": Row(
        "B2r: `mcadams-random` 0.7-0.9, per speaker", "mcadams-random", {"alpha_range": (0.7, 0.9), "per": "speaker"}
    ),
    "pool": Row("**`xvector-pool`**, random gender", "xvector-pool"),
    "pool-same": Row("`xvector-pool`, same gender", "xvector-pool", {"gender": "same"}),
    "pool-plda": Row("`xvector-pool`, random gender, PLDA distance", "xvector-pool", {"distance": "plda"}),
}


@dataclass(frozen=True)
class Job:
    """One recording, or the piece from `start` to `stop` (seconds), as the system leaves it."""

    utterance: Utterance
    anonymizer: Anonymizer | None
    start: float = 0.0
    stop: float | None = None
    mos: bool = False


def hear(extractors: tuple[str, ...], job: Job) -> NDArray[np.float32]:
    """The unit embeddings of what a job gives, one after the other, and last its predicted quality."""
    samples = read_audio(job.utterance.path)
    samples = samples[int(job.start * world.RATE) : None if job.stop is None else int(job.stop * world.RATE)]
    if job.anonymizer is not None:
        samples = job.anonymizer.anonymize(samples, job.anonymizer.parameters(job.utterance))
    vectors = [unit(_extractor(name).embed(samples)) for name in extractors]
    return np.concatenate([*vectors, [predicted_mos(samples) if job.mos else np.nan]]).astype(np.float32)


@lru_cache
def _extractor(name: str) -> Any:
    return load_extractor(name)


@lru_cache
def _mos_session() -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(weights.fetch(weights.DNSMOS)), options)


def predicted_mos(samples: Samples) -> float:
    """DNSMOS P.835 overall quality, 1 to 5: mean over stretches of 9.01 s, one every second; shorter ones are repeated.

    The polynomial is the published calibration of the raw output to listeners' scores.
    """
    clipped = np.clip(samples, -1, 1)
    long_enough = np.tile(clipped, -(-MOS_SAMPLES // len(clipped)))
    raw = [
        _mos_session().run(None, {"input_1": long_enough[None, at : at + MOS_SAMPLES].astype(np.float32)})[0][0][2]
        for at in range(0, len(long_enough) - MOS_SAMPLES + 1, world.RATE)
    ]
    return float(np.mean(np.polyval([-0.06766283, 1.11546468, 0.04602535], raw)))


def eer(enrollment: NDArray[Any], test: NDArray[Any], speakers: NDArray[Any]) -> str:
    """With its speaker-clustered interval."""
    apart = ~np.eye(len(speakers), dtype=bool)
    scores = Scores.from_matrix(enrollment @ test.T, speakers, speakers, mask=apart)
    found: Any = measure(scores, resamples=400, seed=0)["eer"]
    low, high = found.interval or (float("nan"),) * 2
    return f"{found.value:.1f} [{low:.0f}, {high:.0f}]"


def own_voice(anonymizer: Anonymizer, corpus: Corpus, vectors: NDArray[Any]) -> str:
    """Percent of (output, other speaker) pairs in which the own pseudo-speaker is closer, all and within a gender."""
    if not isinstance(anonymizer, XvectorPool):
        return ""
    chosen = {u.speaker: anonymizer.parameters(u) for u in corpus}
    names = sorted(chosen)
    pool = anonymizer.chosen_pool
    # Against the pool's mean, which says nothing about anyone.
    center = pool.unit.mean(axis=0)
    voices = unit(np.stack([pool.average(chosen[name]["members"]) for name in names]) - center)
    cosines = unit(vectors - center) @ voices.T
    genders = np.array([chosen[name]["gender"] for name in names])
    own = np.array([names.index(u.speaker) for u in corpus])
    closer = cosines[np.arange(len(own)), own][:, None] > cosines
    others = own[:, None] != np.arange(len(names))
    alike = others & (genders[own][:, None] == genders)
    return f"{100 * closer[others].mean():.0f} / {100 * closer[alike].mean():.0f}"


class Listener:
    """Hears jobs on the engine and keeps what it heard in a folder, so that a stopped run goes on."""

    def __init__(self, engine: Engine, extractors: list[str], keep: Path | None) -> None:
        self.engine, self.extractors, self.keep = engine, tuple(extractors), keep
        self.heard: dict[str, dict[str, NDArray[np.float32]]] = {}
        self.sizes = {name: _extractor(name).dimension for name in extractors}

    def hear(self, title: str, jobs: list[Job], extractors: tuple[str, ...] = ()) -> dict[str, NDArray[np.float32]]:
        """By extractor the embeddings of all jobs; under "mos" their predicted quality."""
        wanted = extractors or self.extractors
        system = jobs[0].anonymizer
        about = repr((title, wanted, system and (system.name, system.version), [job.utterance.id for job in jobs]))
        if about in self.heard:
            return self.heard[about]
        kept = self.keep and self.keep / f"{title}-{hashlib.sha256(about.encode()).hexdigest()[:12]}.npy"
        if kept and kept.is_file():
            table = np.load(kept, allow_pickle=False)
        else:
            table = np.stack(map_ordered(self.engine, partial(hear, wanted), jobs))
            if kept:
                with whole_file(kept) as temporary, open(temporary, "wb") as handle:
                    np.save(handle, table)
        ends = np.cumsum([self.sizes[name] for name in wanted])
        self.heard[about] = dict(zip((*wanted, "mos"), np.split(table, ends, axis=1), strict=True))
        return self.heard[about]


def rating(heard: dict[str, NDArray[np.float32]]) -> str:
    given = heard["mos"][np.isfinite(heard["mos"])]
    return f"{given.mean():.2f}" if len(given) else ""


def measured(
    key: str, row: Row | None, test: Corpus, training: Corpus, listener: Listener, args: argparse.Namespace
) -> list[str]:
    """The cells of one row, for all extractors."""
    speakers = np.array([u.speaker for u in test])
    # DNSMOS costs more than everything else together: two utterances per speaker must do.
    rated = {u.id for group in test.by_speaker.values() for u in group[: 2 if args.mos else 0]}
    originals = listener.hear("original", [Job(u, None, mos=u.id in rated) for u in test])
    if row is None:
        cells = [[eer(originals[name], originals[name], speakers), "", "", ""] for name in args.extractor]
        return [*itertools.chain(*cells), "", rating(originals)]
    made = {seed: row.make(seed, test, listener.engine, args.model) for seed in (TEST_SEED, ENROLLMENT_SEED)}
    tested, enrollment = (
        # A system without chance gives the same for every seed: heard once.
        listener.hear(
            f"{key}-{seed if row.random else 0}",
            [Job(u, system, mos=u.id in rated and seed == TEST_SEED) for u in test],
        )
        for seed, system in made.items()
    )
    attacker = args.extractor[0]
    projected: tuple[NDArray[Any], NDArray[Any]] | None = None
    if args.informed:
        jobs = []
        for piece in range(PIECES):
            system = row.make(TRAINING_SEED + piece, training, listener.engine, args.model)
            start = piece * PIECE_SECONDS
            jobs += [Job(u, system, start, start + PIECE_SECONDS) for u in training if _lasts(u, start + PIECE_SECONDS)]
        heard = listener.hear(f"{key}-training", jobs, (attacker,))[attacker]
        backend = LDA.fit(heard, [job.utterance.speaker for job in jobs])
        projected = backend.project(enrollment[attacker]), backend.project(tested[attacker])
    found: list[str] = []
    for name in args.extractor:
        informed = eer(*projected, speakers) if projected is not None and name == attacker else ""
        found += [
            eer(originals[name], tested[name], speakers),
            eer(enrollment[name], tested[name], speakers),
            informed,
            eer(tested[name], tested[name], speakers),
        ]
    preference = own_voice(made[TEST_SEED], test, tested["campplus"]) if "campplus" in tested else ""
    return [*found, preference, rating(tested)]


@cache
def _seconds(path: Path) -> float:
    return len(read_audio(path)) / world.RATE


def _lasts(utterance: Utterance, seconds: float) -> bool:
    return _seconds(utterance.path) >= seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("test", help="corpus of the speakers to hide, several utterances each")
    parser.add_argument("training", help="corpus of other speakers, for the informed attacker")
    parser.add_argument("--extractor", action="append", help="campplus and ge2e by default")
    parser.add_argument("--row", action="append", choices=["original", *ROWS], help="all by default")
    parser.add_argument("--model", default="", help="an xvector-pool model other than the shipped one")
    parser.add_argument("--no-informed", dest="informed", action="store_false", help="leave out the informed attacker")
    parser.add_argument("--no-mos", dest="mos", action="store_false", help="leave out the predicted quality")
    parser.add_argument("--jobs", type=int, default=None)
    parser.add_argument("--keep", type=Path, help="a folder for embeddings, so that a stopped run goes on")
    args = parser.parse_args()
    args.extractor = args.extractor or ["campplus", "ge2e"]
    test, training = read_corpus(args.test), read_corpus(args.training)
    weights.fetch(weights.DNSMOS)  # once, before several processes ask for it
    engine = open_engine(args.jobs)
    columns = ["ignorant", "lazy-informed", "informed", "distinctness"]
    head = ["system", *(f"{name}: {column}" for name in args.extractor for column in columns)]
    head += ["own voice, all / same gender", "DNSMOS"]
    print("| " + " | ".join(head) + " |\n|---|" + "---:|" * (len(head) - 1), flush=True)
    try:
        listener = Listener(engine, args.extractor, args.keep)
        for key in args.row or ["original", *ROWS]:
            start = time.monotonic()
            cells = measured(key, ROWS.get(key), test, training, listener, args)
            label = ROWS[key].label if key in ROWS else "original"
            print("| " + " | ".join([label, *cells]) + " |", flush=True)
            print(f"{key}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    finally:
        engine.close()


if __name__ == "__main__":
    main()
