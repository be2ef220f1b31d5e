"""Why an attacker was not run or something was not measured. Who or what that is comes before it: see `sentence`."""

from veilmeter.core.findings import Reference
from veilmeter.wording.catalog import Catalog, shown

WORDS = Catalog()

WORDS.say("not_asked_for", "not asked for")
WORDS.say("family_not_asked_for", "{family} was not asked for (--measures)", lay="{family} was not asked for")
WORDS.say("no_scores_given", "no scores were given")
WORDS.say(
    "speech_needed",
    "linking, singling out, similarity, inversion, inference and usability: they need speech or vectors",
)
WORDS.say("disclosure_removed_unknown", "the share of disclosure removed: it needs the attackers {attackers}")

# --- what an attacker lacks

WORDS.say("runs_without_enrollment", "the attacker's runs have none of the enrollment recordings")
WORDS.say("runs_of_few_people", "the attacker's runs hold recordings of fewer than two enrolled people")
WORDS.say(
    "backend_untrained",
    "the back end {backend} needs training speech (--train-original)",
    lay="the back end {backend} needs training speech",
)
WORDS.say("dimensions_differ", "clear and anonymized vectors differ in dimension")
WORDS.say("too_few_for_rotation", "{recordings:recording} are too few to learn a rotation from")
WORDS.say(
    "too_few_to_train",
    "no training speech was given (--train-anonymized), and {speakers:speaker} are too few to train on some and test on "
    "others",
    lay="no training speech was given, and {speakers:speaker} are too few to train on some and test on others",
)
WORDS.say(
    "no_similar_speech",
    "no speech anonymized by a similar system was given (--train-similar)",
    lay="no speech anonymized by a similar system was given",
)
WORDS.say("one_candidate", "there is one candidate only")
WORDS.say(
    "copies_of_other_dimension", "its own copies have {copies} numbers per vector, the released vectors {released}"
)
WORDS.say(
    "vectors_of_two_extractors",
    "without a run of the anonymizer, original and released vectors must be of one extractor",
)
WORDS.say("one_extractor", "there is one extractor only (--extractor takes several)", lay="there is one extractor only")
WORDS.say("no_release_pseudonyms", "nothing says which released recordings share a pseudonym")

# --- what could not be measured


@WORDS.words("not_possible")
def _not_possible(reason: Reference) -> str:
    return shown(reason) if reason.id else "not possible with this speech"


@WORDS.words("attribute_not_inferred")
def _attribute_not_inferred(attribute: Reference, reason: Reference) -> str:
    return shown(reason) if reason.id else f"{shown(attribute)} could not be inferred"


WORDS.say("group_not_measured", "Nothing measured within {group}: {reason}.")
WORDS.say("measure_not_possible", "{measure}: {reason}")
