"""Which column of a score file or a trial key is which: as named, as its header says, or as its first lines show.

    enroll test score                Kaldi, VoicePrivacy
    enroll test score label          WeSpeaker
    enroll test label score          SpeechBrain's verification recipe
    score enroll test                VoxSRC
    label enroll test                VoxCeleb's trial list; with a score behind it, its scored form
    modelid segmentid side LLR       NIST SRE, by its header; so its key, with `targettype` as the last column

Columns may be separated by white space or commas. Nothing is guessed: where the first lines leave it open, an error
asks for the names of the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from veilmeter.core.errors import InputError
from veilmeter.data.formats.columns import PIECE, Faults, LineColumns, raw_pieces, rows, text

ENROLL, TEST, SCORE, LABEL, UNUSED = "enroll", "test", "score", "label", "-"
ROLES = (ENROLL, TEST, SCORE, LABEL)
HEAD = 200  # lines by which columns are recognized
HEADERS = {
    ENROLL: "enroll enrollment enroll_id model modelid model_id speaker speaker_id spk utt1 id1 file1 path1 wav1 first "
    "reference",
    TEST: "test test_id trial segment segmentid segment_id utterance utterance_id utt utt2 id2 file2 path2 wav2 second "
    "probe",
    SCORE: "score scores llr cosine similarity prediction",
    LABEL: "label target targettype is_target key class same same_speaker truth",
}
ROLE_OF_WORD = {word.replace("oll", "ol"): role for role, words in HEADERS.items() for word in words.split()}
LABELS: dict[bytes, bool] = {
    b"target": True,
    b"nontarget": False,
    b"non-target": False,
    b"impostor": False,
    b"imposter": False,
    b"tgt": True,
    b"imp": False,
    b"1": True,
    b"0": False,
}


@dataclass(frozen=True, slots=True)
class ColumnRoles:
    """The roles of a file's columns in their order, `-` for one that is not used, and whether the first line names
    them."""

    roles: tuple[str, ...]
    header: bool = False

    def places(self, wanted: Sequence[str]) -> list[int]:
        return [self.roles.index(role) for role in wanted if role in self.roles]


PLAIN = ColumnRoles((ENROLL, TEST, SCORE))
LABELED = ColumnRoles((*PLAIN.roles, LABEL))


def parse_columns(names: str) -> tuple[str, ...]:
    """The roles that a user names, separated by commas.

    >>> parse_columns("enroll,test,label,score")
    ('enroll', 'test', 'label', 'score')
    """
    roles = tuple(name.strip().lower() for name in names.split(","))
    known = [role for role in roles if role != UNUSED]
    wrong = [role for role in known if role not in ROLES or known.count(role) > 1]
    if wrong or not {ENROLL, TEST, SCORE} <= set(known):
        raise InputError(
            f"--columns {names}: {f'{wrong[0]!r} is not a column' if wrong else 'enroll, test and score are required'}",
            fix="name every column once, in the file's order: enroll, test, score, label, or - for any other",
        )
    return roles


def score_rows(
    path: str | Path, notes: Faults, *, columns: str | None = None, size: int = PIECE, coded: bool = True
) -> Iterator[LineColumns]:
    """The lines of a score file: enrollment, test, score and, where the file has it, the label."""
    named = None if columns is None else parse_columns(columns)
    try:
        found = score_columns(path, named)
    except InputError as open_question:
        notes.add("columns", open_question.what, path, [open_question.line], fix=open_question.fix or "")
        return
    widths = (3, 4) if found in (PLAIN, LABELED) else (len(found.roles),)
    number = found.roles.index(SCORE)
    for part in rows(path, widths, "a score file", notes, size=size, number=number, coded=coded, header=found.header):
        in_order = found.places(ROLES) if len(part.columns) == len(found.roles) else range(len(part.columns))
        yield LineColumns([part.columns[place] for place in in_order], part.lines)


def key_rows(path: str | Path, notes: Faults, *, size: int = PIECE, coded: bool = True) -> Iterator[LineColumns]:
    """The lines of a trial key: its three columns, or those that its header names, in the order enroll, test, label."""
    lines = _head(path)
    found = columns_of_header(lines[0], of_scores=False) if lines else None
    if found is None:
        yield from rows(path, (3,), "a trial key", notes, size=size, coded=coded)
        return
    width = len(found.roles)
    for part in rows(path, (width,), "a trial key", notes, size=size, coded=coded, header=True):
        yield LineColumns([part.columns[place] for place in found.places((ENROLL, TEST, LABEL))], part.lines)


def score_columns(path: str | Path, named: tuple[str, ...] | None = None) -> ColumnRoles:
    """The columns of a score file: as the user names them, as its header does, or as its first lines show. Faults in
    files of 3 columns are reported line by line, as those of Kaldi's layout."""
    lines = _head(path)
    if named is not None:
        place = named.index(SCORE)
        has_header = len(lines) > 1 and len(lines[0]) == len(named) and not is_number(lines[0][place])
        return ColumnRoles(named, header=has_header)
    found = (columns_of_header(lines[0], of_scores=True) if lines else None) or columns_of_lines(lines)
    widths = [len(line) for line in lines]
    width = max(set(widths), key=widths.count, default=3)
    if found is not None or width <= 3:
        return found or PLAIN
    shown = " ".join(text(word)[:30] for word in lines[0])
    raise InputError(
        f"which of the {width} columns is which? The first line is: {shown[:160]}",
        path=path,
        line=1,
        fix="name them in this order, such as --columns enroll,test,label,score; - stands for any other column",
    )


