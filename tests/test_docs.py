"""What the documentation says is true: its Python runs, its commands run or exist, its links lead somewhere."""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import os
import re
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.docs_workspace import make_workspace
from tools.reference_tables import measures

from veilmeter.cli.main import COMMANDS, app, run_command
from veilmeter.metrics.measure import MEASURES

ROOT = Path(__file__).parents[1]
PAGES = {
    page.relative_to(ROOT).as_posix(): page
    for page in sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "SECURITY.md"])
}
NAMES = list(PAGES)
FENCE = re.compile(r"^```([a-z]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

# Too long for a test, or nothing to see: only their options are checked.
NOT_RUN = {"demo", "train"}
# What makes a command quick without changing what it shows: (option, values) unless the page says otherwise.
QUICK: dict[str, list[list[str]]] = {
    "assess": [["--jobs", "1"], ["--no-intervals"], ["--no-report"], ["--quiet"], ["--offline"],
               ["--extractor", "tiny:embed"], ["--attackers", "ignorant", "informed"],
               ["--measures", "scores", "linkability"], ["--lengths", "1"]],
    "anonymize": [["--jobs", "1"], ["--quiet"], ["--offline"]],
    "embed": [["--jobs", "1"], ["--quiet"], ["--offline"], ["--extractor", "tiny:embed"]],
    "invert": [["--jobs", "1"], ["--no-intervals"]],
    "measure": [["--resamples", "50"]],
    "compare": [["--resamples", "50"]],
    "linkability": [["--no-intervals"]],
    "singling-out": [["--no-intervals"]],
    "similarity": [["--no-intervals"]],
}  # fmt: skip
# Numbers that suit real data and not this small world.
SMALLER = {"--pca": "8"}
# Exit codes other than "done" that do not count against the page.
ALSO_FINE = {"gate": {0, 1}, "check": {0}, "anonymize": {0, 3}, "embed": {0, 3}}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `line` is where its first line stands."""

    page: Path
    line: int
    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(page, text[: found.start()].count("\n") + 2, found[1], found[2]) for found in FENCE.finditer(text)]


def commands(block: Block) -> list[str]:
    """The lines that call veilmeter, python or make, continued lines joined, remarks removed."""
    joined = re.sub(r"\\\n\s*", " ", block.text)
    found = (re.split(r"\s+#\s", line)[0].strip() for line in joined.splitlines())
    return [
        part for line in found for part in re.split(r"\s+&&\s+", line) if re.match(r"(veilmeter|python|make)\b", part)
    ]


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("soundfile")
    root = make_workspace(tmp_path_factory.mktemp("docs") / "world")
    with inside(root):
        call("veilmeter assess --original speech/ --anonymized protected/ --speakers 20 --out run/")
    shutil.copytree(root / "run", root / "other-run")
    return root


@pytest.fixture
def workspace(template: Path, tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "world"
    shutil.copytree(template, folder)
    with inside(folder):
        yield folder


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work there, with its modules importable and a cache of its own; afterwards everything is as before."""
    before, path, modules = Path.cwd(), list(sys.path), set(sys.modules)
    cache = os.environ.get("VEILMETER_CACHE")
    os.environ["VEILMETER_CACHE"] = str(folder / "cache")
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        os.chdir(before)
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            spec = getattr(sys.modules[name], "__spec__", None)  # torch has modules without a file: they stay
            places = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or ())]
            if any(str(folder) in str(place) for place in places):
                sys.modules.pop(name)
        if cache is None:
            del os.environ["VEILMETER_CACHE"]
        else:
            os.environ["VEILMETER_CACHE"] = cache


