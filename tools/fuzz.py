"""`make fuzz`: broken and hostile bytes for every reader, a few minutes in all.

Binary readers are fuzzed with atheris, each in a process of its own with limits of time and memory; where atheris is
not installed, bytes of sound files are changed at random instead. Text readers get lists that hypothesis makes. A
reader may refuse (`VeilmeterError`) or read; anything else ends the run with the bytes that did it.

    python tools/fuzz.py [--seconds 15] [--examples 1000] [READER ...]
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

MEGABYTES = 2048
SLOWEST = 20  # seconds for one input


def seed_vectors(folder: Path, suffix: str) -> bytes:
    from veilmeter.data.embeddings import Embeddings
    from veilmeter.data.formats.vectors import write_embeddings

    rng = np.random.default_rng(0)
    ids = [f"s{n % 3}-u{n}" for n in range(9)]
    voices = Embeddings(
        rng.standard_normal((9, 4)).astype(np.float32), ids, [i[:2] for i in ids], {"gender": ["f"] * 9}
    )
    write_embeddings(voices, folder / f"seed.{suffix}")
    return (folder / f"seed.{suffix}").read_bytes()


def seed_audio(folder: Path, suffix: str) -> bytes:
    from veilmeter.speech.audio import write_audio

    write_audio(folder / f"seed.{suffix}", np.sin(np.arange(9000) / 9) * 0.3)
    return (folder / f"seed.{suffix}").read_bytes()


def seed_plda(folder: Path, suffix: str) -> bytes:
    def vector(values: np.ndarray) -> bytes:
        return b"DV \4" + len(values).to_bytes(4, "little") + values.astype("<f8").tobytes()

    matrix = np.eye(3)
    shape = b"".join(b"\4" + n.to_bytes(4, "little") for n in matrix.shape)
    middle = b"DM " + shape + matrix.astype("<f8").tobytes()
    return b"\0B<Plda> " + vector(np.zeros(3)) + middle + vector(np.ones(3)) + b"</Plda> "


def seed_map(folder: Path, suffix: str) -> bytes:
    from veilmeter.attacks.inversion import identity_map

    identity_map(3).save(folder / "seed.npz")
    return (folder / "seed.npz").read_bytes()


def vectors(path: Path) -> object:
    from veilmeter.data.formats.vectors import load_embeddings

    return load_embeddings(path)


def audio(path: Path) -> object:
    from veilmeter.speech.audio import read_audio

    return read_audio(path, max_seconds=60)


def plda(path: Path) -> object:
    from veilmeter.attacks.backends.kaldi import read_plda

    return read_plda(path)


def inversion_map(path: Path) -> object:
    from veilmeter.attacks.inversion.maps import load_map

    return load_map(path)


BINARY: dict[str, tuple[str, Callable[[Path, str], bytes], Callable[[Path], object]]] = {
    "ark": ("ark", seed_vectors, vectors),
    "npz": ("npz", seed_vectors, vectors),
    "parquet": ("parquet", seed_vectors, vectors),
    "h5": ("h5", seed_vectors, vectors),
    "wav": ("wav", seed_audio, audio),
    "flac": ("flac", seed_audio, audio),
    "plda": ("plda", seed_plda, plda),
    "map": ("npz", seed_map, inversion_map),
}


READING = ("data.formats.vectors", "data.formats.npz", "data.formats.kaldi", "data.formats.h5", "data.formats.parquet",
           "speech.audio", "attacks.backends.kaldi", "attacks.inversion.maps")  # fmt: skip


def once(read: Callable[[Path], object], file: Path, data: bytes) -> bool:
    """Whether the bytes were read; False if they were refused."""
    from veilmeter.core.errors import VeilmeterError

    file.write_bytes(data)
    try:
        read(file)
    except VeilmeterError:
        return False
    return True


def fuzz_binary(name: str, seconds: int) -> None:
    """In a process of its own: runs until the time is over, or ends with what broke the reader."""
    suffix, seed, read = BINARY[name]
    try:
        import atheris
    except ImportError:
        atheris = None
    else:
        with atheris.instrument_imports(include=["veilmeter"]):  # coverage guides what is tried next
            for module in READING:
                importlib.import_module(f"veilmeter.{module}")
    importlib.import_module("veilmeter.data.formats.h5").SECONDS = 5  # some files keep the library busy for ever
    base = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="veilmeter-fuzz-", dir=base) as place:
        folder = Path(place)
        (folder / "corpus").mkdir()
        good = seed(folder, suffix)
        (folder / "corpus" / "seed").write_bytes(good)
        file = folder / f"input.{suffix}"
        assert once(read, file, good), f"the reader of {name} refuses a sound file"
        shutil.rmtree(folder / "meta", ignore_errors=True)
        if atheris is None:
            _mutate(read, file, good, seconds)
            return
        broke = Path(tempfile.gettempdir(), f"fuzz-{name}-")
        options = [f"-max_total_time={seconds}", f"-rss_limit_mb={MEGABYTES}", f"-timeout={SLOWEST}", "-max_len=20000",
                   "-print_final_stats=1", f"-artifact_prefix={broke}"]  # fmt: skip
        atheris.Setup([sys.argv[0], *options, str(folder / "corpus")], lambda data: once(read, file, data))
        atheris.Fuzz()


def _mutate(read: Callable[[Path], object], file: Path, good: bytes, seconds: int) -> None:
    rng = random.Random(0)
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        data = bytearray(good)
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(data))
            how = rng.randrange(4)
            if how == 0:
                data[at] = rng.choice((0, 255, 127, 128, rng.randrange(256)))
            elif how == 1:
                del data[at : at + rng.randint(1, 200)]
            elif how == 2:
                data[at:at] = rng.randbytes(rng.randint(1, 30))
            else:
                data[at : at + 4] = rng.choice((2**31, 2**32 - 1, 2**31 - 1)).to_bytes(4, "little")
            data = data or bytearray(b"\0")
        once(read, file, bytes(data))
        count += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"stat::number_of_executed_units: {count}\nstat::peak_rss_mb: {peak}", file=sys.stderr)


WORDS = ["a", "b-1", "target", "nontarget", "1", "0", "-1.5", "nan", "inf", "1e999", "..", "../x.wav", "/etc/passwd",
         "a.wav", "x |", "| y", "\x1b[31m", "\u202e", "=1", "<b>", "\0", "\ufeff", "client_id", "path", "speaker",
         "utterance", "gender", '"', "'", "[", "]", "{", "}", "=", "#", "\\", "sentence", "9" * 400]  # fmt: skip


def text_readers() -> dict[str, tuple[str, Callable[[Path], object]]]:
    from veilmeter.anonymizers.manifest import read_manifest
    from veilmeter.assessment import make_settings, read_results, read_toml
    from veilmeter.core.engine import _read_config
    from veilmeter.data.corpus import read_corpus
    from veilmeter.data.formats.score_stream import stream
    from veilmeter.data.formats.scores import read_scores
    from veilmeter.data.formats.trials import read_trials
    from veilmeter.data.formats.vectors import load_embeddings

    return {
        "scores": ("scores", lambda p: read_scores(p)),
        "scores and key": ("scores", lambda p: read_scores(p, p)),
        "score stream": ("scores", lambda p: list(stream(p, p, size=64))),
        "trials": ("trials", read_trials),
        "csv": ("list.csv", read_corpus),
        "tsv": ("list.tsv", read_corpus),
        "common voice": ("validated.tsv", lambda p: read_corpus(p.parent, "commonvoice")),
        "kaldi data": ("wav.scp", lambda p: read_corpus(p.parent, "kaldi")),
        "voiceprivacy": ("trials", lambda p: read_corpus(p.parent, "vpc")),
        "librispeech": ("SPEAKERS.TXT", lambda p: read_corpus(p.parent, "librispeech")),
        "vctk": ("speaker-info.txt", lambda p: read_corpus(p.parent, "vctk")),
        "scp": ("x.scp", load_embeddings),
        "toml": ("run.toml", lambda p: make_settings(read_toml(p), where=p)),
        "yaml": ("slurm.yaml", _read_config),
        "manifest": ("m.jsonl", read_manifest),
        "results": ("results.json", read_results),
    }


def fuzz_text(name: str, examples: int) -> int:
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st

    file_name, read = text_readers()[name]
    words = st.sampled_from(WORDS) | st.text(max_size=8)
    separators = st.sampled_from([" ", "\t", ",", ";", "|", " = "])
    lines = st.tuples(separators, st.lists(words, max_size=6)).map(lambda both: both[0].join(both[1]))
    texts = st.tuples(st.sampled_from(["\n", "\r\n"]), st.lists(lines, max_size=12)).map(
        lambda both: both[0].join(both[1])
    )
    count = 0
    with tempfile.TemporaryDirectory(prefix="veilmeter-fuzz-") as place:
        file = Path(place, "data", file_name)
        file.parent.mkdir()
        (file.parent / "a.wav").write_bytes(b"RIFF")

        @settings(
            max_examples=examples, deadline=SLOWEST * 1000, database=None, suppress_health_check=list(HealthCheck)
        )
        @given(texts.map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=300))
        def broken(data: bytes) -> None:
            nonlocal count
            count += 1
            if file_name == "wav.scp":
                (file.parent / "utt2spk").write_bytes(data[::-1])
            once(read, file, data)

        broken()
    return count


def run_binary(name: str, seconds: int) -> tuple[bool, str]:
    command = [sys.executable, __file__, "--one", name, "--seconds", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=20 * seconds + 300)
    found: dict[str, Any] = dict(re.findall(r"stat::(\w+):\s+(\d+)", done.stderr))
    count, peak = int(found.get("number_of_executed_units", 0)), found.get("peak_rss_mb", "?")
    if done.returncode:
        return False, f"BROKE after {count:,} inputs\n{done.stdout[-3000:]}\n{done.stderr[-600:]}"
    return True, f"{count:,} inputs, at most {peak} MB"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=int, default=15, help="for each binary reader")
    options.add_argument("--examples", type=int, default=1000, help="for each text reader")
    options.add_argument("--one", help=argparse.SUPPRESS)
    options.add_argument("readers", nargs="*", help="all by default")
    given = options.parse_args()
    if given.one:
        fuzz_binary(given.one, given.seconds)
        return 0
    good = True
    for name in BINARY:
        if not given.readers or name in given.readers:
            sound, said = run_binary(name, given.seconds)
            good &= sound
            print(f"{name:16} {said}", flush=True)
    for name in text_readers():
        if not given.readers or name in given.readers:
            started = time.monotonic()
            try:
                count = fuzz_text(name, given.examples)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                import traceback

                good = False
                print(f"{name:16} BROKE", flush=True)
                traceback.print_exc()
                continue
            print(f"{name:16} {count:,} inputs in {time.monotonic() - started:.0f} s", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
