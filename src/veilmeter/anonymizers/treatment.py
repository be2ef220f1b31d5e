"""What is done to one recording, or to a batch of them, in whatever process: read, anonymized, doubted, written."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from veilmeter.anonymizers.base import Anonymizer, Batches, Output, Samples
from veilmeter.anonymizers.manifest import Entry
from veilmeter.anonymizers.planning import Item
from veilmeter.anonymizers.timings import NO_EFFORT, Effort
from veilmeter.core.errors import InputError, Problem, VeilmeterError
from veilmeter.core.files import sha256
from veilmeter.core.processor_time import ProcessorClock
from veilmeter.core.user_code import load_files
from veilmeter.speech.audio import (
    LONGEST_SECONDS,
    RATE,
    SHORTEST_SECONDS,
    AudioError,
    Recording,
    clipped_problem,
    is_silent,
    read_recording,
    write_audio,
)

FULL_SCALE = 32767 / 32768
FAR_TOO_LOUD = 0.1  # an output that had to be scaled by less gets a remark
OTHER_LENGTH = 0.1  # so does one that is longer or shorter by this share
NOT_ANONYMIZED = "not-anonymized"


@dataclass(frozen=True, slots=True)
class Treated:
    """`kept` is True where an earlier run had done the same; `effort` is what the system spent on it."""

    entry: Entry
    problems: list[Problem]
    kept: bool = False
    effort: Effort = NO_EFFORT


_unpacked: dict[str, Anonymizer] = {}


@dataclass(frozen=True, slots=True)
class Treatment:
    """The anonymizer comes packed and is unpacked once per process, after the user's own files that it needs."""

    packed: bytes
    own_files: tuple[str, ...]
    out: Path
    max_seconds: float

    def __call__(self, items: Sequence[Item]) -> list[Treated]:
        """The outcomes of the items, in their order."""
        outcomes: dict[int, Treated] = {}
        waiting: list[tuple[int, Item]] = []
        for number, item in enumerate(items):
            outcome = self._kept(item)
            if outcome is None:
                waiting.append((number, item))
            else:
                outcomes[number] = outcome
        for number, outcome in self._made(waiting):
            outcomes[number] = outcome
        return [outcomes[number] for number in range(len(items))]

    def _kept(self, item: Item) -> Treated | None:
        """What an earlier run did, if nothing has changed since."""
        entry, earlier = item.planned, item.earlier
        assert entry.output is not None
        if earlier is None or not entry.same_treatment(earlier):
            return None
        source = file_hash(item.utterance.path)
        if source is None or source != earlier.source_sha256:
            return None
        if earlier.output_sha256 != file_hash(self.out / entry.output) or self._is_too_long(item):
            return None
        path = str(item.utterance.path)
        remarks = [Problem(remark["kind"], remark["what"], path, fatal=False) for remark in earlier.problems]
        return Treated(replace(earlier, speaker=entry.speaker, source=entry.source), remarks, kept=True)

    def _is_too_long(self, item: Item) -> bool:
        """Whether a recording that an earlier run took is beyond the limit of this one."""
        if self.max_seconds >= LONGEST_SECONDS:
            return False
        try:
            read_recording(item.utterance.path, stretch=item.utterance.stretch, max_seconds=self.max_seconds)
        except AudioError:
            return True
        return False

    def _made(self, waiting: Sequence[tuple[int, Item]]) -> Iterator[tuple[int, Treated]]:
        """Recordings are read one by one as the system takes them, so that a batch need not fit into memory."""
        failures: list[tuple[int, Treated]] = []
        read: list[tuple[int, Item, Entry, Recording]] = []
        clock = ProcessorClock()

        def recordings() -> Iterator[tuple[Samples, dict[str, Any]]]:
            for number, item in waiting:
                path = item.utterance.path
                try:
                    with clock.paused():
                        entry = replace(item.planned, source_sha256=file_hash(path))
                        recording = read_recording(path, stretch=item.utterance.stretch, max_seconds=self.max_seconds)
                    if item.refusal:
                        raise InputError(item.refusal)
                except InputError as error:
                    failures.append((number, _failed(entry, error, path)))
                    continue
                facts = replace(recording, samples=recording.samples[:0])
                read.append((number, item, replace(entry, seconds=len(recording.samples) / RATE), facts))
                yield recording.samples, dict(entry.parameters)

        for place, result in enumerate(_timed(_anonymized(self._unpack(), recordings()), clock)):
            number, item, entry, facts = read[place]
            path = item.utterance.path
            if isinstance(result, InputError):
                outcome = _failed(replace(entry, seconds=None), result, path)
            else:
                outcome = self._written(entry, result, facts, path)
            yield number, replace(outcome, effort=Effort(clock.lap(), entry.seconds or 0.0))
        yield from failures

    def _unpack(self) -> Anonymizer:
        key = hashlib.sha256(self.packed).hexdigest()
        if key not in _unpacked:
            load_files(self.own_files)
            _unpacked[key] = pickle.loads(self.packed)  # made by this program a moment ago, never read from a file
        return _unpacked[key]

    def _written(self, entry: Entry, output: Output, recording: Recording, path: Path) -> Treated:
        problems = [problem for problem in [clipped_problem(path, recording)] if problem is not None]
        problems += [Problem("remark", remark, str(path), fatal=False) for remark in output.remarks]
        seconds = len(output.samples) / RATE
        if entry.seconds and abs(seconds / entry.seconds - 1) > OTHER_LENGTH:
            what = f"it lasted {entry.seconds:.2f} s and lasts {seconds:.2f} s after anonymization"
            problems.append(Problem("other-length", what, str(path), fatal=False))
        # Systems such as McAdams' leave the level as it comes out, often beyond what 16 bits hold. Clipping would add a
        # distortion of its own, and one that hides speakers: the whole recording is scaled instead.
        peak = float(np.abs(output.samples).max())
        gain = FULL_SCALE / peak if peak > FULL_SCALE else 1.0
        if gain < FAR_TOO_LOUD:
            what = f"its anonymized samples were {1 / gain:.0f} times beyond full scale and are scaled down"
            problems.append(Problem("too-loud", what, str(path), fatal=False))
        assert entry.output is not None
        target = self.out / entry.output
        write_audio(target, output.samples * gain)
        remarks = tuple({"kind": problem.kind, "what": problem.what} for problem in problems)
        done = replace(entry, output_sha256=file_hash(target), seconds=seconds, gain=gain, problems=remarks)
        return Treated(done, problems)