def call(line: str) -> tuple[int, str]:
    """The command's exit code and what it printed, in this process."""
    words = shlex.split(line)
    name = words[1]
    for option in QUICK.get(name, []):
        if option[0] not in words:
            words += option
    if name in ("anonymize", "embed"):
        for made in (Path(words[3]), Path(words[3].rstrip("/") + ".manifest.jsonl")):
            shutil.rmtree(made, ignore_errors=True) if made.is_dir() else made.unlink(missing_ok=True)
    if name == "assess" and "--out" in words:
        shutil.rmtree(words[words.index("--out") + 1], ignore_errors=True)
    for wanted, value in SMALLER.items():
        if wanted in words:
            words[words.index(wanted) + 1] = value
    said = io.StringIO()
    old, handler = sys.argv, signal.getsignal(signal.SIGTERM)
    sys.argv = words
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            run_command()
    except SystemExit as leave:
        return int(leave.code or 0), said.getvalue()
    finally:
        sys.argv = old
        signal.signal(signal.SIGTERM, handler)
    return 0, said.getvalue()


def call_exactly(line: str) -> tuple[int, str]:
    """The same without anything that makes it quicker."""
    program = [sys.executable, "-c", "from veilmeter.cli.main import main; main()"]
    ran = subprocess.run([*program, *shlex.split(line)[1:]], capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout or ran.stderr


def runnable(line: str) -> bool:
    """Whether everything it names can be there: no DATA, CORPUS, RUN, '...', no GPU, and not too long."""
    words = shlex.split(line)
    if words[0] != "veilmeter" or words[1] in NOT_RUN or {"--help", "--cluster", "cuda"} & set(words):
        return False
    return not any(re.match(r"[A-Z]{3,}", word) or "..." in word or "xvector-pool" in word for word in words[2:])


@pytest.mark.parametrize("name", NAMES)
def test_the_code_of(name: str, workspace: Path) -> None:
    """Python blocks in one name space a page, as a reader would type them; then TOML files and commands in order."""
    page = PAGES[name]
    space: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        where = f"{name}:{block.line}"
        first = block.text.split("\n", 1)[0]
        if named := re.match(r"# ([\w-]+\.(?:py|toml))\b", first):
            (workspace / named[1]).write_text(block.text)
        if block.language == "python" and block.text.startswith(">>>"):
            ran = _doctest(block, space)
            assert ran == "", f"{where}\n{ran}"
        elif block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block.text, where, "exec"), space)
        elif block.language == "toml":
            import tomllib

            tomllib.loads(block.text)
        elif block.language == "json":
            json.loads(block.text)
        else:
            for line in commands(block):
                if runnable(line):
                    code, said = call(line)
                    assert code in ALSO_FINE.get(shlex.split(line)[1], {0}), f"{where}: {line}: {code}\n{said}"


def _doctest(block: Block, space: dict[str, Any]) -> str:
    test = doctest.DocTestParser().get_doctest(block.text, {}, block.page.name, str(block.page), block.line - 1)
    test.globs = space
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=said.append, clear_globs=False)
    return "".join(said)


def _all_commands() -> list[tuple[str, str]]:
    found = []
    for name, page in PAGES.items():
        for block in blocks(page):
            if block.language in ("", "sh"):
                found += [(f"{name}:{block.line}", line) for line in commands(block)]
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        found += [(name, line) for line in re.findall(r"`(veilmeter [^`]+)`", text)]
    return found


@pytest.mark.parametrize(("where", "line"), _all_commands())
def test_commands_and_options_exist(where: str, line: str) -> None:
    words = shlex.split(line)
    if words[0] == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert words[1] in targets
        return
    if words[0] == "python":
        script = ROOT / words[1] if words[1] != "-m" else ROOT / words[2].replace(".", "/")
        script = script if script.exists() else script.with_suffix(".py")
        assert script.exists()
        assert all(option.split("=")[0] in script.read_text() for option in words[2:] if option.startswith("--"))
        return
    assert words[1] in COMMANDS
    group: Any = typer.main.get_command(app)
    command: Any = group.get_command(None, words[1])
    if hasattr(command, "commands") and len(words) > 2 and words[2] in command.commands:
        command = command.commands[words[2]]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    given = {word.split("=")[0].rstrip(".") for word in words[2:] if re.match(r"--[a-z]", word)}
    assert given <= known | {"--help"}, f"{where}: {line}"


