"""The verdict, the criteria behind it, people, channels, use, and the questions that remain."""

from __future__ import annotations

import math
from typing import Literal

from veilmeter.core.estimate import Estimate, format_number
from veilmeter.core.findings import Level, Reference
from veilmeter.wording.catalog import Catalog, shown
from veilmeter.wording.citations import cite
from veilmeter.wording.numbers import capitalize, chance, count, expected, of_hundred, span

WORDS = Catalog()

_OPENINGS = {
    "high": "People can be recognized.",
    "raised": "Protection is partial.",
    "unknown": "Too little was measured to say whether people can be recognized.",
    "low": "None of the attackers that were run did significantly better than {luck}.",
}


@WORDS.words("verdict")
def _verdict(level: Level) -> str:
    return _OPENINGS[level].format(luck="chance")


@WORDS.words("verdict", "lay")
def _verdict_lay(level: Level) -> str:
    return _OPENINGS[level].format(luck="guessing")


WORDS.say("nothing_attacked", "No attack was measured.")
WORDS.say(
    "little_voice_left",
    "Perhaps nothing was recognized because hardly any voice is left: listen to the output before you rely on it, or "
    "measure how usable the speech still is.",
)


@WORDS.words("only_attribute_kept")
def _only_attribute_kept(attribute: Reference) -> str:
    kept = shown(attribute)
    verb = "are" if " and " in kept else "is"
    return (
        f"As far as these attackers show, only the {kept} {verb} kept: among people with the same {kept} nobody is linked "
        "significantly more often than by chance."
    )


WORDS.say(
    "one_voice_per_speaker",
    "Each speaker seems to keep the same new voice in all recordings: anyone who recognizes a person in one of them "
    "finds all the others. This replaces one name by another; it does not remove the link between recordings.",
)


@WORDS.words("use")
def _use(
    wer: Estimate | None = None,
    wer_original: float | None = None,
    mos: float | None = None,
    mos_original: float | None = None,
) -> str:
    parts = []
    if wer is not None:
        before = "" if wer_original is None else f", {span(wer_original, None)} in the original"
        parts.append(f"of 100 words a recognizer gets {of_hundred(wer)} wrong{before}")
    if mos is not None:
        before = "" if mos_original is None else f" (original: {mos_original:.1f})"
        parts.append(f"the predicted quality is {mos:.1f} of 5{before}")
    return f"Use: {'; '.join(parts) or 'not measured'}."


# --- people


WORDS.say("nobody_tried", "Nobody has a trial, so no result per person is possible.")


@WORDS.words("nobody_ranked")
def _nobody_ranked(scores_only: bool, tried: int | None = None) -> str:
    people = "" if tried is None else f" for {count(tried, 'person who has', 'people who have')} trials"
    reason = "scores do not tell whom an attacker names" if scores_only else "linkability was not measured"
    return f"There is no result per person{people}: {reason}."


@WORDS.words("people_linked")
def _people_linked(
    listed: int,
    linked: int,
    total: int,
    speakers: int,
    length: int,
    explained: bool,
    recognized: bool = False,
    expected_by_chance: float | None = None,
    agreement: Literal["same", "partly", "different"] | None = None,
) -> str:
    if not linked:
        words = f"None of {count(total, 'speaker')} is linked more often than not by any attacker that was run."
    else:
        shown = listed or linked
        verb = "is" if shown == 1 else "are"
        recordings = "one recording" if length == 1 else f"{length} recordings"
        words = (
            f"{shown:,} of {count(total, 'speaker')} {verb} linked more often than not by the attacker that finds them "
            f"best, among {count(speakers, 'person', 'people')} and with {recordings}"
        )
        if not listed and not recognized:
            chance = "is no more than chance explains" if explained else "can't be distinguished from chance"
            words += f", which {chance}"
        if expected_by_chance is not None:
            words += f"; by chance alone it would be about {expected(expected_by_chance)}"
        if listed:
            words += "."
        elif recognized:
            words += ". For no single one of them can chance be ruled out, so nobody is listed as unprotected."
        else:
            words += ": nobody is listed as unprotected."
    if agreement is not None:
        kind = {"same": "largely the same", "partly": "partly the same", "different": "mostly different"}[agreement]
        words += f" The attackers find {kind} people."
    return words