def _head(path: str | Path) -> list[list[bytes]]:
    """The first lines that are not blank, as words; none of a file that can't be read, which its reader reports."""
    try:
        data = next((data for data, _, _ in raw_pieces(path, size=1 << 16)), b"")
    except InputError:
        return []
    lines = (line.split() for line in data.split(b"\n")[:HEAD])
    return [line for line in lines if line]


def columns_of_header(names: Sequence[bytes], *, of_scores: bool) -> ColumnRoles | None:
    """The columns that these words name, if they name all that are needed, each once.

    >>> columns_of_header([b"modelid", b"segmentid", b"side", b"LLR"], of_scores=True).roles
    ('enroll', 'test', '-', 'score')
    """
    roles = tuple(ROLE_OF_WORD.get(text(name).lower().strip("#").replace("oll", "ol"), UNUSED) for name in names)
    needed = (ENROLL, TEST, SCORE if of_scores else LABEL)
    if any(roles.count(role) != 1 for role in needed) or roles.count(LABEL) > 1:
        return None
    return ColumnRoles(roles, header=True)


def columns_of_lines(lines: Sequence[Sequence[bytes]]) -> ColumnRoles | None:
    """The layouts above, by which columns hold numbers and which labels; None where that leaves it open.

    >>> columns_of_lines([[b"a", b"a-1", b"1", b"0.8"], [b"a", b"b-1", b"0", b"0.1"]]).roles
    ('enroll', 'test', 'label', 'score')
    """
    widths = [len(line) for line in lines]
    width = max(set(widths), key=widths.count, default=0)
    columns = list(zip(*(line for line in lines if len(line) == width), strict=True))
    numbers = [place for place, words in enumerate(columns) if sum(map(is_number, words)) > len(words) / 2]
    labels = [place for place, words in enumerate(columns) if sum(map(_is_label, words)) > len(words) / 2]
    if width == 3:
        return PLAIN if 2 in numbers else ColumnRoles((SCORE, ENROLL, TEST)) if numbers == [0] else None
    if width != 4:
        return None
    if 2 in numbers and 3 in labels:
        return LABELED
    if 3 in numbers and 2 in labels and 0 not in labels:
        return ColumnRoles((ENROLL, TEST, LABEL, SCORE))
    if 3 in numbers and 0 in labels and 2 not in numbers:
        return ColumnRoles((LABEL, ENROLL, TEST, SCORE))
    return LABELED if numbers == [2] or numbers == [0, 2] else None


def is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return b"_" not in word


def _is_label(word: bytes) -> bool:
    return word.lower() in LABELS
