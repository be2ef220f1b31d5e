"""The words of the report that do not depend on the run: what each criterion asks, the sections, the glossary."""

from __future__ import annotations

from dataclasses import dataclass

from veilmeter.results import trust


@dataclass(frozen=True, slots=True)
class SectionWords:
    """A section of the technical part: its title, its short name in the navigation, what it asks."""

    title: str
    short: str
    introduction: str


# In plain words, for the first page. "attribute" is filled in.
CRITERIA = {
    "linking": "Linking recordings to a person",
    "singling_out": "Singling somebody out",
    "inference": "Inferring {attribute}",
    "disclosure": "Information disclosed",
    "inversion": "Undoing the anonymization",
    "distinctiveness": "Voices kept apart",
}
OPINION = ("linking", "singling_out", "inference")  # the three criteria of Opinion 05/2014

LEVELS = {"low": "near guessing", "raised": "raised", "high": "high", "unknown": "not known"}
DISTINCTNESS = {"low": "kept apart", "raised": "less distinct", "high": "lost", "unknown": "not known"}

# The checks in plain words, for the first page; those without are for the technical part.
CHECKS = {
    trust.STRONG: "The attacker recognizes people in original speech.",
    trust.ADAPTED: "Attackers who know more find more.",
    trust.CHANGED: "All recordings were changed.",
    trust.COPIES: "No recording is on both sides of the comparison.",
    trust.ENOUGH: "Enough people were assessed for this claim.",
    trust.OTHERS: "Attackers were not trained on the people they look for.",
    trust.SESSIONS: "Voices were recognized, not rooms or microphones.",
    trust.OWN_RUNS: "The attackers could run your anonymizer themselves.",
}

# Use in plain words with the digits after the point, for the first page; the technical part has every measure.
USE = {
    "wer": ("Of 100 words, a speech recognizer gets {figure} wrong", 0),
    "mos": ("Predicted sound quality, from 1 to 5: {figure}", 1),
    "pitch_correlation": ("Melody kept, where 1 is all of it: {figure}", 2),
}

# What no run tests. "habits" is filled in with those of speech that nobody listened for.
NEVER_TESTED = (
    "What is said (names, places){habits} and background sounds.",
    "Other attackers, and the recognizers of the future.",
)

ATTACKS = {
    "linking": "the attacker compares each anonymized recording with recordings of known people and names the most similar person.",
    "singling_out": "the attacker looks for a rule about voices that fits exactly one person in the data, even without knowing who it is.",
    "disclosure": "the attacker compares two recordings and takes the similarity as evidence for or against their being of one person.",
    "inversion": "the attacker learns to undo the anonymizer from recordings known in both forms, or from two unpaired sets.",
    "inference": "the attacker guesses attributes of the speaker from the anonymized voice.",
}  # fmt: skip

SECTIONS = {
    "channels": SectionWords(
        "Which channel gives people away",
        "Channels",
        "The same attacker hears one channel of speech at a time: the voice, the words, the rhythm; then all of them together. Beside it "
        "stands what this attacker finds in original speech, which is what there was to hide, and what it finds where known recordings "
        "were dealt to people at random, which is chance. Of N people, log2 N bits name one of them, 0 bits are guessing; below 0 people "
        "hide behind others.",
    ),
    "linking": SectionWords(
        "Linking recordings to a person",
        "Linking",
        "Opinion 05/2014 asks whether records of one person can be linked. Here the attacker holds recordings of N people, "
        "one of whom made the anonymized recording, and names the most similar one. The more people there are, the harder it "
        "is; the more speech there is of each, the easier.",
    ),
    "singling_out": SectionWords(
        "Singling somebody out",
        "Singling out",
        "Opinion 05/2014 asks whether one person can be isolated in the data, even without a name. Here the attacker "
        "writes a rule from one person's voice that should fit one person in N, and succeeds if it fits exactly one. A rule "
        "that knows nothing about anybody succeeds too, more often than one would think: that is the control, and the risk "
        "that counts is what lies above it.",
    ),
    "disclosure": SectionWords(
        "Information disclosed",
        "Disclosure",
        "ZEBRA measures evidence. An attacker believes something before hearing two recordings, and something else "
        "after. The area between the two curves is the information that an average comparison gives away, over all prior "
        "beliefs; the tag is the strongest evidence that any single comparison gave.",
    ),
    "similarity": SectionWords(
        "Likeness before and after",
        "Likeness",
        "Every speaker is compared with every speaker, before and after. A bright diagonal between original and "
        "anonymized voices means that people remain linked to themselves. A bright diagonal among anonymized voices means "
        "that they stay distinct from each other, which some uses need and which also helps an attacker who hears several "
        "recordings.",
    ),
    "inversion": SectionWords(
        "Undoing the anonymization",
        "Inversion",
        "Some anonymizers move every voice in much the same way, and what is moved can be moved back. The attacker learns "
        "a rotation from recordings that exist in both forms (or, unsupervised, from two unpaired sets), undoes it, and looks "
        "for the nearest original recording.",
    ),
    "inference": SectionWords(
        "Guessing attributes",
        "Inference",
        "Opinion 05/2014 asks whether attributes of a person can be inferred. A classifier learns the attribute from "
        "anonymized recordings of other people and guesses it here. All values of an attribute count alike, however rare they are.",
    ),
    "sessions": SectionWords(
        "Within and across sessions",
        "Sessions",
        "A new voice may be kept within one conversation, so that speakers can be told apart, and should change with the next. "
        "High figures within a session are then wanted; high figures across sessions, or to the original, are not.",
    ),
    "utility": SectionWords(
        "Is it still usable?",
        "Use",
        "Protection that destroys the speech is easy. These figures say what is left of words, quality and melody.",
    ),
    "verification": SectionWords(
        "Verification (EER)",
        "EER",
        "The equal error rate is the figure most anonymizers are published with. It averages over everybody, looks at "
        "one threshold, does not know how many people the attacker must choose from, and hardly moves when the risk for "
        "individuals does. It stands last for that reason.",
    ),
    "further": SectionWords(
        "Further measures",
        "Further",
        "Measures that other packages have added, or that have no section of their own.",
    ),
}  # fmt: skip

