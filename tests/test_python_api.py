"""The public names and nothing else, objects where names are, and errors that say what the command says."""

from __future__ import annotations

import inspect
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import veilmeter as vm
from veilmeter.cli.main import app

RNG = np.random.default_rng(0)
PEOPLE, EACH = 12, 4
NAMES = [f"s{row // EACH:02d}" for row in range(PEOPLE * EACH)]
VOICES = np.repeat(RNG.normal(size=(PEOPLE, 8)), EACH, axis=0)
CLEAR, HIDDEN = (VOICES + noise * RNG.normal(size=VOICES.shape) for noise in (0.3, 1.5))


def test_dir_lists_the_public_names_and_nothing_else() -> None:
    """In a fresh interpreter, before and after something was used."""
    code = (
        "import veilmeter as vm; first = dir(vm); vm.measure; vm.Results; "
        "print(first == dir(vm) == sorted(vm.__all__), [n for n in first if n in ('Any', 'TYPE_CHECKING', 'core')])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split(maxsplit=1) == ["True", "[]\n"]


@pytest.mark.parametrize("name", sorted(vm.__all__))
def test_every_name_is_there_and_says_what_it_is(name: str) -> None:
    thing = getattr(vm, name)
    assert name == "__version__" or (thing.__doc__ or "").strip()


@pytest.mark.parametrize("name", sorted(set(vm.__all__) - {"__version__", "calibration", "inversion", "metrics"}))
def test_every_name_is_documented_in_one_style(name: str) -> None:
    """As help() and an editor show it: every parameter by its name, what comes back, what may be raised, an example."""
    thing, text = getattr(vm, name), inspect.getdoc(getattr(vm, name)) or ""
    if not inspect.isfunction(thing):
        assert re.search(r"^(Parameters\n-{10}|Attributes\n-{10})$", text, re.MULTILINE)
        return
    for title in ("Parameters", "Returns", "Raises", "Examples"):
        assert f"\n{title}\n{'-' * len(title)}\n" in text
    described = text.split("Parameters\n----------\n")[1].split("\nReturns\n")[0]
    heads = re.findall(r"^\*{0,2}(\w[\w, *]*?)(?: :.*)?$", described, re.MULTILINE)
    named = {part.strip("* ") for head in heads for part in head.split(",")}
    assert set(inspect.signature(thing).parameters) - {"unknown"} <= named


def test_embeddings_are_given_in_any_form(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    vm.write_embeddings(vm.Embeddings(HIDDEN, [f"u{row}" for row in range(len(NAMES))], NAMES), tmp_path / "test.npz")
    frame = pandas.DataFrame(HIDDEN).assign(speaker=NAMES)
    known = vm.linkability((CLEAR, NAMES), (HIDDEN, NAMES), lengths=[1, 3])
    assert known.lengths == (1, 3)
    assert known.estimates.filter(speakers=12, length=3).only() == known.at(12, 3)
    for test in (tmp_path / "test.npz", str(tmp_path / "test.npz"), frame, (HIDDEN.tolist(), NAMES)):
        assert vm.linkability((CLEAR, NAMES), test).at(12).value == known.at(12).value
    assert vm.singling_out((CLEAR, NAMES), frame, draws=1).at(12).names[0] == "singling_out"


def test_embeddings_that_do_not_fit_are_refused_as_the_command_does() -> None:
    with pytest.raises(vm.InputError, match="the enrollment has 8 dimensions and the test 5"):
        vm.linkability((CLEAR, NAMES), (HIDDEN[:, :5], NAMES))
    with pytest.raises(vm.InputError, match="test: a ndarray does not say who speaks"):
        vm.linkability((CLEAR, NAMES), HIDDEN)
    with pytest.raises(vm.InputError, match="there are 48 vectors but 3 speakers"):
        vm.linkability((CLEAR, NAMES), (HIDDEN, NAMES[:3]))
    with pytest.raises(vm.InputError, match="the lengths are 1"):
        vm.linkability((CLEAR, NAMES), (HIDDEN, NAMES)).at(5, 2)


def test_scores_are_given_in_any_form(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    targets, impostors = RNG.normal(2, 1, 20), RNG.normal(0, 1, 60)
    wanted = vm.measure((targets, impostors), intervals=False)
    frame = pandas.DataFrame({"score": [*targets, *impostors], "target": [True] * 20 + [False] * 60})
    lines = [f"a{row} b{row} {score!r} {label}" for row, (score, label) in enumerate(
        zip(frame["score"].tolist(), ["target"] * 20 + ["nontarget"] * 60, strict=True))]  # fmt: skip
    (tmp_path / "scores.txt").write_text("\n".join(lines) + "\n")
    for given in (vm.Scores.from_arrays(targets, impostors), frame, tmp_path / "scores.txt"):
        assert vm.measure(given, intervals=False)["eer"].value == wanted["eer"].value
    with pytest.raises(vm.InputError, match="a list does not say which scores are of one speaker"):
        vm.measure([1.0, 2.0])
    for rate in (2, 0, -0.1):
        with pytest.raises(vm.InputError, match="must lie between 0 and 1"):
            vm.tpr_at_fpr(targets, impostors, rate)
    with pytest.raises(vm.InputError, match="20 target scores but 3 speakers of the test in target_speakers"):
        vm.Scores.from_arrays(
            targets, impostors, target_speakers=(NAMES[:20], NAMES[:3]), impostor_speakers=(["a"] * 60, ["b"] * 60)
        )


def test_what_several_measures_give_is_one_type() -> None:
    found = [
        vm.measure((CLEAR[:, 0] + 1, CLEAR[:, 1]), intervals=False),
        vm.linkability((CLEAR, NAMES), (HIDDEN, NAMES)).estimates,
        vm.singling_out((CLEAR, NAMES), (HIDDEN, NAMES), draws=1).estimates,
        vm.similarity(CLEAR, HIDDEN, NAMES).estimates,
    ]
    assert all(type(estimates) is vm.Estimates for estimates in found)
    assert all(len(repr(estimates)) < 1000 for estimates in found)
    for thing in (vm.linkability((CLEAR, NAMES), (HIDDEN, NAMES)), vm.similarity(CLEAR, HIDDEN, NAMES)):
        assert len(repr(thing)) < 200
        assert "<table>" in thing._repr_html_()
        assert "s03" not in repr(thing) + thing._repr_html_()
        assert len(thing.to_frame()) == len(thing.estimates)


Runs = tuple[vm.Assessment, vm.Assessment, Path]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """A weak and a strong system in memory, and the strong one in a folder as well."""
    folder = tmp_path_factory.mktemp("runs") / "strong"
    clear = VOICES + 0.1 * RNG.normal(size=VOICES.shape)
    noise = RNG.normal(size=VOICES.shape)
    options = {"attackers": ["ignorant", "lazy-informed"], "measures": ["scores", "linkability"], "resamples": 20}
    weak = vm.assess((clear, NAMES), (VOICES + 0.3 * noise, NAMES), title="weak", **options)
    strong = vm.assess((clear, NAMES), (noise, NAMES), title="strong", **options)
    vm.assess((clear, NAMES), (noise, NAMES), title="strong", out=folder, **options)
    return weak, strong, folder


def test_a_run_says_what_it_is_and_names_nobody(
    runs: tuple[vm.Assessment, vm.Assessment, Path], tmp_path: Path
) -> None:
    weak = runs[0]
    for thing in (
        weak,
        weak.results,
        weak.people,
        weak.verdict,
        vm.compare(*runs[:2]),
        weak.attackers,
        weak.results.parts,
    ):
        shown = repr(thing) + getattr(thing, "_repr_html_", str)()
        assert len(repr(thing)) < 1000
        assert not any(name in shown for name in NAMES)
    assert weak.verdict.level in ("low", "raised", "high", "unknown")
    assert set(weak.people.to_frame()["speaker"]) == set(NAMES)
    frame = weak.to_frame()
    assert set(frame["attacker"]) == {"original", "ignorant", "lazy-informed", ""}
    assert not set(frame["attacker"]) & set(frame["part"]) - {""}
    assert ((frame["attacker"] == "") != (frame["part"] == "")).all()
    if pytest.importorskip("jinja2") and pytest.importorskip("altair"):
        assert weak.report(tmp_path / "r.html").stat().st_size > 100_000


def test_a_figure_of_a_run_is_signed(runs: Runs) -> None:
    weak, strong, folder = runs
    point = strong.attackers["ignorant"].estimates["eer"]
    facts = dict(part.split(":", 1) for part in point.signature.split("|")[1:])
    assert list(facts) == [
        "attacker", "backend", "method", "trials", "speakers", "resamples", "data", "settings", "seed", "v",
    ]  # fmt: skip
    assert (facts["attacker"], facts["seed"], facts["v"]) == ("ignorant", "0", vm.__version__)
    other = weak.attackers["ignorant"].estimates["eer"].signature
    assert other != point.signature
    assert other.split("|data:")[0] == point.signature.split("|data:")[0]  # they differ in the data only
    again = vm.read_results(folder)
    assert again.attackers["ignorant"].estimates["eer"].signature == point.signature
    assert again.attackers["ignorant"].estimates["linkability"].signature.count("\n") > 0


def test_runs_are_compared_and_checked_in_memory_and_in_folders(runs: Runs) -> None:
    weak, strong, folder = runs
    found = vm.compare(weak, strong, labels=["B1", "ours"])
    assert found.labels == ("B1", "ours")
    assert len(found.to_frame()) == 2 * len(found.values)
    assert "B1" in found.table("latex")
    assert found.table("markdown", ["eer"]).startswith("| system | EER (%)")
    assert vm.compare([weak, folder]).labels == ("weak", "strong")
    assert [cell.estimate for cell in vm.system_table(weak, strong, measures=["eer"]).columns[0].cells] == [
        cell.estimate for cell in vm.system_table(weak, folder, measures=["eer"]).columns[0].cells
    ]
    with pytest.raises(vm.InputError, match="there are 2 runs but 1 labels"):
        vm.compare(weak, strong, labels=["one"])
    with pytest.raises(vm.InputError, match="a int is not a run"):
        vm.gate(3, max={"eer": "1%"})
    for run in (weak, weak.results):
        gate = vm.gate(run, max={"linkability@12": "20%"}, min={"eer": "30%"}, even_if_doubted=True)
        assert not gate
        assert [str(check.limit) for check in gate.limits] == ["linkability@12 <= 20%", "eer >= 30%"]
        assert len(repr(gate)) < 200
    assert vm.gate(folder, max={"linkability@12": "99%"}, even_if_doubted=True)
    assert not vm.gate(weak, baseline=strong, even_if_doubted=True).passed
    with pytest.raises(vm.InputError, match="write 20%"):
        vm.gate(weak, max={"linkability@12": 0.2})
    with pytest.raises(vm.InputError, match="no limit was given"):
        vm.gate(weak)


class Nearest(vm.ScoringAttacker):
    """Compares with the mean of each person's clear recordings."""

    name = "nearest"
    about = "compares with the mean of each voice"
    default = True

    def scores(self, material: Any) -> Any:
        people = material.candidates
        means = np.stack([people.vectors[people.speakers == name].mean(0) for name in material.names])
        return means @ np.stack([material.trials[rows].mean(0) for table in material.conversations for rows in table]).T


@vm.measure_of("scores", unit="percent", better="higher")
def overlap(scores: vm.Scores) -> float:
    """The share of target scores below the highest impostor score."""
    return 100 * float((scores.targets < scores.impostors.max()).mean())


@vm.measure_of("embeddings", better="higher")
def shift(original: vm.Embeddings, anonymized: vm.Embeddings) -> float:
    return float(np.abs(original.vectors - anonymized.vectors).mean())


FAST = {"intervals": False, "lengths": [1]}


def test_objects_are_given_where_names_are() -> None:
    sides = ((CLEAR, NAMES), (HIDDEN, NAMES))
    run = vm.assess(*sides, attackers=["ignorant", Nearest()], measures=["eer", overlap, shift], **FAST)
    assert list(run.attackers) == ["original", "ignorant", "nearest"]
    found = run.attackers["nearest"].estimates
    assert {"eer", "overlap", "linkability"} <= set(found.names)
    assert not {"cllr", "d_sys"} & set(found.names)
    assert (found["overlap"].unit, found["overlap"].better) == ("percent", "higher")
    assert run.results.parts["added"].estimates["shift"].value > 0.5
    plain = vm.assess(*sides, attackers=["ignorant"], measures=["scores"], **FAST)
    assert "overlap" not in plain.attackers["ignorant"].estimates  # who did not ask for it does not get it
    assert "nearest" not in vm.gate(plain, max={"eer": "100%"}).not_run
    assert (
        vm.assess(*sides, attackers=Nearest, measures="eer", **FAST).attackers["nearest"].estimates["eer"]
        == found["eer"]
    )
    assert vm.measure((CLEAR[:, 0] + 1, CLEAR[:, 1]), ["eer", overlap], intervals=False).names == ("eer", "overlap")


def test_own_code_is_named_by_its_file(tmp_path: Path) -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    begin, end = source.index("class Nearest("), source.index("FAST = ")
    code = tmp_path / "own.py"
    code.write_text(
        f"from __future__ import annotations\nimport numpy as np\nimport veilmeter as vm\n{source[begin:end]}"
    )
    for side, vectors in (("clear", CLEAR), ("hidden", HIDDEN)):
        utterances = [str(row) for row in range(48)]
        vm.write_embeddings(vm.Embeddings(vectors, utterances, NAMES), tmp_path / f"{side}.npz")
    words = ["assess", "--original", "clear.npz", "--anonymized", "hidden.npz", "--out", "run", "--no-intervals"]
    words += ["--attackers", "own.py:Nearest", "--measures", "eer,own.py:overlap", "--jobs", "2", "--no-report"]
    words += ["--signature"]
    line = [sys.executable, "-m", "veilmeter.cli.main", *words]
    ran = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode in (0, 3), ran.stderr
    assert "\n  Linkability|attacker:nearest|" in ran.stdout
    results = vm.read_results(tmp_path / "run")
    assert {"eer", "overlap"} <= set(results.attackers["nearest"].estimates.names)
    assert results.settings["measures"] == ["eer", "overlap"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"measures": ["eerr"]}, "measures: unknown value 'eerr' .did you mean 'eer'"),
        ({"measures": [len]}, "not a measure: it is a builtin_function_or_method"),
        ({"attackers": [3]}, "int is not an attacker"),
        ({"lenghts": [1]}, "unknown option 'lenghts' .did you mean 'lengths'"),
        ({"say": print}, "unknown option 'say'"),
        ({"resamples": 1}, "resamples must be at least 2"),
    ],
)
def test_what_is_wrong_with_an_option_is_said(options: Any, words: str) -> None:
    with pytest.raises(vm.InputError, match=words):
        vm.assess((CLEAR, NAMES), (HIDDEN, NAMES), **options)


