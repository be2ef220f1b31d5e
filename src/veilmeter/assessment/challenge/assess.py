"""A folder of VoicePrivacy data, set by set: everything an assessment needs is found in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from veilmeter.assessment.attacker_settings import AttackerSettings
from veilmeter.assessment.challenge.table import (
    ChallengeRow,
    Emotions,
    measure_emotions,
    rank_table,
    speaker_rows,
    write_rows,
)
from veilmeter.assessment.forecast import forecast_work
from veilmeter.assessment.protocol import GivenProtocol
from veilmeter.assessment.run import run_assessment
from veilmeter.assessment.settings import Settings
from veilmeter.assessment.stages import Forecast
from veilmeter.attacks.attacker import BASELINE, attacker_name, attackers_for
from veilmeter.core.engine import Say
from veilmeter.core.errors import InputError, Problem, refuse
from veilmeter.core.files import make_folder, open_input, to_json, write_text
from veilmeter.core.findings import Finding, file_reference, warning
from veilmeter.data.corpus import SIDES, Corpus, SpeechRole
from veilmeter.data.formats.vpc import (
    Challenge,
    ChallengeSet,
    ScoreFile,
    TwoSides,
    VectorFolder,
    data_folders,
    find_scores,
    find_sets,
    find_vectors,
    read_folders,
)
from veilmeter.results.run_folder import Assessment

RULE = "speechbrain"  # how the challenges since 2024 take the EER
NOT_USED = "not_used.jsonl"
TABLE = "result_for_rank"
PEOPLE = "eer_per_speaker"
EMOTIONS = "emotions.csv"
# What --vpc finds by itself.
FOUND = (
    "original", "anonymized", "train_original", "train_anonymized", "enroll", "trials", "layout", "part", "columns",
    "channel", "distractors_original",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class ChallengeAssessment:
    """The assessments of a variant by set, such as `libri_test_trials_f`; what the folder holds beside them and was not
    used; the table in the challenge's form; and how well emotions are recognized, by emotion set."""

    suffix: str
    sets: Mapping[str, Assessment]
    not_used: tuple[Problem, ...]
    table: str
    folder: Path
    emotions: tuple[Emotions, ...] = ()

    @property
    def left_out(self) -> int:
        """Recordings and sets that were given and could not be assessed."""
        recordings = [run.left_out for run in self.sets.values()] + [measured.left_out for measured in self.emotions]
        return sum(recordings) + sum(problem.fatal for problem in self.not_used)


def assess_challenge(
    settings: Settings,
    out: str | Path,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    argv: Sequence[str] = (),
    say: Say | None = None,
    forecast: Forecast | None = None,
    first: Callable[[ChallengeAssessment], bool] | None = None,
) -> ChallengeAssessment:
    """Assess every set and gender of the folder `settings.vpc` in the variant `settings.suffix`, each into a
    separate folder below `out`, beside a table of all of them.

    With `first`, the attackers' verdicts of all sets come before utility and further extractors of any set, and are
    passed to `first`; these follow if it returns True.
    """
    refuse_found(settings)
    assert settings.vpc is not None
    root, folder = Path(settings.vpc), make_folder(out)
    challenge = find_sets(root, settings.suffix or _only_suffix(root), settings.sets)
    if settings.strict:
        refuse(challenge.problems)
    left = _LeftBeside(root, challenge)
    forecast = forecast or Forecast()
    sets = {each.name: _SetSpeech.of(each, challenge, settings) for each in challenge.sets}
    _expect_sets(forecast, sets, settings, folder, jobs)
    how: dict[str, Any] = {"jobs": jobs, "cluster": cluster, "argv": argv, "say": say, "forecast": forecast}
    if first is not None:
        assessments = _assess_sets(challenge, sets, settings, folder, left, {**how, "first": lambda assessment: False})
        if any(assessment.results.pending for assessment in assessments.values()):
            known = _write_tables(challenge, assessments, (), _not_used(challenge, left), folder)
            if not first(known):
                return known
    assessments = _assess_sets(challenge, sets, settings, folder, left, how)
    emotions, unmeasured = measure_emotions(
        challenge.emotion,
        settings,
        jobs=jobs,
        cluster=cluster,
        say=say or (lambda text: None),
        forecast=forecast,
    )
    not_used = (*unmeasured, *_not_used(challenge, left))
    return _write_tables(challenge, assessments, emotions, not_used, folder)


