"""What does not fit: by hand, because it takes minutes and gigabytes of disk. `make bench` does not run it.

    python -m benchmarks.large linking --speakers 1000000        10,000 tests against a million people, 256-d
    python -m benchmarks.large singling-out --speakers 100000    495 predicates, ten conversations a person
    python -m benchmarks.large scores --lines 100000000          a score file, measured in a stream
    python -m benchmarks.large assess --speakers 1000 --each 6   a whole assessment of vectors, by task
    python -m benchmarks.large audio --speakers 10 --corpus DIR  a whole assessment from audio, by stage
    python -m benchmarks.large growth                            the same of 10, 100 and 1,000 synthetic voices
    python -m benchmarks.large figure                            docs/images/scaling.png and the table of all so far

Each prints seconds, CPU-seconds and the most memory; the first three add a line to docs/validation/scaling.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).parents[1] / "docs"
RESULTS = DOCS / "validation" / "scaling.jsonl"
TICKS = [0.1, 0.3, 1, 3, 10, 30, 100]
PEOPLE, RECORDINGS, SECONDS = (10, 100, 1000), 6, 2.0
DIMENSION, TESTS, PREDICATES, CONVERSATIONS = 256, 10_000, 495, 10


def _voices(folder: str, speakers: int, each: int, rng: np.random.Generator) -> np.ndarray:
    """Vectors on disk, mapped: a voice a person and noise around it."""
    shape = (speakers * each, DIMENSION)
    table = np.memmap(Path(folder, "vectors"), np.float32, "w+", shape=shape)
    step = 10_000
    for a in range(0, speakers, step):
        count = min(step, speakers - a)
        voices = rng.standard_normal((count, DIMENSION), dtype=np.float32)
        noise = rng.standard_normal((count * each, DIMENSION), dtype=np.float32)
        table[a * each : (a + count) * each] = np.repeat(voices, each, axis=0) + 2 * noise
    table.flush()
    return np.memmap(Path(folder, "vectors"), np.float32, "r", shape=shape)


def linking(speakers: int) -> dict[str, object]:
    """`veilmeter linkability --ranks` in a process of its own: every N' asked for, intervals, 1-EER, ranks."""
    from veilmeter.data.embeddings import Embeddings
    from veilmeter.data.formats.vectors import write_embeddings

    rng = np.random.default_rng(0)
    tests = min(TESTS, speakers)
    with tempfile.TemporaryDirectory(prefix="veilmeter-") as folder:
        enroll, test = Path(folder, "enroll.npz"), Path(folder, "test.npz")
        voices = rng.standard_normal((speakers, DIMENSION), dtype=np.float32)
        names = [f"s{number:07d}" for number in range(speakers)]
        write_embeddings(Embeddings(voices, [f"e-{name}" for name in names], names), enroll)
        own = np.sort(rng.choice(speakers, tests, replace=False))
        heard = voices[own] + 9 * rng.standard_normal((tests, DIMENSION), dtype=np.float32)
        mine = [names[number] for number in own]
        write_embeddings(Embeddings(heard, [f"t-{name}" for name in mine], mine), test)
        del voices, names, heard
        at = [n for n in (20, 1000, 22_024, 100_000, 1_000_000) if n <= speakers]
        clock = _Clock()
        command = [
            sys.executable, "-m", "veilmeter.cli.main", "linkability", "--enroll", str(enroll), "--test", str(test),
            "--speakers", ",".join(map(str, at)), "--ranks", "--json",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = clock.stopped(children=True)
    curve = json.loads(done.stdout)["estimates"]["linkability"]
    print("  " + ", ".join(f"N' = {n:,}: {one['value']:.3f}" for n, one in zip(at, curve, strict=True)))
    return {"what": "Linkability and ranks", "size": tests * speakers, "unit": "scores", **found}


def singling_out(speakers: int) -> dict[str, object]:
    from veilmeter.data.embeddings import unit
    from veilmeter.metrics.legal.conversations import Conversations
    from veilmeter.metrics.legal.isolation import isolate

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory(prefix="veilmeter-") as folder:
        vectors = _voices(folder, speakers, CONVERSATIONS, rng)
        names = tuple(f"s{s}" for s in range(speakers))
        codes = np.repeat(np.arange(speakers), CONVERSATIONS)
        said = Conversations(vectors, codes, names, 1, np.empty((0, 1), np.int64))
        targets = np.sort(rng.choice(speakers, min(PREDICATES, speakers), replace=False))
        known = unit(np.asarray(vectors[targets * CONVERSATIONS]))
        sizes = [int(n) for n in np.unique(np.geomspace(20, speakers, 10).round())]
        clock = _Clock()
        isolate(known, targets, said, sizes, draws=5, folds=10, absent=True)
        found = clock.stopped()
    size = len(targets) * speakers * CONVERSATIONS
    return {"what": "Singling Out", "size": size, "unit": "scores", **found}


def scores(lines: int) -> dict[str, object]:
    """`veilmeter measure --stream` in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="veilmeter-") as folder:
        path = Path(folder, "scores")
        rng = np.random.default_rng(0)
        with open(path, "wb") as out:
            for start in range(0, lines, 1_000_000):
                out.write(_score_lines(start, min(1_000_000, lines - start), rng))
        size = path.stat().st_size
        clock = _Clock()
        command = [sys.executable, "-m", "veilmeter.cli.main", "measure", str(path), "--stream", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = clock.stopped(children=True)
    values = json.loads(done.stdout)["estimates"]
    print(f"  {size / 1e9:.2f} GB; " + ", ".join(f"{k} {values[k]['value']:.4f}" for k in ("eer", "d_ece", "min_cllr")))
    return {"what": "score file, streamed", "size": lines, "unit": "scores", **found}


def assess_vectors(speakers: int, each: int, jobs: int = 1) -> dict[str, object]:
    """`assess()` with every attacker and measure that needs no other people's speech, by gender too; 192 numbers each.

    In one process what each task costs is known, too.
    """
    from veilmeter.assessment.run import run_assessment
    from veilmeter.data.embeddings import Embeddings

    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(speakers), each)
    names = [f"s{code:06d}" for code in codes]
    noise = rng.standard_normal((2, len(codes), 192), dtype=np.float32)
    voices = rng.standard_normal((speakers, 192), dtype=np.float32)[codes]
    about = {"gender": ["fm"[code % 2] for code in codes]}
    clear = Embeddings(voices + noise[0], [f"{name}-{row}" for row, name in enumerate(names)], names, about)
    veiled = clear.with_vectors(0.4 * clear.vectors + noise[1])
    del noise, voices
    clock = _Clock()
    last = time.process_time()

    def say(text: str) -> None:
        nonlocal last
        if text.startswith(("measuring: ", "measured: ")):
            before, last = last, time.process_time()
            print(f"  {last - before:7.1f} CPU-s  {_task(text)}", flush=True)

    with tempfile.TemporaryDirectory(prefix="veilmeter-") as folder:
        run_assessment(clear, veiled, out=folder, jobs=jobs, say=say)
    used = clock.stopped()
    print(f"  {time.process_time() - last:7.1f} CPU-s  conclusions and tables")
    return {"what": "assess", "size": len(codes), "unit": "recordings", "jobs": jobs, **used}


def assess_audio(corpus: str, speakers: int, each: int) -> dict[str, object]:
    """`assess()` of the first recordings of the first people of a corpus, anonymized by McAdams coefficients, in one
    process, without kept transcripts or vectors: processor time by stage."""
    from veilmeter.assessment.run import run_assessment
    from veilmeter.assessment.stages import Stage
    from veilmeter.data.corpus import read_corpus
    from veilmeter.speech import weights

    with tempfile.TemporaryDirectory(prefix="veilmeter-") as folder:
        kept = weights.cache_folder()
        os.environ["VEILMETER_CACHE"] = folder
        for model in (file for file in kept.iterdir() if file.is_file()):  # weights, but not what was extracted
            (Path(folder) / model.name).symlink_to(model)
        whole = read_corpus(corpus)
        names = sorted({u.speaker for u in whole})[:speakers]
        chosen = [[u.id for u in whole if u.speaker == name][:each] for name in names]
        part = whole.take(id for ids in chosen for id in ids)
        clock, before, stages = _Clock(), _processor_time(), {}
        current = "start"

        def say(text: str) -> None:
            nonlocal before, current
            stage = text.split(":")[0].split(" (about")[0]
            if stage in set(Stage):
                now = _processor_time()
                stages[current] = round(stages.get(current, 0.0) + now - before, 1)
                before, current = now, stage

        results = run_assessment(part, system="mcadams", out=Path(folder) / "run", jobs=1, say=say).results
        used = clock.stopped()
    for stage, seconds in stages.items():
        print(f"  {seconds:7.1f} CPU-s  {stage}")
    return {
        "what": "assess from audio",
        "size": len(part),
        "unit": "recordings",
        "hours": results.inputs["original"].hours,
        "stages": stages,
        **used,
    }


def growth() -> None:
    """`assess_audio` of 10, 100 and 1,000 synthetic voices, six recordings of two seconds each, every size in a process
    of its own: a table of processor time by stage, and of memory."""
    import soundfile

    from veilmeter.demo.corpus import demo_corpus

    runs = {}
    with tempfile.TemporaryDirectory(prefix="veilmeter-") as folder:
        for recording in demo_corpus(folder, speakers=max(PEOPLE), utterances=RECORDINGS // 2):
            samples, rate = soundfile.read(recording.path, dtype="int16")
            soundfile.write(recording.path, samples[: int(SECONDS * rate)], rate)
        corpus = str(Path(folder, "corpus.csv"))
        for people in PEOPLE:
            command = [sys.executable, "-m", "benchmarks.large", "audio", "--corpus", corpus, "--speakers", str(people)]
            done = subprocess.run([*command, "--each", str(RECORDINGS)], capture_output=True, text=True, check=True)
            runs[people] = json.loads(done.stdout.splitlines()[-1])
            print(json.dumps(runs[people]), flush=True)
    print("| CPU-seconds | " + " | ".join(f"{people:,} people" for people in PEOPLE) + " |")
    print("|---|" + "---:|" * len(PEOPLE))
    for stage in dict.fromkeys(stage for run in runs.values() for stage in run["stages"]):
        print(f"| {stage} | " + " | ".join(f"{run['stages'].get(stage, 0.0):,.1f}" for run in runs.values()) + " |")
    for title, field in (("all", "cpu_seconds"), ("memory, GB", "gigabytes"), ("hours of speech", "hours")):
        print(f"| {title} | " + " | ".join(f"{run[field]:,.3g}" for run in runs.values()) + " |")


def _processor_time() -> float:
    """Of this process and of its children that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _task(said: str) -> str:
    return said.removeprefix("measured: ") if said.startswith("measured: ") else "reading and choosing"


def _score_lines(start: int, count: int, rng: np.random.Generator) -> bytes:
    """`e0001 u00000001 5.1234567 1`: of one width, so that a million are made at once."""
    target = rng.random(count) < 0.01
    values = np.clip(rng.normal(np.where(target, 6.5, 5.0), 1.0), 0, 9.999)
    table = np.full((count, 28), ord(" "), np.uint8)
    table[:, 0], table[:, 6], table[:, 27] = ord("e"), ord("u"), ord("\n")
    _digits(table[:, 1:5], rng.integers(0, 10_000, count))
    _digits(table[:, 7:15], np.arange(start, start + count))
    _digits(table[:, 16:17], values.astype(np.int64))
    table[:, 17] = ord(".")
    _digits(table[:, 18:25], (values % 1 * 10**7).astype(np.int64))
    table[:, 26] = np.where(target, ord("1"), ord("0"))
    return table.tobytes()


def _digits(columns: np.ndarray, numbers: np.ndarray) -> None:
    for place in range(columns.shape[1] - 1, -1, -1):
        columns[:, place] = ord("0") + numbers % 10
        numbers = numbers // 10


class _Clock:
    def __init__(self) -> None:
        self.wall, self.cpu = time.monotonic(), time.process_time()

    def stopped(self, *, children: bool = False) -> dict[str, float]:
        used = resource.getrusage(resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF)
        cpu = used.ru_utime + used.ru_stime if children else time.process_time() - self.cpu
        return {
            "seconds": round(time.monotonic() - self.wall, 2),
            "cpu_seconds": round(cpu, 2),
            "gigabytes": round(used.ru_maxrss / 1e6, 2),
        }


def figure() -> None:
    """Cost against size, as the page shows it."""
    import altair as alt
    import vl_convert

    best: dict[tuple[str, int], dict[str, Any]] = {}
    for line in RESULTS.read_text().splitlines():
        one = json.loads(line)
        best[one["what"], one["size"]] = one  # of several, the last
    rows = sorted(best.values(), key=lambda one: (one["what"], one["size"]))
    _write_table(rows)
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X(
            "size:Q",
            scale=alt.Scale(type="log"),
            title="scores",
            axis=alt.Axis(values=[10**n for n in range(6, 11)], format="~s"),
        ),
        color=alt.Color("what:N", title=None, legend=alt.Legend(orient="bottom")),
    )
    charts = []
    for field, title in (("cpu_seconds", "CPU-seconds"), ("gigabytes", "memory (GB)")):
        height = alt.Y(f"{field}:Q", scale=alt.Scale(type="log"), title=title, axis=alt.Axis(values=TICKS))
        charts.append(base.mark_line(point=True).encode(y=height).properties(width=300, height=220))
    spec = alt.hconcat(*charts).configure(background="white").to_json()
    (DOCS / "images" / "scaling.png").write_bytes(vl_convert.vegalite_to_png(spec, scale=1.0))


