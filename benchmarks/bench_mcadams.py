"""McAdams' coefficient: all frames at once against the plain frame by frame implementation, on one core."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

from benchmarks.plain_mcadams import FRAME, HOP, plain_mcadams
from veilmeter.anonymizers import mcadams, poles

SHARED = Path(os.environ.get("VEILMETER_SHARED", Path(__file__).resolve().parents[1].parent / "shared"))
SECONDS, ROUNDS = 2.0, 5


def speech() -> list[np.ndarray]:
    """Real utterances where the reference data is, else synthetic ones: pulses through moving formants, in noise."""
    folder = SHARED / "data" / "librispeech" / "test-other-10x10"
    if folder.is_dir():
        from veilmeter.speech.audio import read_audio

        return [read_audio(path).astype(np.float64) for path in sorted(folder.glob("*/*.flac"))[::10]]
    from scipy.signal import lfilter

    rng = np.random.default_rng(0)
    made = []
    for _ in range(10):
        source = 0.01 * rng.standard_normal(8 * 16_000)
        source[:: int(rng.integers(70, 160))] += 1.0
        parts = []
        for part in np.array_split(source, 60):
            poles_now = [
                0.97 * np.exp(2j * np.pi * f / 16_000)
                for f in rng.uniform([200, 800, 1800, 3000], [800, 1800, 3000, 6000])
            ]
            parts.append(lfilter([1.0], np.real(np.poly([*poles_now, *np.conj(poles_now)])), part))
        signal = np.concatenate(parts)
        made.append(0.3 * signal / np.abs(signal).max())
    return made


def main() -> None:
    signals = speech()
    inside: dict[str, float] = {}

    def timed(module: object, name: str) -> None:
        function = getattr(module, name)

        def wrapped(*arguments: object) -> object:
            start = time.process_time()
            result = function(*arguments)
            inside[name] = inside.get(name, 0.0) + time.process_time() - start
            return result

        setattr(module, name, wrapped)

    for module, name in ((mcadams, "burg"), (poles, "factors"), (mcadams, "refilter"), (mcadams, "mcadams")):
        timed(module, name)
    mcadams.mcadams(signals[0][: 2 * 16_000], 0.8)  # warm up
    plain_mcadams(signals[0][:16_000])
    inside.clear()
    # Processor time, interleaved, so that a busy machine slows both down alike; the median round counts.
    ratios, worst = [], np.inf
    for turn in range(ROUNDS):
        slow = fast = 0.0
        for signal in signals[turn % 2 :: 2]:
            piece = signal[: int(SECONDS * 16_000)]
            start = time.process_time()
            expected = plain_mcadams(piece)
            slow += (time.process_time() - start) / (1 + (len(piece) - FRAME) // HOP)
            start = time.process_time()
            mcadams.mcadams(signal, 0.8)
            spent = time.process_time() - start
            fast += spent / (1 + (len(signal) - FRAME) // HOP)
            error = np.sum((mcadams.mcadams(piece, 0.8) - expected) ** 2)
            worst = min(worst, 10 * np.log10(np.sum(expected**2) / error))
        ratios.append(slow / fast)
    whole, roots = inside["mcadams"], inside["factors"]
    print(f"mcadams: {np.median(ratios):.1f} times the plain implementation's speed per core (rounds: "
          f"{', '.join(f'{ratio:.1f}' for ratio in ratios)}; at least 8 wanted, goal 15)")  # fmt: skip
    print(f"mcadams: agrees with it to {worst:.0f} dB at least (120 wanted)")
    print(f"mcadams: time in root finding {100 * roots / whole:.0f} %, Burg {100 * inside['burg'] / whole:.0f} %, "
          f"filters {100 * inside['refilter'] / whole:.0f} %, "
          f"the rest {100 * (whole - roots - inside['burg'] - inside['refilter']) / whole:.0f} %")  # fmt: skip


if __name__ == "__main__":
    main()