def _options(command: Any) -> set[str]:
    found = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    for part in getattr(command, "commands", {}).values():
        found |= _options(part)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_options_named_in_the_text_exist(name: str) -> None:
    """Of some command or of an example, wherever a page says `--option`."""
    group: Any = typer.main.get_command(app)
    known = {"--help", "--version"}.union(*(_options(group.get_command(None, command)) for command in COMMANDS))
    known |= {
        o for file in (ROOT / "examples").glob("*.py") for o in re.findall(r"--[a-z][a-z0-9-]*", file.read_text())
    }
    page = PAGES[name]
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    named = {
        option for code in re.findall(r"`([^`]+)`", text) for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", code)
    }
    assert named <= known, named - known


def test_every_command_is_documented() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES.values())
    missing = [name for name in COMMANDS if not re.search(rf"veilmeter {name}\b", text)]
    assert missing == []


def test_every_measure_is_documented() -> None:
    """In the table, and defined in the text of one of the two pages."""
    text = (ROOT / "docs" / "reference" / "measures.md").read_text(encoding="utf-8")
    assert measures() in text  # make reference
    defined = text.replace(measures(), "") + (ROOT / "docs" / "reference" / "utility.md").read_text(encoding="utf-8")
    own = [name for name in MEASURES if name not in MEASURES.admitted]  # other tests bring their own
    assert [name for name in own if f"`{name}`" not in defined] == []


def test_every_check_of_trust_is_documented() -> None:
    """The names that checks have in the source are on the page of checks."""
    source = (ROOT / "src" / "veilmeter" / "results" / "trust.py").read_text(encoding="utf-8")
    names = re.findall(r'^[A-Z_]+ = "([a-z][^"]+ [^"]+)"$', source, re.MULTILINE)
    text = (ROOT / "docs" / "reference" / "trust-checks.md").read_text(encoding="utf-8")
    assert len(names) == 17
    assert [name for name in names if f"`{name}`" not in text] == []


def test_the_public_names_are_documented_and_there() -> None:
    import veilmeter

    text = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    for name in veilmeter.__all__:
        assert getattr(veilmeter, name) is not None
        assert name.startswith("__") or f"`{name}`" in text
    with pytest.raises(AttributeError, match="nothing_like_that"):
        _ = veilmeter.nothing_like_that