@WORDS.words("worst_person")
def _worst_person(
    estimate: Estimate, attacker: str, total: int, attackers: int, explained: bool, recognized: bool | None = None
) -> str:
    looked_at = f"{count(total, 'person', 'people')} and {count(attackers, 'attacker')}"
    return f"{_most_often(estimate, a(attacker))} {_how_sure(estimate, looked_at, 'chance', explained, recognized)}"


@WORDS.words("worst_person", "lay")
def _worst_person_lay(
    estimate: Estimate, attacker: str, total: int, explained: bool, recognized: bool | None = None, **further: object
) -> str:
    looked_at = count(total, "person", "people")
    estimate = estimate.sign(attacker=attacker)
    return f"{_most_often(estimate, 'an attacker')} {_how_sure(estimate, looked_at, 'guessing', explained, recognized)}"


def _most_often(estimate: Estimate, attacker: str) -> str:
    trials = int(estimate.n.get("conversations", 0))
    linked = round(estimate.value / 100 * trials) if math.isfinite(estimate.value) else 0
    trial_count = cite(f"{linked:,} of {count(trials, 'trial')}", estimate.with_(label=MOST_OFTEN))
    return f"The person found most often is linked by {attacker} in {trial_count}."


MOST_OFTEN = "linked: the person found most often"


def _how_sure(estimate: Estimate, looked_at: str, chance: str, explained: bool, recognized: bool | None) -> str:
    if explained and recognized:
        return f"For one person alone among {looked_at}, {chance} could explain that; for all of them together, it does not."
    if explained:
        return f"Among {looked_at}, {chance} explains that."
    if estimate.interval is None:
        return f"Among {looked_at}, {chance} does not explain that."
    low, high = estimate.interval
    return f"This person's true share may be anything from {low:.0f} to {high:.0f} of 100, allowing for {looked_at}."


@WORDS.words("channels")
def _channels(channels: tuple[str, ...], bits: tuple[float, ...]) -> str:
    disclosed = [f"{name} {value:.1f} bit" for name, value in zip(channels, bits, strict=False)]
    return f"One recording discloses on average: {', '.join(disclosed)}."


@WORDS.words("text_floor")
def _text_floor(channel: str, linked: Estimate) -> str:
    people = int(float(linked.at["speakers"]))
    share = f"{linked.format_value()} {linked.format_interval()}".strip()
    guessing = "" if linked.null is None else f" (guessing: {chance(linked.null)} %)"
    return (
        f"A perfect voice changer would still leave this: by the spoken words alone ({channel} of original speech), "
        f"{share} of recordings are linked to the right one of {people} "
        f"people{guessing}. A system is not to blame for that."
    )


# --- what a lawyer has to judge


WORDS.say(
    "lawyer_recipients",
    "Who could realistically get the speech, and what else do they know (GDPR, recital 26: means reasonably likely to "
    "be used)? The attackers here are defined by what they have; which of them exist is a question of fact.",
)
WORDS.say(
    "lawyer_contents",
    "Do the spoken words, background sounds or metadata identify people? Nobody looked for names or facts in them.",
)
WORDS.say("lawyer_other_data", "Does other data that is or will become available make recognition easier?")
WORDS.say(
    "lawyer_acceptance",
    "Which residual risk is acceptable for this purpose, these recipients and these safeguards, and who decides?",
)

# --- the worst case of each criterion: technical sentences name the attacker, those for laypeople say what it means


@WORDS.words("linking")
def _linking(
    level: Level,
    estimate: Estimate,
    attacker: str,
    by_chance: float,
    group: tuple[Reference, ...] = (),
    luckiest: float | None = None,
    suspects: int = 0,
    total: int = 0,
    tried_once: bool = False,
    needed: int | None = None,
    original: Estimate | None = None,
) -> str:
    sentence = (
        f"Of 100 recordings, {_whose(attacker, estimate)} with {utterances(estimate)} links {of_hundred(estimate)} to the right "
        f"person among {among(estimate)}{within(group)}; chance links {chance(by_chance)}"
    )
    if luckiest is not None:
        sentence += f", and the luckiest of all these attackers may reach {chance(luckiest)} by chance alone"
    sentence += "."
    if level == "unknown":
        sentence += f" {_why_unknown(suspects, total, tried_once)}: {needs(needed)} would be needed."
    if original is not None:
        sentence += f" On original speech it is {span(original.value, None)}."
    return sentence


