"""The file that the privacy impact assessment (PIA) tool of the French authority, the CNIL, imports."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

from veilmeter.assessment.statements import SCALE
from veilmeter.report.annex import File, amount, attack_rows, file_of, likelihood_rows, plain_title, recipient_names
from veilmeter.report.decision import Decision, anonymizer_words, not_tested
from veilmeter.results.model import Results
from veilmeter.wording import attacker_words
from veilmeter.wording.language import keep_signs

# Numbers of the tool's questions.
_PROCESSING, _DATA = 111, 121
_THREATS, _SOURCES, _MEASURES, _LIKELIHOOD = 322, 323, 324, 326  # of illegitimate access to the data


def pia(results: Results, decision: Decision, created: str = "") -> dict[str, Any]:
    """The tool's questions that the results and the controller's entries answer, and nothing else: severity and
    likelihood stay unrated where the controller has not rated them. `created` is the day of the assessment."""
    file = file_of(results, decision, created)
    at = f"{created or date.today().isoformat()}T00:00:00.000Z"
    likelihood = [file.about(row[0], row[2]) for row in likelihood_rows(file)]
    return {
        "pia": {
            "name": decision.title,
            "category": "",
            "status": 0,  # being edited
            "author_name": str(results.settings.get("assessor") or ""),
            "evaluator_name": "",
            "validator_name": file.entries.get("decided_by", ""),
            "dpos_names": file.entries.get("officer", ""),
            "dpo_opinion": file.entries.get("advice", ""),
            "people_names": "",
            **dict.fromkeys(_UNANSWERED),
            "created_at": at,
            "updated_at": at,
            "dbVersion": _STORE_VERSION,
        },
        "answers": [*_answers(file, likelihood, at), *_answers_of_entries(file, at)],
        "measures": [
            {
                "id": number,
                "title": title,
                "content": content,
                "placeholder": "measures.default_placeholder",
                "created_at": at,
                "updated_at": at,
            }
            for number, (title, content) in enumerate(_measures(file, likelihood).items(), 1)
        ],
        "evaluations": [],
        "comments": [],
    }


# Fields that the tool reads and only people can fill in: what the officer and the people concerned say, and what
# became of the assessment.
_UNANSWERED = (
    "dpo_status",
    "concerned_people_opinion",
    "concerned_people_status",
    "concerned_people_searched_opinion",
    "concerned_people_searched_content",
    "rejected_reason",
    "applied_adjustements",  # the tool's own spelling
    "structure_id",
)
_STORE_VERSION = 201910230914  # of the tool's store: versions before it refuse a file without one

# Questions that the controller's entries answer.
_ENTRIES = {
    112: ("controller", "contact"),
    122: ("form", "retention"),
    211: ("purpose",),
    212: ("legal_basis", "article_9"),
    213: ("necessity",),
    215: ("retention",),
    227: ("third_countries",),
}
_SEVERITY = 325


def _measures(file: File, likelihood: Sequence[str]) -> dict[str, str]:
    """The anonymization with what it leaves, and the measures that the controller stated: HTML by title."""
    stated = {file.texts[f"entry.{name}"]: file.entries.get(name, "") for name in ("safeguards", "incidents")}
    own = {title: _paragraphs([entry]) for title, entry in stated.items() if entry}
    return {file.texts["pia.measure"]: _paragraphs([anonymizer_words(file.results), *likelihood]), **own}


def _answers_of_entries(file: File, at: str) -> list[dict[str, Any]]:
    """Only what was stated. A rating on the tool's own scale is its gauge, from 1 to 4."""
    answers = []
    for question, names in _ENTRIES.items():
        stated = [file.about(file.texts[f"entry.{name}"], file.entries[name]) for name in names if name in file.entries]
        answers += [_answer(question, at, stated)] if stated else []
    if "severity" in file.entries:
        answers.append(_answer(_SEVERITY, at, [file.entry("severity")[1]], gauge=_gauge(file, "severity")))
    return answers


def _gauge(file: File, entry: str) -> int | None:
    rated = file.entries.get(entry)
    return SCALE.index(rated) + 1 if rated in SCALE and "scale" not in file.entries else None


def _answers(file: File, likelihood: Sequence[str], at: str) -> list[dict[str, Any]]:
    results, decision = file.results, file.decision
    return [
        _answer(
            _PROCESSING,
            at,
            [
                file.about(file.texts["pia.processing"], f"{decision.title}."),
                amount(file),
            ],
        ),
        _answer(_DATA, at, [amount(file), file.texts["pia.data"], *_data_entries(file)]),
        _answer(
            _THREATS,
            at,
            items=[plain_title(file, row) for row in attack_rows(results) if row.name in results.criteria],
        ),
        _answer(
            _SOURCES,
            at,
            # The tool's map of risks shows the first 27 characters: what sets an attacker apart comes first.
            items=[
                keep_signs(file.about(name, attacker_words(name, attacker.about).who))
                for name, attacker in results.attacks.items()
            ],
        ),
        _answer(_MEASURES, at, items=_measures(file, likelihood)),
        _answer(
            _LIKELIHOOD,
            at,
            [
                decision.reliance,
                *likelihood,
                *(file.texts["residual.not_tested"].format(reason=text) for text in not_tested(results, most=None)),
                file.texts["pia.likelihood"],
            ],
            gauge=_gauge(file, "likelihood"),
        ),
    ]


def _data_entries(file: File) -> list[str]:
    """Whose data it is and who gets it, which the tool asks for with the data, as far as it was stated."""
    stated = {"entry.people": file.entries.get("people", ""), "release.recipients": recipient_names(file)}
    return [file.about(file.texts[key], entry) for key, entry in stated.items() if entry]


def _answer(
    question: int, at: str, text: Sequence[str] = (), items: Iterable[str] = (), gauge: int | None = None
) -> dict[str, Any]:
    data = {"text": _paragraphs(text), "gauge": gauge, "list": list(items)}
    return {"reference_to": question, "data": data, "created_at": at, "updated_at": at}


def _paragraphs(texts: Sequence[str]) -> str:
    """HTML, as the tool shows it."""
    return "".join(f"<p>{html.escape(keep_signs(text))}</p>" for text in texts if text)