BELOW_ZERO = "An interval that reaches below 0 says that the rule may have done no better, or even worse, than one that knows nobody."

GLOSSARY = (
    ("Anonymizer", "A program that changes a recording so that the voice no longer sounds like the speaker. What is said stays."),
    ("Attacker", "Somebody who wants to know who speaks. Attackers differ in what they have: recordings of the people in question, the "
     "anonymizer itself, and the means to train a recognizer on its output."),
    ("Candidates", "The people whose recordings an attacker has and compares with. The more there are, the harder it is to name the right one."),
    ("Enrollment", "The recordings of known people that an attacker compares with."),
    ("Utterance", "One recording of somebody speaking, often a sentence. With more utterances of a person an attacker is surer."),
    ("Embedding", "A list of a few hundred numbers that describes a voice. Recordings of one speaker lie close together. Embeddings are "
     "biometric data."),
    ("Linkability", "Of all anonymized recordings, the share that the attacker assigns to the right one of N people. Guessing gives 1/N."),
    ("Singling Out", "How often a rule made from one voice fits exactly one person in the data, whoever that is."),
    ("Control", "The same attack by somebody who knows nothing about anybody in the data. What the attack achieves beyond that is due to the "
     "voices."),
    ("EER (equal error rate)", "The error rate when an attacker's threshold is set so that they reject as many true pairs as they accept "
     "false ones. 0 % is perfect recognition, 50 % is guessing."),
    ("Bit", "A unit of information. One bit settles one yes-or-no question. A disclosure of 0.72 bit here is everything there is to know "
     "about whether two recordings are by one person; 0.3 bit is a good part of it; 0.01 bit next to nothing."),
    ("Tag (0, A to F)", "How many times more or less likely the most telling comparison makes it that two recordings are of one person. 0: no "
     "more than before; A: up to 10 times; B: up to 100; C: up to 10,000; D: up to 100,000; E: up to a million; F: more than that."),
    ("Likelihood ratio, LLR", "How many times more probable a comparison's outcome is if both recordings are of one person than if they are of "
     "two; the LLR is its logarithm. Above 0 speaks for one person, below 0 against it."),
    ("DeID", "How much of the likeness between a speaker's original and anonymized voice is gone. 100 % is all of it."),
    ("G_VD", "How far the anonymized voices can still be told apart from each other, in decibels against the originals. 0 dB: as well as "
     "before; minus 10 dB: a tenth."),
    ("95 % interval", "Had other speakers been recorded, the figure would have come out differently. Intervals made this way contain the true "
     "value in about 95 of 100 assessments."),
    ("Chance, guessing", "What the measure gives when the attacker knows nothing. A figure near chance is not a proof of safety: a stronger "
     "attacker may exist."),
    ("The zoo", "Names from the biometric menagerie for speakers who behave unlike most, the sheep. Goats are hard to recognize, lambs easy to be "
     "mistaken for, wolves easily mistaken for others. In the corners: doves resemble themselves and nobody else, which makes them the "
     "easiest to recognize and the least protected; chameleons resemble themselves and everybody; phantoms nobody, not even themselves; "
     "worms everybody but themselves."),
    ("Residual risk", "In the legal sense: the risk that remains after everything that was done to lower it."),
)  # fmt: skip
