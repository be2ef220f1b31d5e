"""Score files: two ids and a number per line, in some a label; joined with their trial key.

A file may also be streamed, so that it is never in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding
from veilmeter.data.formats.column_roles import LABELS, key_rows, score_rows
from veilmeter.data.formats.columns import PIECE, Codes, Faults, LineColumns, WordColumn, rows, text
from veilmeter.data.formats.trials import TrialTable, is_label_first, label_column, labels_of, read_trials
from veilmeter.data.scores import Scores

ONLY_COMMON = "use --only-common to measure the pairs that are in both files"


@dataclass(frozen=True, eq=False, slots=True)
class ScoreTable:
    """A score file's lines: ids as codes, scores, labels if there is a fourth column, and the line of each."""

    path: str
    enroll: NDArray[np.int32]
    test: NDArray[np.int32]
    values: NDArray[np.float64]
    is_target: NDArray[np.bool_] | None
    lines: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.values)


def read_scores(
    path: str | Path,
    trials: str | Path | None = None,
    *,
    layout: str | None = None,
    utt2spk: str | Path | None = None,
    only_common: bool = False,
    columns: str | None = None,
) -> Scores:
    """A score file joined with its trial key (or with its own labels)."""
    given = {"layout": layout, "utt2spk": utt2spk, "only_common": only_common, "columns": columns}
    return read_with_findings(path, trials, **given)[0]  # type: ignore[arg-type]


def read_with_findings(
    path: str | Path,
    trials: str | Path | None = None,
    *,
    layout: str | None = None,
    utt2spk: str | Path | None = None,
    only_common: bool = False,
    columns: str | None = None,
) -> tuple[Scores, list[Finding]]:
    """As `read_scores`, and what was put right on the way."""
    codes, notes = Codes(), Faults()
    table = read_score_table(path, codes=codes, findings=notes, columns=columns)
    notes.raise_first()
    if trials is None and table.is_target is None:
        raise InputError(
            "it is unknown which trials are target trials",
            path=path,
            fix="give the trial key with --trials, or scores with a column of labels (target, nontarget, 1 or 0)",
        )
    key = None if trials is None else read_trials(trials, layout=layout, codes=codes, findings=notes)
    notes.raise_first()
    rows_of_scores, is_target = join(table, key, codes, notes, only_common=only_common)
    notes.raise_first()
    enroll, test = table.enroll[rows_of_scores], table.test[rows_of_scores]
    names, people, source = _who(enroll, test, is_target, codes, utt2spk, trials, notes)
    notes.raise_first()
    scores = Scores(table.values[rows_of_scores], is_target, people[enroll], people[test], names, str(path), source)
    return scores, notes.findings()


def read_score_table(
    path: str | Path, *, codes: Codes | None = None, findings: Faults | None = None, columns: str | None = None
) -> ScoreTable:
    """A score file. Without `findings` the first fault is an error; with them faults are collected, lines skipped."""
    ids = Codes() if codes is None else codes
    notes = Faults() if findings is None else findings
    enroll, test, values, labels, lines = [], [], [], [], []
    for part in score_rows(path, notes, columns=columns):
        numbers = numbers_of(path, part, notes)
        good = np.isfinite(numbers)
        truth = None
        if len(part.columns) == 4:
            truth, known = labels_of(part.columns[3])
            if not known.all():
                bad = np.flatnonzero(~known)
                notes.add(
                    "bad-label",
                    "the label of a score is target or nontarget",
                    path,
                    [int(part.lines[i]) for i in bad[: notes.shown]],
                    count=len(bad),
                    details=[f"{text(part.columns[3][i])[:60]!r}" for i in bad[: notes.shown]],
                    fix="fix the label or remove the line",
                )
            good &= known
        kept = slice(None) if good.all() else np.flatnonzero(good)
        enroll.append(ids.encode(part.columns[0])[kept])
        test.append(ids.encode(part.columns[1])[kept])
        values.append(numbers[kept])
        lines.append(part.lines[kept])
        if truth is not None:
            labels.append(truth[kept])
    if findings is None:
        notes.raise_first()
    if not values:
        nothing = np.empty(0, np.int32)
        return ScoreTable(str(path), nothing, nothing, np.empty(0), None, np.empty(0, np.int64))
    return ScoreTable(
        str(path),
        np.concatenate(enroll),
        np.concatenate(test),
        np.concatenate(values),
        np.concatenate(labels) if labels else None,
        np.concatenate(lines),
    )


