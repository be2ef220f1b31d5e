"""Audio: every format in, every kind of broken file named, nothing believed that a header says."""

from __future__ import annotations

import errno
import io
import os
import pickle
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.data.corpus import MIX, Stretch
from veilmeter.speech import audio
from veilmeter.speech.audio import (
    KINDS,
    AudioError,
    RecordingStream,
    clipping_problem,
    read_audio,
    read_recording,
    write_audio,
    write_blocks,
)

soundfile = pytest.importorskip("soundfile")

Make = Callable[..., NDArray[np.float32]]


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_what_is_written_is_read_back_to_the_bit(tmp_path: Path, suffix: str) -> None:
    steps = np.random.default_rng(0).integers(-32768, 32768, 16000)
    write_audio(tmp_path / f"a{suffix}", steps / 32768)
    np.testing.assert_array_equal(read_audio(tmp_path / f"a{suffix}") * 32768, steps)
    info = soundfile.info(tmp_path / f"a{suffix}")
    assert (info.subtype, info.samplerate, info.channels) == ("PCM_16", 16000, 1)
    assert os.stat(tmp_path / f"a{suffix}").st_mode & 0o777 == 0o600


def test_the_same_samples_give_the_same_file(tmp_path: Path, speechlike: Make) -> None:
    for name in ("a.flac", "b.flac"):
        write_audio(tmp_path / name, speechlike())
    assert (tmp_path / "a.flac").read_bytes() == (tmp_path / "b.flac").read_bytes()


def test_beyond_full_scale_is_clipped_not_wrapped(tmp_path: Path) -> None:
    write_audio(tmp_path / "a.wav", np.tile([1.5, -1.5, 0.1], 6000))
    found = read_audio(tmp_path / "a.wav")
    assert found[0] > 0.99
    assert found[1] == -1


@pytest.mark.parametrize("samples", [np.array([0.1, np.nan]), np.zeros((5, 2))])
def test_what_is_not_mono_audio_is_not_written(tmp_path: Path, samples: Any) -> None:
    with pytest.raises(InputError):
        write_audio(tmp_path / "a.wav", samples)
    assert not list(tmp_path.iterdir())


def test_other_formats_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.flac or \.wav"):
        write_audio(tmp_path / "a.mp3", np.zeros(100))


@pytest.mark.parametrize(
    ("rate", "channels", "form", "subtype"),
    [
        (8000, 1, "WAV", "PCM_16"), (44100, 2, "WAV", "PCM_24"), (48000, 1, "FLAC", "PCM_16"),
        (22050, 3, "AIFF", "PCM_16"), (48000, 2, "OGG", "VORBIS"), (48000, 1, "OGG", "OPUS"),
        (16000, 1, "MP3", "MPEG_LAYER_III"), (8000, 1, "WAV", "ULAW"), (96000, 1, "W64", "FLOAT"),
        (16000, 1, "NIST", "PCM_16"), (32000, 1, "CAF", "PCM_32"), (16000, 1, "WAV", "DOUBLE"),
    ],
)  # fmt: skip
def test_any_rate_channels_and_format(tmp_path: Path, rate: int, channels: int, form: str, subtype: str) -> None:
    """A 440 Hz tone stays one, with its level, as 16 kHz mono."""
    t = np.arange(2 * rate) / rate
    tone = 0.4 * np.sin(2 * np.pi * 440 * t)
    soundfile.write(tmp_path / "tone", np.column_stack([tone] * channels), rate, format=form, subtype=subtype)
    found = read_recording(tmp_path / "tone")
    assert (found.rate, found.channels) == (rate, channels)
    assert found.samples.dtype == np.float32
    assert len(found.samples) == pytest.approx(32000, abs=2500)  # MP3 pads its ends
    middle = found.samples[8000:24000]
    spectrum = np.abs(np.fft.rfft(middle)) / 8000
    assert np.argmax(spectrum) == 440
    assert spectrum[440] == pytest.approx(0.4, rel=0.03)


