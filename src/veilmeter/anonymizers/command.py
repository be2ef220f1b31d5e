"""Any external program as an anonymizer: `--command 'myanon {input} {output}'`.

The program gets a 16-bit WAV file of one channel at 16 kHz and must leave audio at the path it is told; libsndfile
tells the format by the content.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from veilmeter.anonymizers.base import Samples, generator
from veilmeter.core.errors import InputError
from veilmeter.core.program import Program, placeholders

if TYPE_CHECKING:
    from veilmeter.data.corpus import Utterance

PLACEHOLDERS = ("input", "output", "utterance", "speaker", "seed")
IDS = ("utterance", "speaker")


@dataclass(frozen=True, slots=True)
class Command:
    """`{input}` and `{output}` stand for paths, `{utterance}` and `{speaker}` for ids, `{seed}` for a number drawn from
    the seed for each speaker. The program must give the same for the same arguments if runs are to be repeatable.

    >>> Command("cp --no-clobber {input} {output}").arguments
    ('cp', '--no-clobber', '{input}', '{output}')
    """

    command: str
    timeout: float = 600.0
    seed: int = 0
    program: Program = field(init=False, repr=False)
    name = "command"

    def __post_init__(self) -> None:
        program = Program.parse(self.command, known=PLACEHOLDERS, needed=("input", "output"), timeout=self.timeout)
        object.__setattr__(self, "program", program)

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.program.arguments

    @property
    def version(self) -> str:
        """The program's own file; what an interpreter runs is in the parameters."""
        return self.program.version

    def parameters(self, utterance: Utterance) -> dict[str, Any]:
        used = placeholders(self.arguments)
        seed = int(generator(self.seed, f"speaker:{utterance.speaker}").integers(2**31))
        values = {"utterance": utterance.id, "speaker": utterance.speaker, "seed": seed}
        return {"arguments": list(self.arguments), **{name: values[name] for name in values if name in used}}

    def anonymize(self, samples: Samples, parameters: dict[str, Any]) -> Samples:
        from veilmeter.speech.audio import read_audio, write_audio

        with tempfile.TemporaryDirectory(prefix="veilmeter-") as folder:  # mode 0700
            source, target = Path(folder, "input.wav"), Path(folder, "output.wav")
            write_audio(source, samples)
            self.program.run({**parameters, "input": source, "output": target}, folder, ids=IDS)
            if not target.is_file() or target.is_symlink():
                raise InputError(f"{self.arguments[0]} ended well but left no output file")
            try:
                return np.asarray(read_audio(target), dtype=np.float32)
            except InputError as error:
                raise InputError(f"what {self.arguments[0]} left can't be used: {error.what}") from None