def _write_table(rows: list[dict[str, Any]]) -> None:
    """Between the marks in docs/validation/scaling.md."""
    page = DOCS / "validation" / "scaling.md"
    head = ["| what | scores | CPU-seconds | seconds | GB |", "|---|---:|---:|---:|---:|"]
    lines = [
        f"| {one['what']} | {one['size']:,} | {one['cpu_seconds']:g} | {one['seconds']:g} | {one['gigabytes']:g} |"
        for one in rows
    ]
    before, _, rest = page.read_text().partition("<!-- table -->\n")
    _, mark, after = rest.partition("<!-- end -->")
    page.write_text(before + "<!-- table -->\n" + "\n".join([*head, *lines]) + "\n" + mark + after)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("what", choices=["linking", "singling-out", "scores", "assess", "audio", "growth", "figure"])
    options.add_argument("--corpus", default="", help="recordings in any known layout, for audio")
    options.add_argument("--speakers", type=int, default=1_000_000)
    options.add_argument("--lines", type=int, default=100_000_000)
    options.add_argument("--each", type=int, default=6, help="recordings per speaker, for assess")
    options.add_argument("--jobs", type=int, default=1, help="for assess")
    given = options.parse_args()
    if given.what == "assess":
        print(json.dumps(assess_vectors(given.speakers, given.each, given.jobs)))
        return
    if given.what == "audio":
        print(json.dumps(assess_audio(given.corpus, given.speakers, given.each)))
        return
    if given.what in ("growth", "figure"):
        {"growth": growth, "figure": figure}[given.what]()
        return
    work = {"linking": linking, "singling-out": singling_out, "scores": scores}[given.what]
    found = work(given.lines if given.what == "scores" else given.speakers)
    found["load"] = round(os.getloadavg()[0], 1)  # of other work on the machine, when seconds and CPU-seconds differ
    print(json.dumps(found))
    with open(RESULTS, "a") as out:
        out.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