def test_channels_that_differ_are_never_mixed_unasked(tmp_path: Path, speechlike: Make) -> None:
    left, right = speechlike(1, 1), speechlike(1, 2)
    path = tmp_path / "a.wav"
    soundfile.write(path, np.column_stack([left, right]), 16000, subtype="FLOAT")
    with pytest.raises(AudioError, match=r"never mixed unasked.*--channel 0, 1 or mix") as caught:
        read_audio(path)
    assert caught.value.kind == "channels"
    np.testing.assert_array_equal(read_audio(path, stretch=Stretch(channel=0)), left)
    np.testing.assert_array_equal(read_audio(path, stretch=Stretch(channel=1)), right)
    np.testing.assert_allclose(read_audio(path, stretch=Stretch(channel=MIX)), (left + right) / 2, atol=1e-6)
    with pytest.raises(AudioError, match="channel 2 was asked for, counted from 0, and the file has 2 channels"):
        read_audio(path, stretch=Stretch(channel=2))


def test_a_faulty_channel_that_nobody_listens_to_does_not_matter(tmp_path: Path, speechlike: Make) -> None:
    good = speechlike(1, 1)
    soundfile.write(tmp_path / "a.wav", np.column_stack([good, np.full_like(good, np.nan)]), 16000, subtype="FLOAT")
    np.testing.assert_array_equal(read_audio(tmp_path / "a.wav", stretch=Stretch(channel=0)), good)
    with pytest.raises(AudioError, match="finite"):
        read_audio(tmp_path / "a.wav", stretch=Stretch(channel=1))


@pytest.mark.parametrize("suffix", ["wav", "flac"])
def test_a_stretch_is_what_lies_between(tmp_path: Path, speechlike: Make, suffix: str) -> None:
    x = speechlike(5, 3)
    path = tmp_path / f"a.{suffix}"
    soundfile.write(path, x, 16000)
    whole = read_audio(path)
    for start, end in ((0.0, 2.0), (1.25, 3.5), (2.0, None), (4.0, 5.05)):
        expected = whole[round(start * 16000) : None if end is None else round(end * 16000)]
        found = read_recording(path, stretch=Stretch(start, end), max_seconds=4)
        np.testing.assert_array_equal(found.samples, expected)
        assert found.seconds == len(expected) / 16000
    for start, end in ((1.0, 6.0), (5.0, None), (9.0, 10.0)):
        with pytest.raises(AudioError, match="not in the file") as caught:
            read_audio(path, stretch=Stretch(start, end))
        assert caught.value.kind == "outside"


def test_resampling_in_blocks_is_resampling_at_once(tmp_path: Path, speechlike: Make) -> None:
    soxr = pytest.importorskip("soxr")
    x = speechlike(60, 3, 44100)  # more than two blocks
    soundfile.write(tmp_path / "a.wav", x, 44100, subtype="FLOAT")
    np.testing.assert_allclose(read_audio(tmp_path / "a.wav"), soxr.resample(x, 44100, 16000), atol=2e-4)


@pytest.mark.parametrize(
    "way",
    ["empty-file", "no-samples", "garbage", "text", "pipe", "cut-wav", "cut-flac", "nan", "infinite", "short", "silent",
     "dither", "integers-as-floats", "huge-header"],
)  # fmt: skip
def test_broken_files_are_named(
    tmp_path: Path, break_audio: Callable[..., Path], broken_kinds: dict[str, str], way: str
) -> None:
    path = break_audio(tmp_path / "a", way, 5)
    with pytest.raises(AudioError) as caught:
        read_audio(path)
    assert caught.value.kind == broken_kinds[way]
    assert caught.value.kind in KINDS
    assert caught.value.path == str(path)
    again = pickle.loads(pickle.dumps(caught.value))  # it comes back from another process
    assert (again.kind, str(again)) == (caught.value.kind, str(caught.value))
    assert again.problem().fatal


def test_missing_files_and_folders_are_named(tmp_path: Path) -> None:
    for path, kind in ((tmp_path / "no.wav", "missing-audio"), (tmp_path, "unreadable"), ("a\0b", "unreadable")):
        with pytest.raises(AudioError) as caught:
            read_audio(path)
        assert caught.value.kind == kind


def test_short_and_silent_may_pass(tmp_path: Path) -> None:
    write_audio(tmp_path / "a.wav", np.zeros(100))
    assert len(read_audio(tmp_path / "a.wav", allow=("short", "silent"))) == 100


