"""Any external program as an anonymizer: `--command 'myanon {input} {output}'`.

The program gets 16-bit WAV files of one channel at 16 kHz and must leave audio at the given paths;
libsndfile tells the format by the content. A program that takes long to start is run once for many recordings:
`{input_list} {output_list}` are text files with one path per line, `{input_folder} {output_folder}` folders with files
of the same names.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmeter.anonymizers.base import Draw, Output, Samples, check_choices, check_draw, draw_number, generator
from veilmeter.core.errors import InputError
from veilmeter.core.files import make_folder, scratch_folder
from veilmeter.core.processes import Program, end_marked, placeholders

if TYPE_CHECKING:
    from veilmeter.data.corpus import Utterance

IDS = ("utterance", "speaker")
VALUES = (*IDS, "seed", "draw")
PLACES = (("input", "output"), ("input_list", "output_list"), ("input_folder", "output_folder"))


@dataclass(frozen=True, slots=True)
class Command:
    """`{input}` and `{output}` stand for paths, whole arguments or parts of one; `{utterance}` and `{speaker}` for ids,
    `{seed}` for a number drawn for each speaker, or `per="utterance"` for each utterance, and `{draw}` for one from 0
    to `choices` - 1. With lists or folders, these are `{utterance_list}` and so on: files with one line per recording.
    The program must give the same for the same arguments if runs are to be repeatable.

    What it made is kept while the files that the line names are unchanged, or while `program_version` is.

    >>> Command("cp --no-clobber {input} {output}").arguments
    ('cp', '--no-clobber', '{input}', '{output}')
    """

    command: str
    timeout: float = 600.0
    seed: int = 0
    per: str = "speaker"
    program_version: str = ""
    batch: int = 500
    choices: int = 0
    work: Path | None = field(default=None, repr=False)
    program: Program = field(init=False, repr=False)
    name = "command"

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise InputError(f"--batch must be at least 1 (got {self.batch})")
        check_draw(self.per)
        places = _places(self.command)
        known = (*places, *VALUES) if places == PLACES[0] else (*places, *(f"{name}_list" for name in VALUES))
        program = Program.parse(
            self.command, known=known, needed=places, timeout=self.timeout, version=self.program_version
        )
        object.__setattr__(self, "program", program)
        if self.choices and not self._uses("draw"):
            raise InputError(f"the command does not say where its {self.choices} choices go", fix="write {draw} there")
        if self._uses("draw"):
            check_choices(self.choices)

    def _uses(self, name: str) -> bool:
        return bool({name, f"{name}_list"} & placeholders(self.arguments))

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.program.arguments

    @property
    def version(self) -> str:
        return self.program.version

    @property
    def draws(self) -> Draw:
        """Only the effect of the seed and of the draw is known, not what the program draws by itself."""
        return Draw(self.per) if self._uses("seed") or self._uses("draw") else Draw.UNKNOWN

    @property
    def unused(self) -> dict[str, str]:
        """Options that can't act with this line, and why."""
        seedless = "" if self.draws is not Draw.UNKNOWN else "the command has no {seed}"
        alone = "the command is started for each recording" if self.batch_size == 1 and self.batch > 1 else ""
        reasons = {"seed": seedless, "per": seedless, "batch": alone}
        return {option: reason for option, reason in reasons.items() if reason}

    @property
    def batch_size(self) -> int:
        """How many recordings one start of the program is given."""
        return 1 if "input" in placeholders(self.arguments) else self.batch

    def describe(self) -> str:
        return self.program.describe()

    def parameters(self, utterance: Utterance) -> dict[str, Any]:
        whose = utterance.speaker if self.per == "speaker" else utterance.id
        seed = int(generator(self.seed, f"{self.per}:{whose}").integers(2**31))
        values = {"utterance": utterance.id, "speaker": utterance.speaker, "seed": seed}
        if self._uses("draw"):
            values["draw"] = draw_number(self.choices, self.seed, self.per, utterance)
        return {"arguments": list(self.arguments), **{name: values[name] for name in values if self._uses(name)}}

    def working_in(self, folder: Path) -> Command:
        """With its files in that folder, which is emptied first: a run that was killed may have left speech there, and
        its program still at work."""
        place = Path(os.path.abspath(folder))
        end_marked(place)
        if place.is_symlink():
            place.unlink()
        shutil.rmtree(place, ignore_errors=True)
        return replace(self, work=place)

    def anonymize(self, samples: Samples, parameters: dict[str, Any]) -> Output:
        (outcome,) = self.anonymize_batch([(samples, parameters)])
        if isinstance(outcome, InputError):
            raise outcome
        return outcome

    def anonymize_batch(self, recordings: Iterable[tuple[Samples, dict[str, Any]]]) -> Iterator[Output | InputError]:
        """All of them by one start of the program, in their order. Where it ends badly, no output of it is used."""
        from veilmeter.speech.audio import write_audio

        with _scratch(self.work) as folder:
            (folder / "in").mkdir()
            (folder / "out").mkdir()
            names, parameters = [], []
            for number, (samples, wanted) in enumerate(recordings):  # one in memory at a time
                names.append(f"{number:06d}.wav")
                parameters.append(wanted)
                write_audio(folder / "in" / names[-1], samples)
            if not names:
                return
            del samples  # the last one, which may be long
            program = replace(self.program, timeout=self.timeout * len(names))
            try:
                program.run(_values(folder, names, parameters), folder, ids=IDS)
            except InputError as error:
                yield from [error] * len(names)
                return
            for name in names:
                yield self._output(folder / "out" / name)

    def _output(self, path: Path) -> Output | InputError:
        from veilmeter.speech.audio import RATE, read_recording

        if not path.is_file() or path.is_symlink():
            return InputError(f"{self.arguments[0]} ended without an error but wrote no output file")
        try:
            recording = read_recording(path)
        except InputError as error:
            return InputError(f"what {self.arguments[0]} left can't be used: {error.what}")
        remarks = []
        if recording.rate != RATE:
            remarks.append(f"the program left audio at {recording.rate} Hz, which was brought to {RATE} Hz")
        if recording.channels != 1:
            remarks.append(f"the program left {recording.channels} channels, which were averaged")
        return Output(recording.samples, tuple(remarks))


