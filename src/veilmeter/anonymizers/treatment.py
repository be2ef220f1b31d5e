"""Anonymization of one recording or a batch, in any process: read, anonymize, check, write.

Systems such as McAdams' leave the level as it comes out, often far beyond full scale. Clipping would add a distortion
that hides speakers; scaling by the highest peak lets one burst silence all the rest. So a recording beyond full scale
is scaled down to its highest peak, but not below the level that it had before, and peaks that are still too high are
attenuated for some 10 ms. A system's output is kept in an unlisted file until its level is known: memory does not
depend on its length.
"""

from __future__ import annotations

import hashlib
import pickle
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.anonymizers.base import Anonymizer, Batches, ByBlocks, Output, Samples
from veilmeter.anonymizers.manifest import NO_EFFORT, Effort, Entry, Item, ProcessorClock
from veilmeter.core.errors import InputError, Problem, Stopped, VeilmeterError, describe_error
from veilmeter.core.files import as_veilmeter_error, sha256
from veilmeter.core.user_code import load_files
from veilmeter.data.corpus import Utterance
from veilmeter.speech.audio import (
    LONGEST_SECONDS,
    RATE,
    SHORTEST_SECONDS,
    AudioError,
    Recording,
    RecordingStream,
    Silence,
    clipping_problem,
    read_recording,
    write_blocks,
)
from veilmeter.speech.decoding import open_regular

FULL_SCALE = 32767 / 32768
HOPS_PER_SECOND = 100
LOUD_SHARE = 75  # percentile of the hops that tells a level: speech is there, and rare bursts do not count
_IN_MEMORY = 1 << 24  # bytes; what is longer goes to disk
_BLOCK_HOPS = 4096


