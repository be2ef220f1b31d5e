"""A corpus layout: a list of calls with a customer each, beside the recordings."""

from pathlib import Path

from veilmeter import Utterance
from veilmeter.data.layouts import Evidence, Layout, Reading, ReadOptions


def recognizes(path: Path) -> bool:
    return (path / "calls.txt").is_file()


def read(path: Path, options: ReadOptions) -> Reading:
    reading = Reading()
    for line in (path / "calls.txt").read_text(encoding="utf-8").splitlines():
        call, customer = line.split()
        reading.utterances.append(Utterance(call, customer, path / f"{call}.wav"))
    return reading


LAYOUT = Layout(recognizes, read, Evidence.LISTS)