def test_the_package_is_light() -> None:
    """`import veilmeter` brings no numpy: a command that fails early fails quickly."""
    code = "import sys, veilmeter; print('numpy' in sys.modules, 'scipy' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "False"]


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of headings."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower().replace("`", "")).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("name", [name for name in NAMES if name != "README.md"])  # those are in test_readme.py
def test_links_of(name: str) -> None:
    page = PAGES[name]
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page if not path else (page.parent / path).resolve()
        assert target.exists(), f"{name}: {link}"
        if anchor:
            assert anchor in anchors(target), f"{name}: {link}"


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_left_to_fill_in(name: str) -> None:
    page = PAGES[name]
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"@@?[A-Z]+@|\bTODO\b|\bTBD\b|\bFIXME\b", text)
    assert not re.search(r"(?<![\w.])/(?:work|home|tmp|Users)/", text)


def test_the_tables_of_the_papers_are_as_run(vpc2020: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = runpy.run_path(str(ROOT / "examples" / "papers_001_004.py"))
    assert example["main"]([str(vpc2020)]) == 0
    text = (ROOT / "docs" / "validation" / "papers.md").read_text(encoding="utf-8")
    printed = [line for line in capsys.readouterr().out.splitlines() if line]
    assert len(printed) == 14 + 6 + 10
    assert [line for line in printed if line not in text] == []


def _printed(command: str, folder: Path) -> dict[tuple[str, float, float], str]:
    """The command's estimates as the page shows them: value and interval, by measure, people and length."""
    code, said = call_exactly(command.replace("DATA", str(folder)) + " --json")
    assert code == 0, said
    found = json.loads(said[said.index("{") :])["estimates"]
    return {
        (name, point["speakers"], point["length"]): "{:.1f} [{:.1f}, {:.1f}]".format(point["value"], *point["interval"])
        for name, curve in found.items()
        for point in curve
    }


def test_the_tables_of_the_legal_criteria_are_as_run(vpc2020: Path) -> None:
    page = PAGES["docs/validation/papers.md"]
    text = page.read_text(encoding="utf-8")
    lines = [line for block in blocks(page) for line in commands(block)]
    (linking,) = (line for line in lines if line.startswith("veilmeter linkability"))
    (singling,) = (line for line in lines if line.startswith("veilmeter singling-out"))
    printed = _printed(linking, vpc2020)
    rows = re.findall(r"^\| (\d+) \| (\d) \| (\S+ \[.+?\]) \| \S+ \|$", text, re.MULTILINE)
    assert len(rows) == 6
    assert [printed["linkability", int(people), int(length)] for people, length, _ in rows] == [row[2] for row in rows]
    printed = _printed(singling, vpc2020)
    rows = re.findall(r"^\| (\d+)" + r" \| ([\d.]+ \[[^|]+\])" * 4 + r" \|$", text, re.MULTILINE)
    assert len(rows) == 2
    for people, *cells in rows:
        names = ("singling_out", "control", "residual_risk", "hit_share")
        assert cells == [printed[name, int(people), 1] for name in names]


def test_the_figures_of_single_score_files_are_as_run(vpc2020: Path) -> None:
    """The example of docs/explanation/reading-numbers.md, and the table of flipped scores of the papers' page."""
    folder = vpc2020 / "extractor-original"

    def measured(gender: str, enrolls: str) -> dict[str, Any]:
        scores = folder / "results" / f"ASV-libri_test_{enrolls}-libri_test_trials_{gender}_anon" / "scores"
        key = folder / f"xvect_libri_test_trials_{gender}" / "meta" / "trials"
        code, said = call_exactly(f"veilmeter measure {scores} --trials {key} --json")
        assert code == 0, said
        found: dict[str, Any] = json.loads(said)["estimates"]
        return found

    eer = measured("f", "enrolls_anon")["eer"]
    line = "EER {:.1f} % [{:.1f}, {:.1f}] (rocch, chance {:.1f})".format(eer["value"], *eer["interval"], eer["null"])
    assert line in PAGES["docs/explanation/reading-numbers.md"].read_text(encoding="utf-8")
    for gender in "fm":
        d_ece = measured(gender, "enrolls")["d_ece"]
        figures = (d_ece["value"], d_ece["flipped"], *d_ece["null_range"])
        row = f"| {gender.upper()} | " + "{:.4f} | {:.4f} | {:.4f} to {:.4f} |".format(*figures)
        assert row in PAGES["docs/validation/papers.md"].read_text(encoding="utf-8")


def test_the_public_tools_values_are_the_reference(reference: dict[str, Any]) -> None:
    """The figures in brackets in the table were measured with the public tools."""
    tools = runpy.run_path(str(ROOT / "examples" / "papers_001_004.py"))["TOOLS"]
    keys = ("rocch_eer_percent", "cllr", "min_cllr", "d_ece_bits", "l_w", "tag", "d_sys")
    for (extractor, gender, kind), values in tools.items():
        enroll, test = {"OO": ("", ""), "OP": ("", "_anon"), "PP": ("_anon", "_anon")}[kind]
        name = f"ASV-libri_test_enrolls{enroll}-libri_test_trials_{gender}{test}"
        assert values == tuple(reference["scores"][f"extractor-{extractor}"][name][key] for key in keys)


def test_the_start_page_lists_every_command() -> None:
    text = PAGES["docs/index.md"].read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"`veilmeter {name}`" not in text] == []
