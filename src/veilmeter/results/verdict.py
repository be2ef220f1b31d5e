"""The worst case for each criterion, in a sentence that a stranger understands; and what was not tested.

It says what was measured. Whether that is enough is for a lawyer to judge, and the words for it are theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from veilmeter.core.estimate import format_number

Plain = Mapping[str, Any]
LOW, RAISED, HIGH = "low", "raised", "high"
D_ECE_MAX = 0.7213475204444817  # 1 / ln 4, section 2 of the methods

LAWYER = (
    "Who could realistically get the speech, and what else do they know (Recital 26 of the GDPR: means reasonably "
    "likely "
    "to be used)? The attackers here are defined by what they have; which of them exist is a question of fact.",
    "What is said, background sounds and metadata can identify people too. Only voices were measured.",
    "Which level of residual risk is acceptable for this release, and who decides.",
)


def attacks(results: Plain) -> Iterator[tuple[str, Plain]]:
    """The attackers, without the yardstick on original speech."""
    for name, one in results["attackers"].items():
        if name != "original":
            yield name, one["estimates"]


def strongest(results: Plain, measure: str, *, among: Sequence[str] | None = None) -> tuple[str, Plain] | None:
    """The attacker and the point of a curve (or the value) with the highest figure; larger sets of people only are
    compared with each other, since smaller ones are easier."""
    best: tuple[str, Plain] | None = None
    for name, estimates in attacks(results):
        if among is not None and name not in among:
            continue
        for one in points(estimates.get(measure)):
            if one.get("value") is None:
                continue
            if best is None or _rank(one) > _rank(best[1]):
                best = (name, one)
    return best


def _rank(one: Plain) -> tuple[float, float]:
    return (float(one.get("speakers", 0)), float(one["value"]))


def points(found: Any) -> list[Plain]:
    """A curve's points, or a single estimate as a list of one."""
    if found is None:
        return []
    return list(found) if isinstance(found, list) else [found]


def at_point(estimates: Plain, measure: str, like: Plain) -> Plain | None:
    """The point of a curve with the same parameters as `like`."""
    for one in points(estimates.get(measure)):
        if all(one.get(key) == like.get(key) for key in ("speakers", "length")):
            return one
    return None


def level_of_rate(one: Plain, chance: float) -> str:
    """low: not told from guessing; high: a third or more of what is left above guessing."""
    value = float(one["value"])
    surplus = (value - chance) / (1 - chance) if chance < 1 else 0.0
    low = float(one["interval"][0]) if one.get("interval") else value
    if surplus >= 1 / 3:
        return HIGH
    return LOW if surplus < 0.10 and low <= chance + 0.02 else RAISED


def hundred(one: Plain) -> str:
    """`71 [64, 78]` of a probability."""
    text = f"{100 * float(one['value']):.0f}"
    if one.get("interval"):
        low, high = (100 * float(end) for end in one["interval"])
        text += f" [{low:.0f}, {high:.0f}]"
    return text


def guess(chance: float) -> str:
    """What guessing achieves, of 100; small figures must not vanish.

    >>> guess(1 / 40), guess(1 / 400), guess(1 / 8), guess(0.0)
    ('2.5', '0.25', '12.5', '0')
    """
    return f"{100 * chance:.{2 if chance < 0.1 else 3}g}"


def a(attacker: str) -> str:
    name = attacker.replace("-", " ") if attacker in ("wasserstein-procrustes",) else attacker
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name} attacker"


def _utterances(length: int) -> str:
    return "one utterance each" if length == 1 else f"{length} utterances each"


def linking(results: Plain) -> dict[str, Any] | None:
    found = strongest(results, "linkability")
    if found is None:
        return None
    name, one = found
    chance = 1 / int(one["speakers"])
    sentence = (
        f"Of 100 recordings, {a(name)} with {_utterances(int(one['length']))} links {hundred(one)} to the right "
        "person among "
        f"{int(one['speakers']):,}; guessing links {guess(chance)}."
    )
    original = at_point(results["attackers"].get("original", {}).get("estimates", {}), "linkability", one)
    if original is not None:
        sentence += f" On original speech it is {100 * float(original['value']):.0f}."
    return _case(name, "linkability", one, sentence, level_of_rate(one, chance), original)


