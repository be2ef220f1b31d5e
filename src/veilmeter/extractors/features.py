"""Kaldi's log mel energies, the front end of CAM++ and of WeSpeaker's models."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.errors import InputError, missing_extra

RATE = 16000
MEL_BINS = 80
# The networks thin the frames out and then take a standard deviation over time, so a few frames are the least.
MIN_SAMPLES = RATE // 10


def fbank(
    samples: ArrayLike, *, bins: int = MEL_BINS, window: str = "povey", scale: float = 1.0
) -> NDArray[np.float32]:
    """Log mel energies every 10 ms (n x bins), with the mean over the utterance subtracted.

    Kaldi's features without dither and energy floor; samples in [-1, 1] at 16 kHz, multiplied by `scale` (which the
    mean subtraction takes away again wherever there is sound at all). CAM++ was trained with the povey window,
    WeSpeaker's models with hamming and samples of 16-bit size.
    """
    try:
        import kaldi_native_fbank
    except ImportError:
        raise missing_extra("kaldi-native-fbank", "audio") from None

    signal = np.ascontiguousarray(samples, np.float32)
    if signal.ndim != 1 or len(signal) < MIN_SAMPLES:
        raise InputError(f"a speaker embedding needs at least {MIN_SAMPLES / RATE:g} s of mono speech")
    options = kaldi_native_fbank.FbankOptions()
    options.frame_opts.samp_freq = RATE
    options.frame_opts.dither = 0.0
    options.frame_opts.window_type = window
    options.mel_opts.num_bins = bins
    options.energy_floor = 0.0
    computer = kaldi_native_fbank.OnlineFbank(options)
    computer.accept_waveform(RATE, signal if scale == 1.0 else signal * np.float32(scale))
    computer.input_finished()
    features = np.empty((computer.num_frames_ready, bins), np.float32)
    for frame in range(len(features)):
        features[frame] = computer.get_frame(frame)
    features -= features.mean(axis=0, keepdims=True)
    return features
