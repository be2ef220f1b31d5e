"""The first page: what would be released, what that means for people, whether to rely on it, what to do next."""

from __future__ import annotations

from dataclasses import dataclass

from veilmeter.attacks.knowledge import plain_words
from veilmeter.core.estimate import Estimate
from veilmeter.core.estimates import Estimates
from veilmeter.report.advice import Advice, advice
from veilmeter.report.criterion_rows import Bar, CriterionRow, about_attacker, bar_of, criterion_row, in_percent
from veilmeter.report.masthead import facts
from veilmeter.report.plain_language import not_tested, use
from veilmeter.report.release import Curve, Release, release_of
from veilmeter.report.rows import recordings, where
from veilmeter.report.texts import CHECKS, OPINION
from veilmeter.results.levels import ORDER as LEVEL_ORDER
from veilmeter.results.model import BASELINE, Check, Criterion, Results
from veilmeter.results.trust import meaning, open_questions
from veilmeter.results.verdict import OPENINGS

MOST_ADVICE = 5
MOST_ATTACKERS = 4
MOST_DOUBTS = 3


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
    bar: Bar | None


@dataclass(frozen=True, slots=True)
class CheckRow:
    """`plain` is the check in plain words; empty for those that only the technical part explains."""

    title: str
    plain: str
    state: str  # "passed", "failed", "open"
    sentence: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Decision:
    """Everything that the first page says."""

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
    reliance: str
    doubts: tuple[str, ...]
    checks: tuple[CheckRow, ...]
    not_tested: tuple[str, ...]
    use: tuple[str, ...]
    release: Release | None
    release_text: str
    release_basis: str
    advice: tuple[Advice, ...]
    limit: str


def decide(
    results: Results,
    *,
    created: str = "",
    people: int | None = None,
    candidates: int | None = None,
    limit: float | None = None,
) -> Decision:
    """`people` and `candidates` are those of the real release; by default the people that were assessed."""
    release = release_of(results, people=people, candidates=candidates)
    linking = None if release is None else everybody(results, release)
    headline, sentence, detail = _sentences(results, release)
    who = _who(results, linking)
    return Decision(
        title=results.title,
        facts=facts(results, created),
        level=results.verdict.level,
        headline=headline,
        sentence=sentence,
        detail=detail,
        dots=() if linking is None else _dots(linking),
        dots_caption="" if linking is None else _dots_caption(linking),
        criteria=tuple(criterion_row(results, name) for name in _shown_first(results)),
        who=who[:MOST_ATTACKERS],
        who_caption="" if linking is None else _who_caption(linking, len(who)),
        trustworthy=results.verdict.trustworthy,
        reliance=reliance(results),
        doubts=_doubts(results),
        checks=check_rows(results),
        not_tested=not_tested(results),
        use=use(results),
        release=release,
        release_text="" if release is None else _release_text(release),
        release_basis="" if release is None else basis_words(release.curve)[release.share.basis],
        advice=advice(results)[:MOST_ADVICE],
        limit=limit_sentence(results, limit),
    )


# --- what was assessed, and what it means for people


def _sentences(results: Results, release: Release | None) -> tuple[str, str, str]:
    """The headline, the consequence in people, and what stands below it."""
    verdict = results.verdict
    headline = OPENINGS[verdict.level]
    worst = results.criteria.get("linking")
    if release is None or worst is None:
        return headline, verdict.headline.removeprefix(headline).strip(), ""
    who = plain_words(release.curve.attacker, about_attacker(results, release.curve.attacker)).who
    sentence = f"{_release_text(release)} by {who}, with a list of {release.candidates:,} candidates."
    by_guessing = counted(release.by_guessing) if release.by_guessing >= 0.5 else "fewer than one"
    detail = f"Guessing would find {by_guessing}."
    original = everybody(results, release).original
    if original is not None:
        detail += f" Without anonymization {100 * original.value:.0f} of 100 recordings are linked."
    if worst.estimate.at != release.curve.measured[-1].at or worst.group:
        detail += f" Worst case: {criterion_row(results, 'linking').sentence}"
    serious = [c.sentence for c in _others(results) if _height(c) > _height(worst)]
    # A reassurance says in the same breath what it does not rest on.
    open_points = open_questions(results) if verdict.level == "low" else []
    return headline, sentence, " ".join([detail, *serious[:1], *open_points])


