"""Odd inputs for whole commands: special files where a file is meant, and values beyond every limit.

Each command may do its work, refuse the input (exit code 2) or leave it out (3); a gate may say no (1). Anything else
is a finding: our own mistake (70), a signal, a traceback, files or processes left behind, more than `SECONDS` of the
processor's time or `MEGABYTES` of memory, or a command that waits without working.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from tools.fuzzing import odd_code, odd_features, odd_options

SECONDS = 60  # of the processor
PATIENCE = 15  # looks, one per second, at a command that does nothing
GOOD = ("0", "1", "2", "3")
DIGITS = "9" * 5000
MEGABYTES = 3000  # of memory, so that a finding does not end the machine's other work


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        server.bind(os.path.relpath(path, here) if len(str(path)) > 90 else str(path))


def _sparse(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(1 << 40)


def _text_then_sparse(path: Path) -> None:
    with open(path, "wb") as file:
        file.write(b"a b 1\n")
        file.truncate(1 << 40)


SPECIAL: dict[str, Callable[[Path], object]] = {
    "fifo": _fifo,
    "zero": lambda path: path.symlink_to("/dev/zero"),
    "tty": lambda path: path.symlink_to("/dev/tty"),
    "loop": lambda path: path.symlink_to(path.name),
    "dangling": lambda path: path.symlink_to("nowhere"),
    "socket": _socket,
    "folder": lambda path: path.mkdir(),
    "sparse": _sparse,
    "text then sparse": _text_then_sparse,
    "empty": lambda path: path.write_bytes(b""),
    "random": lambda path: path.write_bytes(np.random.default_rng(0).bytes(5000)),
}
"""Things that may lie where a file is meant."""

_HARDEST = ("fifo", "zero", "loop", "sparse", "random")  # for files that fewer people have

# By the file that is replaced: the command that reads it. Folders that don't matter are copied as they are.
FILES: dict[str, str] = {
    "scores.txt": "measure scores.txt --trials key.txt",
    "scores.txt (stream)": "measure scores.txt --trials key.txt --stream",
    "key.txt": "measure scores.txt --trials key.txt",
    "key.txt (check)": "check key.txt",
    "x.npz": "similarity --original x.npz --anonymized a.npz",
    "x.h5": "similarity --original x.h5 --anonymized a.npz",
    "x.parquet": "similarity --original x.parquet --anonymized a.npz",
    "x.ark": "similarity --original x.ark --anonymized a.npz",
    "x.scp": "similarity --original x.scp --anonymized a.npz",
    "x.scp (check)": "check x.scp",
    "x.pt": "similarity --original x.pt --anonymized a.npz",
    "x.safetensors": "similarity --original x.safetensors --anonymized a.npz",
    "vectors/meta/utt2spk": "linkability --enroll vectors --test a.npz --speakers 4",
    "vectors/meta/spk2gender": "linkability --enroll vectors --test a.npz --speakers 4",
    "vectors/meta/utt2dur": "linkability --enroll vectors --test a.npz --speakers 4",
    "vectors/xvector.ark": "linkability --enroll vectors --test a.npz --speakers 4",
    "vectors/xvector.scp": "linkability --enroll vectors --test a.npz --speakers 4",
    "run.toml": "assess run.toml",
    "run/results.json": "report run --out page.html",
    "run/results.json (gate)": "gate run --max eer=60",
    "run/results.json (compare)": "compare run run",
    "run/pseudonyms.key": "report run --out page.html",
    "run/timings.json": "report run --out page.html",
    "map.npz": "invert --load-map map.npz --clear-trials o.npz --anonymized-trials a.npz",
    "list.csv": "check list.csv",
    "list.csv (anonymize)": "anonymize list.csv out --system mcadams --jobs 1",
    "list.jsonl": "check list.jsonl",
    "list.jsonl.gz": "check list.jsonl.gz",
    "data.parquet": "check data.parquet",
    "kaldi/wav.scp": "check kaldi --root corpus",
    "kaldi/utt2spk": "check kaldi --root corpus",
    "kaldi/segments": "check kaldi --root corpus",
    "kaldi/text": "check kaldi --root corpus",
    "corpus/s1/odd.wav": "check corpus",
    "corpus/s1/odd.wav (anonymize)": "anonymize corpus out --system mcadams --jobs 1",
    "corpus/s1/odd.mp3": "check corpus",
    "corpus/s1/odd.m4a": "check corpus",
    "corpus/s1/odd.flac (transcribe)": "transcribe corpus out --recognizer own.py:hear --jobs 1",
    "odd.jsonl": "anonymize corpus out --system mcadams --jobs 1 --manifest odd.jsonl",
    "corpus.timings.json": "assess --original corpus --anonymized corpus --extractor own.py:embed --out out --jobs 1",
    "model.onnx": "embed corpus out.npz --extractor onnx:model.onnx --jobs 1",
    "own.py": "embed corpus out.npz --extractor own.py:embed --jobs 1",
    "cluster.yaml": "embed corpus out.npz --extractor rhythm --cluster slurm:cluster.yaml",
    "enrolls.txt": "assess --original o.npz --anonymized a.npz --enroll enrolls.txt --trials key.txt --out out",
    "train.safetensors": "anonymize corpus out --system xvector-pool --model train.safetensors --jobs 1",
}


def _text(name: str, content: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(content)


def _nothing(folder: Path) -> None:
    pass


def _wav(name: str, rate: int, channels: int, seconds: float = 1.0) -> Callable[[Path], object]:
    def make(folder: Path) -> None:
        import soundfile

        sound = 0.1 * np.random.default_rng(0).standard_normal((int(seconds * rate), 1)).repeat(channels, 1)
        soundfile.write(folder / name, sound, rate, format="WAV")

    return make


def _csv(column: str, value: str) -> Callable[[Path], object]:
    return _text(
        "list.csv",
        f"path,speaker,{column}\ncorpus/s0/0.wav,s0,0.1\ncorpus/s1/0.wav,s1,{value}\ncorpus/s1/1.wav,s1,0.2\n",
    )


def _segments(start: str, end: str) -> Callable[[Path], object]:
    return _text("kaldi/segments", f"s0-a r0 0.0 0.8\ns1-a r1 {start} {end}\ns1-b r1 0.1 0.9\n")


def _encoded(suffix: str) -> bytes:
    import io

    import soundfile

    rng, file = np.random.default_rng(0), io.BytesIO()
    soundfile.write(file, 0.1 * rng.standard_normal(32_000), 16_000, format=suffix.upper())
    return file.getvalue()


def _flipped(suffix: str) -> Callable[[Path], object]:
    """Twenty files with twenty damaged bytes each."""

    def make(folder: Path) -> None:
        sound, rng = _encoded(suffix), np.random.default_rng(1)
        for number in range(20):
            data = np.frombuffer(sound, np.uint8).copy()
            data[rng.integers(len(data), size=20)] = rng.integers(256, size=20)
            (folder / f"corpus/s1/odd{number}.{suffix}").write_bytes(data.tobytes())

    return make


def _cut(suffix: str) -> Callable[[Path], object]:
    """Files that end after every tenth of their length."""

    def make(folder: Path) -> None:
        sound = _encoded(suffix)
        for number in range(10):
            (folder / f"corpus/s1/odd{number}.{suffix}").write_bytes(sound[: len(sound) * number // 10])

    return make


_CORPUS = ("check {}", "anonymize {} out --system mcadams --jobs 1")


def values() -> dict[str, tuple[Callable[[Path], object], str]]:
    """Odd values by name: how to make the input, and the command."""
    cases: dict[str, tuple[Callable[[Path], object], str]] = {}
    for command in _CORPUS:
        verb = command.split()[0]
        for rate in (768_000, 767_999, 2_000, 1):
            cases[f"{verb}: {rate} Hz"] = (_wav("corpus/s1/odd.wav", rate, 1, 1.0), command.format("corpus"))
        for channels in (2, 9, 12, 255):
            cases[f"{verb}: {channels} channels"] = (
                _wav("corpus/s1/odd.wav", 16_000, channels), command.format("corpus"),
            )  # fmt: skip
        for column in ("start", "duration", "end", "channel"):
            for value in ("-5", "1e308", "-1e308", "nan", "inf", "1e-320", DIGITS, "0x10", "1_0", "٣"):
                cases[f"{verb}: {column} {value[:9]}"] = (_csv(column, value), command.format("list.csv"))
        for start, end in (("-5", "1"), ("0", "1e308"), ("1e307", "1e308"), ("nan", "1"), ("0.5", "0.50000001"),
                           ("0", DIGITS), ("-0.0", "1e-9")):  # fmt: skip
            cases[f"{verb}: segment {start[:9]} {end[:9]}"] = (
                _segments(start, end),
                command.format("kaldi --root corpus"),
            )
    for option in ("speakers", "lengths", "seed", "population", "resamples", "draws", "sizes"):
        for value in (DIGITS, str(2**63), str(2**31), "-1", "1e400", "0", "nan"):
            cases[f"linkability --{option} {value[:9]}"] = (
                _nothing, f"linkability --enroll o.npz --test a.npz --{option} {value}",
            )  # fmt: skip
    for option in ("jobs", "seed", "max-seconds"):
        for value in (DIGITS, str(2**63), str(2**31), "-1", "1e400", "0"):
            cases[f"anonymize --{option} {value[:9]}"] = (
                _nothing, f"anonymize corpus out --system mcadams --{option} {value}",
            )  # fmt: skip
    for option, value in (("jobs", DIGITS), ("jobs", str(2**63)), ("lengths", f"[{2**63}]"), ("lengths", DIGITS),
                          ("out", '"a\\u0000b"'), ("original", '"a\\u0000b"'), ("seed", str(2**70)), ("seed", "-1"),
                          ("speakers", f"[{DIGITS}]"), ("resamples", str(2**63)), ("jobs", "0x7fffffff"),
                          ("title", '"\\u202e"'),
                          ("out", '""'), ("out", '"/dev/null/x"'), ("original", '"/proc/self/mem"')):  # fmt: skip
        text = {"original": '"o.npz"', "anonymized": '"a.npz"', "out": '"out"'} | {option: value}
        cases[f"TOML {option} = {value[:12]}"] = (
            _text("run.toml", "".join(f"{key} = {word}\n" for key, word in text.items())), "assess run.toml",
        )  # fmt: skip
    for offset in (DIGITS, str(2**63), "-1", str(2**64)):
        cases[f"scp offset {offset[:9]}"] = (
            _text("x.scp", f"s0-0 vectors/xvector.ark:{offset}\n"), "similarity --original x.scp --anonymized a.npz",
        )  # fmt: skip
    for address in ("http://127.0.0.1:1", "tls://127.0.0.1:1", "ucx://127.0.0.1:1", "inproc://x", "tcp://",
                    "tcp://127.0.0.1:99999", "tcp://127.0.0.1:1", "://", "local:", "slurm:", "tcp://a b:1", "tcp://:",
                    "tcp://127.0.0.1", "tcp://[::1", "tcp://127.0.0.1:-1", "", "tcp://127.0.0.1:x"):  # fmt: skip
        cases[f"--cluster {address}"] = (
            _nothing, f"embed corpus out.npz --extractor rhythm --cluster {address.replace(' ', '%20')}",
        )  # fmt: skip
    for width in ("1e400cm", "-1cm", "0cm", DIGITS + "cm", "nancm"):
        cases[f"--width {width[:9]}"] = (_nothing, f"report run --out p.html --figures f --width {width}")
    for threshold in ("nan", "inf", "-1", "1e400", DIGITS):
        cases[f"--threshold {threshold[:9]}"] = (_nothing, f"report run --out p.html --threshold {threshold}")
        cases[f"--max eer={threshold[:9]}"] = (_nothing, f"gate run --max eer={threshold}")
    for size in ("nan", str(2**70), "-1", DIGITS):
        cases[f"--release-size {size[:9]}"] = (_nothing, f"report run --out p.html --release-size {size}")
    for name, content in (("flipped", _flipped), ("cut", _cut)):
        for suffix in ("mp3", "ogg", "flac", "aiff"):
            for command in _CORPUS:
                cases[f"{command.split()[0]}: {name} {suffix}"] = (content(suffix), command.format("corpus"))
    for word in ("", "-", "--", "x" * 5000, "../../../../etc/passwd", "~", "/dev/stdin", "/proc/self/environ", "."):
        cases[f"check {word[:20]!r}"] = (_nothing, f"check {word}")
        cases[f"gate {word[:20]!r}"] = (_nothing, f"gate {word} --max eer=1")
        cases[f"anonymize to {word[:20]!r}"] = (_nothing, f"anonymize corpus {word} --system mcadams --jobs 1")
    cases["many rows"] = (
        _text("list.csv", "path,speaker\n" + "".join(f"corpus/s0/{n}.wav,s{n % 9}\n" for n in range(300_000))),
        "check list.csv",
    )
    cases["deep JSON"] = (_text("run/results.json", "[" * 200_000), "report run --out p.html")
    cases["JSON number"] = (_text("run/results.json", '{"schema": ' + DIGITS + "}"), "report run --out p.html")
    cases["JSON lines number"] = (
        _text("list.jsonl", '{"path": "corpus/s0/0.wav", "speaker": "a", "start": ' + DIGITS + "}\n"),
        "check list.jsonl",
    )
    cases["YAML number"] = (
        _text("cluster.yaml", f"jobqueue: {{slurm: {{cores: {DIGITS}, memory: 1GB}}}}\n"),
        "embed corpus out.npz --extractor rhythm --cluster slurm:cluster.yaml",
    )
    return cases


def make_base(folder: Path) -> None:
    """Sound inputs for every command."""
    import soundfile

    from veilmeter.data.embeddings import Embeddings
    from veilmeter.data.formats.vectors import write_embeddings

    rng = np.random.default_rng(1)
    people = [f"s{number // 4}" for number in range(40)]
    ids = [f"{who}-{number % 4}" for number, who in enumerate(people)]
    genders = ["fm"[number // 4 % 2] for number in range(40)]
    voices = rng.standard_normal((10, 8))[np.arange(40) // 4]
    for name, spread in (("o", 0.3), ("a", 2.0)):
        vectors = (voices + spread * rng.standard_normal((40, 8))).astype(np.float32)
        embeddings = Embeddings(vectors, ids, people, {"gender": genders})
        write_embeddings(embeddings, folder / f"{name}.npz")
    write_embeddings(embeddings, folder / "vectors", form="kaldi")
    trials = [(who, name) for who in sorted({*people}) for name in ids]
    (folder / "scores.txt").write_text("".join(f"{a} {b} {rng.standard_normal():.4f}\n" for a, b in trials))
    key = "".join(f"{a} {b} {'target' if b.startswith(a + '-') else 'nontarget'}\n" for a, b in trials)
    (folder / "key.txt").write_text(key)
    (folder / "enrolls.txt").write_text("".join(f"{name}\n" for name in ids[::4]))
    for speaker in range(3):
        (folder / f"corpus/s{speaker}").mkdir(parents=True)
        for number in range(2):
            time = np.arange(16_000) / 16_000
            sound = 0.1 * np.sign(np.sin(2 * np.pi * (100 + 40 * speaker) * time)) + 0.01 * rng.standard_normal(16_000)
            soundfile.write(folder / f"corpus/s{speaker}/{number}.wav", sound, 16_000)
    (folder / "kaldi").mkdir()
    (folder / "kaldi/wav.scp").write_text("".join(f"r{n} ../corpus/s{n}/0.wav\n" for n in range(2)))
    (folder / "kaldi/utt2spk").write_text("s0-a s0\ns1-a s1\ns1-b s1\n")
    (folder / "kaldi/segments").write_text("s0-a r0 0.0 0.8\ns1-a r1 0.0 0.7\ns1-b r1 0.1 0.9\n")
    (folder / "own.py").write_text(
        "def embed(samples):\n    return samples[:8]\ndef hear(samples):\n    return 'words'\n"
    )
    (folder / "run.toml").write_text('original = "o.npz"\nanonymized = "a.npz"\nresamples = 10\njobs = 1\n')
    odd_features.make_features(folder)
    assess = "assess --original o.npz --anonymized a.npz --out run --speakers 4 --jobs 1"
    maps = "invert --clear-train o.npz --anonymized-train a.npz --clear-trials o.npz --anonymized-trials a.npz"
    for command in (assess, maps + " --save-map map.npz"):
        if (code := _wait(_start(command.split(), folder, subprocess.DEVNULL))) not in GOOD:
            raise RuntimeError(f"{command}: exit code {code}")


def _start(words: list[str], folder: Path, output: Any, given: str = os.devnull) -> subprocess.Popen[str]:
    temporary = folder.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    with open(folder / given, "rb") as standard_input:
        return subprocess.Popen(
            [sys.executable, "-m", "veilmeter.cli", *words], cwd=folder, stdin=standard_input,
            stdout=output, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
            env={**os.environ, "VEILMETER_CACHE": str(folder.parent / "cache"), "COLUMNS": "100",
                 "TMPDIR": str(temporary)},
        )  # fmt: skip


def _session(session: int) -> tuple[int, float, float, bool]:
    """Of a session: the processes, their processor's time with that of those that have ended, megabytes, and whether
    one wants to work: on a busy machine it may have to wait for its turn."""
    count, ticks, pages, is_ready = 0, 0, 0, False
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it ended
            continue
        if int(fields[3]) == session:
            count += fields[0] != "Z"
            is_ready |= fields[0] in "RD"
            ticks += sum(map(int, fields[11:15]))
            pages = max(pages, int(fields[21]))  # of the largest: forks share theirs
    return count, ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE") / 1e6, is_ready


def _wait(process: subprocess.Popen[str]) -> str:
    """The exit code, or that it hangs: it works for too long, waits without working, or takes all memory."""
    idle, before = 0, 0.0
    while True:
        try:
            process.wait(1)
            return str(process.returncode)
        except subprocess.TimeoutExpired:
            _, now, megabytes, is_ready = _session(process.pid)
        idle, before = idle + 1 if now - before < 0.02 and not is_ready else 0, max(now, before)
        if idle > PATIENCE or now > SECONDS or megabytes > MEGABYTES:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return "waits" if idle > PATIENCE else "works on and on" if now > SECONDS else f"takes {megabytes:.0f} MB"


def _end_strays(session: int) -> int:
    """How many processes a command left behind; each had a moment to leave."""
    for _ in range(20):
        if not (count := _session(session)[0]):
            return 0
        time.sleep(0.1)
    os.killpg(session, signal.SIGKILL)
    return count


def _try(base: Path, make: Callable[[Path], object], command: str) -> tuple[str, str]:
    """The exit code in words, and what was printed."""
    with tempfile.TemporaryDirectory(prefix="veilmeter-odd-", dir=base.parent) as place:
        folder = Path(place, "work")
        shutil.copytree(base, folder)
        make(folder)
        before = set(folder.rglob("*"))
        command, _, given = command.partition(" < ")
        words = [word.replace("%20", " ") for word in command.split(" ")]
        with open(Path(place, "output"), "w+", errors="replace") as file:
            process = _start(words, folder, file, given or os.devnull)
            code = _wait(process)
            strays = _end_strays(process.pid)
            file.seek(0)
            output = file.read()
        left = [path.name for path in {*folder.rglob("*")} - before if _is_leftover(path.name)]
        left += [path.name for path in Path(place, "temporary").iterdir() if not path.name.startswith("torch")]
        left += [f"{strays} processes"] if strays else []
    if "Traceback (most recent call last)" in output:
        code += " with a traceback"
    return code + (f" and leaves {left[0]}" if left else ""), output


def _is_leftover(name: str) -> bool:
    """The journal of a stopped anonymization is kept on purpose: the same command goes on from it."""
    return (name.endswith(".part") and not name.endswith(".manifest.jsonl.part")) or "scratch" in name or name == "hit"


def all_cases() -> dict[str, tuple[Callable[[Path], object], str]]:
    """Every case by name."""
    cases = {
        f"{kind} as {name}": (odd_features.in_place(re.sub(r" \(.*", "", name), make), command)
        for name, command in FILES.items()
        for kind, make in SPECIAL.items()
    }
    return cases | values() | odd_code.cases() | odd_features.cases({kind: SPECIAL[kind] for kind in _HARDEST})


def run(wanted: str = "", verbose: bool = False, *, combinations: int = 200, seed: int = 0) -> bool:
    """Try all cases whose name matches, and so many of the special files at the options of commands, drawn by the seed;
    whether there was no finding."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="veilmeter-odd-") as place:
        base = Path(place, "base")
        base.mkdir()
        make_base(base)
        chosen = {name: case for name, case in all_cases().items() if re.search(wanted, name)}
        special = odd_options.cases(SPECIAL)
        names = [name for name in special if re.search(wanted, name)]
        drawn = random.Random(seed).sample(names, min(combinations, len(names)))
        chosen |= {name: special[name] for name in drawn}
        with ThreadPoolExecutor(2) as threads:
            results = threads.map(lambda case: _try(base, *case), chosen.values())
            for (name, (_, command)), (code, output) in zip(chosen.items(), results, strict=True):
                counts[code] += 1
                finding = code not in GOOD
                if finding or verbose:
                    word = "FINDING " if finding else ""
                    print(f"{word}{name}: {code}\n  veilmeter {command[:200]}\n  {output.strip()[-400:]}", flush=True)
    codes = ", ".join(f"{code}: {count}" for code, count in sorted(counts.items()))
    print(f"{sum(counts.values())} odd inputs of commands; exit codes: {codes}", flush=True)
    return all(code in GOOD for code in counts)


if __name__ == "__main__":
    raise SystemExit(0 if run(*sys.argv[1:2], verbose="-v" in sys.argv) else 1)