def singling_out(results: Plain) -> dict[str, Any] | None:
    found = strongest(results, "residual_risk")
    if found is None:
        return None
    name, one = found
    estimates = results["attackers"][name]["estimates"]
    raw, control = at_point(estimates, "singling_out", one), at_point(estimates, "control", one)
    sentence = f"{a(name).capitalize()} with {_utterances(int(one['length']))} "
    if raw is not None and control is not None:
        sentence += (
            f"picks out exactly one person among {int(one['speakers']):,} in {hundred(raw)} of 100 attempts; a rule "
            "that knows "
            f"nobody does so in {100 * float(control['value']):.0f}. The risk beyond that is {hundred(one)} in 100."
        )
    else:
        sentence += f"singles people out beyond chance in {hundred(one)} of 100 attempts."
    return _case(name, "residual_risk", one, sentence, level_of_rate(one, 0.0))


def disclosure(results: Plain) -> dict[str, Any] | None:
    found = strongest(results, "d_ece")
    if found is None:
        return None
    name, one = found
    value = float(one["value"])
    worst = results["attackers"][name]["estimates"].get("l_w", {})
    interval = ""
    if one.get("interval"):
        interval = " [" + ", ".join(format_number(float(end), "bit") for end in one["interval"]) + "]"
    sentence = (
        f"One comparison tells {a(name)} {format_number(value, 'bit')}{interval} bit about who is speaking, on "
        "average over what "
        f"they believed before; {D_ECE_MAX:.3f} would be everything."
    )
    if worst.get("value") is not None:
        sentence += (
            f" The most telling single comparison makes an identity {10 ** float(worst['value']):,.0f} times more "
            "or less "
            f"likely (tag {worst.get('tag', '?')})."
        )
    noise = one.get("null_range")
    inside = noise is not None and value <= float(noise[1])
    if inside:
        sentence += " That can't be told from scores that carry no information."
    share = value / D_ECE_MAX
    level = LOW if inside or share < 0.01 else HIGH if share >= 0.25 else RAISED
    return _case(name, "d_ece", one, sentence, level)


def inversion(results: Plain) -> dict[str, Any] | None:
    estimates = results.get("inversion", {}).get("estimates", {})
    best: Plain | None = None
    for one in points(estimates.get("top1")):
        if best is None or float(one["value"]) > float(best["value"]):
            best = one
    if best is None:
        return None
    attack = str(best.get("attack", "procrustes"))
    chance = float(best["null"]) if best.get("null") is not None else 0.0
    interval = ""
    if best.get("interval"):
        interval = " [" + ", ".join(f"{float(end):.0f}" for end in best["interval"]) + "]"
    among = f" (gender {best['gender']})" if best.get("gender") not in (None, "", "all") else ""
    sentence = (
        f"An attacker who learns to undo the anonymizer ({attack}) turns {float(best['value']):.0f}{interval} of 100 "
        f"anonymized recordings{among} back so far that the most similar original recording is of the same speaker; by "
        f"chance it would be {guess(chance / 100)}."
    )
    scaled = {**best, "value": float(best["value"]) / 100}
    if best.get("interval"):
        scaled["interval"] = [float(end) / 100 for end in best["interval"]]
    return _case(attack, "top1", best, sentence, level_of_rate(scaled, chance / 100))


def distinctiveness(results: Plain) -> dict[str, Any] | None:
    one = results.get("similarity", {}).get("estimates", {}).get("g_vd")
    if one is None:
        return None
    value = one["value"]
    if value is None:
        return _case("", "g_vd", one, "How distinct the anonymized voices are from each other can't be said.", RAISED)
    number = float("-inf") if value == "-inf" else float(value)
    if number > -3:
        said, level = "stay about as distinct from each other as the originals were", LOW
    elif number > -10:
        said, level = "are clearly less distinct from each other than the originals were", RAISED
    else:
        said, level = "can hardly be told apart: speakers of a conversation will be confused", HIGH
    shown = "minus infinity" if number == float("-inf") else f"{round(number, 1) + 0.0:.1f} dB"
    return _case("", "g_vd", one, f"The anonymized voices {said} (G_VD {shown}; 0 dB would be no change).", level)


