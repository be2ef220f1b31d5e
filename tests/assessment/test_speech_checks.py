"""What is asked and refused before anything is computed, and the extractor's check in each language."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veilmeter.assessment import assess, make_settings
from veilmeter.assessment.experiment import group_people
from veilmeter.assessment.inputs import InputReader
from veilmeter.assessment.speech import check_inputs
from veilmeter.core.errors import InputError
from veilmeter.data.corpus import SpeechRole
from veilmeter.data.embeddings import Embeddings
from veilmeter.results.trust import STRONG
from veilmeter.speech.audio import write_audio
from veilmeter.wording import sentence


def voices(languages: dict[str, float]) -> Embeddings:
    """Ten people per language with six recordings each; how well they are told apart depends on the language."""
    rng = np.random.default_rng(0)
    spread = np.repeat(np.array(list(languages.values())), 60)[:, None]
    people = 10 * len(languages)
    own = np.repeat(rng.standard_normal((people, 24)), 6, 0)
    spoken = np.repeat(np.array(list(languages), object), 60).tolist()
    return Embeddings(
        own + spread * rng.standard_normal(own.shape),
        [f"u{n}" for n in range(len(own))],
        [f"s{n // 6:02d}" for n in range(len(own))],
        {"language": spoken},
    )


FAST: dict[str, Any] = {"intervals": True, "resamples": 50, "lengths": [1], "attackers": ["ignorant"]}
FAST["measures"] = ["scores", "linkability"]


def strength(original: Embeddings) -> Any:
    rng = np.random.default_rng(1)
    anonymized = replace(original, vectors=rng.standard_normal(original.vectors.shape))
    run = assess(original, anonymized, **FAST)
    return run.results, next(check for check in run.results.checks if check.name == STRONG)


def test_an_extractor_that_fails_in_one_language_fails_the_check() -> None:
    results, check = strength(voices({"de": 6.0, "en": 0.3}))
    assert set(results.attackers["original"].by["language"]) == {"de", "en"}
    assert check.failed
    told = sentence(check.finding)
    by_language = results.attackers["original"].by["language"]
    assert f"by language: de {by_language['de']['eer'].value:.1f} %, en {by_language['en']['eer'].value:.1f} %" in told


def test_one_language_is_named() -> None:
    results, check = strength(voices({"fr": 0.3}))
    assert results.inputs["original"].details["languages"] == ["fr"]
    assert check.passed
    assert f"(by language: fr {check.figure.value:.1f} %)" in sentence(check.finding)


def test_languages_are_groups_beside_those_that_are_asked_for() -> None:
    speech = voices({"de": 1.0, "en": 1.0})
    ages = ["old" if speaker < "s10" else "young" for speaker in speech.speakers]
    speech = replace(speech, attributes={**speech.attributes, "age": ages})
    assert list(group_people(speech, None)) == ["language"]
    assert list(group_people(speech, ["age"]))[:2] == ["age", "language"]
    within = replace(speech, attributes={"language": ["de", "en"] * 60})  # everybody speaks both
    assert group_people(within, None) == {}
    with pytest.raises(InputError, match="varies within"):
        group_people(within, ["language"])


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    for speaker in "abc":
        for number in range(2):
            write_audio(tmp_path / "speech" / speaker / f"{number}.wav", 0.1 * np.sin(np.arange(8_000)))
    return tmp_path / "speech"


def said(corpus: Path, **options: Any) -> list[str]:
    settings = make_settings({"original": str(corpus), "anonymized": str(corpus), **options})
    lines: list[str] = []
    check_inputs({SpeechRole.ORIGINAL: corpus, SpeechRole.ANONYMIZED: corpus}, settings, lines.append)
    return [line for line in lines if "language" in line]


def test_a_corpus_without_a_language_is_asked_about_before_anything_is_computed(corpus: Path) -> None:
    (question,) = said(corpus)
    assert "Which language is it?" in question
    assert "--language CODE" in question
    assert "--language auto" in question
    assert not said(corpus, language="en")
    assert not said(corpus, utility=False)
    assert said(corpus, utility=False, extractor=["words"])
    listed = [f"{path.relative_to(corpus)},{path.parent.name},de" for path in sorted(corpus.rglob("*.wav"))]
    (corpus / "list.csv").write_text("\n".join(["path,speaker,language", *listed]) + "\n")
    assert not said(corpus)


def test_a_language_that_the_recognizer_does_not_know_is_refused_early(corpus: Path) -> None:
    with pytest.raises(InputError, match="moonshine recognizes en, not 'de'"):
        said(corpus, language="de", recognizer="moonshine")
    with pytest.raises(InputError, match="not 'tlh'"):
        said(corpus, language="tlh")
    assert not said(corpus, language="DE")


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"system": "kascade"}, "no anonymizer called 'kascade'"),
        ({"system": "cascade", "option": ["voice=kokora"]}, "no voice 'kokora'"),
        ({"system": "mcadams", "option": ["alfa=0.8"]}, "mcadams has no option alfa"),
    ],
)
def test_an_anonymizer_that_does_not_exist_is_refused_before_anything_is_computed(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], refusal: str
) -> None:
    monkeypatch.setattr(InputReader, "read", lambda *_, **__: pytest.fail("speech was read first"))
    with pytest.raises(InputError, match=refusal):
        assess(corpus, out=tmp_path / "run", jobs=1, **given)


def test_one_speaker_is_refused_before_anything_is_computed(corpus: Path) -> None:
    for speaker in "bc":
        for path in (corpus / speaker).iterdir():
            path.unlink()
    with pytest.raises(InputError, match="there is only one speaker, 'a'"):
        said(corpus)


def test_one_speaker_among_vectors_is_refused() -> None:
    speech = voices({"de": 1.0})
    alone = speech.take(np.flatnonzero([speaker == "s00" for speaker in speech.speakers]))
    with pytest.raises(InputError, match="there is only one speaker, 's00'"):
        assess(alone, alone, jobs=1, **FAST)
