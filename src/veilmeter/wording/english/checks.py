"""Self-checks of an assessment: each sentence speaks of the claim that the check tests."""

from __future__ import annotations

from typing import Literal

from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import Direction, Level, Reference
from veilmeter.wording.catalog import Catalog, shown
from veilmeter.wording.english.verdict import needs, within
from veilmeter.wording.numbers import by_language_code, capitalize, chance, count, of_hundred, percent, roughly

WORDS = Catalog()

_WEAK = "so its failure on anonymized speech proves little. Use a stronger extractor."


@WORDS.words("original_eer")
def _original_eer(
    passed: bool,
    eer: float,
    limit: float,
    group: tuple[Reference, ...] = (),
    languages: tuple[Reference, ...] = (),
    language_eers: tuple[float, ...] = (),
) -> str:
    spoken = ", ".join(f"{code} {value:.1f} %" for code, value in by_language_code(languages, language_eers))
    by_language = f" (by language: {spoken})" if spoken else ""
    if passed:
        return f"On original speech the attacker's EER is {eer:.1f} %{by_language}: it recognizes people (limit {limit:g} %)."
    whom = f"people{within(group)}" if group else "people"
    among = f" among people{within(group)}" if group else ""
    return (
        f"Even on original speech the attacker's EER{among} is {eer:.1f} %{by_language} (limit {limit:g} %): it does not recognize "
        f"{whom} well enough, {_WEAK}"
    )


@WORDS.words("people_unheard")
def _people_unheard(
    unheard: int,
    total: int,
    limit: float,
    examples: tuple[Reference, ...] = (),
    recordings: tuple[Reference, ...] = (),
) -> str:
    if not unheard and not recordings:
        few = f"at most {limit:g} of 100 others fit their recordings as well as they do"
        return f"On original speech each of {count(total, 'person', 'people')} is recognized: {few}."
    sentences = []
    if unheard:
        named = f"{shown(examples)}{', ...' if unheard > len(examples) else ''}"
        verb = "is" if unheard == 1 else "are"
        whom = "this person" if unheard == 1 else "them"
        sentences.append(
            f"{unheard:,} of {count(total, 'person', 'people')} ({named}) {verb} not recognized even on original speech: "
            f"nothing can be said about {whom}."
        )
    if recordings:
        sentences.append(
            f"Recordings with {shown(recordings)} are not recognized even on original speech: nothing can be said about them."
        )
    return " ".join([*sentences, "Use an extractor that recognizes them."])


@WORDS.words("original_linked")
def _original_linked(passed: bool, linked: float, speakers: int) -> str:
    figure = f"the attacker links {linked:.0f} of 100 among {speakers:,}"
    if passed:
        return (
            f"On original speech {figure}: it recognizes people (half of the way from chance to certainty is required)."
        )
    return f"Even on original speech {figure} (half of the way from chance to certainty is required): it hardly recognizes people at all, {_WEAK}"


WORDS.say("original_not_measured", "How well attackers recognize people on original speech was not measured.")


@WORDS.words("adaptation_not_run")
def _adaptation_not_run(missing: Literal["adapted", "unadapted"]) -> str:
    if missing == "adapted":
        return "No adapted attacker was run."
    return "No attacker to compare with (ignorant, lazy-informed) was run."


@WORDS.words("adaptation")
def _adaptation(passed: bool, adapted: str, unadapted: str, adapted_eer: float, unadapted_eer: float) -> str:
    figures = f"EER: {adapted} {adapted_eer:.1f} %, {unadapted} {unadapted_eer:.1f} %"
    if passed:
        significantly = "significantly " if adapted_eer > unadapted_eer else ""
        return f"No adapted attacker is {significantly}worse than the {unadapted} one ({figures})."
    return (
        f"The {adapted} attacker knows more but does worse than the {unadapted} one ({figures}): "
        "its adaptation failed, and one that succeeds may find more than this one."
    )


WORDS.say("recordings_not_compared", "Original and anonymized recordings could not be compared with each other.")


