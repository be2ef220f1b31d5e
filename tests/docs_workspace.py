"""A small world for the documentation's commands: speech, vectors, scores and keys under the names the pages use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.vectors import write_embeddings
from veilmeter.speech.audio import write_audio

SPEAKERS = tuple(f"s{number:02d}" for number in range(20))
RECORDINGS = 4
DIMENSION = 16

# A function from samples to a vector, as a user would write one; the real extractors take too long for every command.
EXTRACTOR = """
import numpy as np

def embed(samples):
    frames = samples[: len(samples) // 256 * 256].reshape(-1, 256)
    spectrum = np.abs(np.fft.rfft(frames * np.hanning(256), axis=1)).mean(0)
    return np.log(spectrum[1:65].reshape(-1, 4).mean(1) + 1e-4).astype(np.float32)
"""


def make_workspace(root: Path) -> Path:
    """Everything but what the pages' commands make themselves (runs, anonymized copies)."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "tiny.py").write_text(EXTRACTOR)
    for folder, people, warp in [
        ("speech", SPEAKERS, 1.0),
        ("protected", SPEAKERS, 1.15),
        ("second", SPEAKERS, 1.2),
        ("others", [f"o{n:02d}" for n in range(8)], 1.0),
        ("others-protected", [f"o{n:02d}" for n in range(8)], 1.15),
    ]:
        for speaker in people:
            for number in range(RECORDINGS):
                place = root / folder / speaker
                place.mkdir(parents=True, exist_ok=True)
                write_audio(place / f"{number}.flac", voice(speaker, number, warp))
    _lists(root)
    _vectors(root)
    _scores(root)
    _calls(root)
    return root


def voice(speaker: str, number: int, warp: float = 1.0) -> NDArray[np.float32]:
    """Harmonics under a spectral envelope that is the speaker's, 0.7 s at 16 kHz."""
    own = np.random.default_rng([7, *speaker.encode()])
    rng = np.random.default_rng([number, int(100 * warp), *speaker.encode()])
    t = np.arange(11200) / 16000
    pitch = own.uniform(90, 240) * warp * rng.uniform(0.97, 1.03)
    peaks, widths = own.uniform(300, 3500, 3) * warp, own.uniform(150, 500, 3)
    wave = np.zeros_like(t)
    for k in range(1, int(4500 / pitch)):
        gain = np.exp(-(((k * pitch - peaks) / widths) ** 2)).sum() + 0.02
        wave += gain * np.sin(2 * np.pi * k * pitch * t + rng.uniform(0, 6.28))
    wave = wave / np.abs(wave).max() * (0.5 + 0.3 * np.sin(2 * np.pi * 4 * t)) + 0.005 * rng.standard_normal(len(t))
    return (0.6 * wave).astype(np.float32)


def _lists(root: Path) -> None:
    rows = ["path,speaker,utterance,gender,session,accent"]
    for place, speaker in enumerate(SPEAKERS):
        for number in range(RECORDINGS):
            gender, accent = "fm"[place % 2], ("north", "south")[place // 2 % 2]
            rows.append(f"{speaker}/{number}.flac,{speaker},{speaker}/{number},{gender},day{number // 2},{accent}")
    (root / "speech" / "list.csv").write_text("\n".join(rows) + "\n")


def _calls(root: Path) -> None:
    """Two calls with a speaker on each channel, and the list of docs/how-to/calls.md."""
    import soundfile

    (root / "calls").mkdir()
    page = Path(__file__).parents[1] / "docs" / "how-to" / "calls.md"
    listed = page.read_text(encoding="utf-8").partition("```\n")[2].partition("```")[0]
    (root / "calls.csv").write_text(listed)
    for call, other in (("0001", "s01"), ("0002", "s02")):
        sides = [np.tile(voice(speaker, 0), 20) for speaker in ("s00", other)]
        soundfile.write(root / "calls" / f"{call}.wav", np.stack(sides, axis=1), 16000)


def embeddings(kind: str, people: int = 20, each: int = 6, noise: float = 0.5) -> Embeddings:
    """Vectors of the same utterances: `original`, and `anonymized` as turned and blurred ones."""
    rng = np.random.default_rng(5)
    centres = rng.standard_normal((people, DIMENSION))
    x = np.repeat(centres, each, axis=0) + noise * rng.standard_normal((people * each, DIMENSION))
    if kind != "original":
        turn, _ = np.linalg.qr(rng.standard_normal((DIMENSION, DIMENSION)))
        x = x @ turn + (0.8 if kind == "anonymized" else 0.9) * rng.standard_normal(x.shape)
    speakers = [f"p{n:02d}" for n in range(people) for _ in range(each)]
    ids = [f"{speaker}-{number}" for number, speaker in enumerate(speakers)]
    attributes = {
        "gender": ["fm"[n % 2] for n in range(people) for _ in range(each)],
        "session": [f"day{k // 3}" for _ in range(people) for k in range(each)],
    }
    return Embeddings(x, ids, speakers, attributes)


def _vectors(root: Path) -> None:
    clear, hidden = embeddings("original"), embeddings("anonymized")
    first = np.arange(len(clear)) % 6 < 3
    for name, one in [("original.npz", clear), ("anonymized.npz", hidden), ("second.npz", embeddings("second"))]:
        write_embeddings(one, root / name)
    for name, one, rows in [
        ("xvect_enrolls", clear, first), ("xvect_enrolls_anon", hidden, first),
        ("xvect_trials", clear, ~first), ("xvect_trials_anon", hidden, ~first),
        ("enrolls", clear, first), ("enrolls_anon", hidden, first),
        ("trials_f", clear, ~first), ("trials_f_anon", hidden, ~first),
    ]:  # fmt: skip
        write_embeddings(one.take(rows), root / name, form="kaldi")
    write_embeddings(hidden.take(first), root / "enroll.npz")
    write_embeddings(hidden.take(~first), root / "test.npz")


def _scores(root: Path) -> None:
    """Score files with one key: of original, mixed and protected speech, and of a second run."""
    people, each = 12, 6
    lines: dict[str, list[str]] = {name: [] for name in ("oo", "op", "pp", "scores", "scores2")}
    key = []
    shift = {"oo": 4.0, "op": 0.3, "pp": 1.5, "scores": 1.5, "scores2": 1.4}
    for number, name in enumerate(lines):
        rng = np.random.default_rng([3, number])
        for enrolled in range(people):
            for tested in range(people):
                for take in range(each):
                    pair = f"{100 + enrolled} {100 + tested}-{take:04d}"
                    score = rng.normal(shift[name] if enrolled == tested else 0.0)
                    lines[name].append(f"{pair} {score:.5f}")
                    if number == 0:
                        key.append(f"{pair} {'target' if enrolled == tested else 'nontarget'}")
    for name, rows in lines.items():
        (root / f"{name}.txt").write_text("\n".join(rows) + "\n")
    for name, text in [("trials.txt", key), ("trials", key), ("scores", lines["scores"])]:
        (root / name).write_text("\n".join(text) + "\n")
    for name in ("oo", "op", "pp"):  # as SpeechBrain's recipe writes them, the label before the score
        folder = root / "recipe" / name
        folder.mkdir(parents=True)
        rows = [line.split() for line in lines[name]]
        text = "".join(f"{a} {u} {int(u.startswith(a))} {score}\n" for a, u, score in rows)
        (folder / "scores.txt").write_text(text)
        (root / "recipe" / "utt2spk").write_text("".join(f"{u} {u.split('-')[0]}\n" for _, u, _ in rows))