def _release_text(release: Release) -> str:
    value, low, high = release.expected
    share = f"{counted(value)} [{counted(low)}, {counted(high)}]"
    return f"In a release of {release.people:,} people, about {share} would be found"


def counted(people: float) -> str:
    """
    >>> counted(0.0417), counted(3.2), counted(412.3), counted(1234.0)
    ('0', '3', '412', '1,234')
    """
    return f"{people:,.0f}"


def basis_words(curve: Curve) -> dict[str, str]:
    """What a share of people rests on, by its basis."""
    return {
        "measured": f"Measured among {curve.most_measured:,} people.",
        "model": f"Beyond the {curve.most_measured:,} people who were measured this is a model, and less certain than "
        "its interval says.",
        "beyond": f"Beyond {curve.most:,} people neither measured nor extrapolated: the figure for {curve.most:,} "
        "stands here, and the true one is lower.",
    }


# --- the dots and the criteria


def _dots(linking: Criterion) -> tuple[Dots, ...]:
    point = linking.estimate
    dots = [_dots_of("This release", point)]
    if linking.original is not None:
        dots.append(_dots_of("Not anonymized", linking.original))
    if point.null is not None:
        share = 100 * point.null
        dots.append(Dots("Guessing", share, share, share, f"about {share:.2g} of 100"))
    return tuple(dots)


def _dots_of(title: str, point: Estimate) -> Dots:
    low, high = point.interval or (point.value, point.value)
    text = f"{100 * point.value:.0f} of 100 [{100 * low:.0f} to {100 * high:.0f}]"
    return Dots(title, 100 * point.value, 100 * low, 100 * high, text)


def _height(criterion: Criterion) -> int:
    return LEVEL_ORDER.index(criterion.level)


def everybody(results: Results, release: Release) -> Criterion:
    """Linking by the release's attacker among everybody assessed. The worst case itself may lie within a group or a
    smaller set, where guessing gives more: only figures among the same people stand side by side."""
    point = release.curve.measured[-1]
    baseline = results.attackers.get(BASELINE)
    same = [p for p in baseline.estimates.points("linkability") if p.at == point.at] if baseline is not None else []
    return Criterion(
        name="linking",
        level=results.criteria["linking"].level if "linking" in results.criteria else "unknown",
        sentence="",
        estimate=point,
        attacker=release.curve.attacker,
        original=same[0] if same else None,
    )


def _dots_caption(linking: Criterion) -> str:
    return f"Each dot is one of 100 attempts{_setting(linking)}. Pale and dashed dots lie within the 95 % interval."


def _who_caption(linking: Criterion, attackers: int) -> str:
    more = attackers - MOST_ATTACKERS
    rest = f"; {more} more in the annex" if more > 0 else ""
    return f"In 100 attempts{_setting(linking)}{rest}."


def _setting(linking: Criterion) -> str:
    """What every attempt is like, in plain words."""
    at = linking.estimate.at
    words = f": {recordings(int(at.get('length', 1)))}"
    if "speakers" in at:
        words += f", {int(at['speakers']):,} candidates"
    return words + "".join(f", {attribute} {value}" for attribute, value in linking.group.items())


def _others(results: Results) -> list[Criterion]:
    return [criterion for name, criterion in results.criteria.items() if name not in OPINION and criterion.risk]


def _shown_first(results: Results) -> list[str]:
    """The three criteria of the Opinion, and any other risk that is worse than linking."""
    linking = results.criteria.get("linking")
    least = _height(linking) if linking is not None else -1
    worse = [criterion.name for criterion in _others(results) if _height(criterion) > least]
    return [name for name in OPINION if name in results.criteria] + worse


# --- who, reliance, use