@WORDS.words("recordings_unchanged")
def _recordings_unchanged(unchanged: int, compared: int, let_through: int) -> str:
    if not unchanged and not let_through:
        return f"None of {compared:,} anonymized recordings equals its original."
    sentences = []
    if unchanged:
        verb = "is the original one: it was" if unchanged == 1 else "are the original ones: they were"
        sentences.append(f"{unchanged:,} of {compared:,} anonymized recordings {verb} not anonymized.")
    if let_through:
        verb = "is" if let_through == 1 else "are"
        sentences.append(
            f"{let_through:,} of {compared:,} anonymized recordings {verb} far more like the original than the "
            f"others are, and may be hardly changed."
        )
    return " ".join(sentences)


WORDS.say("ids_not_compared", "Whether recordings have the ids of others was not tested, or changes nothing.")


@WORDS.words("own_ids")
def _own_ids(sign: Literal["none", "exchanged", "unrelated"], durations: float | None = None) -> str:
    if sign == "exchanged":
        return (
            "Anonymized recordings resemble recordings of other people, nearly each a different one, more than chance "
            "explains: ids are in the wrong order on one side or in a run, or the anonymizer gives people each other's "
            "voices. Check some ids against their recordings."
        )
    if sign == "unrelated":
        return (
            "The durations of anonymized recordings are unrelated to those of their originals: the ids of one side are "
            "probably in the wrong order. Listen to some pairs."
        )
    agree = "" if durations is None else f" Durations agree with those of the originals (correlation {durations:.2f})."
    return f"No sign was found that recordings have the ids of other people's recordings.{agree}"


WORDS.say("copies_not_sought", "Copies of recordings in enrollment and trials were not looked for.")


@WORDS.words("copies")
def _copies(passed: bool, copies: int, trials: int, released: int = 0) -> str:
    found = []
    if copies or not released:
        found.append(f"{copies:,} of {trials:,} trial recordings also occur in the enrollment set under another id")
    if released:
        more = f"{released:,} more" if copies else f"{released:,} of {trials:,} trial recordings"
        found.append(f"{more} occur twice on the anonymized side alone, in enrollment and trials")
    sentence = "; ".join(found)
    return sentence + ("." if passed else ": the recording is recognized, not the voice. Remove the copies.")


WORDS.say("linking_without_interval", "No rate of linking with an interval was measured.")


@WORDS.words("enough_speakers")
def _enough_speakers(**found: object) -> str:
    return _enough(luck="chance", **found)  # type: ignore[arg-type]


@WORDS.words("enough_speakers", "lay")
def _enough_speakers_lay(**found: object) -> str:
    return _enough(luck="guessing", **found)  # type: ignore[arg-type]


def _enough(
    passed: bool,
    level: Level,
    speakers: int,
    estimate: Estimate,
    by_chance: float,
    luck: str,
    needed: int | None = None,
    group: tuple[Reference, ...] = (),
) -> str:
    """An alarm is not doubted because people are few: that they are recognized is known, only how often is not."""
    people = count(speakers, "speaker") + within(group)
    rate = f"{of_hundred(estimate)} of 100 recordings are linked ({luck} {chance(by_chance)})"
    if passed:
        claims = {
            "high": "to call the risk high",
            "raised": "to say how high the raised risk is",
            "low": f"to claim that linking is no better than {luck}",
        }
        return f"{people} are enough {claims.get(level, claims['low'])}: {rate}."
    more = f"{capitalize(needs(needed))} would be needed."
    if level in ("high", "raised"):
        return f"{people} are enough to show that people are recognized, but too few to say how often: {rate}. {more}"
    return f"{people} are too few to claim that linking is no better than {luck}: {rate}. {more}"


WORDS.say("no_training_speech", "No training speech was given.")


@WORDS.words("training_overlap")
def _training_overlap(overlap: int, speakers: int, role: str) -> str:
    if not overlap:
        return "No assessed speaker is in the training speech that was given."
    verb = "is" if overlap == 1 else "are"
    return (
        f"{overlap:,} of the {count(speakers, 'assessed speaker')} {verb} in the training speech too "
        f"({role.replace('_', ' ')}): the attacker knows them already. Leave them out of the training."
    )