def _expect_sets(
    forecast: Forecast, sets: Mapping[str, _SetSpeech], settings: Settings, folder: Path, workers: int
) -> None:
    """The work of all sets; training speech that several of them share is read once."""
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for name, speech in sets.items():
        new = {role: corpora for role, corpora in speech.sources.items() if (role, speech.folders[role]) not in seen}
        seen |= {(role, speech.folders[role]) for role in new}
        own = replace(settings, vpc=None, sets=(), suffix=None, **speech.folders)
        forecast.expect(name, forecast_work(own, new, {}, folder / name), workers)


def _assess_sets(
    challenge: Challenge,
    sets: Mapping[str, _SetSpeech],
    settings: Settings,
    folder: Path,
    left: _LeftBeside,
    how: Mapping[str, Any],
) -> dict[str, Assessment]:
    """Every set by its name; `how` is what `assess` is told beside its settings."""
    assessments: dict[str, Assessment] = {}
    for challenge_set in challenge.sets:
        if how["say"] is not None:
            how["say"](f"{challenge_set.name} ({len(assessments) + 1} of {len(challenge.sets)})")
        place = make_folder(folder / challenge_set.name)
        speech = sets[challenge_set.name]
        chosen = replace(
            settings,
            vpc=None,
            sets=(),
            suffix=None,
            **speech.folders,
            attackers=left.attackers(challenge_set, settings),
            title=settings.title or f"{challenge_set.name}, {challenge.suffix.lstrip('_')}",
        )
        assessments[challenge_set.name] = run_assessment(
            speech.original,
            speech.anonymized,
            settings=chosen,
            out=place,
            set_name=challenge_set.name,
            protocol=_protocol(challenge_set, speech.original, place, left.findings(challenge_set)),
            **{**how, **speech.beside},
        )
    return assessments


def _not_used(challenge: Challenge, left: _LeftBeside) -> list[Problem]:
    return [*challenge.problems, *_speech_not_used(challenge), *left.not_used()]


def _speech_not_used(challenge: Challenge) -> list[Problem]:
    """Training speech that no set has a use for, as that in other languages."""
    trained = {pair.name for challenge_set in challenge.sets for pair in training_of(challenge_set, challenge)}
    what = "training speech of no set that was assessed, or the same speech again"
    return [
        Problem("not-used", what, str(side.path), fatal=False)
        for pair in challenge.training
        if pair.name not in trained
        for side in pair.sides
    ]


def _write_tables(
    challenge: Challenge,
    assessments: Mapping[str, Assessment],
    emotions: Sequence[Emotions],
    not_used: Sequence[Problem],
    folder: Path,
) -> ChallengeAssessment:
    """The table in the challenge's form, the same as CSV, and what was not used."""
    rows = [
        ChallengeRow.of(challenge_set, attacker)
        for challenge_set in challenge.sets
        for attacker in assessments[challenge_set.name].results.attackers.values()
    ]
    words = {
        challenge_set.name: assessments[challenge_set.name].results.part("utility").single("wer")
        for challenge_set in challenge.sets
    }
    emotion_rows = [row for measured in emotions for row in measured.rows()]
    table = rank_table(rows, {name: wer for name, wer in words.items() if wer is not None}, emotion_rows)
    write_text(folder / f"{TABLE}{challenge.suffix}", table)
    write_rows(folder / f"{TABLE}{challenge.suffix}.csv", rows)
    people = [row for name, done in assessments.items() for row in speaker_rows(name, folder / name, done.results)]
    write_rows(folder / f"{PEOPLE}{challenge.suffix}.csv", people)
    if emotion_rows:
        write_rows(folder / EMOTIONS, emotion_rows)
    else:
        (folder / EMOTIONS).unlink(missing_ok=True)  # of an earlier run
    written = (f"{TABLE}{challenge.suffix}", f"{TABLE}{challenge.suffix}.csv", f"{PEOPLE}{challenge.suffix}.csv")
    for old in (*folder.glob(f"{TABLE}*"), *folder.glob(f"{PEOPLE}*")):
        if old.name not in written:
            old.unlink()  # of another variant, by an earlier run
    what = "a run folder of an earlier run, which assessed other sets"
    earlier = [old.parent for old in sorted(folder.glob("*/results.json")) if old.parent.name not in assessments]
    not_used = [*not_used, *(Problem("earlier-run", what, str(old), fatal=False) for old in earlier)]
    lines = [{"path": problem.path, "kind": problem.kind, "what": problem.what} for problem in not_used]
    write_text(folder / NOT_USED, "".join(to_json(line, indent=None) + "\n" for line in lines))
    return ChallengeAssessment(challenge.suffix, assessments, tuple(not_used), table, folder, tuple(emotions))


