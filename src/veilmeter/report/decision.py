"""The first page: what would be released, what that means for people, whether to rely on it, what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from veilmeter.attacks.attacker import plain_words
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.findings import Finding, group_references
from veilmeter.metrics.measure import is_headline
from veilmeter.report.advice import advice, without
from veilmeter.report.release import UNKNOWN, Curve, Release, release_of
from veilmeter.report.rows import THREE, CriterionRow, about_attacker, criterion_row, linking_of_all
from veilmeter.results.criteria import AS_MEASURED, SEVERAL
from veilmeter.results.levels import ORDER as LEVEL_ORDER
from veilmeter.results.model import Check, Criterion, Results
from veilmeter.results.people import are_recognized
from veilmeter.results.run_folder import Costs
from veilmeter.results.trust import UTILITY_PENDING, doubt, doubts, is_pending, open_questions
from veilmeter.speech.extractors.base import HABITS, extractor_label, unheard_habits
from veilmeter.wording import check_title, sentence, sentences, text
from veilmeter.wording.english import page as words
from veilmeter.wording.english.decision import PLAIN_USE
from veilmeter.wording.numbers import hundred_digits

# What else a headline may tell beside the figure for everybody.
FURTHER = ("release_linked", "worst_person", "only_attribute_kept")
MOST_UNTESTED = 2
MOST_ADVICE = 5
MOST_ATTACKERS = 4
MOST_DOUBTS = 3
MOST_DOTS = 300


@dataclass(frozen=True, slots=True)
class Dots:
    """Of 100 dots, how many are filled; those between `low` and `high` are uncertain."""

    title: str
    value: float
    low: float
    high: float
    text: str

    @property
    def states(self) -> tuple[str, ...]:
        """Of each dot: full, likely (up to the value), possible (up to the interval's end) or empty."""
        ends = [round(end) for end in (self.low, self.value, self.high)]
        names = ("full", "likely", "possible")
        return tuple(next((n for n, end in zip(names, ends, strict=True) if dot < end), "empty") for dot in range(100))


@dataclass(frozen=True, slots=True)
class WhoRow:
    """Somebody who could do it: in plain words, the technical name, and how many of 100 recordings they link."""

    who: str
    attacker: str
    time: str
    of_hundred: str
    interval: str
    worst: bool


@dataclass(frozen=True, slots=True)
class CheckRow:
    """`plain` is the check in plain words; empty for those that only the technical part explains."""

    title: str
    plain: str
    state: str  # "passed", "failed", "open"
    sentence: str
    meaning: str


@dataclass(frozen=True, slots=True)
class AdviceRow:
    criterion: str
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class StripDot:
    """A person; `share` of 1 is that all of their recordings are linked to them."""

    speaker: str
    share: float
    exposed: bool
    text: str


@dataclass(frozen=True, slots=True)
class Strip:
    """Everybody by falling risk, each a dot."""

    dots: tuple[StripDot, ...]
    caption: str


@dataclass(frozen=True, slots=True)
class Decision:
    """Everything that the first page says, in words."""

    title: str
    facts: tuple[str, ...]
    level: str
    headline: str
    sentence: str
    detail: str
    dots: tuple[Dots, ...]
    dots_caption: str
    criteria: tuple[CriterionRow, ...]
    who: tuple[WhoRow, ...]
    who_caption: str
    trustworthy: bool
    pending: tuple[str, ...]  # what is still to be measured
    reliance: str
    doubts: tuple[str, ...]
    checks: tuple[CheckRow, ...]
    not_tested: tuple[str, ...]
    use: tuple[str, ...]
    release: Release | None
    release_text: str
    release_basis: str
    advice: tuple[AdviceRow, ...]
    limit: str
    strip: Strip | None = None
    digest: str = ""  # of results.json, so that what is signed can be identified
    costs: Costs = field(default_factory=Costs)


def decide(
    results: Results,
    *,
    created: str = "",
    people: int | None = None,
    candidates: int | None = None,
    limit: float | None = None,
    digest: str = "",
    costs: Costs | None = None,
) -> Decision:
    """`people` and `candidates` are those of the real release; by default the people that were assessed."""
    release = release_of(results, people=people, candidates=candidates)
    linking = linking_of_all(results)
    headline, lead, detail = _opening(results, release)
    who = _who(results, linking)
    bounds = limit_finding(results, limit)
    return Decision(
        title=results.title,
        facts=masthead(results, created),
        level=results.verdict.level,
        headline=headline,
        sentence=lead,
        detail=detail,
        dots=() if linking is None else _dots(linking),
        dots_caption="" if linking is None else words.dots_caption(linking.estimate, linking.group),
        criteria=tuple(criterion_row(results, name) for name in _order_for_display(results)),
        who=who[:MOST_ATTACKERS],
        who_caption=""
        if linking is None
        else words.attackers_caption(linking.estimate, linking.group, len(who) - MOST_ATTACKERS),
        trustworthy=results.verdict.trustworthy,
        pending=sentences(results.pending, "lay"),
        reliance=sentence(reliance(results), "lay"),
        doubts=_doubts(results),
        checks=check_rows(results),
        not_tested=not_tested(results),
        use=sentences(use(results), "lay"),
        release=release,
        release_text="" if release is None else sentence(_release_count(release), "lay"),
        release_basis="" if release is None else basis_words(release.curve)[release.basis],
        advice=tuple(
            AdviceRow(item.criterion, sentence(item.action, "lay"), sentence(item.reason, "lay") if item.reason else "")
            for item in advice(results)[:MOST_ADVICE]
        ),
        limit="" if bounds is None else sentence(bounds, "lay"),
        strip=strip_of(results),
        digest=digest,
        costs=costs or Costs(),
    )


# --- what was assessed


def masthead(results: Results, created: str = "") -> tuple[str, ...]:
    """One line: the release, the anonymizer, the assessment, the version."""
    entry = results.inputs.get("anonymized")
    people = results.protocol.trial_speakers
    assessed = words.assessment_line(
        people,
        everybody=entry is not None and entry.speakers == people,
        released=bool(release_words(results)),
        created=created,
        assessor=str(results.settings.get("assessor") or ""),
    )
    lines = (release_words(results), words.anonymizer_line(anonymizer_words(results)), assessed)
    return (*(line for line in lines if line), f"veilmeter {results.version}")


def release_words(results: Results) -> str:
    """People, recordings and hours; empty where no speech is known."""
    entry = results.inputs.get("anonymized") or results.inputs.get("original")
    return "" if entry is None else words.release(entry.speakers, entry.utterances, entry.hours)


def anonymizer_words(results: Results) -> str:
    """The name that the user gave the anonymizer, else its name, version and settings as its manifest has them."""
    named = str(results.settings.get("system_name") or "")
    entry = results.inputs.get("anonymized")
    if named or entry is None or not entry.details.get("anonymizer"):
        return named
    given = entry.details.get("anonymizer_parameters")
    return words.anonymizer(
        str(entry.details["anonymizer"]),
        str(entry.details.get("anonymizer_version") or ""),
        given if isinstance(given, Mapping) else {},
    )


# --- what it means for people


def _opening(results: Results, release: Release | None) -> tuple[str, str, str]:
    """The headline, the consequence in people, and the text below it."""
    verdict = results.verdict
    headline = text(verdict.headline[:1], "lay")
    worst = results.criteria.get("linking")
    if release is None or worst is None:
        return headline, text(verdict.headline[1:], "lay"), ""
    details = [sentence(Finding("guessing_finds", {"size": release.by_guessing}), "lay")]
    linking = linking_of_all(results)
    if linking is not None and linking.original is not None:
        details.append(sentence(Finding("original_speech_linked", {"estimate": linking.original}), "lay"))
    # What else the headline tells, such as that only an attribute is kept, or that the release links itself.
    further = [sentence(found, "lay") for found in verdict.headline if found.code in FURTHER]
    serious = [criterion_row(results, c.name).sentence for c in _others(results) if _height(c) > _height(worst)]
    # A reassurance says in the same breath what it does not rest on.
    open_points = [text(question, "lay") for question in open_questions(results)] if verdict.level == "low" else []
    return (
        headline,
        sentence(_release_found(results, release), "lay"),
        " ".join([*further, *details, *serious[:1], *open_points]),
    )


def _release_found(results: Results, release: Release) -> Finding:
    attacker = release.curve.attacker
    return Finding(
        "release_found",
        {
            **_release_count(release).values,
            "candidates": release.candidates,
            "attacker": attacker,
            "about": about_attacker(results, attacker),
            "chosen": SEVERAL in release.curve.measured[-1].extra,
        },
    )


def _release_count(release: Release) -> Finding:
    found, low, high = release.expected
    values = {"size": release.people, "listed": release.on_the_list, "found": found, "low": low, "high": high}
    return Finding("release_count", {**values, "basis": release.basis, "estimate": release.evidence})


def basis_words(curve: Curve) -> dict[str, str]:
    """The evidence for a share of people, by its basis."""
    measured, most = {"size": curve.most_measured}, {"size": curve.most}
    return {
        UNKNOWN: sentence(Finding("share_unknown", measured), "lay"),
        "measured": sentence(Finding("share_measured", measured), "lay"),
        "model": sentence(Finding("share_modeled", measured), "lay"),
        "beyond": sentence(Finding("share_beyond_model", most), "lay"),
    }


# --- the dots and the criteria


def _dots(linking: Criterion) -> tuple[Dots, ...]:
    point = linking.estimate
    dots = [_dots_of(words.RELEASE_DOTS, point)]
    if linking.original is not None:
        dots.append(_dots_of(words.ORIGINAL_DOTS, linking.original))
    if point.null is not None:
        share = point.null
        dots.append(Dots(words.GUESSING_DOTS, share, share, share, words.guessing_dots(share)))
    return tuple(dots)


def _dots_of(title: str, point: Estimate) -> Dots:
    low, high = point.interval or (point.value, point.value)
    return Dots(title, point.value, low, high, words.dots(point))


def strip_of(results: Results) -> Strip | None:
    people = results.people.persons
    if not people:
        return None
    dots = tuple(
        StripDot(
            person.speaker,
            round(min(100.0, max(0.0, person.risk.value)) / 100, 2),
            person.unprotected,
            words.person_dot(person.speaker, person.risk),
        )
        for person in people[:MOST_DOTS]
    )
    exposed = results.people.unprotected
    left = without(results, exposed) if 0 < len(exposed) < len(people) / 2 else None
    return Strip(
        dots,
        words.strip_caption(
            len(people), results.people.unprotected, len(dots) < len(people), are_recognized(results.criteria)
        )
        + ("" if left is None else f" {sentence(left, 'lay')}"),
    )


def _height(criterion: Criterion) -> int:
    return LEVEL_ORDER.index(criterion.level)


def _others(results: Results) -> list[Criterion]:
    return [criterion for name, criterion in results.criteria.items() if name not in THREE and criterion.risk]


def _order_for_display(results: Results) -> list[str]:
    """The three criteria of the authorities, and any other risk that is worse than linking."""
    linking = results.criteria.get("linking")
    least = _height(linking) if linking is not None else -1
    worse = [criterion.name for criterion in _others(results) if _height(criterion) > least]
    return [*THREE, *worse]


# --- who, reliance, use


def _who(results: Results, linking: Criterion | None) -> tuple[WhoRow, ...]:
    if linking is None:
        return ()
    found = {
        name: point
        for name, attacker in results.attacks.items()
        if (point := same_or_largest(attacker.estimates.points("linkability"), linking.estimate)) is not None
    }
    chosen = AS_MEASURED in linking.estimate.extra
    shown = [*found.values(), *([linking.estimate] if chosen else [])]
    digits = min(map(hundred_digits, shown), default=0)  # one column, one number of digits
    ranked: list[tuple[float, WhoRow]] = []
    for name, point in found.items():
        about = plain_words(name, results.attackers[name].about)
        share, interval = words.attacker_cells(point, digits)
        row = WhoRow(
            who=about.who,
            attacker=name,
            time=about.time,
            of_hundred=share,
            interval=interval,
            worst=name == linking.attacker and not chosen,
        )
        ranked.append((point.value, row))
    rows = tuple(row for _, row in sorted(ranked, key=lambda pair: -pair[0]))
    if not chosen:
        return rows
    share, interval = words.attacker_cells(linking.estimate, digits)
    return (WhoRow(words.chosen_attacker(linking.estimate), "", "", share, interval, worst=True), *rows)


def same_or_largest(points: Estimates, like: Estimate) -> Estimate | None:
    """The point with the same parameters; where the worst case is within a group, that of everybody."""
    same = [point for point in points if point.at == like.at]
    if same:
        return same[0]
    alike = [point for point in points if point.at.get("length") == like.at.get("length")]
    return max(alike, key=lambda point: int(point.at.get("speakers", 0)), default=None)


def reliance(results: Results) -> Finding:
    """Whether to rely on the figures; it never says whether the release is safe."""
    failed = sum(check.failed for check in results.checks)
    made = sum(check.passed is not None for check in results.checks)
    if failed and results.verdict.trustworthy:
        return Finding("alarm_is_certain", {"failed": failed, "made": made}, severity="warning")
    if failed:
        return Finding("self_checks_failed", {"failed": failed, "made": made}, severity="problem")
    if not results.verdict.trustworthy:
        return Finding("untrustworthy", severity="problem")
    return Finding("self_checks_passed", {"made": made, "open": sum(check.open for check in results.checks)})


def _doubts(results: Results) -> tuple[str, ...]:
    """Findings of the failed checks, and in which direction they mislead."""
    listed = [text(doubt, "lay") for doubt in doubts(results)]
    more = len(listed) - MOST_DOUBTS
    rest = [sentence(Finding("more_in_technical_part", {"number": more}), "lay")] if more > 0 else []
    return (*listed[:MOST_DOUBTS], *rest)


def check_rows(results: Results) -> tuple[CheckRow, ...]:
    """Failed ones first, then those that could not be made, then those that passed; not those that can't apply."""
    rows = [_check_row(results, check) for check in results.checks if check.passed is not None or check.applies]
    return tuple(sorted(rows, key=lambda row: ("failed", "open", "passed").index(row.state)))


def _check_row(results: Results, check: Check) -> CheckRow:
    state = "open" if check.passed is None else "passed" if check.passed else "failed"
    title = check_title(check.name)
    found, *means = doubt(results, check) if check.failed or check.open else (check.finding,)
    plain = words.CHECKS.get(check.name, ("", ""))[state == "failed"]
    return CheckRow(title, plain, state, sentence(found, "lay"), text(means, "lay"))


# --- what was not tested, and use


def not_tested(results: Results, *, most: int | None = MOST_UNTESTED) -> tuple[str, ...]:
    """Untested attackers in plain words with their names, at most so many of this run's."""
    listed = [words.as_sentence(reason) for reason in sentences(results.verdict.not_tested, "lay")]
    if most is not None and len(listed) > most:
        listed = [*listed[:most], sentence(Finding("more_in_annex", {"number": len(listed) - most}), "lay")]
    return (*listed, *sentences(never_tested(results), "lay"))


def never_tested(results: Results) -> tuple[Finding, ...]:
    """What no run tests, and the habits of speech that no attacker of this run measured."""
    further = [attacker.extractor for attacker in results.attacks.values() if attacker.extractor]
    first = extractor_label(str((results.extractor or {}).get("name", "")))
    unheard = unheard_habits([first, *further])
    habits = Finding("contents_not_tested", {"habits": tuple(unheard), "every_habit": unheard == HABITS})
    return habits, Finding("future_not_tested")


def use(results: Results) -> tuple[Finding, ...]:
    """Sentences on what is left of words, quality and melody."""
    part = results.parts.get("utility")
    if part is None:
        return (Finding(UTILITY_PENDING if is_pending(results, UTILITY_PENDING) else "use_not_measured"),)
    measured = []
    for name in part.estimates.names:
        point = part.estimates.single(name)
        if point is None or (name not in PLAIN_USE and not is_headline(name)):
            continue
        before = part.estimates.single(f"{name}_original") or part.reference.single(name)
        original = {} if before is None else {"original": before}
        measured.append(Finding("use_measured", {"estimate": point, **original}))
    return tuple(measured)


# --- a limit that somebody chose


def limit_finding(results: Results, named: float | None) -> Finding | None:
    """A limit against the worst case of linking: the one that was in the settings before the run was chosen
    beforehand; one that was `named` for the report may have been chosen in view of the results."""
    chosen = results.settings.get("threshold")
    limit = chosen if named is None else named
    if not isinstance(limit, int | float):
        return None
    linking = results.criteria.get("linking")
    if linking is None:
        return Finding("limit_without_linking", {"percent": limit})
    point = linking.estimate
    place = "above" if point.value > limit else "unclear" if point.worst > limit else "below"
    return Finding.of(
        "limit_compared",
        percent=limit,
        chosen_before=limit == chosen,
        estimate=point,
        place=place,
        group=group_references(linking.group) or None,
    )