WORDS.say("sessions_unknown", "The sessions of the recordings are not known.")


@WORDS.words("same_session")
def _same_session(passed: bool, share: float) -> str:
    sentence = f"{percent(share)} of the trial recordings share a session with their speaker's enrollment"
    return sentence + ("." if passed else ": a room or a microphone may be recognized instead of a voice.")


WORDS.say("no_scores", "No scores were measured.")


@WORDS.words("ties")
def _ties(passed: bool, moved: float, attacker: str) -> str:
    if passed and not moved:
        return "No target score equals an impostor score."
    if passed:
        return f"Equal scores hardly matter: their order moves no figure by more than {_points(moved)} ({attacker})."
    return (
        f"Many scores are equal, and their order moves the {attacker} attacker's figures by {_points(moved)}: the scores "
        "are rounded, or many recordings share one vector."
    )


def _points(moved: float) -> str:
    return "0.1 percentage points" if moved < 0.1 else f"{moved:.1f} percentage points"


@WORDS.words("inverted_scores")
def _score_direction(passed: bool, attacker: str, flipped: float, reported: float) -> str:
    if passed and flipped > reported:
        return f"With their sign reversed, scores disclose {flipped:.3f} bit at most, which chance explains."
    if passed:
        return (
            f"No attacker's scores disclose more with their sign reversed ({flipped:.3f} bit at most) than the worst case "
            f"({reported:.3f} bit)."
        )
    return (
        f"The {attacker} attacker's scores disclose more with their sign reversed ({flipped:.3f} bit) than the worst "
        f"case as reported ({reported:.3f} bit): a person scores lower with themselves than with others. An attacker "
        "would use that."
    )


@WORDS.words("own_runs")
def _own_runs(runs: int, shares_draws: bool, unlike: bool, not_covered: int) -> str:
    if not runs:
        sentence = "The attackers did not run the anonymizer."
    else:
        sentence = f"Attackers ran the anonymizer {'once' if runs == 1 else count(runs, 'time')} themselves."
    if unlike:
        sentence = (
            "The run given as the attackers' own does not resemble the release: two runs of one anonymizer hardly ever "
            "differ so much. What attackers learned from it may not hold for the release. Give a run of exactly the "
            "system and key that made the release, on the same recordings and with the right ids."
        )
    if not_covered:
        people = count(not_covered, "enrolled person", "enrolled people")
        sentence += f" These runs do not cover {people}, about whom they show nothing."
    if shares_draws:
        sentence += " They enrolled people from the released run: if it draws voices at random, they share its draws."
    return sentence


WORDS.say("release_not_linked", "Too few people have several released recordings to link them to each other.")


@WORDS.words("release_linked")
def _release_linked(passed: bool, recognized: bool, own_voices: bool, share: float) -> str:
    if recognized:
        return "Released recordings of one person are linked to each other, which the level of risk already takes into account."
    if own_voices:
        return (
            "No attacker links released recordings to original ones, but released recordings of one person are linked to "
            "each other: anyone who knows who speaks in one of them finds others. In another run of the anonymizer people "
            "sound different again."
        )
    if passed:
        return "By their similarity, released recordings of one person are linked to each other no more often than by chance."
    return (
        "Released recordings of one person are linked to each other, though no attacker recognizes anybody: anyone who "
        "knows who speaks in one of them finds others, and an attacker with a run of the very system and key may find "
        "people."
    )


WORDS.say("draws_not_compared", "Whether the anonymizer's draws repeat was not looked at, or changes nothing.")


