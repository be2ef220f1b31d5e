"""Keep every number that veilmeter computes, so that a change of the code can be shown to change none.

    python tools/freeze.py write FOLDER [CONFIGURATION ...]
    python tools/freeze.py compare BEFORE AFTER

`write` runs the commands of each configuration below on synthetic voices, and on the reference data where they are
(VEILMETER_SHARED, else ../shared), and writes one JSON file per configuration: every estimate, decision and table
column. `compare` lists every difference to the last digit and exits with 1 if there is one. Measures that BEFORE does
not have anywhere are listed separately and do not count. To freeze another commit, run this file with
PYTHONPATH=OTHER/src. One core needs about four minutes.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
import tomllib
import wave
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("VEILMETER_SHARED", ROOT.parent / "shared"))
REAL = SHARED / "data" / "vpc2020-b1"

Array = NDArray[np.float64]

# ---------------------------------------------------------------------------------------------- configurations

QUICK = "--measures scores,linkability,singling-out --lengths 1 --resamples 100"
AUDIO = "--extractor tiny.py:embed --lengths 1,2 --resamples 200"
THREE = "--scores original=oo.txt --scores ignorant=op.txt --scores lazy-informed=pp.txt"
PLAIN = "--original plain.npz --anonymized plain-anon.npz"
GENDERS = "--original genders.npz --anonymized genders-anon.npz"
SPEECH = "--original speech --anonymized speech-anon"

# Name: the commands that are run, each under a name of its own. `assess` writes to a folder of that name.
CONFIGURATIONS: dict[str, dict[str, str]] = {
    "scores-with-key": {
        "measure": "measure run1.txt --trials key.txt --per-speaker",
        "roc": "measure run1.txt --trials key.txt --eer-method roc --resamples 100 --seed 3",
        "speechbrain": "measure run1.txt --trials key.txt --eer-method speechbrain --no-intervals",
        "stream": "measure labeled.txt --stream",
    },
    "scores-of-three-kinds": {
        "measure": "measure --original oo.txt --mixed op.txt --protected pp.txt --trials key.txt",
        "assess": f"assess {THREE} --trials key.txt",
    },
    "scores-calibrated": {"measure": "measure run1.txt --trials key.txt --calibrate-on run2.txt"},
    "scores-alone": {
        "assess": "assess --scores ignorant=run1.txt --trials key.txt",
        "other": "assess --scores ignorant=run2.txt --trials key.txt",
        "compare": "compare assess other --resamples 100",
        "gate": "gate assess --min eer=10% --max d_ece=0.5 --even-if-doubted",
    },
    "vectors-plain": {
        "assess": f"assess {PLAIN}",
        "linkability": "linkability --enroll enroll.npz --test test.npz --lengths 1,3 --ranks --population 1e6"
        " --per-speaker",
        "singling-out": "singling-out --enroll enroll.npz --test test.npz --per-speaker",
        "similarity": f"similarity {PLAIN} --per-speaker",
        "arithmetic": f"similarity {PLAIN} --form arithmetic --pairs vpc",
        "invert": "invert --clear-train others.npz --anonymized-train others-anon.npz --clear-trials plain.npz"
        " --anonymized-trials plain-anon.npz --pca 8 --learning-curve --label-noise --repeats 2",
    },
    "vectors-with-genders": {
        "assess": f"assess {GENDERS}",
        "other": "assess --original genders.npz --anonymized genders-run1.npz --population 5000 --candidates 10",
        "compare": "compare assess other --by gender --resamples 200",
        "gate": "gate assess --max linkability@10=5% --min eer=30% --by gender --baseline other --resamples 200",
        "linkability": "linkability --enroll genders.npz --test genders-anon.npz --attribute gender --speakers all",
        "singling-out": "singling-out --enroll genders.npz --test genders-anon.npz --attribute gender --rule balanced",
        "accent": f"assess {GENDERS} --by accent --attributes accent --seed 4",
    },
    "vectors-with-sessions": {
        "assess": "assess --original sessions.npz --anonymized sessions-anon.npz",
        "similarity": "similarity --original sessions.npz --anonymized sessions-anon.npz --sessions --speakers 5,20",
    },
    "vectors-with-lists": {
        "assess": f"assess {PLAIN} --enroll enroll.txt --trials trials.txt"
        " --speakers 2,7,20 --weak-attacker 5 --precision 30% --folds 4",
        "values": f"assess {PLAIN} --no-intervals",
    },
    "back-ends": {
        "centered": f"assess {GENDERS} --backend centered-cosine"
        " --adapted-backend plda --measures scores,linkability,inversion",
        "best": f"assess {PLAIN} --backend cosine:best {QUICK}",
        "normalized": f"assess {PLAIN} --backend cosine:normalized {QUICK}",
    },
    "attacker-runs": {
        "one": f"assess {GENDERS} --attacker-run genders-run1.npz:per-speaker",
        "two": f"assess {GENDERS} --attacker-run genders-run1.npz:per-utterance"
        " --attacker-run genders-run2.npz:per-utterance",
        "partial": f"assess {GENDERS} --attacker-run genders-part.npz",
    },
    "others-speech": {
        "both": f"assess {PLAIN} --train-original others.npz --train-anonymized others-anon.npz",
        "similar": f"assess {PLAIN} --train-original others.npz"
        " --train-anonymized others-anon.npz --train-similar others-similar.npz --attacker-run plain-run1.npz",
    },
    "own-vectors": {
        "assess": "assess own.toml",
        "scores": f"assess {GENDERS} --scores informed=own.txt --trials own-key.txt",
    },
    "audio": {
        "system": f"assess --original speech --system mcadams-random --system-runs 2 --no-utility {AUDIO}",
        "given": f"assess {SPEECH} --no-utility {AUDIO}",
    },
    "audio-channels": {
        "assess": f"assess {SPEECH} --no-utility --extractor tiny.py:embed tiny.py:beat --lengths 1 --resamples 200",
    },
    "audio-finetuned": {
        "assess": f"assess {SPEECH} --train-original others-speech --train-anonymized others-speech-anon {AUDIO}"
        " --adaptation finetune --network tiny_network.py:make --epochs 2 --attackers informed"
        " --measures scores,linkability",
    },
    "audio-utility": {
        "assess": f"assess {SPEECH} --recognizer tiny.py:hear --utility-rated 4"
        " --lengths 1 --measures scores,linkability,utility",
        "utility": f"utility {SPEECH} --recognizer tiny.py:hear --rated 4",
    },
    "challenge": {
        "vpc": f"assess --vpc challenge/data --suffix _anon --sets libri_test --no-utility {AUDIO}",
        "emotions": "assess --vpc challenge/data --suffix _anon --extractor tiny.py:embed --recognizer tiny.py:hear"
        " --utility-rated 2 --measures scores,utility --no-intervals",
    },
    "plug-ins": {
        "assess": f"assess {GENDERS} --attackers ignorant,nearest-recording"
        " --backend euclidean --measures scores,linkability,similarity",
        "other": "assess --original genders.npz --anonymized genders-run1.npz --attackers ignorant,nearest-recording"
        " --backend euclidean --measures scores,linkability,similarity",
        "compare": "compare assess other --resamples 100",
        "gate": "gate assess --max auc=0.6 --max mean_shift=0.5 --even-if-doubted",
        "recordings": f"assess {SPEECH} --attackers ignorant --utility-rated 2 {AUDIO}"
        " --measures scores,utility --recognizer tiny.py:hear",
    },
    "people-2": {"assess": "assess --original two.npz --anonymized two-anon.npz"},
    "people-6": {"assess": "assess --original six.npz --anonymized six-anon.npz"},
    "people-40": {
        "assess": "assess --original forty.npz --anonymized forty-anon.npz --attacker-run forty-run1.npz:per-speaker",
        "safe": "assess --original forty.npz --anonymized forty-noise.npz",
        "compare": "compare assess safe --resamples 100",
    },
    "people-1000": {
        "assess": "assess --original thousand.npz --anonymized thousand-anon.npz"
        f" --attackers ignorant,lazy-informed,informed --speakers 20,1000 {QUICK}",
    },
    "real-scores": {
        "measure": "measure {real}/extractor-original/results/ASV-libri_test_enrolls-libri_test_trials_f_anon/scores"
        " --trials {real}/extractor-original/xvect_libri_test_trials_f/meta/trials",
    },
    "real-vectors": {
        "assess": "assess --original {real}/extractor-original/xvect_libri_test_trials_f"
        " --anonymized {real}/extractor-original/xvect_libri_test_trials_f_anon"
        " --attackers ignorant,lazy-informed,informed,procrustes --resamples 200",
        "linkability": "linkability --enroll {real}/extractor-retrained/xvect_libri_test_enrolls_anon"
        " --test {real}/extractor-retrained/xvect_libri_test_trials_m_anon --lengths 1,3 --ranks --population 1e5",
    },
}  # fmt: skip

# ------------------------------------------------------------------------------------------------------ inputs

# An extractor of voices, one of rhythm, and a recognizer that writes a word for every tenth of a second.
TINY = """
import numpy as np

