"""Every option of the command acts, or is refused, or is said to have had no effect: in every mode."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import synthetic_voices as voices
from tests.trying_options import Outcome, complaint, declared_parameters, run_command, words_for

from veilmeter.assessment.settings import Settings
from veilmeter.cli import assess
from veilmeter.core.findings import Finding
from veilmeter.core.options import all_options, options_of
from veilmeter.core.typed_json import decode
from veilmeter.data.formats.vectors import write_embeddings
from veilmeter.wording import sentences

ORIGINAL = voices.original(8, 4, 6)
TRAINING = voices.original(7, 4, 6, seed=5, prefix="t")
EXTRACTOR = """
import numpy as np

def embed(samples):
    return np.log(np.abs(np.fft.rfft(samples[:4096]))[{start}::64] + 1e-3)
"""

DECLARED = {parameter.name: parameter for parameter in declared_parameters()["assess"]}

OPTIONS = all_options(assess.OPTIONS)
# Options without an example say where the work runs and what is drawn besides: results must not depend on them.
TRIED = [name for name, declared in OPTIONS.items() if declared.example is not None]
# Guards: they act where there is something to refuse or to fetch, or a rate near guessing to be doubted.
GUARDS = {"strict", "offline", "precision"}


def test_every_option_is_tried() -> None:
    in_file = {name for name, declared in OPTIONS.items() if declared.in_file}  # tests/assessment/test_statements.py
    assert set(OPTIONS) - set(TRIED) - in_file == {"jobs", "report", "quiet", "wait"}


def write_inputs(folder: Path) -> None:
    sides = {
        "original": ORIGINAL, "anonymized": voices.partly(ORIGINAL), "again": voices.partly(ORIGINAL, seed=2),
        "moved": ORIGINAL.with_vectors(ORIGINAL.vectors + 0.1 * np.random.default_rng(1).normal(size=(32, 6))),
        "train_original": TRAINING, "train_anonymized": voices.partly(TRAINING),
        "train_other": voices.partly(TRAINING, seed=4),
    }  # fmt: skip
    for name, side in sides.items():
        write_embeddings(side, folder / f"{name}.npz")
    tried = [u for u in ORIGINAL.utterances if u[-1] in "23"]
    rng = np.random.default_rng(0)
    pairs = [(s, u) for s in ORIGINAL.names for u in tried]
    target = {pair: pair[1].startswith(pair[0] + "-") for pair in pairs}
    (folder / "key").write_text("".join(f"{s} {u} {'target' if target[s, u] else 'nontarget'}\n" for s, u in pairs))
    (folder / "scores").write_text("".join(f"{s} {u} {target[s, u] + rng.normal():.6f}\n" for s, u in pairs))
    kept = [line for line in (folder / "key").read_text().splitlines(keepends=True) if "-3 " not in line]
    (folder / "other-key").write_text("".join(kept))
    (folder / "other-scores").write_text("".join(f"{s} {u} {target[s, u] + rng.normal():.6f}\n" for s, u in pairs))
    for name in ("key", "scores"):
        lines = (folder / name).read_text().splitlines(keepends=True)
        (folder / f"reversed-{name}").write_text("".join(reversed(lines)))
    (folder / "enroll").write_text("\n".join(u for u in ORIGINAL.utterances if u[-1] == "0") + "\n")
    (folder / "other.toml").write_text("lengths = 2\n")
    for start, name in ((1, "own"), (2, "other")):
        (folder / f"{name}.py").write_text(EXTRACTOR.format(start=start))


def write_audio_inputs(folder: Path) -> None:
    from veilmeter.speech.audio import write_audio

    rng = np.random.default_rng(0)
    for role, people in (("speech", "abcdef"), ("hidden", "abcdef")):
        for speaker in people:
            for number in range(3):
                path = folder / role / speaker / f"{speaker}{number}.wav"
                path.parent.mkdir(parents=True, exist_ok=True)
                tone = np.sin(np.arange(12_000) * (0.1 + 0.05 * ord(speaker) % 7))
                write_audio(path, (0.1 * (tone + rng.normal(0, 1, 12_000))).astype(np.float32))


COMMON = 'lengths = 1\nresamples = 5\nattackers = ["ignorant"]\nmeasures = ["scores"]\njobs = 1\nno-report = true\n'
VECTORS = 'original = "original.npz"\nanonymized = "anonymized.npz"\n'
MODES = {
    "embeddings": VECTORS + COMMON,
    "trained": VECTORS + 'train-anonymized = "train_anonymized.npz"\n' + COMMON.replace("ignorant", "informed"),
    "scores": VECTORS + 'trials = "key"\n' + COMMON.replace('attackers = ["ignorant"]\n', "")
    + '[attackers.ignorant]\nscores = "scores"\n',
    "scores-alone": 'trials = "reversed-key"\n' + COMMON.replace('attackers = ["ignorant"]\n', "")
    + '[attackers.ignorant]\nscores = "reversed-scores"\n',
    "audio": 'original = "speech"\nanonymized = "hidden"\n' + COMMON,
}  # fmt: skip


def run(mode: str, folder: Path, *more: str) -> Outcome:
    """What came of it, without what only repeats the command."""
    given = [str(folder / f"{mode}.toml"), *(() if "--out" in more else ("--out", str(folder / f"run of {mode}")))]
    if mode == "audio" and "--extractor" not in more:
        given += ["--extractor", f"{folder / 'own.py'}:embed"]
    if more and not more[0].startswith("--"):
        given[0] = more[0]
        more = more[1:]
    done = run_command("assess", [*given, *more])
    if done.refusal:
        return done
    out = Path(more[1]) if more[:1] == ("--out",) else folder / f"run of {mode}"
    results = json.loads((out / "results.json").read_text())
    remarks, parameters = results.pop("remarks"), results.pop("parameters")
    remarks = sentences(decode(tuple[Finding, ...], remarks))
    shown = ("notice", "release_size", "candidates", "system_name", "assessor")  # on the page
    results["page"] = [parameters[name] for name in shown]
    del results["command"]
    printed = {**done.output, "parameters": {}, "remarks": [], "command": []} if isinstance(done.output, dict) else ""
    return replace(done, output=(results, printed, done.output if not printed else "", str(out)),
                   remarks=(*remarks, *done.remarks), record=parameters)  # fmt: skip


Bases = dict[str, tuple[Path, Outcome]]


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Bases:
    """A folder for every mode, with a run in it; all further runs go on in there."""
    folder = tmp_path_factory.mktemp("modes")
    write_inputs(folder)
    write_audio_inputs(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VEILMETER_CACHE", str(folder / "cache"))
        bases = {}
        for mode, text in MODES.items():
            (folder / f"{mode}.toml").write_text(text)
            run(mode, folder)
            bases[mode] = (folder, run(mode, folder))
            assert not bases[mode][1].refusal
    return bases


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("option", TRIED)
def test_an_option_acts_is_refused_or_is_said(
    used: Bases, mode: str, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, base = used[mode]
    monkeypatch.setenv("VEILMETER_CACHE", str(folder / "cache"))
    given = words_for(OPTIONS[option])(folder)
    tried = run(mode, folder, *given)
    if option == "config":
        assert tried.refusal or tried.shows_more_than(base)
    elif option not in GUARDS:
        assert complaint(base, tried, DECLARED[option], given) == ""
        if (
            option in options_of(Settings)
            and not tried.refusal
            and not any(given[0] in remark for remark in tried.remarks)
        ):
            assert tried.record[option] != base.record[option], "what was used is not recorded"