def _places(command: str) -> tuple[str, str]:
    """The pair of placeholders through which recordings go in and out."""
    chosen = [pair for pair in PLACES if any(f"{{{name}}}" in command for name in pair)]
    if len(chosen) > 1:
        raise InputError(
            f"the command mixes {{{chosen[0][0]}}} and {{{chosen[1][0]}}}", fix="use one pair: files, lists or folders"
        )
    return chosen[0] if chosen else PLACES[0]


@contextmanager
def _scratch(work: Path | None) -> Iterator[Path]:
    """A folder for one start of the program, gone afterwards; readable by its owner only."""
    if work is not None:
        make_folder(work)
    with scratch_folder(work) as folder:
        yield folder


def _values(folder: Path, names: Sequence[str], parameters: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What every placeholder stands for, the lists written as files."""
    values: dict[str, Any] = {"input_folder": folder / "in", "output_folder": folder / "out"}
    for place in ("in", "out"):
        values[f"{place}put"] = folder / place / names[0]
        values[f"{place}put_list"] = _list_file(folder, f"{place}put", [folder / place / name for name in names])
    for name in VALUES:
        if name in parameters[0]:
            values[name] = parameters[0][name]
            values[f"{name}_list"] = _list_file(folder, name, [chosen[name] for chosen in parameters])
    return values


def _list_file(folder: Path, name: str, lines: Sequence[Any]) -> Path:
    path = folder / f"{name}.txt"
    texts = [str(line) for line in lines]
    if broken := [text for text in texts if "\n" in text or "\r" in text]:
        raise InputError(f"the id {broken[0]!r} holds a line break and can't be in a list", fix="rename it")
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8", errors="surrogateescape")
    return path
