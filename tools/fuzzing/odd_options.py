"""Odd inputs for whole commands: special files at every option and argument that takes a path, with every suffix by
which a reader is chosen. Which options these are is read from their declarations."""

from __future__ import annotations

import re
from functools import partial
from importlib import import_module
from pathlib import Path

from tools.fuzzing.odd_code import ASSESS, Cases, Make

from veilmeter.core.options import Option, all_options, place_code

SUFFIXES = ("", ".npz", ".npy", ".h5", ".parquet", ".ark", ".scp", ".pt", ".safetensors", ".csv", ".jsonl", ".jsonl.gz",
            ".json", ".txt", ".toml", ".wav", ".mp3", ".zip", ".html")  # fmt: skip
_SPEECH = "assess --original corpus --anonymized corpus --extractor own.py:embed --measures scores --out out --jobs 1"
# Sound command lines by module; positional arguments are in braces. `demo` takes too long for this.
LINES = {
    "anonymize": (
        "anonymize {corpus} {out} --system mcadams --jobs 1",
        "anonymize --vpc vpc/data --suffix _b --sets libri_test_trials_f --system mcadams --jobs 1",
    ),
    "assess": (ASSESS, f"{_SPEECH} --no-report", "assess {config} --out out --no-report"),
    "challenge": ("challenge check {data} --suffix _mine", "challenge zip {data} --suffix _mine --out sent"),
    "check": ("check {paths}", "check scores.txt --trials key.txt"),
    "compare": ("compare {runs} run --report c.html",),
    "embed": ("embed {corpus} {out} --extractor own.py:embed --jobs 1",),
    "gate": ("gate {run} --max eer=60",),
    "invert": (
        "invert --clear-train o.npz --anonymized-train a.npz --clear-trials o.npz --anonymized-trials a.npz "
        "--jobs 1 --no-intervals",
    ),
    "linkability": ("linkability --enroll o.npz --test a.npz --speakers 4 --no-intervals",),
    "measure": (
        "measure {scores} --trials key.txt --no-intervals",
        "measure {scores} --trials key.txt --stream",
        "measure --original scores.txt --mixed scores.txt --protected scores.txt --trials key.txt --no-intervals",
    ),
    "report": ("report {run} --out p.html",),
    "similarity": ("similarity --original o.npz --anonymized a.npz --no-intervals",),
    "singling_out": ("singling-out --enroll o.npz --test a.npz --speakers 4 --no-intervals --no-control",),
    "train": ("train xvector-pool {corpus} {out} --steps 1 --jobs 1 --offline",),
    "transcribe": ("transcribe {corpus} {out} --recognizer own.py:hear --jobs 1",),
    "utility": (
        "utility --original corpus --anonymized corpus --recognizer own.py:hear --recordings 1 --rated 0 --jobs 1",
    ),
}
_SOUND = {"corpus": "corpus", "out": "out", "config": "run.toml", "data": "vpc/data", "paths": "corpus", "run": "run",
          "runs": "run", "scores": "scores.txt"}  # fmt: skip


def _line(line: str, option: Option, word: str) -> str | None:
    """The command line with this word for the option; None where it has no place for an argument."""
    if option.argument:
        return line.format(**_SOUND | {option.name: word}) if "{" + option.name + "}" in line else None
    flag = option.all_flags[0]
    return re.sub(rf" {flag} \S+", "", line.format(**_SOUND)) + f" {flag} {word}"


def _words(option: Option, name: str) -> tuple[str, ...]:
    """A path as the option takes it: alone, after NAME=, or as code and as a kind of model."""
    if option.path is place_code:
        return (f"{name}:embed", f"onnx:{name}", f"wavlm:{name}", f"vpc2026:{name}", name)
    before, equals, _ = str(option.example).partition("=")
    return (f"{before}={name}",) if equals else (name,)


def _put(make: Make, name: str, folder: Path) -> None:
    make(folder / name)


def cases(special: dict[str, Make]) -> Cases:
    """Every case by name; `special` are things that may lie where a file is meant."""
    found: Cases = {}
    for module, lines in LINES.items():
        options = all_options(import_module(f"veilmeter.cli.{module}").OPTIONS)
        for option in options.values():
            if not option.path and option.item is not Path and f"{{{option.name}}}" not in "".join(lines):
                continue
            suffixes = (".py", "") if option.path is place_code else SUFFIXES
            for number, line in enumerate(lines):
                for suffix in suffixes:
                    name = f"odd{suffix}"
                    for word in _words(option, name):
                        if (command := _line(line, option, word)) is None:
                            continue
                        for kind, make in special.items():
                            key = f"{kind} as {option.name} {word} ({module} {number})"
                            found[key] = (partial(_put, make, name), command)
    return found