def test_clipping_is_remarked_and_loud_speech_is_not(
    tmp_path: Path, break_audio: Callable[..., Path], speechlike: Make
) -> None:
    path = break_audio(tmp_path / "a", "clipped", 5)
    found = read_recording(path)
    problem = clipping_problem(path, found)
    assert problem is not None
    assert (problem.kind, problem.fatal) == ("clipped", False)
    loud = speechlike(2, 7)
    write_audio(tmp_path / "loud.wav", loud / np.abs(loud).max())
    assert clipping_problem("loud", read_recording(tmp_path / "loud.wav")) is None
    t = np.arange(32000) / 16000
    write_audio(tmp_path / "tone.wav", np.sin(2 * np.pi * 200 * t))  # full scale, but round at the top
    assert not read_recording(tmp_path / "tone.wav").is_clipped


def test_two_hours_of_flac_in_a_small_file_cost_neither_time_nor_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.flac"
    with soundfile.SoundFile(path, "w", 16000, 1, "PCM_16") as out:
        for _ in range(20):
            out.write(np.zeros(16000 * 360, np.int16))
    assert path.stat().st_size < 1_000_000
    started = time.process_time()
    tracemalloc.start()
    with pytest.raises(AudioError) as caught:
        read_audio(path, max_seconds=60)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert caught.value.kind == "too-long"
    assert peak < 50_000_000
    assert time.process_time() - started < 5


@pytest.mark.parametrize("stretch", [Stretch(), Stretch(10.0), Stretch(5.0, 80.0, 0)])
def test_a_length_that_the_header_names_is_refused_before_anything_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stretch: Stretch
) -> None:
    for name in ("a.flac", "a.wav", "a.ogg", "a.mp3"):
        soundfile.write(tmp_path / name, np.random.default_rng(0).uniform(-0.1, 0.1, 8000 * 90), 8000)
    assert len(read_audio(tmp_path / "a.flac", stretch=Stretch(10.0, 70.0), max_seconds=60)) == 60 * 16000

    def decoded(*_: object, **__: object) -> None:
        raise AssertionError("it was decoded")

    monkeypatch.setattr(soundfile.SoundFile, "read", decoded)
    for name in ("a.flac", "a.wav", "a.ogg", "a.mp3"):
        with pytest.raises(AudioError, match="more than 60 s") as caught:
            read_audio(tmp_path / name, stretch=stretch, max_seconds=60)
        assert caught.value.kind == "too-long"


def test_a_flac_header_may_promise_anything(tmp_path: Path, speechlike: Make) -> None:
    """36 bits of sample count in STREAMINFO: set to the most, on a second of speech."""
    path = tmp_path / "liar.flac"
    write_audio(path, speechlike(1, 2))
    data = bytearray(path.read_bytes())
    data[8 + 13] |= 0x0F
    data[8 + 14 : 8 + 18] = b"\xff" * 4
    path.write_bytes(data)
    with pytest.raises(AudioError) as caught:
        read_audio(path)
    assert caught.value.kind == "truncated"


@pytest.mark.parametrize("rate", [1, 100, 2**31 - 1])
def test_absurd_rates_are_refused(tmp_path: Path, speechlike: Make, rate: int) -> None:
    path = tmp_path / "a.wav"
    write_audio(path, speechlike())
    data = bytearray(path.read_bytes())
    data[24:28] = rate.to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(AudioError) as caught:
        read_audio(path)
    assert caught.value.kind == "unreadable"


def test_a_stream_of_unknown_length_is_read(tmp_path: Path, speechlike: Make) -> None:
    """ffmpeg writes 0xFFFFFFFF where it can't go back to fill in the length."""
    path = tmp_path / "a.wav"
    write_audio(path, speechlike())
    data = bytearray(path.read_bytes())
    data[4:8] = data[40:44] = b"\xff" * 4
    path.write_bytes(data)
    assert len(read_audio(path)) == 16000


FREE = b"\xff\xfb\x00\x00"  # the header of a frame without a bit rate: where it ends has to be searched


