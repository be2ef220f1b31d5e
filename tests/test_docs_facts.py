"""User pages are short, name what is registered, and quote figures that validation pages and commands show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from veilmeter.anonymizers.base import ANONYMIZERS
from veilmeter.attacks.adaptive.families import FAMILIES
from veilmeter.core.registry import Registry
from veilmeter.data.formats.trials import LAYOUTS as KEY_LAYOUTS
from veilmeter.data.layouts import LAYOUTS
from veilmeter.speech.extractors.base import EXTRACTORS
from veilmeter.speech.recognizers.base import RECOGNIZERS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GENERATED = re.compile(r"<!-- table: .*?<!-- end -->", re.DOTALL)
FENCE = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
USER_PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    DOCS / "index.md",
    *(
        page
        for kind in ("tutorials", "how-to", "explanation", "reference")
        for page in sorted((DOCS / kind).glob("*.md"))
    ),
]
MOST_WORDS = 30_000  # of all user pages, without what is generated
LONGEST_SENTENCE = 40


def hand_written(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    return "" if page.name == "commands.md" else GENERATED.sub("", text)


def test_the_user_pages_stay_within_their_budget() -> None:
    assert sum(len(hand_written(page).split()) for page in USER_PAGES) <= MOST_WORDS


def sentences(text: str) -> list[str]:
    """The sentences of paragraphs and entries of lists, without code, tables and addresses of links."""
    rows = [row for row in FENCE.sub("", text).splitlines() if not row.lstrip().startswith(("|", "#"))]
    joined = "\n".join(rows)
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", joined)
    words = [
        re.sub(r"`[^`]*`", "code", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(block.split()))) for block in blocks
    ]
    return [sentence for block in words for sentence in re.split(r"(?<=[.?!:;])\s+", block)]


@pytest.mark.parametrize("page", USER_PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_sentence_runs_on(page: Path) -> None:
    found = [text for text in sentences(hand_written(page)) if len(text.split()) > LONGEST_SENTENCE]
    assert found == []


def test_a_run_on_sentence_is_found() -> None:
    assert max(len(text.split()) for text in sentences("Short one.\n\n- " + "word " * 60 + "\n\nAnother.")) == 61


NAMED: dict[str, tuple[str, Registry[Any] | tuple[str, ...]]] = {
    "corpus layouts": ("corpora.md", LAYOUTS),
    "trial keys": ("formats.md", KEY_LAYOUTS),
    "extractors": ("extractors.md", EXTRACTORS),
    "recognizers": ("utility.md", RECOGNIZERS),
    "anonymizers": ("anonymizers.md", ANONYMIZERS),
    "methods of the adaptive attacker": ("attackers.md", FAMILIES),
}


@pytest.mark.parametrize("what", NAMED)
def test_a_page_lists_everything_that_is_registered(what: str) -> None:
    """The first column of a table names each of them."""
    page, registered = NAMED[what]
    cells = re.findall(r"^\| ([^|]+) \|", (DOCS / "reference" / page).read_text(encoding="utf-8"), re.MULTILINE)
    listed = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    own = registered._built_in if isinstance(registered, Registry) else registered
    assert [name for name in own if name not in listed] == []


# --- figures that a user page quotes from a validation page


def rows(page: str) -> list[list[str]]:
    text = (DOCS / "validation" / page).read_text(encoding="utf-8")
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


def row(page: str, name: str) -> list[str]:
    """The first row of that name."""
    return next(cells for cells in rows(page) if cells[0].replace("*", "") == name)


def last_row(page: str, name: str) -> list[str]:
    return next(cells for cells in reversed(rows(page)) if cells[0].replace("*", "") == name)


def linked(cells: list[str]) -> list[int]:
    """Recordings linked of 100, from cells such as `3.4 [1, 10] / 92 [75, 98]`, for the three weak anonymizers."""
    return [int(re.findall(r"/ (\d+)", cell)[0]) for cell in cells[2:5]]


def seconds_per_hour(command: str) -> float:
    return float(row("scaling.md", command)[1])


def claims() -> dict[tuple[str, str], str]:
    """Page and phrase by what it quotes."""
    every, rhythm = linked(row("channels.md", "all together")), linked(row("channels.md", "`rhythm`"))
    floor = re.findall(r"\d+", last_row("cascade.md", "text floor: words of the original speech alone")[-1])[0]
    mcadams = seconds_per_hour("`anonymize --system mcadams`")
    return {
        ("anonymizers.md", f"{min(every)} to {max(every)} of 100 recordings"): "all channels together",
        ("attackers.md", f"links {min(rhythm)} to {max(rhythm)} of 100 recordings"): "rhythm alone",
        ("anonymizers.md", f"[{mcadams:g} seconds]"): "the speed of mcadams",
        ("limits.md", f"linked {floor} of 100 recordings of ten people"): "the text floor",
    }


@pytest.mark.parametrize(("page", "phrase"), claims(), ids=lambda text: text[:40])
def test_a_figure_is_that_of_its_validation_page(page: str, phrase: str) -> None:
    (path,) = (path for path in USER_PAGES if path.name == page)
    assert phrase in " ".join(path.read_text(encoding="utf-8").split())


@pytest.mark.parametrize("hours", [1_000, 1_670, 100_000])
def test_the_size_of_a_cluster_is_the_product_of_measured_figures(hours: int) -> None:
    """Core-hours of mcadams, xvector-pool and two extractions, to two digits."""
    text = (DOCS / "how-to" / "cluster.md").read_text(encoding="utf-8")
    cells = re.search(
        rf"^\| [^|]*\b{hours:,} hours \| ([\d.,]+) core-hours \| ([\d,]+) \| ([\d,]+) \|", text, re.MULTILINE
    )
    assert cells is not None
    commands = (
        "`anonymize --system mcadams`",
        "`anonymize --system xvector-pool`",
        "`embed` with CAM++ (ONNX Runtime)",
    )
    measured = [hours * seconds_per_hour(command) / 3600 for command in commands]
    measured[2] *= 2
    assert [float(cell.replace(",", "")) for cell in cells.groups()] == pytest.approx(measured, rel=0.1)


def test_noise_gives_what_the_page_of_measures_says() -> None:
    """The chance levels that measures.md quotes are those of the example in intervals.md, which is run."""
    example = (DOCS / "explanation" / "intervals.md").read_text(encoding="utf-8")
    found = re.search(r"^\[([\d., ]+)\]$", example, re.MULTILINE)
    assert found is not None
    eer, d_ece, l_w, d_sys = (float(value) for value in found[1].split(","))
    text = " ".join((DOCS / "reference" / "measures.md").read_text(encoding="utf-8").split())
    assert f"noise with 548 targets gives {eer:.1f}." in text
    assert f"noise with 548 targets gives {d_sys:.2f}," in text
    assert f"gives D_ECE {d_ece:.4f} bit and l_w {l_w:.2f}." in text


PLACES = re.compile(r"`((?:tests|src|benchmarks|examples|tools|veilmeter|docs)/[\w/.-]+)`")


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *DOCS.rglob("*.md")], ids=lambda page: page.name)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    named = PLACES.findall(page.read_text(encoding="utf-8"))
    assert [name for name in named if not any((top / name).exists() for top in (ROOT, ROOT / "src"))] == []
