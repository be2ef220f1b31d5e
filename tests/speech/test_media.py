"""Audio of the mp4 family through PyAV."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from veilmeter.data.corpus import Stretch
from veilmeter.speech.audio import AudioError, read_audio, read_recording
from veilmeter.speech.decoding import MediaFile

av = pytest.importorskip("av")


def encode(path: Path, samples: NDArray[np.float32], codec: str, rate: int) -> Path:
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate, layout="mono" if samples.ndim == 1 else "stereo")
        planes = np.ascontiguousarray(np.atleast_2d(samples.T), np.float32)
        frame = av.AudioFrame.from_ndarray(planes, "fltp", stream.layout.name)
        frame.sample_rate = rate
        for packet in (*stream.encode(frame), *stream.encode(None)):
            container.mux(packet)
    return path


@pytest.mark.parametrize(
    ("name", "codec", "rate"), [("a.m4a", "aac", 16000), ("a.webm", "libopus", 48000), ("a.mp4", "aac", 44100)]
)
def test_what_was_encoded_is_heard(
    tmp_path: Path, speechlike: Callable[..., NDArray[np.float32]], name: str, codec: str, rate: int
) -> None:
    x = speechlike(3, 1, rate)
    found = read_recording(encode(tmp_path / name, x, codec, rate))
    assert (found.rate, found.channels) == (rate, 1)
    assert found.seconds == pytest.approx(3, abs=0.2)
    clear = speechlike(3, 1, rate)[:: max(1, rate // 16000)] if rate != 44100 else None
    if clear is not None:
        from veilmeter.speech.copies import find_unchanged

        # By value: the sounds of this test are steady tones, which fit at other delays too and so prove no copy.
        assert find_unchanged(clear, found.samples).median.value > 0.999


def test_channels_and_stretches(tmp_path: Path, speechlike: Callable[..., NDArray[np.float32]]) -> None:
    two = np.column_stack([speechlike(3, 1), 0.2 * speechlike(3, 2)])
    path = encode(tmp_path / "call.m4a", two, "aac", 16000)
    with pytest.raises(AudioError, match="never mixed"):
        read_audio(path)
    whole = read_audio(path, stretch=Stretch(channel=0))
    part = read_audio(path, stretch=Stretch(1.0, 2.0, 0))
    np.testing.assert_array_equal(part, whole[16000:32000])


def test_a_length_that_the_container_names_is_refused_before_anything_is_decoded(
    tmp_path: Path, speechlike: Callable[..., NDArray[np.float32]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = encode(tmp_path / "a.m4a", speechlike(6, 1), "aac", 16000)
    assert len(read_audio(path, max_seconds=7)) == pytest.approx(6 * 16000, abs=3200)

    def decoded(*_: object) -> None:
        raise AssertionError("it was decoded")

    monkeypatch.setattr(MediaFile, "read", decoded)
    with pytest.raises(AudioError, match="more than 5 s"):
        read_audio(path, max_seconds=5)


def test_files_that_are_no_media_are_named(tmp_path: Path) -> None:
    for name, content in (("a.m4a", b"x" * 5000), ("b.webm", np.random.default_rng(0).bytes(5000)),
                          ("c.mp4", b"#EXTM3U\nhttp://127.0.0.1:9/a.ts\n"),
                          ("d.mp4", b"ffconcat version 1.0\nfile /etc/hostname\n")):  # fmt: skip
        (tmp_path / name).write_bytes(content)
        with pytest.raises(AudioError, match="can't be read as audio"):
            read_audio(tmp_path / name)