def numbers_of(path: str | Path, part: LineColumns, notes: Faults) -> NDArray[np.float64]:
    """The scores; values that are not finite numbers become NaN and are reported."""
    column = part.columns[2]
    read = column.numbers()
    if read is not None:
        return read
    tokens = [column[row] for row in range(len(column))]
    try:
        numbers = np.fromiter(map(float, tokens), np.float64, len(tokens))
        odd = []
        if b"_" in b" ".join(tokens):  # Python reads 1_000, nobody else does
            odd = [i for i, token in enumerate(tokens) if b"_" in token]
    except ValueError:
        numbers = np.full(len(tokens), np.nan)
        odd = []
        for i, token in enumerate(tokens):
            try:
                numbers[i] = float(token)
            except ValueError:
                odd.append(i)
    if odd:
        numbers[odd] = np.nan
        first = odd[: notes.shown]
        looks_like_key = sum(tokens[i].lower() in LABELS for i in first) == len(first)
        notes.add(
            "not-a-number",
            "the score is not a number",
            path,
            [int(part.lines[i]) for i in first],
            count=len(odd),
            details=[f"{text(tokens[i])[:60]!r}" for i in first],
            fix="this looks like a trial key: the score file comes first, the key after --trials"
            if looks_like_key
            else "fix or remove the line",
        )
    finite = np.isfinite(numbers)
    if odd:
        finite[odd] = True
    if not finite.all():
        bad = np.flatnonzero(~finite)
        notes.add(
            "not-finite",
            "the score is not finite",
            path,
            [int(part.lines[i]) for i in bad[: notes.shown]],
            count=len(bad),
            details=[text(tokens[i])[:60] for i in bad[: notes.shown]],
            fix="find out why the system gave no score, or remove the trial",
        )
    return numbers


