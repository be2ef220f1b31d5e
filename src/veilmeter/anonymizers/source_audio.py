"""A recording on its way into an anonymizer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from veilmeter.anonymizers.base import Samples
from veilmeter.anonymizers.loudness import LevelMeter
from veilmeter.core.processor_time import ProcessorClock
from veilmeter.data.corpus import Utterance
from veilmeter.speech.audio import RATE, Recording, RecordingStream, read_recording

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
            with self._clock.paused():
                block = next(blocks, None)
                if block is None:
                    return
                self.meter.add(block)
            yield block

    def open_once(self) -> None:
        """An error that is known before the recording is read, such as a length beyond what is allowed."""
        with self._clock.paused():
            self._stream.open_once()

    def read(self) -> None:
        """All of it, for a system that takes nothing less."""
        with self._clock.paused():
            stretch, most = self._stream.stretch, self._stream.max_seconds
            recording = read_recording(self._path, stretch=stretch, max_seconds=most)
            self._samples, self._stream.rate = recording.samples, recording.rate
            self._stream.facts = replace(recording, samples=recording.samples[:0].copy())  # a view would keep them all
            for start in range(0, recording.length, _BLOCK):
                self.meter.add(recording.samples[start : start + _BLOCK])

    def take(self) -> Samples:
        """What was read; it is not kept any longer."""
        assert self._samples is not None
        samples, self._samples = self._samples, None
        return samples

    @property
    def facts(self) -> Recording:
        return self._stream.facts

    @property
    def rate(self) -> int:
        """Of the file; known as soon as the first block was read."""
        return self._stream.rate

    @property
    def seconds(self) -> float:
        return self.meter.length / RATE
