"""Settings of an assessment: every option, declared once for Python, the command line and the TOML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmeter.assessment.attacker_settings import (
    ADAPTATIONS,
    AttackerSettings,
    learns_nothing,
    read_attackers,
)
from veilmeter.assessment.statements import Recipient, read_annex, read_recipients, refuse_route_without_recipients
from veilmeter.core import option_groups
from veilmeter.core.errors import InputError
from veilmeter.core.option_groups import COMPUTATION, EVERY_SIZE, OUTPUT, Workers, parse_sizes
from veilmeter.core.options import (
    Condition,
    build,
    declare,
    options_of,
    parse_percentage,
    place_code,
    read_options,
    refuse_unknown,
)
from veilmeter.core.user_code import spec_of
from veilmeter.data.corpus import AUDIO, SPEECH, CorpusReading, SpeechRole, strict

if TYPE_CHECKING:
    from veilmeter.attacks.material import Used

# Families of measures, each of which can be left out.
MEASURES = (
    "scores",
    "similarity",
    "linkability",
    "singling-out",
    "ranks",
    "population",
    "inversion",
    "inference",
    "utility",
)
# Options of an anonymizer that are options of the assessment, and what to give instead.
OWN_OPTIONS = {
    "seed": "give --seed; attackers draw with seeds of their own",
    "offline": "give --offline",
    "command": "give --command",
}
DRAWS = {"per-speaker": "speaker", "per-utterance": "utterance"}
TRANSCRIBED = {"words", "word-style"}  # extractors that need the words of a recognizer
# The headings of the help.
INPUT, ANONYMIZER, ATTACKERS, MEASURED, PAGE = "Speech", "Anonymizer", "Attackers", "Measures", "Report"


# --- when options act


@dataclass(frozen=True, eq=False)
class Facts:
    """The facts of a run: the roles that were given as recordings, who attacked and with what, how many were enrolled,
    whether a channel had to be chosen, whether recordings lie outside their corpus, and what could end the measurement
    of utility before all recordings were measured."""

    recorded: frozenset[SpeechRole]
    attackers: frozenset[str]
    used: Used
    enrolled: int
    tuned: frozenset[str] = frozenset()
    has_channels: bool = False
    leaves_home: bool = False
    parts: frozenset[str] = frozenset()
    scores_only: bool = False
    could_stop: bool = True  # utility, when it is known well enough, or when its budget ends
    is_cut: bool = True

    @property
    def is_audio(self) -> bool:
        return bool(self.recorded)


def _trains(role: SpeechRole, reason: str = "no attacker that was run is trained on it") -> tuple[Condition, ...]:
    return SPEECH, Condition(lambda settings, facts: role in facts.used.training, reason)


TUNED = Condition(lambda settings, facts: bool(facts.tuned), "no attacker was fine-tuned")
UTILITY = Condition(lambda settings, facts: "utility" in facts.parts, "utility was not measured")
WORDS = Condition(
    lambda settings, facts: "utility" in facts.parts or bool(TRANSCRIBED & set(settings.extractor)),
    "utility was not measured, and no extractor needs words",
)
STOPS = Condition(lambda settings, facts: facts.could_stop, "there were too few recordings, or a fixed number, to stop")
CUT = Condition(lambda settings, facts: facts.is_cut, "all recordings were measured, or a fixed number")
ENOUGH_PEOPLE = Condition(
    lambda settings, facts: not settings.speakers or any(n <= facts.enrolled for n in settings.speakers),
    lambda settings, facts: f"only {facts.enrolled} people are enrolled",
)


FAMILY_OF_KIND = {"scores": "scores", "recordings": "utility"}  # measures of embeddings belong to no family


def _read_measures(value: Any) -> Any:
    """Families and measures by name; a measure may also be given as an object or as file.py:name."""
    from veilmeter.metrics.measure import INPUT_KINDS, Measure
    from veilmeter.metrics.measure import MEASURES as REGISTRY

    names = []
    for item in [value] if isinstance(value, str | Measure) else value:
        if isinstance(item, str) and ":" not in item and item not in MEASURES:
            kinds = (REGISTRY.of_kind(kind, REGISTRY.admitted) for kind in INPUT_KINDS)
            single = [entry.name for entries in kinds for entry in entries]
            refuse_unknown("measures", item, (*MEASURES, *single))
        names.append(item if item in MEASURES else REGISTRY.find(item).name)
    return names


@dataclass(frozen=True, kw_only=True)
class Settings(CorpusReading):
    """Every option of an assessment, with its default. What had an effect is written to results.json."""

    original: tuple[str, ...] = declare(
        (), help="Original speech: audio or embeddings, one or several.", group=INPUT, role="source", path=True,
        metavar="PATH", comparable=True, acts_when=(SPEECH,), example="moved.npz",
    )  # fmt: skip
    anonymized: tuple[str, ...] = declare(
        (), help="The same utterances anonymized, one or several.", group=INPUT, role="source", path=True,
        metavar="PATH", comparable=True, acts_when=(SPEECH,), example="again.npz",
    )  # fmt: skip
    attacker_run: tuple[str, ...] = declare(
        (), help="The attacker's own run of the same anonymizer. Without a manifest, DRAW says what one draw "
        "covers: per-speaker or per-utterance.", group=INPUT, role="source", path=True,
        metavar="DIR[:DRAW]", comparable=True, example="again.npz",
        acts_when=(SPEECH, Condition(lambda settings, facts: bool(facts.used.copies),
                                     "no attacker that was run anonymizes anything itself")),
    )  # fmt: skip
    train_original: tuple[str, ...] = declare(
        (), help="Original speech of other people.", group=INPUT, role="source", path=True, metavar="PATH",
        common=False, example="train_original.npz", acts_when=_trains(
            SpeechRole.TRAIN_ORIGINAL,
            "no back end that was used learns from it, and no attacker was given the same speech anonymized",
        ),
    )  # fmt: skip
    train_anonymized: tuple[str, ...] = declare(
        (), help="Speech of other people anonymized by the same system: trains the informed attacker.", group=INPUT,
        role="source", path=True, metavar="PATH", example="train_other.npz",
        acts_when=_trains(SpeechRole.TRAIN_ANONYMIZED),
    )  # fmt: skip
    train_similar: tuple[str, ...] = declare(
        (), help="Speech of other people anonymized by a similar system: trains the semi-informed attacker.",
        group=INPUT, role="source", path=True, metavar="PATH", common=False,
        acts_when=_trains(SpeechRole.TRAIN_SIMILAR), example="train_anonymized.npz",
    )  # fmt: skip
    distractors: tuple[str, ...] = declare(
        (), help="Anonymized speech of further people who are enrolled but never tried; with --vpc the name of a "
        "folder, such as train-clean-360.", group=INPUT, role="source", path=True, metavar="PATH",
        common=False, comparable=True, acts_when=(SPEECH,), example="train_anonymized.npz",
    )  # fmt: skip
    distractors_original: tuple[str, ...] = declare(
        (), help="The same speech of the --distractors, original.", group=INPUT, role="source", path=True,
        metavar="PATH", common=False, comparable=True, acts_when=(SPEECH,), example="train_original.npz",
    )  # fmt: skip
    vpc: str | None = declare(
        None, help="Folder of VoicePrivacy data: every set and gender of the variant --suffix, with its lists, "
        "training speech and scores.", group=INPUT, path=True, metavar="PATH", acts_when=(SPEECH,), example=".",
    )  # fmt: skip
    sets: tuple[str, ...] = declare(
        (), help="Sets of --vpc, such as libri_test.", group=INPUT, default_text="all", acts_when=(SPEECH,),
        example="libri_test",
    )  # fmt: skip
    suffix: str | None = declare(
        None, help="Anonymized variant (_anon...) where a folder of VoicePrivacy data holds several.", group=INPUT,
        acts_when=(SPEECH, AUDIO), example="_anon",
    )  # fmt: skip
    enroll: tuple[str, ...] = declare(
        (), help="List of the enrollment utterances.", group=INPUT, path=True, metavar="FILE",
        acts_when=(SPEECH,), example="enroll",
    )  # fmt: skip
    trials: tuple[str, ...] = declare(
        (), help="List of the trial utterances, or a trial key.", group=INPUT, path=True, metavar="FILE",
        example="other-key",
    )  # fmt: skip
    segments: float = declare(
        4.0, help="Length in seconds of the pieces into which training speech is cut.", group=INPUT, above=0.5,
        common=False, example=0.6, acts_when=(SPEECH, Condition(
            lambda settings, facts: any(role.is_training for role in facts.recorded),
            "training speech was not given as recordings")),
    )  # fmt: skip
    system: str | None = declare(
        None, help="Let the attackers run this anonymizer (see `anonymize`); without --anonymized it also makes the "
        "release.", group=ANONYMIZER, metavar="NAME", parse=spec_of, path=place_code, acts_when=(SPEECH,),
        example="mcadams",
    )  # fmt: skip
    option: tuple[str, ...] = declare(
        (), help="Option passed to the system.", group=ANONYMIZER, metavar="NAME=VALUE", acts_when=(SPEECH,),
        example="alpha=0.7",
    )  # fmt: skip
    command: str | None = declare(
        None, help="Program to run as the system, such as 'myanon {input} {output}'.", group=ANONYMIZER,
        metavar="PROGRAM", acts_when=(SPEECH,), example="cp {input} {output}",
    )  # fmt: skip
    system_runs: int | None = declare(
        None, help="Runs of the system that the attackers make.", group=ANONYMIZER, least=1, default_text="2",
        acts_when=(SPEECH,), example=3,
    )  # fmt: skip
    attackers: Mapping[str, AttackerSettings] = declare(
        {}, help="Attackers to run (see `veilmeter attackers`).", group=ATTACKERS, metavar="NAME",
        default_text="all", parse=read_attackers, tables=AttackerSettings, example="lazy-informed",
    )  # fmt: skip
    extractor: tuple[str, ...] = declare(
        ("campplus",), help="Extractors, each used alone and all together (names: `veilmeter embed --help`).",
        parse=spec_of, group=ATTACKERS, metavar="NAME", path=place_code,
        acts_when=(SPEECH, AUDIO), example="other.py:embed",
    )  # fmt: skip
    backend: str = declare(
        "cosine", help="Back end of attackers that are not adapted: cosine, centered-cosine, cosine:best or "
        "cosine:normalized.", group=ATTACKERS, metavar="NAME", publishable=True, common=False, acts_when=(SPEECH,),
        example="centered-cosine",
    )  # fmt: skip
    adaptation: str = declare(
        "backend", help="Part that adapted attackers train: backend, or finetune (needs audio).", group=ATTACKERS,
        metavar="WHAT", choices=ADAPTATIONS, publishable=True, common=False, example="finetune",
        acts_when=(SPEECH, Condition(lambda settings, facts: settings.adaptation == "backend" or bool(facts.tuned),
                                     "no attacker that adapts its extractor was run with training speech")),
    )  # fmt: skip
    adapted_backend: str = declare(
        "lda", help="Back end of adapted attackers: lda or plda.", group=ATTACKERS, metavar="NAME", publishable=True,
        common=False, example="plda", acts_when=(SPEECH, Condition(
            lambda settings, facts: bool(facts.used.adapted_backends), "no attacker that was run adapts a back end")),
    )  # fmt: skip
    network: str | None = declare(
        None, help="Network to train: campplus, ecapa, ecapa:scratch, vpc2026:FOLDER (a WavLM model) or "
        "module:function.", group=ATTACKERS, metavar="NAME", parse=spec_of,
        default_text="the extractor", path=place_code, common=False, acts_when=(SPEECH, TUNED), example="campplus",
    )  # fmt: skip
    epochs: int = declare(
        5, help="Epochs of fine-tuning.", group=ATTACKERS, least=1, common=False, acts_when=(SPEECH, TUNED), example=2
    )
    tuning: tuple[str, ...] = option_groups.tuning(group=ATTACKERS, acts_when=(SPEECH, TUNED))
    folds: int = declare(
        5, help="Folds of the cross-validation where no training speech is given.", group=ATTACKERS, least=3,
        common=False, example=3, acts_when=(SPEECH, Condition(
            lambda settings, facts: facts.used.folds is not None, "no attacker was trained by cross-validation")),
    )  # fmt: skip
    measures: tuple[str, ...] = declare(
        MEASURES, help="Families of measures, single measures of scores, embeddings or recordings, or file.py:name for "
        "your own.", group=MEASURED, metavar="FAMILY", default_text="all", parse=_read_measures, path=place_code,
        publishable=True, example="similarity",
    )  # fmt: skip
    eer_method: str = option_groups.eer_method(group=MEASURED, common=False, publishable=True)
    lengths: tuple[int, ...] = declare(
        (1, 3, 30), help="Utterances in a conversation.", group=MEASURED, least=1, publishable=True,
        acts_when=(SPEECH,), example=2,
    )  # fmt: skip
    speakers: tuple[int, ...] = declare(
        (), help="Numbers of people for curves, or `all` for every number in exact curves.", group=MEASURED, least=2,
        also=EVERY_SIZE, parse=parse_sizes, default_text="round numbers", publishable=True, common=False,
        acts_when=(SPEECH, ENOUGH_PEOPLE), example=500,
    )  # fmt: skip
    population: tuple[int, ...] = declare(
        (), help="Population sizes to which Linkability is extrapolated.", group=MEASURED, least=2, publishable=True,
        common=False, example=1000, acts_when=(SPEECH, Condition(
            lambda settings, facts: settings.wants("population"), "--measures leaves population out")),
    )  # fmt: skip
    by: tuple[str, ...] | None = declare(
        None, help="Also measure within each value of this attribute; of several, also of all together.",
        group=MEASURED, metavar="ATTRIBUTE",
        default_text="gender", publishable=True, acts_when=(SPEECH,), example="session",
    )  # fmt: skip
    attributes: tuple[str, ...] | None = declare(
        None, help="Attributes to infer.", group=MEASURED, metavar="ATTRIBUTE", default_text="all that are known",
        publishable=True, common=False, example="gender", acts_when=(SPEECH, Condition(
            lambda settings, facts: settings.wants("inference"), "--measures leaves inference out")),
    )  # fmt: skip
    recognizer: str | None = declare(
        None, help="Recognizer whose transcripts measure utility (see `transcribe`).", group=MEASURED,
        parse=spec_of,
        metavar="NAME", path=place_code, example="nobody", acts_when=(SPEECH, WORDS),
    )  # fmt: skip
    language: str | None = option_groups.language(group=MEASURED, publishable=True, acts_when=(SPEECH, WORDS))
    utility: bool = declare(
        True, help="Do not measure utility.", group=MEASURED, example=False, acts_when=(SPEECH, Condition(
            lambda settings, facts: facts.is_audio and "utility" in settings.families,
            "utility would not have been measured without it either")),
    )  # fmt: skip
    utility_precision: float = declare(
        3.0, help="Stop measuring utility when the word error rate is known within this many percentage points.",
        group=MEASURED, above=0, common=False, acts_when=(SPEECH, UTILITY, STOPS), example=10,
    )  # fmt: skip
    utility_budget: float | None = declare(
        None, help="Processor seconds to spend on utility, on an ordinary core.", group=MEASURED, above=0,
        default_text="60, or a tenth of the extraction", common=False, acts_when=(SPEECH, UTILITY, CUT),
        example=5,
    )  # fmt: skip
    utility_recordings: int | None = declare(
        None, help="Fixed number of recordings that utility is measured on.", group=MEASURED, least=1, common=False,
        default_text="until it is known well enough", acts_when=(SPEECH, UTILITY), example=5,
    )  # fmt: skip
    utility_rated: int | None = declare(
        None, help="Fixed number of recordings among them that are rated for their quality.", group=MEASURED, least=0,
        common=False, default_text="until it is known well enough", acts_when=(SPEECH, UTILITY), example=5,
    )  # fmt: skip
    weak_attacker: float = declare(
        15.0, help="Highest EER on original speech, in percent, at which an attacker is trusted.", group=MEASURED,
        least=0, most=50, parse=parse_percentage, common=False, example="1%",
    )  # fmt: skip
    precision: float = declare(
        10.0, help="Precision, in percentage points, that a linking rate needs for the verdict to rely on it.",
        group=MEASURED, above=0, below=100, parse=parse_percentage, common=False, example="90%",
    )  # fmt: skip
    release_size: int | None = declare(
        None, help="People in the real release.", group=PAGE, least=1, default_text="those assessed", common=False,
        acts_when=(SPEECH,), example=5000,
    )  # fmt: skip
    candidates: int | None = declare(
        None, help="People of whom an attacker has recordings; more than were assessed are extrapolated.", group=PAGE,
        least=2, default_text="those assessed", common=False, acts_when=(SPEECH,), example=700,
    )  # fmt: skip
    threshold: float | None = declare(
        None, help="Accepted risk of being linked (9%, say), chosen before the results are seen.", group=PAGE, above=0,
        below=100, parse=parse_percentage, common=False, example="9%",
    )  # fmt: skip
    title: str = declare(
        "", help="Title of the report.", group=PAGE, role="output", comparable=True, publishable=True, common=False,
        example="another",
    )  # fmt: skip
    system_name: str = declare(
        "", help="Name of the anonymizer in the report, with its version.", group=PAGE, role="output",
        default_text="from its manifest", comparable=True, publishable=True, common=False, example="acme 2.4",
    )  # fmt: skip
    assessor: str = declare(
        "", help="Name of the assessor, for the report.", group=PAGE, role="output", comparable=True,
        publishable=True, common=False, example="the privacy team",
    )  # fmt: skip
    notice: str = declare(
        "", help="Remark at the top of the report, such as DRAFT.", group=PAGE, role="output", comparable=True,
        publishable=True, common=False, example="DRAFT",
    )  # fmt: skip
    annex: Mapping[str, str] = declare(
        {}, help="Entries of the annex: a table [annex].", group=PAGE, role="output", in_file=True, comparable=True,
        publishable=True, parse=read_annex,
    )  # fmt: skip
    recipients: Sequence[Recipient] = declare(
        (), help="Recipients of the speech, with what they have: tables [[recipients]].", group=PAGE, role="output",
        in_file=True, comparable=True, publishable=True, parse=read_recipients,
    )  # fmt: skip
    seed: int = option_groups.seed()
    resamples: int = declare(
        1000, help="Bootstrap resamples for the intervals.", group=COMPUTATION, role="computation", least=2,
        common=False, example=7, acts_when=(
            Condition(lambda settings, facts: settings.intervals, "intervals were not asked for"),),
    )  # fmt: skip
    intervals: bool = option_groups.intervals()
    offline: bool = option_groups.offline(comparable=True, acts_when=(SPEECH, AUDIO))
    device: str = option_groups.device(comparable=True, publishable=True, acts_when=(SPEECH, AUDIO))
    strict: bool = strict(acts_when=(SPEECH,))

    def __post_init__(self) -> None:
        from veilmeter.attacks.backends.base import refuse_unknown_backends
        from veilmeter.speech.extractors.base import extractor_label

        super().__post_init__()
        refuse_unknown_backends(self.backend, self.adapted_backend)
        if not self.extractor or len({extractor_label(spec) for spec in self.extractor}) < len(self.extractor):
            raise InputError(f"extractor: {', '.join(self.extractor) or 'none'}", fix="name each extractor once")
        self._check_together()

    def _check_together(self) -> None:
        """What no single option can tell."""
        from veilmeter.anonymizers.base import parse_options
        from veilmeter.attacks.attacker import ATTACKERS
        from veilmeter.attacks.backends.base import backend_kind

        refuse_route_without_recipients(self.annex, self.recipients)
        if self.sets and self.vpc is None:
            raise InputError("--sets chooses among the sets of VoicePrivacy data", fix="give --vpc DATA too")
        if self.command is not None and self.system not in (None, "command"):
            raise InputError(f"the system {self.system} runs no command", fix="give --system or --command, not both")
        if not self.runs_system:
            for key in ("option", "system_runs"):
                if getattr(self, key):
                    raise InputError(
                        f"--{key.replace('_', '-')} belongs to an anonymizer that is run here",
                        fix="give --system NAME or --command 'PROGRAM {input} {output}' too",
                    )
        elif taken := sorted(parse_options(self.option).keys() & OWN_OPTIONS.keys()):
            raise InputError(f"--option {taken[0]} can't act: the assessment chooses it", fix=OWN_OPTIONS[taken[0]])
        elif self.attacker_run:
            raise InputError(
                "the attacker's runs are given, and an anonymizer to make them with",
                fix="give --attacker-run, or --system and --command, not both",
            )
        names = attacker_names(self)
        asked = [name for name in self.attackers if name in names and ATTACKERS[name].family]
        for name in asked:
            family = ATTACKERS[name].family
            if family not in self.families:
                raise InputError(
                    f"the attacker {name} was asked for, but not the measures it belongs to ({family})",
                    fix=f"add {family} to --measures, or leave the attacker out",
                )
        if not backend_kind(self.adapted_backend).needs_training:
            raise learns_nothing(self.adapted_backend)
        for name, options in self.attackers.items():
            options.refuse_contradictions(name, self.backend, self.adapted_backend)

    @property
    def first_extractor(self) -> str:
        """The one that every measure but those of further attackers is made with."""
        return self.extractor[0]

    @property
    def runs_system(self) -> bool:
        """Whether the anonymizer is run here."""
        return self.system is not None or self.command is not None

    @property
    def anonymizer(self) -> str:
        """The name of the anonymizer that is run here."""
        return self.system or "command"

    @property
    def named_measures(self) -> list[str]:
        """The single measures that were asked for, beside families."""
        return [name for name in self.measures if name not in MEASURES]

    @property
    def families(self) -> tuple[str, ...]:
        """The families that were asked for, and those of single measures."""
        from veilmeter.metrics.measure import find_measure

        kinds = {find_measure(name).kind for name in self.named_measures}
        named = {family for kind, family in FAMILY_OF_KIND.items() if kind in kinds}
        return tuple(family for family in MEASURES if family in self.measures or family in named)

    def wants(self, family: str) -> bool:
        return family in self.families and (family != "utility" or self.utility)

    def of_attacker(self, name: str) -> AttackerSettings:
        return self.attackers.get(name, AttackerSettings())


SOURCES = tuple(SpeechRole(name) for name, declared in options_of(Settings).items() if declared.role == "source")


@dataclass(frozen=True, kw_only=True)
class RunOptions(Workers):
    """Where an assessment runs, what it prints, and whether it waits for what follows the first verdict. Its complete
    results do not depend on these, to the byte."""

    out: Path | None = declare(
        None, help="Folder for results and report; an interrupted run continues there.", metavar="PATH",
        group=OUTPUT, role="output", path=True, example="elsewhere",
    )  # fmt: skip
    report: bool = declare(True, help="Do not write the HTML page.", group=OUTPUT, role="output")
    wait: bool = declare(
        True, help="End with the first verdict; the same command without it measures the rest.", group=OUTPUT,
        role="output",
    )  # fmt: skip
    json: bool = option_groups.json("Print results.json instead of the verdict.")
    signature: bool = option_groups.signature()
    quiet: bool = option_groups.quiet()


# --- from plain values


def make_settings(values: Mapping[str, Any], *, where: str | Path | None = None) -> Settings:
    """Settings from plain values, as a TOML file or keyword arguments give them; unknown keys are errors.

    >>> make_settings({"original": "a", "anonymized": "b", "lenghts": [1]})
    Traceback (most recent call last):
    ...
    veilmeter.core.errors.InputError: unknown option 'lenghts' (did you mean 'lengths'?)
    """
    try:
        settings: Settings = build(Settings, values)
        return settings
    except InputError as error:
        raise InputError(error.what, path=error.path or where, line=error.line, fix=error.fix) from None


def read_settings(path: str | Path) -> dict[str, Any]:
    """The plain values in a TOML file: settings, and where to run."""
    return read_options(path, Settings, RunOptions)


def attacker_names(settings: Settings) -> list[str]:
    """The attackers that were asked for, in the order of the table; all that run by default otherwise."""
    from veilmeter.attacks.attacker import ATTACKERS, BASELINE, default_attackers

    asked = [name for name in settings.attackers if name != BASELINE]
    return [name for name in ATTACKERS if name in (asked or default_attackers()) and name != BASELINE]
