"""The sections of the technical part, what each of them asks, and the glossary."""

from __future__ import annotations

from dataclasses import dataclass

# Names of the sources of measures.
REFERENCES = {
    "Bäckström et al. 2025": "T. Bäckström, M. H. Vali, M. Nguyen, S. Rech. Privacy Disclosure of Similarity Rank in Speech and "
    "Language Processing. arXiv:2508.05250, 2025.",
    "Champion et al. 2021": "P. Champion, T. Thebaud, G. Le Lan, A. Larcher, D. Jouvet. On the invertibility of a voice privacy "
    "system using embedding alignment. arXiv:2110.05431, 2021.",
    "Giomi et al. 2023": "M. Giomi, F. Boenisch, C. Wehmeyer, B. Tasnádi. A Unified Framework for Quantifying Privacy Risk in "
    "Synthetic Data. Proceedings on Privacy Enhancing Technologies, 2023.",
    "Gomez-Barrero et al. 2017": "M. Gomez-Barrero, J. Galbally, C. Rathgeb, C. Busch. General Framework to Evaluate Unlinkability "
    "in Biometric Template Protection Systems. IEEE Transactions on Information Forensics and Security, 2017.",
    "ISO/IEC 19795-1": "ISO/IEC 19795-1. Biometric performance testing and reporting, part 1: principles and framework.",
    "NIST SRE 2016": "National Institute of Standards and Technology. Speaker Recognition Evaluation Plan, 2016.",
    "Noé et al. 2020": "P.-G. Noé, J.-F. Bonastre, D. Matrouf, N. Tomashenko, A. Nautsch, N. Evans. Speech Pseudonymisation "
    "Assessment Using Voice Similarity Matrices. Interspeech 2020.",
    "Noé et al. 2022": "P.-G. Noé, A. Nautsch, N. Evans, J. Patino, J.-F. Bonastre, N. Tomashenko, D. Matrouf. Towards a Unified "
    "Assessment Framework of Speech Pseudonymisation. Computer Speech & Language 72, 2022.",
    "Opinion 05/2014": "Article 29 Data Protection Working Party. Opinion 05/2014 on Anonymisation Techniques. WP216, 2014.",
    "Reddy et al. 2022": "C. K. A. Reddy, V. Gopal, R. Cutler. DNSMOS P.835: A Non-Intrusive Perceptual Objective Speech Quality "
    "Metric to Evaluate Noise Suppressors. ICASSP 2022.",
    "Rocher et al. 2025": "L. Rocher, J. M. Hendrickx, Y.-A. de Montjoye. A scaling law to model the effectiveness of "
    "identification techniques. Nature Communications, 2025.",
    "Stahl & Gamper 2025": "B. Stahl, H. Gamper. Distillation and Pruning for Scalable Self-Supervised Representation-Based "
    "Speech Quality Assessment. ICASSP 2025.",
    "Tomashenko et al. 2022": "N. Tomashenko et al. The VoicePrivacy 2020 Challenge: Results and findings. Computer Speech & "
    "Language 74, 2022.",
    "Vauquier et al. 2025": "N. Vauquier, B. M. L. Srivastava, S. A. Hosseini, E. Vincent. Legally validated evaluation framework "
    "for voice anonymization. 2025.",
    "VoxGuard 2025": "E. Tsaprazlis, T. Lertpetchpun, T. Feng, S. P. Karimireddy, S. Narayanan. VoxGuard: Evaluating User and "
    "Attribute Privacy in Speech via Membership Inference Attacks. arXiv:2509.18413, 2025.",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SectionWords:
    """A section of the technical part: its title, its short name in the navigation, what it asks."""

    title: str
    short: str
    introduction: str


SECTIONS = {
    "channels": SectionWords(
        "Which channel gives people away",
        "Channels",
        "The same attacker uses one channel of speech at a time (the voice, the words, the rhythm), then all of them together. For "
        "comparison, the table shows what this attacker finds in original speech, and what it finds when known recordings are assigned "
        "to people at random, which is chance. Naming one of N people takes log2 N bits; 0 bits are guessing; below 0, the attacker does "
        "worse than guessing.",
    ),
    "linking": SectionWords(
        "Linking recordings to a person",
        "Linking",
        "Opinion 05/2014 asks whether records of one person can be linked. Here the attacker has recordings of N people, "
        "one of whom made the anonymized recording, and names the most similar one. More people make this harder; more "
        "speech of each makes it easier.",
    ),
    "singling_out": SectionWords(
        "Singling somebody out",
        "Singling out",
        "Opinion 05/2014 asks whether one person can be isolated in the data, even without a name. Here the attacker "
        "makes a rule from one person's voice that should fit one person in N, and succeeds if it fits exactly one. A rule "
        "made without knowing anybody also succeeds surprisingly often: this is the control, and the risk is what lies "
        "above it.",
    ),
    "disclosure": SectionWords(
        "Information disclosed",
        "Disclosure",
        "ZEBRA measures evidence: how much a comparison of two recordings changes what an attacker believes. The area "
        "between the two curves is the information that an average comparison discloses, over all prior beliefs; the tag "
        "is the strongest evidence of any single comparison.",
    ),
    "similarity": SectionWords(
        "Similarity before and after",
        "Similarity",
        "Every speaker is compared with every speaker, before and after. A bright diagonal between original and "
        "anonymized voices means that people remain linked to themselves. A bright diagonal among anonymized voices means "
        "that they stay distinct from each other, which some uses need and which also helps an attacker who hears several "
        "recordings.",
    ),
    "inversion": SectionWords(
        "Undoing the anonymization",
        "Inversion",
        "Some anonymizers change every voice in much the same way, so that the change can be undone. The attacker learns "
        "a rotation from recordings known in both forms (or, unsupervised, from two unpaired sets), reverses it, and looks "
        "for the most similar original recording.",
    ),
    "inference": SectionWords(
        "Guessing attributes",
        "Inference",
        "Opinion 05/2014 asks whether attributes of a person can be inferred. A classifier learns the attribute from "
        "anonymized recordings of other people and guesses it here. All values of an attribute have the same weight, however rare they are.",
    ),
    "sessions": SectionWords(
        "Within and across sessions",
        "Sessions",
        "A new voice may stay the same within one conversation, so that speakers can be distinguished, and should change with "
        "the next. High figures are then wanted within a session, but not across sessions or with respect to the original.",
    ),
    "utility": SectionWords(
        "Is it still usable?",
        "Use",
        "It is easy to protect people by destroying the speech. These figures show what is left of words, quality and melody.",
    ),
    "verification": SectionWords(
        "Verification (EER)",
        "EER",
        "Most anonymizers are published with their equal error rate. It averages over everybody, uses one threshold, does "
        "not depend on the number of people to choose from, and hardly changes with the risk for individuals. This is why "
        "it comes last.",
    ),
    "further": SectionWords(
        "Further measures",
        "Further",
        "Measures that other packages have added, or that belong to no other section.",
    ),
}  # fmt: skip

BELOW_ZERO = "If an interval reaches below 0, the rule may have done no better than one made without knowing anybody, or even worse."

GLOSSARY = (
    ("Anonymizer", "A program that changes a recording so that the voice no longer sounds like the speaker. The words stay."),
    ("Attacker", "Somebody who wants to know who is speaking. Attackers differ in what they have: recordings of the people in question, "
     "the anonymizer itself, and the means to train a recognizer on its output."),
    ("Candidates", "The people whose recordings an attacker has and compares with. The more there are, the harder it is to name the right one."),
    ("Enrollment", "The recordings of known people that an attacker compares with."),
    ("Utterance", "One recording of somebody speaking, often a sentence. With more utterances of a person, an attacker is more certain."),
    ("Embedding", "A list of a few hundred numbers that describes a voice. Recordings of one speaker lie close together. Embeddings are "
     "biometric data."),
    ("Linkability", "Of all anonymized recordings, the share that the attacker assigns to the right one of N people. Guessing gives 1/N."),
    ("Singling Out", "How often a rule made from one voice fits exactly one person in the data, no matter who."),
    ("Control", "The same attack by somebody who knows nothing about anybody in the data. What the attack achieves beyond that is due to the "
     "voices."),
    ("EER (equal error rate)", "The error rate when an attacker's threshold is set so that they reject as many true pairs as they accept "
     "false ones. 0 % is perfect recognition, 50 % is guessing."),
    ("Bit", "A unit of information. One bit settles one yes-or-no question. Here, a disclosure of 0.72 bit is certainty about whether two "
     "recordings are by one person; 0.3 bit is a good part of it; 0.01 bit is next to nothing."),
    ("Tag (0, A to F)", "How many times more or less likely the strongest comparison makes it that two recordings are by one person. 0: no "
     "change; A: up to 10 times; B: up to 100; C: up to 10,000; D: up to 100,000; E: up to a million; F: more than that."),
    ("Likelihood ratio, LLR", "How many times more probable a comparison's outcome is if both recordings are of one person than if they are of "
     "two; the LLR is its logarithm. Above 0 speaks for one person, below 0 against it."),
    ("DeID", "How much of the similarity between a speaker's original and anonymized voice is gone. 100 % is all of it."),
    ("G_VD", "How far the anonymized voices can still be distinguished, in decibels against the originals. 0 dB: as well as "
     "before; minus 10 dB: a tenth."),
    ("95 % interval", "With other speakers, the figure would have been different. Intervals made this way contain the true value in about "
     "95 of 100 assessments."),
    ("Chance, guessing", "The value of the measure when the attacker knows nothing. A figure near chance is not a proof of safety: a stronger "
     "attacker may exist."),
    ("The zoo", "Names from the biometric menagerie for speakers who behave unlike most, the sheep. Goats are hard to recognize, lambs easy to be "
     "mistaken for, wolves easily mistaken for others. In the corners: doves resemble themselves and nobody else, which makes them the "
     "easiest to recognize and the least protected; chameleons resemble themselves and everybody; phantoms nobody, not even themselves; "
     "worms everybody but themselves."),
    ("Residual risk", "In the legal sense: the risk that remains after everything that was done to lower it."),
)  # fmt: skip