def refuse_found(settings: Settings) -> None:
    """What --vpc finds by itself can't be given beside it."""
    for name in FOUND:
        if getattr(settings, name):
            raise InputError(
                f"--{name.replace('_', '-')} and --vpc exclude each other: --vpc finds it in the folder",
                fix=f"leave out --vpc, or --{name.replace('_', '-')}",
            )
    for name, options in settings.attackers.items():
        if options.scores or options.has_own_vectors:
            raise InputError(
                f"attackers.{name}: scores and vectors belong to one set, and --vpc assesses several",
                fix="put them under exp/asv_*, where the challenge's tools do, or assess the set by --original",
            )


def _only_suffix(root: Path) -> str:
    """The variant that is there, if it is one."""
    suffixes = sorted({folder.suffix for folder in data_folders(root)} - {""})
    if len(suffixes) > 1:
        raise InputError(
            f"there are several anonymized variants: {', '.join(suffixes)}", path=root, fix="say which with --suffix"
        )
    return suffixes[0] if suffixes else ""


@dataclass(frozen=True, eq=False)
class _SetSpeech:
    """The recordings of one set, the training speech of its language, and distractors."""

    original: Corpus
    anonymized: Corpus
    beside: Mapping[str, list[Corpus]]
    folders: Mapping[str, Any]  # by role, for the record

    @property
    def sources(self) -> dict[SpeechRole, list[Corpus]]:
        """The recordings by role."""
        sides = dict(zip(SIDES, ([self.original], [self.anonymized]), strict=True))
        return sides | {SpeechRole(role): corpora for role, corpora in self.beside.items()}

    @classmethod
    def of(cls, challenge_set: ChallengeSet, challenge: Challenge, settings: Settings) -> _SetSpeech:
        roots = tuple(map(Path, settings.root))
        original, anonymized = challenge_set.corpora(roots)
        sets = (challenge_set.enrollment, challenge_set.trials)
        trained = training_of(challenge_set, challenge)
        further = distractors_in(challenge, settings.distractors)
        pairs_of = {
            "train_original": trained, "train_anonymized": trained, "distractors_original": further,
            "distractors": further,
        }  # fmt: skip
        folders: dict[str, tuple[str, ...]] = {
            side: tuple(str(getattr(pair, side).path) for pair in sets) for side in SIDES
        }
        beside: dict[str, list[Corpus]] = {}
        for role, pairs in pairs_of.items():
            parts = [pair.original if SpeechRole(role).is_original else pair.anonymized for pair in pairs]
            folders[role] = tuple(str(part.path) for part in parts)
            if parts:
                beside[role] = [read_folders([part], roots) for part in parts]
        return cls(original, anonymized, beside, folders)


def distractors_in(challenge: Challenge, names: Sequence[str]) -> list[TwoSides]:
    """The folders of these names, with or without the suffix of the variant."""
    sides = [side for challenge_set in challenge.sets for side in (challenge_set.enrollment, challenge_set.trials)]
    known = {pair.name: pair for pair in (*sides, *challenge.training)}
    wanted = [Path(name).name.removesuffix(challenge.suffix) for name in names]
    for name in wanted:
        if name not in known:
            raise InputError(
                f"--distractors {name}: there is no such folder in both versions", fix=f"choose from {', '.join(known)}"
            )
    return [known[name] for name in dict.fromkeys(wanted)]


def training_of(challenge_set: ChallengeSet, challenge: Challenge) -> list[TwoSides]:
    """Training speech in the language of the set. Where the same speech occurs twice (2020: with sessions and with
    people as speakers), the one that knows people."""
    language = challenge_set.trials.original.language
    pairs = [pair for pair in challenge.training if pair.original.language in ("", language)]
    by_people = {pair.name.removesuffix("-asv") for pair in pairs if pair.name.endswith("-asv")}
    return [pair for pair in pairs if pair.name not in by_people]


def _protocol(challenge_set: ChallengeSet, original: Corpus, place: Path, findings: Sequence[Finding]) -> GivenProtocol:
    """The protocol of a set. Its trials are written as the challenge's scorer counts them: they are the key of the
    scores that its tools left."""
    lists = challenge_set.protocol(original)
    trials = challenge_set.trial_list()
    lines = [
        f"{speaker} {utterance} {'target' if is_target else 'nontarget'}\n"
        for speaker, utterance, is_target in zip(trials.speakers, trials.utterances, trials.is_target, strict=True)
    ]
    write_text(place / "trials", "".join(lines))
    return GivenProtocol(
        lists.enrollment,
        lists.key,
        Finding("split_by_challenge"),
        keys=(str(place / "trials"),),
        findings=(*lists.findings, *findings),
        eer_rules=(RULE,),
        common_trials=True,
    )