def _frames(samples):
    return samples[: len(samples) // 256 * 256].reshape(-1, 256)

def embed(samples):
    spectrum = np.abs(np.fft.rfft(_frames(samples) * np.hanning(256), axis=1)).mean(0)
    return np.log(spectrum[1:65].reshape(-1, 4).mean(1) + 1e-4).astype(np.float32)

def beat(samples):
    energy = np.square(_frames(samples)).mean(1)
    return np.abs(np.fft.rfft(energy, 64))[1:13].astype(np.float32)

def hear(samples):
    loud = np.sqrt(np.square(samples[: len(samples) // 1600 * 1600].reshape(-1, 1600)).mean(1))
    return " ".join("low high".split()[int(x > 0.2)] for x in loud)
"""

OWN = """
original = "genders.npz"
anonymized = "genders-anon.npz"
attacker-run = ["genders-run1.npz:per-speaker"]

[attackers.ignorant]

[attackers.lazy-informed]
backend = "centered-cosine"

[attackers.informed]
original = "own.npz"
anonymized = "own-anon.npz"
attacker_run = ["own-run1.npz"]
backend = "centered-cosine"

[attackers.procrustes]
"""


# Name: people, recordings of each, and what is known of them.
VOICES: dict[str, tuple[int, int, tuple[str, ...]]] = {
    "plain": (20, 6, ()),
    "genders": (20, 6, ("gender", "accent")),
    "sessions": (20, 6, ("session",)),
    "others": (30, 4, ()),
    "two": (2, 8, ()),
    "six": (6, 5, ("gender",)),
    "forty": (40, 5, ("gender",)),
    "thousand": (1000, 3, ()),
    "own": (20, 6, ()),
}


def write_inputs(root: Path) -> None:
    """All inputs of all configurations: the same bytes on every call."""
    write_scores(root)
    write_vectors(root)
    write_speech(root)
    write_challenge(root / "challenge")
    (root / "tiny.py").write_text(TINY)
    (root / "tiny_network.py").write_text((ROOT / "tests" / "tiny_network.py").read_text())
    (root / "own.toml").write_text(OWN)


def write_scores(root: Path, people: int = 12, each: int = 6) -> None:
    pairs = [(a, b, take) for a in range(people) for b in range(people) for take in range(each)]
    names = [f"{100 + a} {100 + b}-{take:04d}" for a, b, take in pairs]
    same = np.array([a == b for a, b, _ in pairs])
    for number, (name, shift) in enumerate({"oo": 4.0, "op": 0.3, "pp": 1.5, "run1": 1.5, "run2": 1.4}.items()):
        scores = np.random.default_rng([3, number]).normal(np.where(same, shift, 0.0)).round(5)
        write_lines(root / f"{name}.txt", (f"{pair} {score}" for pair, score in zip(names, scores, strict=True)))
    write_lines(root / "key.txt", (f"{p} {'target' if t else 'nontarget'}" for p, t in zip(names, same, strict=True)))
    labeled = zip(names, scores, same, strict=True)
    write_lines(root / "labeled.txt", (f"{pair} {score} {int(target)}" for pair, score, target in labeled))


def write_lines(path: Path, lines: Iterator[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines))


def write_vectors(root: Path) -> None:
    for number, (name, (people, each, attributes)) in enumerate(VOICES.items()):
        rng = np.random.default_rng([5, number])
        voices = np.repeat(rng.standard_normal((people, 16)), each, axis=0)
        clear = voices + 0.5 * rng.standard_normal(voices.shape)
        save(root / f"{name}.npz", clear, people, attributes)
        turn, _ = np.linalg.qr(rng.standard_normal((16, 16)))
        for variant, blur in {"anon": 1.0, "run1": 1.0, "run2": 1.1, "similar": 1.6}.items():
            offset = 0.7 * np.repeat(rng.standard_normal((people, 16)), each, axis=0)
            anonymized = clear @ turn + offset + blur * rng.standard_normal(clear.shape)
            save(root / f"{name}-{variant}.npz", anonymized, people, attributes)
    save(root / "forty-noise.npz", rng.standard_normal((200, 16)), 40, ("gender",))
    for name, source, rows in (("enroll", "plain-run1", slice(0, 3)), ("test", "plain-anon", slice(3, 6))):
        take(root / f"{source}.npz", root / f"{name}.npz", np.arange(120).reshape(20, 6)[:, rows].ravel())
    take(root / "genders-run1.npz", root / "genders-part.npz", np.arange(90))
    write_lines(root / "enroll.txt", (f"p{n:04d}-{k}" for n in range(20) for k in range(4)))
    write_lines(root / "trials.txt", (f"p{n:04d}-{k}" for n in range(20) for k in range(4, 6)))
    pairs = [(a, b, k) for a in range(20) for b in range(20) for k in range(2)]
    write_lines(root / "own.txt", (f"p{a:04d} p{b:04d}-{k} {rng.normal(2 * (a == b)):.5f}" for a, b, k in pairs))
    kinds = {True: "target", False: "nontarget"}
    write_lines(root / "own-key.txt", (f"p{a:04d} p{b:04d}-{k} {kinds[a == b]}" for a, b, k in pairs))


def save(path: Path, vectors: Array, people: int, attributes: Sequence[str]) -> None:
    each = len(vectors) // people
    rows = [(n, k) for n in range(people) for k in range(each)]
    known = {
        "gender": ["fm"[n % 2] for n, _ in rows],
        "accent": [("north", "south", "west")[n // 2 % 3] for n, _ in rows],
        "session": [f"day{k // (each // 2)}" for _, k in rows],
    }
    np.savez(
        path,
        vectors=vectors.astype(np.float32),
        ids=np.array([f"p{n:04d}-{k}" for n, k in rows]),
        speakers=np.array([f"p{n:04d}" for n, _ in rows]),
        **{name: np.array(known[name]) for name in attributes},  # type: ignore[arg-type]
    )


def take(source: Path, target: Path, rows: NDArray[np.int64]) -> None:
    with np.load(source) as arrays:
        np.savez(target, **{name: arrays[name][rows] for name in arrays})


def write_speech(root: Path) -> None:
    """Six people, six recordings each, in two sessions, and a list with their gender."""
    lines = ["path,speaker,utterance,gender,session"]
    for person in range(6):
        for take_number in range(6):
            name = f"s{person}/{take_number}"
            lines.append(f"{name}.wav,s{person},{name},{'fm'[person % 2]},day{take_number // 3}")
            write_voice(root / "speech" / f"{name}.wav", person, take_number)
            write_voice(root / "speech-anon" / f"{name}.wav", person, take_number, warp=1.15)
            for side, warp in {"others-speech": 1.0, "others-speech-anon": 1.15}.items():
                write_voice(root / side / f"o{person}" / f"{take_number}.wav", 10 + person, take_number, warp)
    write_lines(root / "speech" / "list.csv", iter(lines))


def write_voice(path: Path, person: int, number: int, warp: float = 1.0) -> None:
    """Harmonics under the person's spectral envelope: 0.8 s at 16 kHz."""
    own = np.random.default_rng([7, person])
    rng = np.random.default_rng([8, person, number, round(100 * warp)])
    t = np.arange(12_800) / 16_000
    pitch = own.uniform(90, 240) * warp * rng.uniform(0.97, 1.03)
    peaks, widths = own.uniform(300, 3500, 3) * warp, own.uniform(150, 500, 3)
    sound = np.zeros_like(t)
    for k in range(1, int(4500 / pitch)):
        gain = np.exp(-(((k * pitch - peaks) / widths) ** 2)).sum() + 0.02
        sound += gain * np.sin(2 * np.pi * k * pitch * t + rng.uniform(0, 6.28))
    loudness = 0.5 + 0.3 * np.sin(2 * np.pi * own.uniform(3, 6) * t + rng.uniform(0, 6.28))
    sound = 0.6 * sound / np.abs(sound).max() * loudness + 0.005 * rng.standard_normal(len(t))
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(16_000)
        out.writeframes((32_767 * sound).astype("<i2").tobytes())


def write_challenge(root: Path) -> None:
    """A data folder of the VoicePrivacy challenge of 2024 with eight people, training speech and emotions."""
    sys.path.insert(0, str(ROOT))
    from tests.challenge_trees import data_folder, emotion_folder, key_of

    data = root / "data"
    people = {f"{1000 + n}": [f"{1000 + n}-128104-{k:04d}" for k in range(4)] for n in range(8)}
    training = {f"{2000 + n}": [f"{2000 + n}-121669-{k:04d}" for k in range(3)] for n in range(6)}
    enrolled = {speaker: spoken[:2] for speaker, spoken in people.items()}
    for suffix in ("", "_anon"):
        ids = "".join(f"{utterance}\n" for spoken in enrolled.values() for utterance in spoken)
        data_folder(data, "libri_test_enrolls", enrolled, suffix=suffix, enrolls=ids)
        for number, gender in enumerate("fm"):
            tried = {speaker: spoken[2:] for speaker, spoken in list(people.items())[number::2]}
            key = key_of(list(tried), tried)
            data_folder(data, f"libri_test_trials_{gender}", tried, suffix=suffix, trials=key)
        data_folder(data, "train-clean-360", training, suffix=suffix)
    emotion_folder(data, "IEMOCAP_test", "_anon")
    for path in sorted(data.glob("*/wav/*.wav")):
        number = int.from_bytes(hashlib.sha256(path.stem.encode()).digest()[:4], "big")
        speaker = int.from_bytes(hashlib.sha256(path.stem.split("-")[0].encode()).digest()[:4], "big")
        write_voice(path, speaker, number, 1.15 if path.parents[1].name.endswith("_anon") else 1.0)


# ----------------------------------------------------------------------------------------------------- running


def write(folder: Path, chosen: Sequence[str]) -> None:
    """One JSON file per configuration that can be run here."""
    folder.mkdir(parents=True, exist_ok=True)
    unknown = set(chosen) - set(CONFIGURATIONS)
    if unknown:
        raise SystemExit(f"no such configuration: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="veilmeter-freeze-") as place:
        root = Path(place)
        write_inputs(root)
        for name in chosen or CONFIGURATIONS:
            if name.startswith("real-") and not REAL.is_dir():
                print(f"{name:24} left out: the reference data is not here")
                continue
            began, run = time.monotonic(), Run(root, name)
            entries: dict[str, Any] = {}
            for step, line in CONFIGURATIONS[name].items():
                entries |= {f"{step}: {address}": value for address, value in run.step(step, line)}
            (folder / f"{name}.json").write_text(json.dumps(entries, indent=0, sort_keys=True) + "\n")
            print(f"{name:24} {len(entries):6} entries {time.monotonic() - began:6.1f} s", flush=True)


class Run:
    """The commands of one configuration, in a folder of their own below the inputs."""

    def __init__(self, root: Path, name: str) -> None:
        self.root, self.name = root, name
        paths = [str(source_folder())]
        if name == "plug-ins":
            paths.append(str(install_plugin(root / "plug-in")))
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "VEILMETER_CACHE": str(private_cache(root / f"cache-{name}")),
            "OMP_NUM_THREADS": "1",
        }

    def step(self, step: str, line: str) -> Iterator[tuple[str, Any]]:
        words = shlex.split(line.replace("{real}", str(REAL)))
        out = f"{self.name}-{step}"
        if words[0] in ("compare", "gate"):
            words = [f"{self.name}-{word}" if word in CONFIGURATIONS[self.name] else word for word in words]
            words[0] = line.split()[0]
        elif words[0] == "assess":
            words += ["--out", out, "--no-report", "--quiet", "--jobs", "1"]
        elif words[0] not in ("singling-out", "invert"):
            words += ["--jobs", "1"]
        if words[0] != "assess" or "--vpc" not in words:
            words.append("--json")
        done = subprocess.run(
            [sys.executable, "-m", "veilmeter.cli.main", *words],
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        yield "exit code", done.returncode
        if done.returncode not in (0, 1, 3):
            print(f"{self.name}, {step}: veilmeter {' '.join(words)}\n{done.stderr.strip()[-600:]}", flush=True)
            return
        if words[0] == "assess":
            yield from numbers_of_folder(self.root / out)
        else:
            yield from numbers(json.loads(done.stdout))


def source_folder() -> Path:
    import veilmeter

    return Path(veilmeter.__file__).resolve().parents[1]


def private_cache(folder: Path) -> Path:
    """A cache that has the weights of the user's and no embeddings, which another version may have made."""
    folder.mkdir()
    user = Path(os.environ.get("VEILMETER_CACHE", "~/.cache/veilmeter")).expanduser()
    for path in user.glob("*") if user.is_dir() else ():
        if path.is_file() and not path.name.startswith("."):
            (folder / path.name).symlink_to(path)
    return folder


def install_plugin(folder: Path) -> Path:
    """The example package of the code that is run, installed without pip."""
    place = source_folder().parent / "examples" / "plugin"
    project = tomllib.loads((place / "pyproject.toml").read_text())["project"]
    about = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    text = "".join(f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items()) for group, names in groups)
    (about / "entry_points.txt").write_text(text)
    (folder / "veilmeter_example").symlink_to(place / "src" / "veilmeter_example")
    return folder


# ----------------------------------------------------------------------------------------------------- reading

# What names an entry of a list, and what is kept of an estimate apart from the numbers.
NAMING = ("name", "code", "run", "attacker", "speaker", "channel", "limit", "title", "length", "among", "by")
DECISIONS = ("level", "attacker", "animal", "unit", "better", "misleads")
PROSE = {"parameters", "inputs", "warnings", "remarks", "version", "schema", "seed", "tables", "timings", "signature"}


def numbers_of_folder(folder: Path) -> Iterator[tuple[str, Any]]:
    """Of one run, or of every run of a challenge below it."""
    for path in sorted(folder.rglob("results.json")):
        place = path.parent.relative_to(folder).as_posix()
        prefix = "" if place == "." else f"{place} "
        for address, value in numbers(json.loads(path.read_text())):
            yield prefix + address, value
        for address, value in numbers_of_tables(path.parent / "tables"):
            yield prefix + address, value
    for path in sorted(folder.glob("*.csv")):
        with path.open(newline="") as lines:
            for number, row in enumerate(csv.reader(lines)):
                yield f"{path.name} row {number}", row


def numbers_of_tables(folder: Path) -> Iterator[tuple[str, Any]]:
    """A digest of each numeric column of each table; what `estimates` holds is in results.json too."""
    import pyarrow.parquet

    for path in sorted(folder.glob("*.parquet")):
        if path.stem != "estimates":
            table = pyarrow.parquet.read_table(path)
            for column in table.column_names:
                values = table.column(column).to_numpy()
                if values.dtype.kind in "fib":
                    yield f"tables/{path.stem}/{column}", digest(values.tolist())


def digest(values: Sequence[Any]) -> str:
    return f"{len(values)} values, sha256 {hashlib.sha256(json.dumps(list(values)).encode()).hexdigest()[:16]}"


def is_estimate(node: Any) -> bool:
    return isinstance(node, Mapping) and "value" in node and ("interval" in node or "null" in node)


def numbers(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every estimate under its place, measure and parameters, and every other number and decision under its path.

    >>> dict(numbers({"a": {"estimates": {"eer": [{"n": 3, "at": ["n"], "value": 1.5, "interval": None}]}}}))
    {'a eer(n=3)': {'value': 1.5, 'interval': None}}
    """
    seen: Counter[str] = Counter()
    for path, value in _walk({key: node for key, node in document.items() if key not in PROSE}, ()):
        address = " ".join(path)
        seen[address] += 1
        yield (address if seen[address] == 1 else f"{address} #{seen[address]}"), value


def _walk(node: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if is_estimate(node):
        at = node.get("at") or ()
        parameters = at if isinstance(at, Mapping) else {name: node[name] for name in at}
        written = ",".join(f"{name}={parameters[name]}" for name in sorted(parameters))
        measure = f" {node['name']}" if "name" in node and node["name"] != path[-1] else ""
        fields = {key: value for key, value in node.items() if key not in parameters and key not in ("at", "name")}
        yield (*path[:-1], f"{path[-1]}{measure}({written})"), {key: v for key, v in fields.items() if _is_kept(key, v)}
    elif isinstance(node, Mapping) and not {"code", "values"} <= node.keys():  # a finding only repeats what it is about
        for key, value in node.items():
            yield from _walk(value, path if key == "estimates" else (*path, str(key)))
    elif isinstance(node, list) and len(node) > 8 and all(isinstance(value, int | float) for value in node):
        yield path, digest(node)
    elif isinstance(node, list):
        for value in node:
            if is_estimate(value):
                yield from _walk(value, path)
            elif isinstance(value, Mapping):
                names = [str(value[name]) for name in NAMING if isinstance(value.get(name), str | int) and value[name]]
                yield from _walk(value, (*path, "/".join(names)))
            elif _is_kept(path[-1], value):
                yield path, value
    elif _is_kept(path[-1] if path else "", node):
        yield path, node


def _is_kept(key: str, value: Any) -> bool:
    """Numbers, and words that are decisions; everything else is prose."""
    if isinstance(value, str):
        return key in DECISIONS or value in ("inf", "-inf")
    if isinstance(value, Mapping | list):
        return all(_is_kept(key, one) for one in (value.values() if isinstance(value, Mapping) else value))
    return True


# --------------------------------------------------------------------------------------------------- comparing


def compare(before: Path, after: Path) -> int:
    old, new = ({path.stem: json.loads(path.read_text()) for path in sorted(f.glob("*.json"))} for f in (before, after))
    measures = {_measure(address) for entries in old.values() for address in entries}
    differing = compared = 0
    added: Counter[str] = Counter()
    for name in sorted(old.keys() | new.keys()):
        if name not in old or name not in new:
            print(f"{name}: only in {before if name in old else after}")
            differing += 1
            continue
        found = []
        for address in sorted(old[name].keys() | new[name].keys()):
            if address not in old[name] and _measure(address) not in measures:
                added[_measure(address)] += 1
            elif address not in old[name]:
                found.append(f"only after: {address} = {json.dumps(new[name][address])}")
            elif address not in new[name]:
                found.append(f"only before: {address} = {json.dumps(old[name][address])}")
            else:
                compared += count(old[name][address])
                found += [f"{address}{what}" for what in differences(old[name][address], new[name][address])]
        print(f"{name}: {len(old[name])} entries, {len(found)} differences")
        print("".join(f"  {line}\n" for line in found), end="")
        differing += len(found)
    for measure, times in sorted(added.items()):
        print(f"new measure: {measure} ({times} times)")
    print(f"{compared} numbers and decisions compared, {differing} differences")
    return int(differing > 0)


def _measure(address: str) -> str:
    """`run: attackers informed linkability(length=1)` is of the measure `linkability`."""
    return address.split("(")[0].split(" ")[-1]


def count(value: Any) -> int:
    if isinstance(value, Mapping | list):
        return sum(count(one) for one in (value.values() if isinstance(value, Mapping) else value))
    return int(value is not None)


def differences(old: Any, new: Any) -> list[str]:
    """By field where there are fields.

    >>> differences({"value": 1.0, "null": 2}, {"value": 1.5, "null": 2})
    [' value: 1.0 -> 1.5']
    """
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted(old.keys() | new.keys())
        return [
            f" {key}: {json.dumps(old.get(key))} -> {json.dumps(new.get(key))}"
            for key in keys
            if json.dumps(old.get(key)) != json.dumps(new.get(key)) or (key in old) != (key in new)
        ]
    return [] if json.dumps(old) == json.dumps(new) else [f": {json.dumps(old)} -> {json.dumps(new)}"]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="command", required=True)
    writer = commands.add_parser("write", help="run the configurations and keep their numbers")
    writer.add_argument("folder", type=Path)
    writer.add_argument("configurations", nargs="*", metavar="CONFIGURATION", help="all by default")
    comparer = commands.add_parser("compare", help="list every difference; exit code 1 if there is one")
    comparer.add_argument("before", type=Path)
    comparer.add_argument("after", type=Path)
    given = parser.parse_args(argv)
    if given.command == "compare":
        return compare(given.before, given.after)
    write(given.folder, given.configurations)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
