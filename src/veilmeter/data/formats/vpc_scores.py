"""What the VoicePrivacy challenge's own tools leave in `exp/`: scores, and vectors of utterances."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from veilmeter.data.formats.vectors import is_vector_folder
from veilmeter.data.formats.vpc import DataFolder, parse


@dataclass(frozen=True, slots=True)
class ScoreFile:
    """Scores that the challenge's tools left: where, by which attacker, of which enrollment and trials."""

    path: Path
    system: str
    enrollment: DataFolder
    trials: DataFolder

    @property
    def attacker(self) -> str:
        """Who made them, by the challenge's own names: `original` compares original speech alone, to see whether the
        extractor works at all."""
        if not self.trials.suffix:
            return "original"
        if not self.enrollment.suffix:
            return "ignorant"
        return "semi-informed" if VectorFolder.is_adapted(self.system) else "lazy-informed"


@dataclass(frozen=True, slots=True)
class VectorFolder:
    """Vectors that the challenge's tools left of the utterances of one data folder, by one extractor (`system`)."""

    path: Path
    system: str
    folder: DataFolder

    @staticmethod
    def is_adapted(system: str) -> bool:
        """Whether the extractor was trained on anonymized speech."""
        return system.startswith("asv_anon")


def find_vectors(exp: str | Path) -> list[VectorFolder]:
    """Every folder of vectors of utterances below `exp/asv_*`; what an interrupted run left is none."""
    folders = []
    for path in sorted(Path(exp).glob("asv_*/*_out/*/*/utt-level")):
        folder = parse(path.parent)
        if folder is not None and is_vector_folder(path):
            folders.append(VectorFolder(path, path.relative_to(exp).parts[0], folder))
    return folders


def find_scores(exp: str | Path, suffix: str | None = None) -> list[ScoreFile]:
    """Every score file below `exp/asv_*`, of the 2024 and 2026 tools and of VoicePAT; with `suffix` those that have
    nothing to do with another variant."""
    score_files = []
    for pattern in ("asv_*/*/scores", "asv_*/*_out/*/scores"):
        for path in sorted(Path(exp).glob(pattern)):
            sides = _two_folders(path.parent.name)
            if sides is None or not path.is_file():
                continue
            if suffix is None or {side.suffix for side in sides} <= {"", suffix}:
                score_files.append(ScoreFile(path, path.relative_to(exp).parts[0], *sides))
    return score_files


def _two_folders(name: str) -> tuple[DataFolder, DataFolder] | None:
    """`libri_dev_enrolls_mcadams-libri_dev_trials_f_mcadams` as its two folders."""
    for at, letter in enumerate(name):
        if letter == "-":
            enrollment, trials = parse(Path(name[:at])), parse(Path(name[at + 1 :]))
            if enrollment and trials and enrollment.is_enrollment and trials.is_trial:
                return enrollment, trials
    return None
