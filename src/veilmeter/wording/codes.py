"""Every code a finding may have, with the names and types of its values: the one list of what can be found.

A type is `int`, `float`, `bool`, `str` (a word of ours), `Estimate`, `Reference`, `tuple[Reference, ...]`,
`tuple[str, ...]` or a `Literal` of words; `... | None` marks a value that may be missing. Tests make findings of these
types, render them for every audience, and look for sentences that contradict each other on one page.

`slot` names what a page can say only once, in one way: of the findings of one slot at most one occurs in a run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import ABOUT, Direction, Finding, Level, Reference, Value


@dataclass(frozen=True, slots=True)
class Declaration:
    """The values of a code by name, each with its type, and the slot it fills."""

    code: str
    values: dict[str, Any] = field(default_factory=dict)
    slot: str = ""

    def fits(self, finding: Finding) -> bool:
        """Whether a finding has the values that its sentences need; one from a newer or an edited file may not."""
        return finding.values.keys() <= {*self.values, *ABOUT} and all(
            _is_a(finding.values[name], wanted) if name in finding.values else is_optional(wanted)
            for name, wanted in self.values.items()
        )


def is_optional(wanted: Any) -> bool:
    return type(None) in get_args(wanted)


def _is_a(value: Value, wanted: Any) -> bool:
    origin, inner = get_origin(wanted), get_args(wanted)
    if origin in (Union, UnionType):
        return any(_is_a(value, member) for member in inner if member is not type(None))
    if origin is Literal:
        return value in inner
    if origin is tuple:
        return isinstance(value, tuple) and all(_is_a(item, inner[0]) for item in value)
    if wanted is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, wanted)


CODES: dict[str, Declaration] = {}


def declare(code: str, *, slot: str = "", **values: Any) -> None:
    if code in CODES:
        raise ValueError(f"{code} is declared twice")
    CODES[code] = Declaration(code, values, slot)


Group = tuple[Reference, ...]
Names = tuple[str, ...]
Runs = tuple[Reference, ...]

# --- what was read

declare("ids_matched", count=int, first=str, second=str, way=Literal["form", "path", "name"],
        mine=Reference | None, other=Reference | None)  # fmt: skip
declare("ids_ambiguous", count=int, first=str, second=str, example=Reference | None)
declare("utterances_unmatched", only_original=int, only_anonymized=int, speaker_differs=int)
declare("vectors_left_out", file=Reference, count=int, kind=str, example=Reference)
declare("recordings_unusable", role=str, count=int, kinds=tuple[str, ...])
declare("recordings_left_out", count=int)
declare("speakers_left_out", purpose=Literal["similarity", "sessions", "trials"], count=int, needed=int,
        length=int | None, examples=tuple[Reference, ...])  # fmt: skip
declare("file_as_latin1", file=Reference)
declare("pairs_repeated", what=Literal["score", "trial"], file=Reference, line=int, count=int, example=Reference)
declare("pairs_left_out", what=Literal["score", "trial"], file=Reference, line=int, count=int, example=Reference)
declare("utt2spk_unused", file=Reference, reason=Reference)
declare("speakers_joined", file=Reference, count=int)
declare("same_recording_enrolled", count=int)
declare("same_id_enrolled", count=int)
declare("people_not_enrolled", count=int, examples=tuple[Reference, ...])

declare("trials_repeated", file=Reference, count=int)
declare("trials_contradicted", file=Reference, count=int, example=Reference)
declare("trials_without_recording", file=Reference, count=int, listed=int, example=Reference)
declare("trial_speakers_without_enrollment", file=Reference, count=int, example=Reference)

declare("scores_and_trials_differ", file=Reference, scores=int, trials=int)
declare("scores_older_than_speech", file=Reference)
declare("listed_utterances_missing", list=Literal["enrollment", "trial"], count=int)
declare("people_never_tried", count=int)
declare("distractors_enrolled", count=int, recordings=int)
declare("people_tried_not_enrolled", count=int)
declare("people_with_one_utterance", count=int)
declare("run_is_released", run=str)
declare("draw_contradicts_manifest", place=Reference, said=str, recorded=str)

# --- what a preliminary verdict waits for

declare("utility_pending")
declare("extractor_pending", extractor=str)

# --- utility

declare("recordings_without_text", count=int)
declare("language_assumed", language=str)
declare("originals_without_partner", count=int)
declare("recordings_silent", count=int)
declare("recordings_not_heard", count=int, example=Reference)
declare("recordings_narrow_band", rate=int)
declare("labels_not_measured", label=Reference, reason=Reference)

# --- inversion

declare("trials_without_group", lost=int, trials=int, column=Reference)
declare("other_run_incomplete", common=int, attacked=int)
declare("other_run_left_out", count=int)
declare("inversion_spread", seeds=int, measures=tuple[str, ...], groups=tuple[Reference, ...],
        means=tuple[float, ...], lowest=tuple[float, ...], highest=tuple[float, ...])  # fmt: skip
declare("training_unpaired", count=int, version=Literal["anonymized", "clear"], example=Reference)
declare("few_pairs", pairs=int, dimension=int, group=Reference | None)
declare("oracle_map")
declare("no_better_than_shuffled")

# --- what the figures rest on

declare("option_without_effect", option=str, given=Reference | None, reason=str)
declare("fewer_resamples", asked=int, drawn=int)
declare("one_target_speaker")
declare("few_speakers", count=int)
declare("linked_below_chance", linked=Estimate)
declare("few_enrolled", count=int)
declare("few_target_trials", needed=int)
declare("few_impostor_trials", count=int)
declare("scores_inverted", flipped=float, as_given=float)
declare("sizes_left_out", length=int, speakers=int, needed=int, sizes=tuple[int, ...])
declare("originals_alike", d_diag=float)
declare("diagonal_inverted", d_diag=float)

# --- what an attack or an analysis rests on

declare("length_left_out", length=int)
declare("trials_drawn", length=int, drawn=int, possible=int)
declare("scores_drawn", length=int, drawn=int, possible=int)
declare("isolation_conversations_drawn", length=int, most=int)
declare("isolation_speakers_drawn", length=int, drawn=int, possible=int)
declare("isolation_rules_drawn", length=int, drawn=int, possible=int)
declare("similarity_drawn", recordings=int, all_recordings=int, speakers=int, all_speakers=int)
declare("lookups_drawn", trials=int, most=int)
declare("population_is_smaller", size=int, enrolled=int)
declare("not_extrapolated", reason=Reference)
declare("unseen_people", share=float, speakers=int)
declare("measured_for_checks", families=tuple[str, ...])
declare("scores_of_others", count=int)

# --- what an attacker had

declare("runs_lack_enrollment", recordings=int, speakers=int)
declare("own_extractor_without_run", attacker=str)
declare("anonymizer_not_run")
declare("enrolled_from_released_run")
declare("candidates_without_copy", count=int, candidates=int)
declare("run_lacks_recordings", run=str, count=int, recordings=int)
declare("draw_unknown", run=str, level=str)
declare("draw_taken_per_speaker", run=str)
declare("draw_looks_per_utterance", run=str)
declare("method_replaced", attacker=str, other=str, difference=float)

# --- notes below the tables of commands

declare("evidence_tag", tag=str, chance=bool | None)
declare("worst_speakers_shown", shown=int, speakers=int)
declare("measures_without_interval", measures=tuple[str, ...])
declare("intervals_of_scores", speakers_from=Reference | None)
declare("scores_streamed")
declare("intervals_of_linkability")
declare("population_model", fitted=int, predicted=int, unseen_share=float, speakers=int)
declare("knowing_more", attribute=Reference, gain=float, low=float, high=float, speakers=int, length=int)
declare("isolation_chance")
declare("intervals_of_isolation")
declare("top1_by_speaker", speakers=tuple[Reference, ...], percents=tuple[float, ...])
declare("top1_needs_clear_trials")
declare("map_saved", file=Reference)
declare("diagonal_stays", every_speaker=bool, speakers=tuple[Reference, ...], diagonals=tuple[float, ...],
        animals=tuple[str, ...])  # fmt: skip
declare("animals_frequent", matrices=tuple[str, ...], animals=tuple[str, ...], counts=tuple[int, ...],
        expected=tuple[float, ...], p=tuple[float, ...])  # fmt: skip
declare("intervals_of_similarity")
declare("utility_basis", recordings=int, available=int, rated=int, language=str, language_from=str,
        reference=Literal["corpus", "recognizer"])  # fmt: skip
declare("words_confused", said=tuple[Reference, ...], heard=tuple[Reference, ...], times=tuple[int, ...])
declare("words_suffer", speakers=tuple[Reference, ...], percents=tuple[float, ...])
declare("differences_by_holm")

declare("unclassified", text=Reference)
declare("warnings_left_out", count=int)
declare("remarks_left_out", count=int)
declare("reasons_left_out", count=int)

# --- the verdict
declare("verdict", slot="verdict", level=Level)
declare("nothing_attacked", slot="verdict")
declare("little_voice_left")
declare("only_attribute_kept", attribute=Reference)
declare("one_voice_per_speaker")
declare("use", wer=Estimate | None, wer_original=float | None, mos=float | None, mos_original=float | None)
declare("nobody_tried", slot="people")
declare("nobody_ranked", slot="people", tried=int | None, scores_only=bool)
declare(
    "people_linked",
    slot="people",
    listed=int,
    linked=int,
    total=int,
    speakers=int,
    length=int,
    explained=bool,
    recognized=bool | None,
    expected_by_chance=float | None,
    agreement=Literal["same", "partly", "different"] | None,
)
declare(
    "worst_person",
    estimate=Estimate,
    attacker=str,
    total=int,
    attackers=int,
    explained=bool,
    recognized=bool | None,
)
declare("channels", channels=Names, bits=tuple[float, ...])
declare("text_floor", channel=str, linked=Estimate)
declare("lawyer_recipients")
declare("lawyer_contents")
declare("lawyer_other_data")
declare("lawyer_acceptance")

# --- what attackers were trained on, and how recordings were divided
declare("trained_on_nothing")
declare("trained_by_kaldi")
declare("trained_on_speech", recordings=int, version=Literal["original", "anonymized"], speakers=int, assessed=int)
declare("trained_in_folds", folds=int)
declare("trained_on_pairs", recordings=int)
declare("trained_elsewhere")
declare("trained_on_copies", recordings=int, candidates=int, copies=int, runs=int, released=bool,
        other_copies=int | None, other_people=int | None)  # fmt: skip
declare("own_extractor_given")
declare("extractor_tuned", recordings=int, speakers=int, assessed=int, own_copies=bool, epochs=int,
        first_loss=float, last_loss=float)  # fmt: skip
declare("split_by_lists", slot="split", found=bool)
declare("split_by_session", slot="split", by_session=int, in_halves=int)
declare("split_of_scores", slot="split")
declare("split_by_challenge", slot="split")

# --- the worst case of each criterion
declare(
    "linking",
    slot="linking",
    level=Level,
    estimate=Estimate,
    attacker=str,
    by_chance=float,
    group=Group | None,
    luckiest=float | None,
    suspects=int | None,
    total=int | None,
    tried_once=bool | None,
    needed=int | None,
    original=Estimate | None,
)
declare(
    "singling_out",
    slot="singling_out",
    level=Level,
    estimate=Estimate,
    attacker=str,
    attempts=Estimate | None,
    control=float | None,
)
declare(
    "disclosure",
    slot="disclosure",
    level=Level,
    estimate=Estimate,
    attacker=str,
    whole=float,
    group=Group | None,
    strongest=float | None,
    tag=str | None,
    top_targets=int | None,
    bands=bool | None,
)
declare("inversion", slot="inversion", level=Level, estimate=Estimate, attack=str, by_chance=float, group=Group | None)
declare("distinctiveness", slot="distinctiveness", level=Level, estimate=Estimate)
declare(
    "inference",
    slot="inference",
    level=Level,
    estimate=Estimate,
    attribute=Reference,
    by_chance=float,
    original=float | None,
    others=tuple[Estimate, ...] | None,
)

# --- what the assessment checks about itself; the slot is the check
declare("original_eer", slot="strong", passed=bool, eer=float, limit=float, group=Group | None, languages=Group | None,
        language_eers=tuple[float, ...] | None)  # fmt: skip
declare("people_unheard", unheard=int, total=int, limit=float, examples=tuple[Reference, ...] | None,
        recordings=Group | None)  # fmt: skip
declare("original_linked", slot="strong", passed=bool, linked=float, speakers=int)
declare("original_not_measured", slot="strong")
declare("adaptation_not_run", slot="adaptation", missing=Literal["adapted", "unadapted"])
declare(
    "adaptation", slot="adaptation", passed=bool, adapted=str, unadapted=str, adapted_eer=float, unadapted_eer=float
)
declare("recordings_not_compared", slot="unchanged")
declare("recordings_unchanged", slot="unchanged", unchanged=int, compared=int, let_through=int)
declare("ids_not_compared", slot="own_ids")
declare("own_ids", slot="own_ids", sign=Literal["none", "exchanged", "unrelated"], durations=float | None)
declare("copies_not_sought", slot="copies")
declare("copies", slot="copies", passed=bool, copies=int, trials=int, released=int)
declare("linking_without_interval", slot="enough")
declare(
    "enough_speakers",
    slot="enough",
    passed=bool,
    level=Level,
    speakers=int,
    estimate=Estimate,
    by_chance=float,
    needed=int | None,
    group=tuple[Reference, ...] | None,
)
declare("no_training_speech", slot="training")
declare("training_overlap", slot="training", overlap=int, speakers=int, role=str)
declare("sessions_unknown", slot="sessions")
declare("same_session", slot="sessions", passed=bool, share=float)
declare("no_scores")
declare("ties", slot="ties", passed=bool, moved=float, attacker=str)
declare("inverted_scores", slot="inverted", passed=bool, attacker=str, flipped=float, reported=float)
declare("own_runs", slot="own_runs", runs=int, shares_draws=bool, unlike=bool, not_covered=int)
declare("release_not_linked", slot="release")
declare("release_linked", slot="release", passed=bool, recognized=bool, own_voices=bool, share=float)
declare("lengths_not_compared", slot="lengths")
declare("vector_lengths", slot="lengths", passed=bool)
declare("draws_not_compared", slot="draws")
declare(
    "draws", slot="draws", effect=Literal["none", "harmless", "tried", "misleading"], size=int | None, noticed=int,
    tried=int, set_size=int,
)  # fmt: skip
declare("no_target_voices", slot="targets")
declare(
    "target_voices",
    slot="targets",
    effect=Literal["misleading", "harmless", "uncertain", "small"],
    share=float,
    voices=int,
    known=bool,
    reported=float,
    informed=float,
)
declare("speech_not_measured", slot="speech")
declare("speech_not_yet_measured", slot="speech")
declare("originals_without_words", slot="speech", wordless=int, recordings=int)
declare("words_lost", slot="speech", lost=int, recordings=int, silent=int)
declare("low_quality", slot="speech", quality=float)
declare("words_understood", slot="speech", understood=int, recordings=int)
declare("privacy_misjudged", misleads=Direction)
declare("not_protected")
declare("distrusted")

# --- runs side by side, tables of systems, gates
declare("run_level", run=Reference, level=Level, trustworthy=bool)
declare("differences_counted", run=Reference, first=Reference, total=int, significant=int, safer=int, riskier=int)
declare("run_given_twice")
declare("run_distrusted", run=Reference)
declare("other_material", slot="material", material=Literal["original speech", "trials"])
declare("other_people", slot="material")
declare("other_recordings", slot="material")
declare("setting_differs", setting=str, values=tuple[Reference | float | bool, ...], runs=Runs)
declare("attacker_not_everywhere", attacker=str, runs=Runs)
declare("backend_differs", attacker=str, backends=Names, runs=Runs)
declare("table_marks", first=Reference)
declare("table_distrusted")
declare("eer_methods", methods=Names)
declare("table_ranked", figure=Reference, pairs=int)
declare("table_grouped")
declare("settings_differ", settings=Names)
declare("table_strongest", attackers=Names)
declare("figure_missing", figure=Reference, runs=Runs)
declare("baseline_compared", baseline=Reference, compared=int, worse=int, better=int)
declare("level_changed", now=Level, before=Level)
declare("figure_untested", label=str, attacker=str | None, group=Group | None, baseline=Reference)
declare("figure_worse", label=str, attacker=str | None, group=Group | None, before=Estimate, now=Estimate,
        difference=Estimate)  # fmt: skip
declare("figure_not_measured", place=str, group=Group | None)
declare("attacker_untested", attacker=str, baseline=Reference)
declare("limit", limit=str, group=Group | None)
declare("limit_checked", estimate=Estimate, place=str, group=Group | None, better=Literal["higher", "lower"] | None)
declare("limit_without_interval", limit=Reference, group=Group | None)
declare("gate_scope", attackers=Names, groups=Group | None, parts=Names | None)
declare("gate_level", level=Level, decided_by=Names | None, max_level=Level | None)
# --- what was not tested

declare("not_asked_for")
declare("family_not_asked_for", family=str)
declare("no_scores_given")
declare("speech_needed")
declare("disclosure_removed_unknown", attackers=tuple[str, ...])
declare("runs_without_enrollment")
declare("runs_of_few_people")
declare("backend_untrained", backend=str)
declare("dimensions_differ")
declare("too_few_for_rotation", recordings=int)
declare("too_few_to_train", speakers=int)
declare("no_similar_speech")
declare("one_candidate")
declare("copies_of_other_dimension", copies=int, released=int)
declare("vectors_of_two_extractors")
declare("one_extractor")
declare("no_release_pseudonyms")
declare("not_possible", reason=Reference)
declare("attribute_not_inferred", attribute=Reference, reason=Reference)
declare("group_not_measured", group=Reference, reason=Reference)
declare("measure_not_possible", measure=str, reason=Reference)

# --- the report: how many people of a release are found

declare(
    "release_count",
    size=int,
    listed=int,
    found=float,
    low=float,
    high=float,
    basis=str,
    estimate=Estimate | None,
)
declare(
    "release_found",
    size=int,
    listed=int,
    candidates=int,
    found=float,
    low=float,
    high=float,
    basis=str,
    attacker=str,
    about=str,
    chosen=bool | None,
    estimate=Estimate | None,
)
declare("guessing_finds", size=float)
declare("original_speech_linked", estimate=Estimate)
declare("share_measured", slot="basis of a share", size=int)
declare("share_unknown", slot="basis of a share", size=int)
declare("share_modeled", slot="basis of a share", size=int)
declare("share_beyond_model", slot="basis of a share", size=int)

# --- the report: whether to rely on it, what was not tested, use, a limit

declare("self_checks_failed", slot="reliance", failed=int, made=int)
declare("untrustworthy", slot="reliance")
declare("alarm_is_certain", slot="reliance", failed=int, made=int)
declare("self_checks_passed", slot="reliance", made=int, open=int)
declare("more_in_technical_part", number=int)
declare("more_in_annex", number=int)
declare("contents_not_tested", habits=tuple[str, ...], every_habit=bool)
declare("future_not_tested")
declare("use_measured", estimate=Estimate, original=Estimate | None)
declare("use_not_measured")
declare("limit_without_linking", slot="limit", percent=float)
declare(
    "limit_compared",
    slot="limit",
    percent=float,
    chosen_before=bool,
    estimate=Estimate,
    place=Literal["above", "unclear", "below"],
    group=tuple[Reference, ...] | None,
)

# --- the report: what to do next, and why

declare("advice_remedy", check=str)
declare("advice_stronger_anonymizer")
declare("unaware_attacker_finds", estimate=Estimate)
declare("advice_new_voices")
declare("anonymizer_helps_attacker", having=Estimate, lacking=Estimate)
declare("advice_fewer_recordings", length=int)
declare("fewer_recordings_help", before=Estimate, after=Estimate)
declare("advice_vary_parameters")
declare("recordings_inverted", estimate=Estimate)
declare("advice_treat_people", number=int)
declare("people_are_listed")
declare("linked_without", number=int, linked=Estimate, before=Estimate, attacker=str, about=str)
declare("advice_less_similar_voices")
declare("advice_decide_attribute", attribute=Reference)
declare("attribute_inferred", estimate=Estimate)
declare("advice_more_people")
declare("advice_assess_speech")
declare("interval_is_wide", low=float, high=float)
declare("advice_run_attackers", attackers=tuple[str, ...])
declare("advice_listen")
declare("advice_assess_again")

# --- the comparison of systems

declare("systems_find", systems=tuple[Reference, ...], shares=tuple[Estimate, ...])
declare("no_system_reliable", slot="recommendation")
declare("one_system_reliable", slot="recommendation", system=Reference, level=str)
declare(
    "system_protects_better",
    slot="recommendation",
    system=Reference,
    level=str,
    others=tuple[Reference, ...],
    unsure=tuple[Reference, ...],
)
declare("system_protects_best", slot="recommendation", system=Reference, level=str)
declare("no_system_better", slot="recommendation")
declare("no_reliable_system_better", slot="recommendation", systems=tuple[Reference, ...])
declare("best_system_unfit", slot="fitness")
declare("no_system_fit", slot="fitness")
declare("systems_not_judged", systems=tuple[Reference, ...])
declare("use_not_compared")
declare("trade_off", system=Reference, linked=Estimate, other=Reference, words=float)