def join(
    table: ScoreTable, key: TrialTable | None, codes: Codes, notes: Faults, *, only_common: bool = False
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Which rows of the score file to measure, and whether each is a target trial."""
    base = np.int64(max(1, len(codes.known)))
    pairs = table.enroll * base + table.test
    kept = repeats(table.enroll, table.test, table.values, table.path, table.lines, codes, notes, "score")
    if key is None:
        labels = table.is_target
        if labels is None:
            raise InputError(
                "it is unknown which trials are target trials",
                path=table.path,
                fix="give the trial key (--trials), or scores with a column of labels (target, nontarget, 1 or 0)",
            )
        if len(kept) and (labels[kept].all() or not labels[kept].any()):
            kind = "target" if labels[kept].all() else "nontarget"
            notes.add("one-class", f"all {len(kept):,} trials are {kind}", table.path, fix="both classes are needed")
        return kept, labels[kept]
    key_pairs = key.enroll * base + key.test
    key_kept = repeats(key.enroll, key.test, key.is_target, key.path, key.lines, codes, notes, "trial")
    known, wanted = pairs[kept], key_pairs[key_kept]
    if len(known) == len(wanted) and (known == wanted).all():
        scored_rows, truth = kept, key.is_target[key_kept]
    else:
        order = np.argsort(wanted)
        at = np.searchsorted(wanted[order], known)
        hit = np.zeros(len(known), bool)
        inside = at < len(wanted)
        hit[inside] = wanted[order[at[inside]]] == known[inside]
        if not hit.any():
            _add_no_match(table, key, known, wanted, base, notes)
            return kept[hit], np.empty(0, bool)
        _add_strangers(table, key, kept, hit, key_kept, wanted, known, base, codes, notes, only_common)
        scored_rows = kept[hit]
        truth = key.is_target[key_kept[order[at[hit]]]]
    if table.is_target is not None and len(scored_rows):
        wrong = np.flatnonzero(table.is_target[scored_rows] != truth)
        notes.add(
            "label-conflict",
            "the file's own label contradicts the trial key",
            table.path,
            [int(table.lines[scored_rows[i]]) for i in wrong[: notes.shown]],
            count=len(wrong),
            fix="is this the key of these scores?",
        )
    if len(scored_rows) and (truth.all() or not truth.any()):
        kind = "target" if truth.all() else "nontarget"
        notes.add(
            "one-class", f"all {len(scored_rows):,} scored trials are {kind}", table.path, fix="both classes are needed"
        )
    return scored_rows, truth


def repeats(
    enroll: NDArray[np.int32],
    test: NDArray[np.int32],
    content: NDArray[Any],
    path: str,
    lines: NDArray[np.int64],
    codes: Codes,
    notes: Faults,
    what: str,
) -> NDArray[np.intp]:
    """The rows without repeats. A repeat that says the same is counted once, one that contradicts is a fault."""
    base = max(1, len(codes.known))
    pairs = enroll * np.int64(base) + test
    ordered = pairs if (pairs[1:] > pairs[:-1]).all() else np.sort(pairs)  # most lists rise already
    if not (ordered[1:] == ordered[:-1]).any():
        return np.arange(len(pairs))
    order = np.argsort(pairs, kind="stable")
    again = np.flatnonzero(pairs[order][1:] == pairs[order][:-1]) + 1
    same = content[order[again]] == content[order[again - 1]]
    names = list(codes.known)
    other = "scores" if what == "score" else "labels"
    for kind, repeated, fatal in [
        ("duplicate", order[again[same]], False),
        ("contradiction", order[again[~same]], True),
    ]:
        first = np.sort(repeated)[: notes.shown]
        notes.add(
            f"{kind}-{what}",
            f"this {what} occurs twice" + (f", with different {other}" if fatal else " and was counted once"),
            path,
            [int(lines[i]) for i in first],
            count=len(repeated),
            details=[_pair(names, int(pairs[i]), base) for i in first],
            fix="remove one of the lines" if fatal else "",
            fatal=fatal,
        )
    gone = np.zeros(len(pairs), bool)
    gone[order[again]] = True
    return np.flatnonzero(~gone)


def _pair(names: list[bytes], pair: int, base: int) -> str:
    return f"{text(names[pair // base])[:60]} {text(names[pair % base])[:60]}"


def _add_no_match(
    table: ScoreTable,
    key: TrialTable,
    known: NDArray[np.int64],
    wanted: NDArray[np.int64],
    base: np.int64,
    notes: Faults,
) -> None:
    swapped = np.isin(known % base * base + known // base, wanted).any()
    notes.add(
        "no-match",
        f"none of the {len(known):,} pairs of ids is among the {len(wanted):,} trials of {key.path}",
        table.path,
        fix="the two ids are the other way round there" if swapped else "is this the key of these scores?",
    )


def _add_strangers(
    table: ScoreTable,
    key: TrialTable,
    kept: NDArray[np.intp],
    hit: NDArray[np.bool_],
    key_kept: NDArray[np.intp],
    wanted: NDArray[np.int64],
    known: NDArray[np.int64],
    base: np.int64,
    codes: Codes,
    notes: Faults,
    only_common: bool,
) -> None:
    """Scores without a trial and trials without a score."""
    names = list(codes.known)
    lost = np.flatnonzero(~np.isin(wanted, known))
    extra = np.flatnonzero(~hit)
    for kind, what, path, lines, places, pairs in [
        ("score-without-trial", "the score has no trial in the key", table.path, table.lines[kept], extra, known),
        ("trial-without-score", "the trial has no score", key.path, key.lines[key_kept], lost, wanted),
    ]:  # fmt: skip
        first = places[: notes.shown]
        notes.add(
            kind,
            what,
            path,
            [int(lines[i]) for i in first],
            count=len(places),
            details=[_pair(names, int(pairs[i]), int(base)) for i in first],
            fix="left out, as --only-common says" if only_common else ONLY_COMMON,
            fatal=not only_common,
        )


def _who(
    enroll: NDArray[np.int32],
    test: NDArray[np.int32],
    is_target: NDArray[np.bool_],
    codes: Codes,
    utt2spk: str | Path | None,
    trials: str | Path | None,
    notes: Faults,
) -> tuple[list[str], NDArray[np.int64], str]:
    """`speakers` with the given utt2spk, or with the one beside the key if there is one that fits."""
    beside = None if trials is None else Path(trials).parent / "utt2spk"
    if utt2spk is None and beside is not None and beside.is_file():
        doubts = Faults()
        try:
            known = speakers(enroll, test, is_target, codes, beside, doubts)
            doubts.raise_first()
        except InputError as error:
            notes.add("utt2spk", error.what, beside, fatal=False)
        else:
            return known
    return speakers(enroll, test, is_target, codes, utt2spk, notes)


def speakers(
    enroll: NDArray[np.int32],
    test: NDArray[np.int32],
    is_target: NDArray[np.bool_],
    codes: Codes,
    utt2spk: str | Path | None,
    notes: Faults,
) -> tuple[list[str], NDArray[np.int64], str]:
    """Who each id belongs to: names, the person of each id, and how that was found.

    `utt2spk` says it for utterances; a target trial says that its two ids are of one person. An id that neither names
    stands for itself.
    """
    ids = list(codes.known)
    start = np.arange(len(ids))
    names = dict(codes.known)
    start_of: dict[int, int] = {}
    if utt2spk is not None:
        for part in rows(utt2spk, (2,), "utt2spk", notes):
            for utterance, speaker in zip(*part.columns, strict=True):
                row = codes.known.get(utterance)
                if row is None:
                    continue
                start[row] = names.setdefault(speaker, len(names))
                if start_of.setdefault(row, int(start[row])) != start[row]:
                    notes.add("two-speakers", f"{text(utterance)} is there with two speakers", utt2spk,
                              fix="remove one of the lines")  # fmt: skip
        if not start_of:
            notes.add("utt2spk", "it names none of the ids of the trials", utt2spk, fix="is this the right utt2spk?")
    person = _together(start, start[enroll[is_target]], start[test[is_target]], len(names))
    if start_of and utt2spk is not None:
        pairs = np.unique([(start[row], person[row]) for row in start_of], axis=0)
        same = len(pairs) - len(np.unique(pairs[:, 1]))
        if same:
            notes.add("speakers-joined", "the target trials say that two of its speakers are one person", utt2spk,
                      count=same, fix="is this the utt2spk of these trials?", fatal=False)  # fmt: skip
    source = "target trials" if utt2spk is None else f"{Path(utt2spk).name} and target trials"
    return [text(name) for name in names], person, source


def _together(start: NDArray[np.int64], a: NDArray[np.int64], b: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """`start` with linked numbers (a[i] and b[i] are one) made the same: connected components by their least member."""
    parent = np.arange(count)
    links = np.unique(a * np.int64(count) + b)
    a, b = links // count, links % count
    while True:
        low = np.minimum(parent[a], parent[b])
        before = parent.copy()
        np.minimum.at(parent, parent[a], low)
        np.minimum.at(parent, parent[b], low)
        np.minimum.at(parent, a, low)
        np.minimum.at(parent, b, low)
        parent = parent[parent]
        if (parent == before).all():
            return parent[start]


_NOTHING: Any = ()
Piece = tuple[NDArray[np.float64], NDArray[np.bool_]]


def stream(
    path: str | Path,
    trials: str | Path | None = None,
    *,
    layout: str | None = None,
    columns: str | None = None,
    size: int = PIECE,
) -> Iterator[Piece]:
    """Scores and whether each is of a target trial, in the file's order."""
    notes = Faults()
    key = None if trials is None else _Key(trials, layout, size)
    for part in score_rows(path, notes, columns=columns, size=size, coded=False):
        values = numbers_of(path, part, notes)
        notes.raise_first()
        if key is not None:
            labels = key.next(part.columns[0], part.columns[1], path, int(part.lines[0]))
        elif len(part.columns) == 4:
            labels, good = labels_of(part.columns[3])
            if not good.all():
                bad = int(np.argmin(good))
                raise InputError(
                    f"the label is {text(part.columns[3][bad])[:60]!r}, not target or nontarget",
                    path=path,
                    line=int(part.lines[bad]),
                )
        else:
            raise InputError(
                "it is unknown which trials are target trials",
                path=path,
                fix="give the trial key with --trials, or scores with a column of labels (target, nontarget, 1 or 0)",
            )
        yield values, labels
    notes.raise_first()
    if key is not None:
        key.finish()


class _Key:
    """A trial key read along with its scores."""

    def __init__(self, path: str | Path, layout: str | None, size: int) -> None:
        self.path = path
        self.notes = Faults()
        self.parts = key_rows(path, self.notes, size=size, coded=False)
        self.first = is_label_first(layout)
        self.enroll, self.test = _NOTHING, _NOTHING
        self.labels = np.empty(0, bool)

    def next(self, enroll: WordColumn, test: WordColumn, path: str | Path, line: int) -> NDArray[np.bool_]:
        """The labels of the next trials, which must be these."""
        count = len(enroll)
        while len(self.labels) < count and self._more():
            pass
        at = self._first_difference(enroll.words(), test.words())
        if at < count:
            raise InputError(
                f"from here on the key {self.path} does not have the same trials in the same order",
                path=path,
                line=line + at,
                fix="sort both files alike (LC_ALL=C sort), or measure without --stream",
            )
        labels = self.labels[:count]
        self.enroll, self.test, self.labels = self.enroll[count:], self.test[count:], self.labels[count:]
        return labels

    def _first_difference(self, enroll: Any, test: Any) -> int:
        """The first row in which the two files differ, or how many there are."""
        import pyarrow.compute as pc

        count = min(len(enroll), len(self.labels))
        same = np.ones(count, bool)
        for mine, other in ((self.enroll, enroll), (self.test, test)):
            if count:
                same &= pc.equal(mine[:count], other[:count]).to_numpy(zero_copy_only=False)
        return count if same.all() else int(np.argmin(same))

    def _more(self) -> bool:
        part = next(self.parts, None)
        self.notes.raise_first()
        if part is None:
            return False
        if self.first is None:
            self.first = label_column(self.path, part)
        column, a, b = (0, 1, 2) if self.first else (2, 0, 1)
        labels, good = labels_of(part.columns[column])
        if not good.all():
            bad = int(np.argmin(good))
            word = text(part.columns[column][bad])[:60]
            raise InputError(
                f"the label is {word!r}, not target or nontarget", path=self.path, line=int(part.lines[bad])
            )
        self.enroll = _join_columns(self.enroll, part.columns[a].words())
        self.test = _join_columns(self.test, part.columns[b].words())
        self.labels = np.concatenate([self.labels, labels])
        return True

    def finish(self) -> None:
        if len(self.labels) or self._more():
            raise InputError(
                "the key has more trials than there are scores", path=self.path, fix="is it the right key?"
            )


def _join_columns(first: Any, second: Any) -> Any:
    import pyarrow as pa

    return pa.concat_arrays([first, second]) if len(first) else second