def test_a_function_extracts_and_anonymizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    soundfile = pytest.importorskip("soundfile")
    monkeypatch.setenv("VEILMETER_CACHE", str(tmp_path / "cache"))
    rows = ["path,speaker"]
    for person in range(6):
        for number in range(3):
            file = f"s{person}-{number}.wav"
            time = np.arange(16_000) / 16_000
            tone = np.sin(2 * np.pi * 100 * (person + 1) * time) + 0.1 * RNG.normal(size=16_000)
            soundfile.write(tmp_path / file, 0.2 * tone, 16_000)
            rows.append(f"{file},s{person}")
    (tmp_path / "list.csv").write_text("\n".join(rows) + "\n")
    corpus = vm.read_corpus(tmp_path / "list.csv")

    def bands(anything: Any) -> Any:
        return np.log(np.abs(np.fft.rfft(anything[:8000])).reshape(-1)[:4000].reshape(40, 100).mean(1) + 1e-3)

    def quieter(audio: Any, factor: float = 0.5) -> Any:
        return factor * audio

    vm.anonymize_corpus(corpus, tmp_path / "protected", quieter, audio="wav")
    protected = vm.read_corpus(tmp_path / "protected" / "corpus.csv")
    options = {"attackers": "lazy-informed", "measures": "eer", "utility": False, **FAST}
    run = vm.assess(corpus, protected, attacker_run=protected, extractor=bands, **options)
    assert run.results.extractor is not None
    assert run.results.extractor["name"] == "given:bands"
    assert run.attackers["lazy-informed"].estimates["eer"].value < 20
    again = vm.assess(corpus, system=quieter, system_runs=1, extractor=bands, out=tmp_path / "run", **options)
    assert again.attackers["lazy-informed"].estimates["eer"].value < 20
    vm.embed_corpus(corpus, tmp_path / "vectors", bands)
    assert vm.read_embeddings(tmp_path / "vectors").dimension == 40