class _LeftBeside:
    """Scores and vectors that the challenge's tools left in `exp/`, by attacker."""

    def __init__(self, root: Path, challenge: Challenge) -> None:
        places = [place for place in (root / "exp", root.parent / "exp") if place.is_dir()]
        self.scores = [file for place in places for file in find_scores(place)]
        self.vectors = [folder for place in places for folder in find_vectors(place)]
        self.suffix = challenge.suffix
        self._used: set[Path] = set()

    def attackers(self, challenge_set: ChallengeSet, settings: Settings) -> dict[str, AttackerSettings]:
        """The tables of the attackers, with scores and vectors of this set; nobody else is left out for that."""
        tables = dict(settings.attackers)
        if not set(tables) - {BASELINE}:
            tables |= {name: AttackerSettings() for name in attackers_for(settings.measures)}
        asked = {*tables, BASELINE}
        given: dict[str, dict[str, Any]] = {}
        for file in self._scores_of(challenge_set):
            name = attacker_of(file)
            if name is not None and name in asked and "scores" not in given.get(name, {}):
                given.setdefault(name, {})["scores"] = (str(file.path),)
                self._used.add(file.path)
        for name, sides in self._vectors_of(challenge_set).items():
            if name in asked:
                given.setdefault(name, {}).update(sides)
        if not given and not settings.attackers:
            return {}
        return tables | {name: replace(tables.get(name, AttackerSettings()), **found) for name, found in given.items()}

    def _scores_of(self, challenge_set: ChallengeSet) -> list[ScoreFile]:
        wanted = (challenge_set.enrollment.name, challenge_set.trials.name)
        return [
            file
            for file in self.scores
            if (file.enrollment.base, file.trials.base) == wanted
            and {file.enrollment.suffix, file.trials.suffix} <= {"", self.suffix}
            and file.attacker is not None
        ]

    def _vectors_of(self, challenge_set: ChallengeSet) -> dict[str, dict[str, tuple[str, ...]]]:
        """By attacker the vectors of both folders of a set: of the extractor that was trained on anonymized speech, its
        anonymized side; of the other, both sides."""
        bases = (challenge_set.enrollment.name, challenge_set.trials.name)
        by_system: dict[str, dict[tuple[str, str], Path]] = {}
        for folder in self.vectors:
            by_system.setdefault(folder.system, {})[folder.folder.base, folder.folder.suffix] = folder.path
        found: dict[str, dict[str, tuple[str, ...]]] = {}
        for system, paths in by_system.items():
            sides = {
                side: tuple(paths[base, suffix] for base in bases if (base, suffix) in paths)
                for side, suffix in (("original", ""), ("anonymized", self.suffix))
            }
            complete = {side: there for side, there in sides.items() if len(there) == len(bases)}
            names = ["ignorant", "lazy-informed"] if len(complete) == 2 else []
            if VectorFolder.is_adapted(system):
                names = [attacker_name("vpc-semi-informed")]
                complete.pop("original", None)
            if "anonymized" not in complete:
                continue
            for name in names:
                found.setdefault(name, {side: tuple(map(str, there)) for side, there in complete.items()})
            if names:
                self._used |= {path for there in complete.values() for path in there}
        return found

    def findings(self, challenge_set: ChallengeSet) -> list[Finding]:
        """What to know of the scores that are used: trials without one, and speech that is newer than they are."""
        findings = []
        listed = len(challenge_set.trial_list())
        anonymized = challenge_set.trials.anonymized.path
        newest = max((file.stat().st_mtime for file in anonymized.rglob("*.wav")), default=0.0)
        for file in self._scores_of(challenge_set):
            with open_input(file.path) as lines:
                scored = sum(1 for line in lines if line.strip())
            if scored != listed:
                findings.append(
                    warning("scores_and_trials_differ", file=file_reference(file.path), scores=scored, trials=listed)
                )
            if file.trials.suffix and file.path.stat().st_mtime < newest:
                findings.append(warning("scores_older_than_speech", file=file_reference(file.path)))
        return findings

    def not_used(self) -> list[Problem]:
        """Scores and vectors of other sets and variants, or beside those that were used."""
        problems = []
        for path in (*(file.path for file in self.scores), *(folder.path for folder in self.vectors)):
            if path not in self._used:
                what = "it is of another set, variant or attacker, a second one of its kind, or incomplete"
                problems.append(Problem("not-used", what, str(path), fatal=False))
        return problems


def attacker_of(file: ScoreFile) -> str | None:
    """The attacker with these scores, by its name here: what the challenge calls semi-informed is informed."""
    return attacker_name("vpc-semi-informed") if file.attacker == "semi-informed" else file.attacker