def _timed(results: Iterator[Output | InputError], clock: ProcessorClock) -> Iterator[Output | InputError]:
    """The same, while the clock counts what it takes to get them."""
    while True:
        with clock.running():
            result = next(results, None)
        if result is None:
            return
        yield result


def _anonymized(
    anonymizer: Anonymizer, recordings: Iterator[tuple[Samples, dict[str, Any]]]
) -> Iterator[Output | InputError]:
    if isinstance(anonymizer, Batches):
        for result in anonymizer.anonymize_batch(recordings):
            yield result if isinstance(result, InputError) else _checked(anonymizer.name, result)
        return
    for samples, parameters in recordings:
        try:
            yield _checked(anonymizer.name, anonymizer.anonymize(samples, parameters))
        except InputError as error:
            yield error
        except (VeilmeterError, MemoryError):
            raise
        except Exception as error:  # a stranger's system: one utterance fails, not the run
            yield InputError(f"{anonymizer.name} failed: {type(error).__name__}: {error}")


def _checked(name: str, result: Samples | Output) -> Output | InputError:
    """What a system gave back, unless no later step could use it, whoever made it: the same as of a recording."""
    output = result if isinstance(result, Output) else Output(np.asarray(result))
    samples = np.asarray(output.samples)
    if samples.dtype.kind == "f" and not np.isfinite(samples).all():
        return InputError(f"{name} gave no usable samples: they are not all finite")
    if samples.ndim != 1 or not len(samples) or samples.dtype.kind != "f":
        return InputError(f"{name} gave no usable samples: shape {samples.shape}, {samples.dtype}")
    if len(samples) < SHORTEST_SECONDS * RATE:
        return InputError(f"{name} left {len(samples) / RATE:.2f} s, less than {SHORTEST_SECONDS} s")
    if is_silent(samples):
        return InputError(f"{name} left nothing but silence")
    return Output(samples, output.remarks)


def _failed(entry: Entry, error: InputError, path: Path) -> Treated:
    kind = error.kind if isinstance(error, AudioError) else NOT_ANONYMIZED
    problem = Problem(kind, error.what, str(path), fix=error.fix or "")
    remarks = ({"kind": problem.kind, "what": problem.what},)
    return Treated(replace(entry, output=None, problems=remarks), [problem])


def file_hash(path: Path) -> str | None:
    try:
        return sha256(path) if path.is_file() else None
    except OSError:
        return None