def test_commands_print_signatures(tmp_path: Path) -> None:
    """The same figure has the same signature in every form; a figure that nothing was drawn for has no seed."""
    for side, vectors in (("clear", CLEAR), ("hidden", HIDDEN)):
        vm.write_embeddings(vm.Embeddings(vectors, map(str, range(48)), NAMES), tmp_path / f"{side}.npz")
    targets = [f"a{row} b{row} {score!r} target" for row, score in enumerate(CLEAR[:20, 0].tolist())]
    others = [f"a{row} c{row} {score!r} nontarget" for row, score in enumerate(CLEAR[:20, 1].tolist())]
    (tmp_path / "scores.txt").write_text("\n".join([*targets, *others]) + "\n")
    sides = ["--enroll", str(tmp_path / "clear.npz"), "--test", str(tmp_path / "hidden.npz"), "--speakers", "12"]
    commands = {
        "EER|method:rocch|trials:40|": ["measure", str(tmp_path / "scores.txt"), "--resamples", "50"],
        "Linkability|among:12|length:1|method:exact|": ["linkability", *sides, "--no-intervals"],
        "Singling Out|predicates_at_most:495|among:12|length:1|": ["singling-out", *sides, "--draws", "1"],
    }
    for begin, words in commands.items():
        printed = {}
        for form in ("", "--json", "--csv", "--markdown", "--latex"):
            ran = CliRunner().invoke(app, [*words, "--signature", *([form] if form else [])])
            assert ran.exit_code == 0, ran.output
            printed[form] = ran.stdout
        (line,) = (line for line in printed[""].splitlines() if line.startswith(begin))
        assert line.endswith(f"|v:{vm.__version__}")
        assert "|data:" in line
        assert line in printed["--json"]
        assert line in printed["--csv"]
        assert ("|seed:" in line) is (words[0] != "linkability")
        assert begin not in CliRunner().invoke(app, words).stdout