def inference(results: Plain) -> dict[str, Any] | None:
    """The attribute that is guessed best; one that can't be told from noise never hides one that can."""
    found = {name: entry for name, entry in results.get("inference", {}).items() if "estimate" in entry}
    if not found:
        return None
    levels = {attribute: _inference_level(entry["estimate"]) for attribute, entry in found.items()}
    order = (LOW, RAISED, HIGH)
    attribute = max(found, key=lambda name: (order.index(levels[name]), _surplus(found[name]["estimate"])))
    entry = found[attribute]
    one = entry["estimate"]
    interval = ""
    if one.get("interval"):
        interval = " [" + ", ".join(f"{float(end):.0f}" for end in one["interval"]) + "]"
    sentence = (
        f"The attribute {attribute} is guessed right for {float(one['value']):.0f}{interval} of 100 anonymized "
        "recordings "
        f"(balanced over its values; guessing gives {guess(float(one['null']) / 100)}"
    )
    original = entry.get("original")
    sentence += f", original speech {float(original['value']):.0f})." if original else ")."
    return _case("classifier trained on other speakers", "inference", one, sentence, levels[attribute])


def _inference_level(one: Plain) -> str:
    inside = one.get("null_range") and float(one["value"]) <= float(one["null_range"][1])
    return LOW if inside or _surplus(one) < 0.10 else HIGH if _surplus(one) >= 0.5 else RAISED


def _surplus(one: Plain) -> float:
    chance = float(one["null"])
    return (float(one["value"]) - chance) / (100 - chance)


def _case(
    attacker: str, name: str, one: Plain, sentence: str, level: str, original: Plain | None = None
) -> dict[str, Any]:
    case = {"attacker": attacker, "estimate": {"name": name, **one}, "sentence": sentence, "level": level}
    return case | ({"original": dict(original)} if original is not None else {})


CRITERIA = {
    "linking": linking,
    "singling_out": singling_out,
    "disclosure": disclosure,
    "inversion": inversion,
    "distinctiveness": distinctiveness,
    "inference": inference,
}
RISKS = ("linking", "singling_out", "disclosure", "inversion")


def worst_case(results: Plain) -> dict[str, Any]:
    """For each criterion that was measured the strongest attacker, and what that means."""
    return {name: found for name, of in CRITERIA.items() if (found := of(results)) is not None}


def verdict(results: Plain, not_tested: Sequence[str]) -> dict[str, Any]:
    """The headline, a sentence for each criterion, and what remains open."""
    cases = results["worst_case"]
    failed = [check for check in results["trust"] if check["passed"] is False]
    levels = [cases[name]["level"] for name in RISKS if name in cases]
    if not levels:
        headline = "No attack was measured."
    elif HIGH in levels:
        name = next(name for name in RISKS if name in cases and cases[name]["level"] == HIGH)
        headline = "People can be recognized. " + cases[name]["sentence"]
    elif RAISED in levels:
        name = next(name for name in RISKS if name in cases and cases[name]["level"] == RAISED)
        headline = "Protection is partial. " + cases[name]["sentence"]
    else:
        headline = "None of the attackers that were run did clearly better than guessing."
        if "linking" in cases:
            headline += " " + cases["linking"]["sentence"]
    sentences = [case["sentence"] for case in cases.values()]
    kept = cases.get("distinctiveness")
    if levels and set(levels) == {LOW} and kept is not None and kept["level"] == HIGH:
        sentences.append(
            "That nothing was recognized may mean that little of a voice is left at all: listen to the output before "
            "trusting it, as no measure here says whether the speech is still usable."
        )
    if "lazy-informed" in results["attackers"] and _pseudonyms(results):
        sentences.append(
            "Each speaker seems to be given one new voice for good: whoever knows one anonymized recording of a person "
            "finds all others. That replaces a name by another name; it does not cut the link between recordings."
        )
    return {
        "trustworthy": not failed,
        "headline": headline,
        "distrust": [check["sentence"] for check in failed],
        "sentences": sentences,
        "not_tested": list(not_tested),
        "lawyer": list(LAWYER),
    }


def _pseudonyms(results: Plain) -> bool:
    """Whether anonymized speech links to anonymized speech nearly as well as original to original, and not to the
    original."""
    eers = {name: one["estimates"].get("eer", {}).get("value") for name, one in results["attackers"].items()}
    if any(eers.get(name) is None for name in ("original", "ignorant", "lazy-informed")):
        return False
    return bool(eers["ignorant"] > 25 and eers["lazy-informed"] < max(5.0, 2 * eers["original"]))