@pytest.mark.parametrize("start", [0, 40_000])
def test_damaged_mp3s_take_no_longer_than_intact_ones_and_print_nothing(
    tmp_path: Path, start: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """libmpg123 searches byte by byte and tells of every attempt: 4 MB took 4 s and 400 MB of notes."""
    packed = io.BytesIO()
    soundfile.write(packed, np.random.default_rng(0).uniform(-0.1, 0.1, 16_000 * 20), 16_000, format="MP3")
    (tmp_path / "a.mp3").write_bytes(packed.getvalue()[:start] + FREE * (1 << 20))
    began = time.process_time()
    with pytest.raises(AudioError, match="too little of it is MPEG audio") as caught:
        read_audio(tmp_path / "a.mp3")
    assert time.process_time() - began < 1.0
    assert caught.value.kind == "unreadable"
    os.write(2, b"still there")
    assert capfd.readouterr().err == "still there"


def test_an_mp3_with_broken_frames_is_reported_without_the_librarys_notes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    packed = io.BytesIO()
    soundfile.write(packed, rng.uniform(-0.1, 0.1, 16_000 * 4), 16_000, format="MP3")
    whole = np.frombuffer(packed.getvalue(), np.uint8)
    for _ in range(20):
        broken = whole.copy()
        places = rng.integers(300, len(broken), 20)
        broken[places] = rng.integers(0, 256, 20)
        (tmp_path / "a.mp3").write_bytes(broken.tobytes())
        with suppress(AudioError):
            read_audio(tmp_path / "a.mp3")
    assert capfd.readouterr().err == ""


def _bytes(suffix: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{suffix}"
        write_audio(path, np.sin(np.arange(16000) / 5) * 0.3)
        return path.read_bytes()


SOUND = {suffix: _bytes(suffix) for suffix in (".wav", ".flac")}


@given(
    suffix=st.sampled_from([".wav", ".flac"]),
    changes=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=12),
    cut=st.integers(1, 40000),
)
def test_no_bytes_give_anything_but_samples_or_an_audio_error(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, changes: list[tuple[int, int]], cut: int
) -> None:
    data = bytearray(SOUND[suffix])
    for place, value in changes:
        data[place] = value
    path = tmp_path_factory.getbasetemp() / f"fuzz{suffix}"
    path.write_bytes(bytes(data[:cut]))
    try:
        found = read_audio(path, max_seconds=100)
    except AudioError as error:
        kind = error.kind
    else:
        kind = "short" if len(found) < 8000 else "nan" if not np.isfinite(found).all() else ""
        assert not kind
    assert not kind or kind in KINDS


@pytest.mark.parametrize("rate", [8000, 16_000, 44_100])
def test_a_stream_is_the_recording_and_a_long_one_is_not_kept(tmp_path: Path, rate: int) -> None:
    x = np.random.default_rng(rate).uniform(-0.5, 0.5, int(70.3 * rate)).astype(np.float32)
    soundfile.write(tmp_path / "a.wav", x, rate, subtype="FLOAT")
    stream = RecordingStream(tmp_path / "a.wav")
    blocks = list(stream)
    recording = read_recording(tmp_path / "a.wav")
    np.testing.assert_array_equal(np.concatenate(blocks), recording.samples)
    assert recording.length == len(recording.samples) == stream.facts.length
    assert recording.samples.flags.owndata
    assert stream.rate == rate
    unkept = read_recording(tmp_path / "a.wav", keep_seconds=60.0)
    assert (len(unkept.samples), unkept.length, unkept.seconds) == (0, recording.length, recording.seconds)
    with pytest.raises(AudioError, match="longer than allowed"):
        list(RecordingStream(tmp_path / "a.wav", max_seconds=70.0))


@pytest.mark.parametrize("suffix", [".flac", ".wav"])
def test_blocks_are_written_as_one_piece_is(tmp_path: Path, suffix: str) -> None:
    x = np.random.default_rng(1).uniform(-1.2, 1.2, 50_000)
    write_audio(tmp_path / f"a{suffix}", x, 22_050)
    write_blocks(tmp_path / f"b{suffix}", np.array_split(x, 13), 22_050)
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()
    write_blocks(tmp_path / f"c{suffix}", [x], 22_050, channels=2)
    both, rate = soundfile.read(tmp_path / f"c{suffix}")
    assert rate == 22_050
    np.testing.assert_array_equal(both[:, 0], both[:, 1])
    np.testing.assert_array_equal(both[:, 0], soundfile.read(tmp_path / f"a{suffix}")[0])


def test_a_disk_that_fills_up_while_audio_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(sink: object, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    class Full(io.FileIO):
        write = full

    monkeypatch.setattr(audio, "open", lambda path, mode: Full(path, "w+"), raising=False)
    with pytest.raises(VeilmeterError, match="the disk is full"):
        write_audio(tmp_path / "a.flac", np.zeros(50_000))
    assert not list(tmp_path.iterdir())