def test_the_reference_lists_every_public_name_and_the_documents_name_no_other() -> None:
    docs = Path(__file__).parents[1] / "docs"
    listed = set(
        re.findall(r"^::: veilmeter\.[\w.]+\.(\w+)$", (docs / "reference" / "docstrings.md").read_text(), re.M)
    )
    assert set(vm.__all__) - {"__version__", "calibration", "inversion", "metrics"} <= listed
    pages = [*docs.rglob("*.md"), docs.parent / "README.md", *(docs.parent / "examples").glob("*.ipynb")]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        named = set(re.findall(r"\b(?:veilmeter|vm)\.([A-Z]\w+)", text)) | set(re.findall(r"\bvm\.(\w+)\(", text))
        for line in re.findall(r"from veilmeter import ([\w, ]+)", text):
            named |= {name.strip() for name in line.partition(" as ")[0].split(",")}
        assert named - set(vm.__all__) == set(), page.name


def test_the_tour_of_the_interface_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The type checker reads it with the source (`files` of mypy in pyproject.toml)."""
    tour = Path(__file__).parents[1] / "examples" / "python_tour.py"
    runpy.run_path(str(tour), run_name="__main__")
    printed = capsys.readouterr().out
    assert "EER|method:rocch|trials:1000|resamples:100|seed:0|v:" in printed
    assert "0.2 may be a fraction or a percentage" in printed
    assert "examples/python_tour.py" in (tour.parents[1] / "pyproject.toml").read_text(encoding="utf-8")


def test_notebooks_use_public_names_only() -> None:
    for notebook in (Path(__file__).parents[1] / "examples").glob("*.ipynb"):
        assert re.findall(r"(?:from|import) veilmeter\.\S+", notebook.read_text(encoding="utf-8")) == [], notebook.name


def test_the_ten_lines(runs: Runs, tmp_path: Path) -> None:
    """What a notebook begins with, line by line."""
    pytest.importorskip("altair")
    m = vm.measure((CLEAR[:, 0] + 1, CLEAR[:, 1]), resamples=50)
    assert isinstance(m["eer"], vm.Estimate)
    assert len(m.to_frame()) == len(m)
    assert hasattr(m.plot(), "to_dict")
    assert "<table>" in m._repr_html_()
    assert hasattr(vm.linkability((CLEAR, NAMES), (HIDDEN, NAMES), lengths=[1, 3]).plot(), "to_dict")
    run = vm.assess(
        (CLEAR, NAMES), (HIDDEN, NAMES), attackers=["ignorant", Nearest()], measures=["eer", overlap], **FAST
    )
    assert (len(run.to_frame()) > 0, type(run.people).__name__, type(run.verdict).__name__) == (
        True,
        "People",
        "Verdict",
    )
    assert run.report(tmp_path / "r.html").is_file()
    assert "ours" in vm.compare(run, runs[1], labels=["B1", "ours"]).table("latex")
    assert type(vm.gate(run, max={"linkability@12": "20%"}, min={"eer": "30%"})) is vm.Gate