def _whose(attacker: str, estimate: Estimate) -> str:
    """Where it was chosen by its success, the figure is that of a choice made on other people."""
    several = "several_attackers" in estimate.extra
    return f"the strongest attacker (usually the {attacker} one)" if several else a(attacker)


def _why_unknown(suspects: int, total: int, tried_once: bool) -> str:
    if suspects:
        few = "with one trial each" if tried_once else "with so few trials each"
        verb = "is" if suspects == 1 else "are"
        linked = f"But {suspects} of {total:,} {verb} linked more often than not"
        return f"{linked}, and {few} this can't be distinguished from chance"
    return f"{count(total, 'person', 'people')} are too few to distinguish chance from a high risk"


def needs(people: int | None) -> str:
    """What it takes to settle a question: so many people, or more recordings where their number does not help."""
    return "more recordings of each person" if people is None else f"about {count(people, 'person', 'people')}"


@WORDS.words("linking", "lay")
def _linking_lay(estimate: Estimate, by_chance: float, group: tuple[Reference, ...] = (), **further: object) -> str:
    return (
        f"Of 100 recordings, {of_hundred(estimate)} are linked to the right person among "
        f"{among(estimate)}{within(group)}; guessing links {chance(by_chance)}."
    )


@WORDS.words("singling_out")
def _singling_out(
    level: Level,
    estimate: Estimate,
    attacker: str,
    attempts: Estimate | None = None,
    control: float | None = None,
) -> str:
    sentence = f"{capitalize(a(attacker))} with {utterances(estimate)} "
    if attempts is not None and control is not None:
        sentence += (
            f"isolates exactly one person among {among(estimate)} in {of_hundred(attempts)} of 100 attempts; a rule "
            f"made without knowing anybody does so in {span(control, None)}. The risk beyond that is "
            f"{of_hundred(estimate)} in 100."
        )
    else:
        sentence += f"singles people out beyond chance in {of_hundred(estimate)} of 100 attempts."
    if level == "unknown":
        sentence += " This is too uncertain to distinguish chance from a high risk."
    return sentence


@WORDS.words("singling_out", "lay")
def _singling_out_lay(
    level: Level,
    estimate: Estimate,
    attacker: str,
    attempts: Estimate | None = None,
    control: float | None = None,
) -> str:
    if attempts is None or control is None:
        return _singling_out(level, estimate, attacker)
    return (
        f"In {of_hundred(attempts)} of 100 attempts, a rule made from a voice fits exactly one person; a rule made "
        f"without knowing anybody does so in {span(control, None)}."
    )


@WORDS.words("disclosure")
def _disclosure(
    level: Level,
    estimate: Estimate,
    attacker: str,
    whole: float,
    group: tuple[Reference, ...] = (),
    strongest: float | None = None,
    tag: str = "?",
    top_targets: int | None = None,
    bands: bool = False,
) -> str:
    interval = f" {estimate.format_interval()}" if estimate.interval else ""
    value = format_number(estimate.value, "bit")
    sentence = (
        f"One comparison{within(group)} gives {a(attacker)} {cite(value + interval, estimate)} bit of information about "
        f"who is speaking, "
        f"on average over all prior beliefs; {whole:.3f} bit would be certainty."
    )
    if strongest is not None and math.isfinite(strongest):
        times = 10 ** min(strongest, 99.0)
        sentence += (
            f" The strongest single comparison makes an identity {times:,.{0 if times >= 1.5 else 2}f} times more or "
            f"less likely (tag {tag})."
        )
    if top_targets is not None:
        sentence += f" {_top_targets(top_targets)}"
    elif bands:
        sentence += f" {BANDS}"
    elif level in ("low", "unknown"):
        sentence += " That can't be distinguished from scores that carry no information."
    return sentence


BANDS = "But scores of one person lie in bands apart from those of different people, far more than chance explains."


def _top_targets(count_of: int) -> str:
    comparisons = "comparison of one person scores" if count_of == 1 else "comparisons of one person score"
    return f"But {count_of:,} {comparisons} above all comparisons of different people, more than chance explains."