class LevelMeter:
    """The level and the highest peak of every 10 ms of samples that come in blocks."""

    def __init__(self, rate: int) -> None:
        self.hop = max(1, rate // HOPS_PER_SECOND)
        self.length = 0
        self._rest: Samples = np.empty(0, np.float32)
        self._levels: list[NDArray[np.float32]] = []
        self._peaks: list[NDArray[np.float32]] = []

    def add(self, block: Samples) -> None:
        self.length += len(block)
        joined = np.concatenate([self._rest, block]) if len(self._rest) else block
        whole = len(joined) // self.hop * self.hop
        self._note(joined[:whole].reshape(-1, self.hop))
        self._rest = joined[whole:].copy()

    def _note(self, hops: Samples) -> None:
        self._levels.append(np.sqrt(np.mean(np.square(hops, dtype=np.float64), axis=1)).astype(np.float32))
        self._peaks.append(np.abs(hops).max(axis=1, initial=0.0))

    @property
    def level(self) -> float:
        """The root mean square of the loud part."""
        levels = np.concatenate(self._levels) if self._levels else np.empty(0)
        return float(np.percentile(levels, LOUD_SHARE)) if len(levels) else 0.0

    @property
    def peaks(self) -> NDArray[np.float32]:
        """Of every hop, the last one that is shorter included."""
        last = np.abs(self._rest).max(keepdims=True, initial=0.0) if len(self._rest) else np.empty(0, np.float32)
        return np.concatenate([*self._peaks, last])


class OutputAudio:
    """A system's output for one recording, at 16 kHz, brought to the rate of its file; to be closed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.rate = folder, RATE
        self.meter = LevelMeter(RATE)
        self.silence = Silence()
        self._resample: Any = None
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY, dir=str(folder))  # noqa: SIM115

    def __enter__(self) -> OutputAudio:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def add(self, block: Samples, rate: int) -> None:
        """A block at 16 kHz, to be kept at this rate, which is the same for all blocks."""
        samples = np.ascontiguousarray(block, np.float32)
        if rate != RATE:
            if self._resample is None:
                import soxr

                self._resample = soxr.ResampleStream(RATE, rate, 1, dtype="float32", quality="HQ")
                self.rate, self.meter = rate, LevelMeter(rate)
            samples = self._resample.resample_chunk(samples)
        self._keep(samples)

    def finish(self) -> None:
        """All blocks are there."""
        if self._resample is not None:
            self._keep(self._resample.resample_chunk(np.empty(0, np.float32), last=True))

    def _keep(self, samples: Samples) -> None:
        self.meter.add(samples)
        self.silence.add(samples)
        try:
            self._file.write(samples.astype("<f4").tobytes())
        except OSError as error:
            raise as_veilmeter_error(error, self.folder) from None

    @property
    def seconds(self) -> float:
        return self.meter.length / self.rate

    def gain(self, level_before: float) -> float:
        """The factor with which the whole fits, or is not softer than it was before."""
        peak = float(self.meter.peaks.max(initial=0.0))
        if peak <= FULL_SCALE:
            return 1.0
        level = self.meter.level
        return min(1.0, max(FULL_SCALE / peak, level_before / level if level > 0 else 0.0))

    def share_limited(self, gain: float) -> float:
        """The share of the hops whose peaks would still be too high."""
        return float(np.mean(self.meter.peaks * gain > FULL_SCALE * (1 + 1e-6)))

    def blocks(self, gain: float, length: int | None = None) -> Iterator[NDArray[np.float64]]:
        """The samples with this gain and no peak beyond full scale, cut or filled up to `length`."""
        hop = self.meter.hop
        edges = edge_gains(self.meter.peaks * gain)
        left = self.meter.length if length is None else length
        self._file.seek(0)
        for first in range(0, len(edges) - 1, _BLOCK_HOPS):
            block = np.frombuffer(self._file.read(4 * hop * _BLOCK_HOPS), "<f4") * gain
            some = edges[first : first + _BLOCK_HOPS + 1]
            if (some < 1).any():
                ramps = some[:-1, None] + np.diff(some)[:, None] * (np.arange(hop) / hop)
                block *= ramps.ravel()[: len(block)]
            yield block[:left]
            left -= min(left, len(block))
        if left:
            yield np.zeros(left)


def edge_gains(peaks: NDArray[np.float32]) -> NDArray[np.float64]:
    """The gains at the edges of hops with these peaks, between which gains change evenly: no peak ends up beyond full
    scale, as both edges of its hop are turned down as far as it needs.

    >>> edge_gains(np.array([0.5, 2 * FULL_SCALE, 0.5, 0.5])).tolist()
    [1.0, 0.5, 0.5, 1.0, 1.0]
    """
    needed = np.minimum(1.0, FULL_SCALE / np.maximum(peaks.astype(np.float64), FULL_SCALE))
    if not len(needed):
        return np.ones(1)
    return np.concatenate([needed[:1], np.minimum(needed[:-1], needed[1:]), needed[-1:]])


_BLOCK = 1 << 20  # samples measured at once


class SourceAudio:
    """A recording for a system: in blocks, or read at once. Its level is measured on the way."""

    def __init__(self, utterance: Utterance, max_seconds: float, clock: ProcessorClock) -> None:
        self._stream = RecordingStream(utterance.path, stretch=utterance.stretch, max_seconds=max_seconds)
        self._clock, self._path = clock, utterance.path
        self._samples: Samples | None = None
        self.meter = LevelMeter(RATE)
        self.remarks: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Samples]:
        """The blocks; only once."""
        blocks = iter(self._stream)
        while True:
            with self._clock.pause():
                block = next(blocks, None)
                if block is None:
                    return
                self.meter.add(block)
            yield block

    def open_once(self) -> None:
        """An error that is known before the recording is read, such as a length beyond what is allowed."""
        with self._clock.pause():
            self._stream.open_once()

    def read(self) -> None:
        """All of it, for a system that takes nothing less."""
        with self._clock.pause():
            stretch, most = self._stream.stretch, self._stream.max_seconds
            recording = read_recording(self._path, stretch=stretch, max_seconds=most)
            self._samples, self._stream.rate = recording.samples, recording.rate
            self._stream.facts = replace(recording, samples=recording.samples[:0].copy())  # a view would keep them all
            for start in range(0, recording.length, _BLOCK):
                self.meter.add(recording.samples[start : start + _BLOCK])

    def take(self) -> Samples:
        """The samples read; they are not kept any longer."""
        assert self._samples is not None
        samples, self._samples = self._samples, None
        return samples

    @property
    def facts(self) -> Recording:
        return self._stream.facts

    @property
    def rate(self) -> int:
        """The file's rate; known as soon as the first block was read."""
        return self._stream.rate

    @property
    def seconds(self) -> float:
        return self.meter.length / RATE


FAR_TOO_LOUD = 0.1  # an output that had to be scaled by less gets a remark
MUCH_LIMITED = 0.05  # as does one of which more was turned down
BLOCK = 1 << 20  # samples at once of what a system gave in one piece
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
    rate: int | None = None  # of what is written; None: that of the source

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
        for number, outcome in self._make(waiting):
            outcomes[number] = outcome
        return [outcomes[number] for number in range(len(items))]

    def _kept(self, item: Item) -> Treated | None:
        """The outcome of an earlier run, if nothing has changed since."""
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
        utterance, limit = item.utterance, self.max_seconds
        if is_refused_unheard(utterance, limit):
            return True
        if limit >= LONGEST_SECONDS:
            return False
        try:
            read_recording(utterance.path, stretch=utterance.stretch, max_seconds=limit, keep_seconds=0.0)
        except AudioError:
            return True
        return False

    def _make(self, waiting: Sequence[tuple[int, Item]]) -> Iterator[tuple[int, Treated]]:
        """Recordings are read as the system takes them, so that a batch need not fit into memory."""
        failures: list[tuple[int, Treated]] = []
        taken: list[tuple[int, Item, Entry, SourceAudio]] = []
        clock = ProcessorClock()

        def sources() -> Iterator[tuple[SourceAudio, dict[str, Any]]]:
            for number, item in waiting:
                entry = item.planned
                try:
                    with clock.pause():
                        open_regular(item.utterance.path).close()  # before it is hashed: it may be endless
                        entry = replace(entry, source_sha256=file_hash(item.utterance.path))
                        source = SourceAudio(item.utterance, self.max_seconds, clock)
                    if item.refusal:
                        source.open_once()  # reports first why a file can't be used
                        raise InputError(item.refusal)
                    if not isinstance(self._unpack(), ByBlocks):
                        source.read()
                except InputError as error:
                    failures.append((number, _failure(entry, error, item.utterance.path)))
                    continue
                taken.append((number, item, entry, source))
                yield source, dict(entry.parameters)

        for place, result in enumerate(_time(self._anonymize(sources()), clock)):
            number, item, entry, source = taken[place]
            path = item.utterance.path
            if isinstance(result, InputError):
                outcome = _failure(entry, result, path)
            else:
                with result:
                    try:
                        outcome = self._write(entry, result, source, path)
                    except InputError as error:  # what the recording asks for can't be written; others can
                        outcome = _failure(entry, error, path)
            yield number, replace(outcome, effort=Effort(clock.lap(), source.seconds))
        yield from failures

    def _unpack(self) -> Anonymizer:
        key = hashlib.sha256(self.packed).hexdigest()
        if key not in _unpacked:
            load_files(self.own_files)
            _unpacked[key] = pickle.loads(self.packed)  # made by this program a moment ago, never read from a file
        return _unpacked[key]

    def _anonymize(self, sources: Iterator[tuple[SourceAudio, dict[str, Any]]]) -> Iterator[OutputAudio | InputError]:
        anonymizer = self._unpack()
        if isinstance(anonymizer, Batches):
            heard: list[SourceAudio] = []

            def recordings() -> Iterator[tuple[Samples, dict[str, Any]]]:
                for source, parameters in sources:
                    heard.append(source)
                    yield source.take(), parameters

            for number, result in enumerate(anonymizer.anonymize_batch(recordings())):
                try:
                    if isinstance(result, InputError):
                        raise result
                    yield self._output(anonymizer.name, heard[number], result)
                except InputError as error:
                    yield error
            return
        for source, parameters in sources:
            try:
                if isinstance(anonymizer, ByBlocks):
                    blocks = anonymizer.anonymize_blocks(source, parameters)
                    yield self._collect(anonymizer.name, source, blocks)
                else:
                    yield self._output(anonymizer.name, source, anonymizer.anonymize(source.take(), parameters))
            except InputError as error:
                yield error
            except (VeilmeterError, MemoryError, KeyboardInterrupt, GeneratorExit, Stopped):
                raise
            except BaseException as error:  # an untrusted system: one utterance fails, not the run
                yield InputError(f"{anonymizer.name} failed: {describe_error(error)}")

    def _output(self, name: str, source: SourceAudio, result: Samples | Output) -> OutputAudio:
        """A system's output, returned at once."""
        output = result if isinstance(result, Output) else Output(np.asarray(result))
        samples = np.asarray(output.samples)
        if samples.ndim != 1 or not len(samples) or samples.dtype.kind != "f":
            raise InputError(f"{name} gave no usable samples: shape {samples.shape}, {samples.dtype}")
        source.remarks = output.remarks
        return self._collect(name, source, [samples[i : i + BLOCK] for i in range(0, len(samples), BLOCK)])

    def _collect(self, name: str, source: SourceAudio, blocks: Iterable[Samples]) -> OutputAudio:
        """At the rate of the file, unless no later step could use it: the same rule as for a recording."""
        output = OutputAudio(self.out)
        try:
            for block in blocks:
                if not np.isfinite(block).all():
                    raise InputError(f"{name} gave no usable samples: they are not all finite")
                output.add(block, self.rate or source.rate)
            output.finish()
            if output.seconds < SHORTEST_SECONDS:
                raise InputError(f"{name} left {output.seconds:.2f} s, less than {SHORTEST_SECONDS} s")
            if output.silence.lasts:
                raise InputError(f"{name} left nothing but silence")
        except BaseException:
            output.close()
            raise
        return output

    def _write(self, entry: Entry, output: OutputAudio, source: SourceAudio, path: Path) -> Treated:
        facts = source.facts
        problems = [problem for problem in [clipping_problem(path, facts)] if problem is not None]
        problems += [Problem("remark", remark, str(path), fatal=False) for remark in source.remarks]
        keeps_length = getattr(self._unpack(), "keeps_length", True)
        if keeps_length and abs(output.seconds / source.seconds - 1) > OTHER_LENGTH:
            what = f"it lasted {source.seconds:.2f} s and lasts {output.seconds:.2f} s after anonymization"
            problems.append(Problem("other-length", what, str(path), fatal=False))
        gain = output.gain(source.meter.level)
        if gain < FAR_TOO_LOUD:
            what = f"its anonymized samples were {1 / gain:.0f} times beyond full scale and are scaled down"
            problems.append(Problem("too-loud", what, str(path), fatal=False))
        if (share := output.share_limited(gain)) > MUCH_LIMITED:
            what = f"peaks in {100 * share:.1f} % of its anonymized samples were beyond full scale and are turned down"
            problems.append(Problem("limited", what, str(path), fatal=False))
        assert entry.output is not None
        target = self.out / entry.output
        # Resampling there and back may give a sample more or less.
        frames = round(facts.seconds * output.rate)
        length = frames if abs(frames - output.meter.length) <= output.rate // 1000 else None
        write_blocks(target, output.blocks(gain, length), output.rate, channels=facts.heard_channels)
        remarks = tuple({"kind": problem.kind, "what": problem.what} for problem in problems)
        done = replace(entry, output_sha256=file_hash(target), seconds=output.seconds, gain=gain, problems=remarks)
        return Treated(done, problems)


def is_refused_unheard(utterance: Utterance, max_seconds: float) -> bool:
    """Whether it is known before anything is decoded that a recording can't be used: by its header it is too long."""
    try:
        RecordingStream(utterance.path, stretch=utterance.stretch, max_seconds=max_seconds).open_once()
    except AudioError:
        return True
    return False


def _time(results: Iterator[OutputAudio | InputError], clock: ProcessorClock) -> Iterator[OutputAudio | InputError]:
    """The same, while the clock counts what it takes to get them."""
    while True:
        with clock.running():
            result = next(results, None)
        if result is None:
            return
        yield result


def _failure(entry: Entry, error: InputError, path: Path) -> Treated:
    kind = error.kind if isinstance(error, AudioError) else NOT_ANONYMIZED
    problem = Problem(kind, error.what, str(path), fix=error.fix or "")
    remarks = ({"kind": problem.kind, "what": problem.what},)
    return Treated(replace(entry, output=None, problems=remarks), [problem])


def file_hash(path: Path) -> str | None:
    try:
        return sha256(path) if path.is_file() else None
    except OSError:
        return None
