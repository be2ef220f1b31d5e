"""Any external program as an anonymizer: `--command 'myanon {input} {output}'`.

The line is split once, as a shell would split it, and run without a shell: no id, path or file name is ever
interpreted. The program gets a 16-bit WAV file of one channel at 16 kHz and must leave audio at the path it is told;
libsndfile tells the format by the content.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from veilmeter.anonymizers.base import Samples, generator
from veilmeter.core.errors import InputError

if TYPE_CHECKING:
    from veilmeter.data.corpus import Utterance

PLACEHOLDERS = ("input", "output", "utterance", "speaker", "seed")
TAIL = 2000  # characters of what the program said that an error repeats
_FIELD = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Command:
    """`{input}` and `{output}` stand for paths, whole arguments or parts of one; `{utterance}` and `{speaker}` for ids,
    `{seed}` for a number drawn from the seed for each speaker. The program must give the same for the same arguments
    if runs are to be repeatable.

    >>> Command("cp --no-clobber {input} {output}").arguments
    ('cp', '--no-clobber', '{input}', '{output}')
    """

    command: str
    timeout: float = 600.0
    seed: int = 0
    arguments: tuple[str, ...] = field(init=False)
    program_hash: str = field(init=False, repr=False)
    name = "command"

    def __post_init__(self) -> None:
        try:
            arguments = tuple(shlex.split(self.command))
        except ValueError as error:
            raise InputError(f"the command can't be split into arguments: {error}", fix="mend its quotes") from None
        if not arguments:
            raise InputError("the command is empty", fix="give --command 'program {input} {output}'")
        used = {name for argument in arguments for name in _FIELD.findall(argument)}
        if unknown := sorted(used - set(PLACEHOLDERS)):
            raise InputError(
                f"the command has the unknown placeholder {{{unknown[0]}}}",
                fix=f"known are {', '.join('{' + name + '}' for name in PLACEHOLDERS)}",
            )
        if missing := sorted({"input", "output"} - used):
            raise InputError(f"the command has no {{{missing[0]}}}", fix="it needs both {input} and {output}")
        if _FIELD.search(arguments[0]):
            raise InputError("the program itself can't be a placeholder", fix="name it")
        program = shutil.which(arguments[0])
        if program is None:
            raise InputError(f"there is no program {arguments[0]}", fix="install it, or give its full path")
        if not (isinstance(self.timeout, int | float) and self.timeout > 0):
            raise InputError(f"a time limit of {self.timeout!r} s makes no sense", fix="give a positive number")
        object.__setattr__(
            self, "arguments", (os.path.abspath(program), *arguments[1:]) if os.sep in arguments[0] else arguments
        )
        object.__setattr__(self, "program_hash", _digest(program))

    @property
    def version(self) -> str:
        """The program's own file; what an interpreter runs is in the parameters."""
        return self.program_hash

    def parameters(self, utterance: Utterance) -> dict[str, Any]:
        used = {name for argument in self.arguments for name in _FIELD.findall(argument)}
        seed = int(generator(self.seed, f"speaker:{utterance.speaker}").integers(2**31))
        values = {"utterance": utterance.id, "speaker": utterance.speaker, "seed": seed}
        return {"arguments": list(self.arguments), **{name: values[name] for name in values if name in used}}

    def anonymize(self, samples: Samples, parameters: dict[str, Any]) -> Samples:
        from veilmeter.speech.audio import read_audio, write_audio

        with tempfile.TemporaryDirectory(prefix="veilmeter-") as folder:  # mode 0700
            source, target = Path(folder, "input.wav"), Path(folder, "output.wav")
            write_audio(source, samples)
            values = {**parameters, "input": source, "output": target}
            self._run([_filled(argument, values) for argument in parameters["arguments"]], folder)
            if not target.is_file() or target.is_symlink():
                raise InputError(f"{self.arguments[0]} ended well but left no output file")
            try:
                return np.asarray(read_audio(target), dtype=np.float32)
            except InputError as error:
                raise InputError(f"what {self.arguments[0]} left can't be used: {error.what}") from None

    def _run(self, arguments: list[str], folder: str) -> None:
        said = Path(folder, "said.txt")
        with open(said, "wb") as out:
            try:
                # A session of its own, so that a program that starts others can be ended with all of them.
                process = subprocess.Popen(
                    arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
                )
            except (OSError, ValueError) as error:
                raise InputError(f"{arguments[0]} can't be run: {getattr(error, 'strerror', None) or error}") from None
            try:
                code = process.wait(timeout=self.timeout)
            except subprocess.TimeoutExpired:
                raise InputError(
                    f"{arguments[0]} was still running after {self.timeout:g} s and was ended{_tail(said)}",
                    fix="allow more with --timeout",
                ) from None
            finally:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)  # whatever it left behind
                process.wait()
        if code != 0:
            how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
            raise InputError(f"{arguments[0]} {how}{_tail(said)}")


def _filled(argument: str, values: dict[str, Any]) -> str:
    """The argument with its placeholders filled, all at once: a value that looks like a placeholder stays as it is.
    Ids come from strangers, and one must not turn into an option."""
    first = _FIELD.match(argument)
    if first and first[1] in ("utterance", "speaker") and str(values[first[1]]).startswith("-"):
        raise InputError(f"the id {values[first[1]]!r} would be taken for an option", fix="rename it")
    return _FIELD.sub(lambda found: str(values[found[1]]), argument)


def _tail(said: Path) -> str:
    with open(said, "rb") as handle:
        handle.seek(max(0, said.stat().st_size - 4 * TAIL))
        text = handle.read().decode("utf-8", "replace").strip()[-TAIL:]
    return f"; it said: {text}" if text else ""


def _digest(program: str) -> str:
    try:
        with open(program, "rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()[:16]
    except OSError:
        return "unknown"
