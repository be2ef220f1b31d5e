"""Words of a corpus: given by it, by a list, or heard by a recognizer; and what a list lacks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("soundfile")

from veilmeter.assessment import Assessment, assess
from veilmeter.assessment.extraction import embed_texts, texts_of
from veilmeter.assessment.run import run_assessment
from veilmeter.cli.main import app
from veilmeter.core.engine import Here
from veilmeter.core.errors import InputError
from veilmeter.data.corpus import read_corpus
from veilmeter.report import write_report
from veilmeter.results.gate import check_gate
from veilmeter.results.run_folder import read_results
from veilmeter.speech.audio import RATE, write_audio
from veilmeter.speech.extractors.words import style_features, word_features
from veilmeter.wording import sentence

PEOPLE, EACH = 6, 6
TOPICS = ("ship sea sail wave", "king crown throne sword", "bread oven flour yeast", "horse saddle stable hay",
          "star moon orbit comet", "piano violin chord drum")  # fmt: skip
RECOGNIZER = """
def hear(samples):
    return "one two" if float(abs(samples).max()) > 0.05 else ""
"""


@pytest.fixture
def speech(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Noise that says nothing, with a list of what is said: everybody talks of something else."""
    monkeypatch.setenv("VEILMETER_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    lines = []
    for speaker in range(PEOPLE):
        for number in range(EACH):
            name = f"s{speaker}-{number}"
            for side in ("original", "anonymized", "again"):
                path = tmp_path / side / f"s{speaker}" / f"{name}.wav"
                path.parent.mkdir(parents=True, exist_ok=True)
                write_audio(path, (0.1 * rng.standard_normal(RATE)).astype(np.float32))
            words = rng.choice([*TOPICS[speaker].split(), "the", "and", "of", "a"], 12)
            lines.append(f"{name} {' '.join(words)}\n")
    (tmp_path / "text").write_text("".join(lines))
    return tmp_path


def test_people_who_differ_in_words_only_are_found_by_given_words(speech: Path) -> None:
    options: dict[str, Any] = {"lengths": [1, 3], "intervals": False, "measures": ["scores", "linkability", "ranks"]}
    (speech / "noise.py").write_text("import numpy as np\ndef hear(samples):\n    return samples[:8]\n")
    results = assess(
        speech / "original",
        speech / "anonymized",
        attacker_run=str(speech / "again"),
        extractor=[f"{speech / 'noise.py'}:hear", f"words:{speech / 'text'}"],
        attackers=["adaptive"],
        **options,
    ).results
    assert results.channels is not None
    noise, words, together = (
        {
            (point.name, point.at.get("length", 1)): point.value
            for point in channel.estimates
            if point.name == "linkability"
        }
        for channel in results.channels.channels
    )
    assert noise["linkability", 1] < 45
    assert words["linkability", 1] > 80
    assert words["linkability", 3] == 100  # several recordings together
    assert together["linkability", 1] > 80
    assert {person.channel for person in results.channels.people} == {"words-given"}
    assert [channel.hears for channel in results.channels.channels] == ["speech", "words", "everything"]


def test_the_first_verdict_comes_before_further_extractors_and_says_so(speech: Path) -> None:
    """Noise hides everybody; words, which are read after the first verdict, do not."""
    (speech / "noise.py").write_text("import numpy as np\ndef hear(samples):\n    return samples[:8]\n")
    seen: list[Assessment] = []

    def run(folder: str, *, wait: bool = True, told: bool = True) -> Assessment:
        def first(assessment: Assessment) -> bool:
            seen.append(assessment)
            assert assessment.folder is not None
            assert read_results(assessment.folder).pending == assessment.results.pending
            return wait

        return run_assessment(
            speech / "original",
            speech / "anonymized",
            attacker_run=str(speech / "again"),
            extractor=[f"{speech / 'noise.py'}:hear", f"words:{speech / 'text'}"],
            attackers=["adaptive"],
            lengths=[1, 3],
            intervals=False,
            measures=["scores", "linkability", "ranks"],
            out=speech / folder,
            first=first if told else None,
        )

    ended = run("ended", wait=False)
    assert ended is seen[0]
    assert [sentence(finding) for finding in ended.results.pending] == [
        "Attackers who use the extractor words-given are still to be run; they may find more."
    ]
    assert ended.results.channels is None
    with pytest.raises(InputError, match="preliminary"):
        check_gate(ended.results, [])
    with pytest.raises(InputError, match="preliminary"):
        write_report(ended, form="md")
    page = write_report(ended).read_text()
    assert "Preliminary: not everything has been measured yet." in page
    assert "words-given are still to be run" in page
    completed = run("ended")
    assert completed.results.pending == ()
    assert completed.results.channels is not None
    assert len(seen) == 2
    # The same results as without a first verdict, to the byte.
    run("at once", told=False)
    assert (speech / "ended" / "results.json").read_bytes() == (speech / "at once" / "results.json").read_bytes()
    write_report(completed)
    assert "Preliminary" not in (speech / "ended" / "report.html").read_text()


def test_texts_of_lists(speech: Path) -> None:
    kaldi = texts_of(speech / "text")
    assert texts_of(speech) == kaldi  # as `transcribe` leaves it
    table = speech / "table.csv"
    table.write_text("speaker,utterance,text\n" + "".join(f'x,{name},"{text}"\n' for name, text in kaldi.items()))
    assert texts_of(table) == kaldi
    table.write_text("id,words\n")
    with pytest.raises(InputError, match="no columns utterance and text"):
        texts_of(table)
    with pytest.raises(InputError, match="no such list"):
        texts_of(speech / "nowhere")


def test_texts_of_the_corpus_or_of_what_lies_beside_it(speech: Path) -> None:
    corpus = read_corpus(speech / "original")
    kaldi = texts_of(speech / "text")
    told = replace(corpus, utterances=tuple(replace(u, text=kaldi[Path(u.id).name]) for u in corpus))
    for heard, beside in ((told, []), (corpus, [told])):
        embeddings, facts = embed_texts(heard, "words:corpus", Here(), beside=beside)
        assert list(embeddings.utterances) == [u.id for u in corpus]
        np.testing.assert_array_equal(embeddings.vectors[3], word_features(kaldi[Path(embeddings.utterances[3]).name]))
        assert facts["name"] == "words:corpus"
    with pytest.raises(InputError, match="36 of 36 recordings have no text"):
        embed_texts(corpus, "words:corpus", Here())
    (speech / "some").write_text("".join(f"{name} {text}\n" for name, text in list(kaldi.items())[:30]))
    with pytest.raises(InputError, match=r"6 of 36 recordings have no text"):
        embed_texts(corpus, f"words:{speech / 'some'}", Here())


def test_a_recognizer_is_heard_once(speech: Path) -> None:
    (speech / "asr.py").write_text(RECOGNIZER)
    corpus = read_corpus(speech / "original")
    heard: list[tuple[int, int]] = []
    first, facts = embed_texts(
        corpus, "words", Here(), recognizer=f"{speech / 'asr.py'}:hear", progress=lambda d, t: heard.append((d, t))
    )
    np.testing.assert_array_equal(first.vectors[0], word_features("one two"))
    assert heard[0] == (0, 36)
    heard.clear()
    style, _ = embed_texts(
        corpus, "word-style", Here(), recognizer=f"{speech / 'asr.py'}:hear", progress=lambda d, t: heard.append((d, t))
    )
    assert heard[0] == (36, 36)
    np.testing.assert_array_equal(style.vectors[0], style_features("one two"))
    assert facts["dimension"] == first.dimension


def test_the_command_may_end_at_the_first_verdict_and_goes_on_later(speech: Path) -> None:
    (speech / "noise.py").write_text("import numpy as np\ndef hear(samples):\n    return samples[:8]\n")
    words = [
        "assess", "--original", speech / "original", "--anonymized", speech / "anonymized", "--extractor",
        f"{speech / 'noise.py'}:hear", f"words:{speech / 'text'}", "--attackers", "ignorant", "--lengths", 1,
        "--no-intervals", "--measures", "scores", "linkability", "--jobs", 1, "--no-utility",
    ]  # fmt: skip
    first = CliRunner().invoke(app, [*map(str, words), "--out", str(speech / "run"), "--no-wait"])
    assert first.exit_code == 0, first.output
    assert "Preliminary. The same command without --no-wait measures the rest:" in first.stdout
    assert read_results(speech / "run").pending
    assert "Preliminary" in (speech / "run" / "report.html").read_text()
    gated = CliRunner().invoke(app, ["gate", str(speech / "run"), "--trustworthy"])
    assert isinstance(gated.exception, InputError)
    later = CliRunner().invoke(app, [*map(str, words), "--out", str(speech / "run")])
    assert later.exit_code == 0, later.output
    assert not read_results(speech / "run").pending
    assert "Preliminary" not in (speech / "run" / "report.html").read_text()