@WORDS.words("draws")
def _draws(
    effect: Literal["none", "harmless", "tried", "misleading"],
    noticed: int,
    size: int | None = None,
    tried: int = 0,
    set_size: int = 0,
) -> str:
    if effect == "none":
        return (
            "No sign was found that the anonymizer's draws repeat. With little noise, a set of up to about "
            f"{roughly(noticed)} transformations would probably be noticed. If it draws from a larger one, an attacker "
            "who tries every member may recognize people."
        )
    if effect == "tried":
        return f"The anonymizer draws from a finite set. Attackers tried each of the {set_size:,} draws on everybody."
    if set_size:
        sentence = f"The anonymizer draws from a finite set of {set_size:,} transformations."
    elif size is not None:
        sentence = f"The anonymizer's draws seem to repeat: about one pair of copies in {size:,} was transformed alike."
    else:
        sentence = (
            "Recordings that resemble each other before anonymization do so after it more often than chance explains: "
            "the anonymizer's draws may repeat."
        )
    if effect == "harmless":
        return sentence
    if set_size and tried == set_size:
        return sentence + " Attackers tried each of them, but copies are more alike than these draws explain."
    if set_size:
        sentence += f" Attackers tried {tried:,} of them on everybody; one who tries all may recognize people."
        return sentence
    return sentence + " The attackers did not try every transformation; one who does may recognize people."


WORDS.say("lengths_not_compared", "All vectors have the same length, or too few people can be compared.")


@WORDS.words("vector_lengths")
def _vector_lengths(passed: bool) -> str:
    if passed:
        return "Vector lengths alone identify nobody whom the attackers do not find anyway."
    return "Vector lengths distinguish people, and no attacker that was run uses them."


WORDS.say(
    "no_target_voices", "People share no target voices, or none are drawn: errors can't be attributed to target voices."
)


@WORDS.words("target_voices")
def _target_voices(
    effect: Literal["misleading", "harmless", "uncertain", "small"],
    share: float,
    voices: int,
    known: bool,
    reported: float,
    informed: float,
) -> str:
    due = f"{percent(share)} of the strongest attacker's error"
    figures = f"EER {reported:.1f} %, {informed:.1f} % without"
    where = (
        f"where the {count(voices, 'target voice')} lie" if known else f"which of {voices} clusters recordings lie in"
    )
    if effect == "misleading":
        return (
            f"{due} comes from {where}, not from what is hidden ({figures}): privacy is overestimated. Give attackers "
            "runs of the anonymizer with a new draw for every utterance."
        )
    if effect == "harmless":
        return f"{due} comes from {where} ({figures}); people are recognized all the same."
    if effect == "uncertain":
        return f"{due} seems to come from {where} ({figures}), but so small a difference may be chance."
    return f"The strongest attacker's error hardly comes from {where} ({figures})."


WORDS.say("speech_not_measured", "Whether the anonymized recordings are still speech was not measured.")
WORDS.say("speech_not_yet_measured", "Whether the anonymized recordings are still speech has not been measured yet.")
WORDS.say(
    "originals_without_words",
    "The recognizer found no words in {wordless} of {recordings} original recordings, so it can't tell whether the "
    "anonymized ones are speech.",
)


@WORDS.words("words_lost")
def _words_lost(lost: int, recordings: int, silent: int) -> str:
    quiet = f" ({silent:,} {'is' if silent == 1 else 'are'} silent)" if silent else ""
    return (
        f"In {lost:,} of {recordings:,} anonymized recordings{quiet}, a recognizer does not understand a single word: "
        "silence and noise protect anyone."
    )


WORDS.say(
    "low_quality",
    "The predicted quality of the anonymized recordings is {quality:.1f} on a scale from 1 to 5: "
    "they hardly sound like speech.",
)
WORDS.say("words_understood", "A recognizer understands words in {understood} of {recordings} anonymized recordings.")

_REAL_RISK = {
    "overestimated": "The real risk may be higher than these figures.",
    "underestimated": "The real risk may be lower than these figures.",
    "either": "The real risk may be lower or higher than these figures.",
}


@WORDS.words("privacy_misjudged")
def _privacy_misjudged(misleads: Direction) -> str:
    return _REAL_RISK[misleads]


WORDS.say("not_protected", "People are not protected at all in recordings that were not changed.")
WORDS.say("distrusted", "The assessment does not call itself trustworthy.")