@WORDS.words("disclosure", "lay")
def _disclosure_lay(
    estimate: Estimate,
    whole: float,
    group: tuple[Reference, ...] = (),
    top_targets: int | None = None,
    bands: bool = False,
    **further: object,
) -> str:
    parts = share_of(estimate, whole)
    noise = "" if parts.null is None else f"; meaningless scores would reveal {span(parts.null, None)} %"
    of_people = f" of people{within(group)}" if group else ""
    more = f" {BANDS}" if bands else ""
    more = f" {_top_targets(top_targets)}" if top_targets is not None else more
    return (
        f"Comparing two recordings{of_people} reveals, on average, {of_hundred(parts, estimate)} % of what could be known about "
        f"whether the same person made both{noise}.{more}"
    )


def share_of(estimate: Estimate, whole: float) -> Estimate:
    """Bits as percent of all that a comparison could reveal."""

    def share(bits: float) -> float:
        return min(100.0, max(0.0, 100 * bits / whole)) if whole else 0.0

    interval = None if estimate.interval is None else (share(estimate.interval[0]), share(estimate.interval[1]))
    null = None if estimate.null is None else share(estimate.null)
    return estimate.with_(value=share(estimate.value), interval=interval, null=null, unit="percent")


@WORDS.words("inversion")
def _inversion(
    level: Level, estimate: Estimate, attack: str, by_chance: float, group: tuple[Reference, ...] = ()
) -> str:
    among_group = f" ({shown(group)})" if group else ""
    return (
        f"An attacker who learns to undo the anonymizer ({attack}) recovers the speaker of {of_hundred(estimate)} of 100 "
        f"anonymized recordings{among_group}: after undoing it, the most similar original recording is by the same "
        f"speaker. Chance recovers {chance(by_chance)}."
    )


@WORDS.words("inversion", "lay")
def _inversion_lay(estimate: Estimate, by_chance: float, group: tuple[Reference, ...] = (), **further: object) -> str:
    of_people = f" of people{within(group)}" if group else ""
    return (
        f"An attacker who learns to undo the anonymizer finds the right person for {of_hundred(estimate)} of 100 "
        f"recordings{of_people}; guessing finds {chance(by_chance)}."
    )


_DISTINCTNESS = {
    "low": "stay about as distinct from each other as the originals were",
    "raised": "are clearly less distinct from each other than the originals were",
    "high": "can hardly be distinguished: speakers of a conversation will be confused",
}


@WORDS.words("distinctiveness")
def _distinctiveness(level: Level, estimate: Estimate) -> str:
    if level == "unknown":
        return "How distinct the anonymized voices are from each other is not known."
    value = "minus infinity" if math.isinf(estimate.value) else f"{span(round(estimate.value, 1) + 0.0, None, 1)} dB"
    return f"The anonymized voices {_DISTINCTNESS[level]} (G_VD {value}; 0 dB would be no change)."


@WORDS.words("inference")
def _inference(
    level: Level,
    estimate: Estimate,
    attribute: Reference,
    by_chance: float,
    original: float | None = None,
    others: tuple[Estimate, ...] = (),
) -> str:
    before = "" if original is None else f", original speech {span(original, None)}"
    return (
        f"The attribute {shown(attribute)} is inferred correctly for {of_hundred(estimate)} of 100 anonymized recordings "
        f"(balanced over its values; chance gives {chance(by_chance)}{before})."
    )


@WORDS.words("inference", "lay")
def _inference_lay(
    estimate: Estimate,
    attribute: Reference,
    by_chance: float,
    original: float | None = None,
    others: tuple[Estimate, ...] = (),
    **further: object,
) -> str:
    sentence = (
        f"{capitalize(shown(attribute))} is inferred correctly for {of_hundred(estimate)} of 100 recordings; guessing "
        f"gives {chance(by_chance)}."
    )
    if original is not None:
        sentence += f" From original speech: {span(original, None)}."
    for other in others:
        guessing = "" if other.null is None else f" (guessing {span(other.null, None)})"
        name = str(other.at.get("attribute", "")).replace("_", " ")
        sentence += f" {capitalize(name)}: {cite(span(other.value, None), other)}{guessing}."
    return sentence


def a(attacker: str) -> str:
    return f"{'an' if attacker[0] in 'aeiou' else 'a'} {attacker} attacker"


def utterances(estimate: Estimate) -> str:
    length = int(estimate.at.get("length", 1))
    return "one utterance each" if length == 1 else f"{length} utterances each"


def among(estimate: Estimate) -> str:
    return f"{int(estimate.at['speakers']):,}" if "speakers" in estimate.at else "all"


def within(group: tuple[Reference, ...]) -> str:
    return "".join(f" with {shown(value)}" for value in group)
