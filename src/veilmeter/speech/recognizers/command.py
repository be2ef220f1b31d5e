"""Any external program as a recognizer: `command:myasr {input}` prints what it hears."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from veilmeter.core.program import Program
from veilmeter.speech.audio import write_audio
from veilmeter.speech.recognizers.base import Samples, Transcript

TIMEOUT = 600.0


class CommandRecognizer:
    """`{input}` stands for the path of a 16-bit WAV file of one channel at 16 kHz, `{language}` for the language. All
    that the program prints on standard output is the text."""

    def __init__(self, command: str, language: str, timeout: float = TIMEOUT) -> None:
        self._program = Program.parse(command, known=("input", "language"), needed=("input",), timeout=timeout)
        self.name = "command"
        line = "\0".join(self._program.arguments).encode("utf-8", "surrogateescape")
        self.version = f"{self._program.version}-{hashlib.sha256(line).hexdigest()[:12]}"
        self.language = language

    def transcribe(self, samples: Samples) -> Transcript:
        with tempfile.TemporaryDirectory(prefix="veilmeter-") as folder:  # mode 0700
            source = Path(folder, "input.wav")
            write_audio(source, samples)
            printed = self._program.run({"input": source, "language": self.language}, folder)
        return Transcript(" ".join(printed.split()))