def _who(results: Results, linking: Criterion | None) -> tuple[WhoRow, ...]:
    if linking is None:
        return ()
    ranked: list[tuple[float, WhoRow]] = []
    for name, attacker in results.attacks.items():
        point, words = (
            same_or_largest(attacker.estimates.points("linkability"), linking.estimate),
            plain_words(name, attacker.about),
        )
        if point is None:
            continue
        percent = in_percent(point)
        row = WhoRow(
            who=words.who,
            attacker=name,
            time=words.time,
            of_hundred=f"{percent.value:.0f} of 100",
            interval="" if percent.interval is None else f"{percent.interval[0]:.0f} to {percent.interval[1]:.0f}",
            worst=name == linking.attacker,
            bar=bar_of(point),
        )
        ranked.append((point.value, row))
    return tuple(row for _, row in sorted(ranked, key=lambda pair: -pair[0]))


def same_or_largest(points: Estimates, like: Estimate) -> Estimate | None:
    """The point with the same parameters; where the worst case is within a group, that of everybody."""
    same = [point for point in points if point.at == like.at]
    if same:
        return same[0]
    alike = [point for point in points if point.at.get("length") == like.at.get("length")]
    return max(alike, key=lambda point: int(point.at.get("speakers", 0)), default=None)


def reliance(results: Results) -> str:
    """Whether to rely on the figures; never a word on whether the release is safe."""
    failed = [check for check in results.checks if check.failed]
    could = [check for check in results.checks if check.passed is not None]
    unmade = [check for check in results.checks if check.open]
    if failed or not results.verdict.trustworthy:
        count = f"{len(failed)} of its own {len(could)} checks failed" if failed else "its own checks failed"
        return f"Do not rely on this result yet: {count}."
    text = f"All {len(could)} checks that could be made passed" if could else "No check could be made"
    text += f"; {len(unmade)} could not be made." if unmade else "."
    return f"{text} That is no word on whether the release is safe, and it holds only for the attackers that were run."


def _doubts(results: Results) -> tuple[str, ...]:
    """What the failed checks say, and which way that misleads."""
    failed = [check for check in results.checks if check.failed]
    sentences = [f"{check.sentence} {meaning(check)}".strip() for check in failed] or list(results.verdict.distrust)
    more = len(sentences) - MOST_DOUBTS
    rest = [f"{more} more, listed in the technical part."] if more > 0 else []
    return (*sentences[:MOST_DOUBTS], *rest)


def check_rows(results: Results) -> tuple[CheckRow, ...]:
    """Failed ones first, then those that could not be made, then those that passed; not those that can't apply."""
    rows = [_check_row(check) for check in results.checks if check.passed is not None or check.applies]
    if not results.checks and not results.verdict.trustworthy:
        rows = [CheckRow("Not trustworthy", "", "failed", text, "") for text in results.verdict.distrust]
    return tuple(sorted(rows, key=lambda row: ("failed", "open", "passed").index(row.state)))


def _check_row(check: Check) -> CheckRow:
    state = "open" if check.passed is None else "passed" if check.passed else "failed"
    title = check.name.replace("-", " ").replace("_", " ")
    doubt = meaning(check) if check.failed or check.open else ""
    return CheckRow(title[0].upper() + title[1:], CHECKS.get(check.name, ""), state, check.sentence, doubt)


# --- a limit that somebody chose


def limit_sentence(results: Results, named: float | None) -> str:
    """A limit against the worst case of linking: the one that stood in the settings before the run was chosen
    beforehand; one that was `named` for the report may have been chosen in view of the results."""
    chosen = results.settings.get("threshold")
    limit = chosen if named is None else named
    if not isinstance(limit, int | float):
        return ""
    linking = results.criteria.get("linking")
    if linking is None:
        return f"The limit of {100 * limit:g} of 100 was given, but linking was not measured."
    when = "that was chosen before this assessment" if limit == chosen else "that was named for this report"
    point, percent = linking.estimate, in_percent(linking.estimate)
    verb = "lies above" if point.value > limit else "may lie above" if point.worst > limit else "lies below"
    low, high = percent.interval or (percent.value, percent.value)
    return (
        f"The limit of {100 * limit:g} in 100 {when}: the worst case, {percent.value:.0f} [{low:.0f} to {high:.0f}] of "
        f"100 recordings linked{where(point)}, {verb} it."
    )
