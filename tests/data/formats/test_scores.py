"""Score files and trial keys: all layouts, all faults, and whatever bytes a stranger sends."""

from __future__ import annotations

import gzip
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.data.checks import check, check_scores, check_trials, recognize
from veilmeter.data.formats.columns import Faults, pieces
from veilmeter.data.formats.scores import read_score_table, read_scores, read_with_findings, stream
from veilmeter.data.formats.trials import read_trials

SCORES = b"a a-1 2.5\na b-1 -1e0\nb a-1 0.25\nb b-1 3\n"
KEY = b"a a-1 target\na b-1 nontarget\nb a-1 nontarget\nb b-1 target\n"


@pytest.fixture
def write(tmp_path: Path):  # type: ignore[no-untyped-def]
    def made(name: str, content: bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return made


def test_a_score_file_and_its_key(write) -> None:  # type: ignore[no-untyped-def]
    found = read_scores(write("s", SCORES), write("k", KEY))
    assert found.targets.tolist() == [2.5, 3.0]
    assert found.impostors.tolist() == [-1.0, 0.25]
    assert found.counts == {"targets": 2, "impostors": 2, "speakers": 2}
    assert found.enroll_speaker is not None
    assert found.test_speaker is not None
    assert (found.enroll_speaker == found.test_speaker).tolist() == [True, False, False, True]


@pytest.mark.parametrize(
    "key",
    [
        b"1 a a-1\n0 a b-1\n0 b a-1\n1 b b-1\n",
        b"target a a-1\nnontarget a b-1\nnontarget b a-1\ntarget b b-1\n",
        b"a a-1 1\na b-1 0\nb a-1 0\nb b-1 1\n",
        b"a a-1 Target\na b-1 IMPOSTOR\nb a-1 non-target\nb b-1 target\n",
        b"b b-1 target\nb a-1 nontarget\na b-1 nontarget\na a-1 target",  # another order, no last line end
        KEY.replace(b"\n", b"\r\n"),
        KEY.replace(b"\n", b"\r"),
        KEY.replace(b" ", b"\t"),
        KEY.replace(b" ", b"  \t ").replace(b"\n", b" \n\n"),
        b"\xef\xbb\xbf" + KEY,
        gzip.compress(KEY, mtime=0),
    ],
)
def test_keys_in_every_layout(write, key: bytes) -> None:  # type: ignore[no-untyped-def]
    for scores in (SCORES, SCORES.replace(b"\n", b"\r\n"), gzip.compress(SCORES, mtime=0)):
        found = read_scores(write("s", scores), write("k", key))
        assert sorted(found.targets) == [2.5, 3.0]
        assert sorted(found.impostors) == [-1.0, 0.25]


def test_a_fourth_column_needs_no_key(write) -> None:  # type: ignore[no-untyped-def]
    four = b"a a-1 2.5 target\na b-1 -1 nontarget\n"
    assert read_scores(write("s", four)).targets.tolist() == [2.5]
    with pytest.raises(InputError, match="--trials"):
        read_scores(write("s", SCORES))
    with pytest.raises(InputError, match="contradicts"):
        read_scores(write("s", four), write("k", b"a a-1 nontarget\na b-1 target\n"))


def test_an_ambiguous_key_names_the_option(write) -> None:  # type: ignore[no-untyped-def]
    key = write("k", b"1 u 1\n0 u 1\n1 v 0\n")
    with pytest.raises(InputError, match="--layout voxceleb") as caught:
        read_trials(key)
    assert caught.value.line == 1
    assert read_trials(key, layout="vpc").is_target.tolist() == [True, True, False]
    assert read_trials(key, layout="pairs").is_target.tolist() == [True, True, False]
    assert read_trials(key, layout="voxceleb").is_target.tolist() == [True, False, True]
    with pytest.raises(InputError, match="voxceleb"):
        read_trials(key, layout="nist")


@pytest.mark.parametrize(
    ("scores", "key", "words", "line"),
    [
        (b"", KEY, "empty", None),
        (b"\n \n", KEY, "empty", None),
        (SCORES, b"", "empty", None),
        (b"a a-1\n", KEY, "3 or 4 columns", 1),
        (SCORES + b"a c-1\n", KEY, "columns", 5),
        (SCORES.replace(b" ", b",").replace(b"b,a-1", b"b,,a-1"), KEY, "an empty cell", 3),
        (b"0.5 0.7 a a-1\n0.1 0.2 a b-1\n", KEY, "which of the 4 columns is which", 1),
        (b"a a-1 a 0.5 x\na b-1 a 0.1 x\n", KEY, "which of the 5 columns is which", 1),
        (SCORES.replace(b"0.25", b"nan"), KEY, "not finite", 3),
        (SCORES.replace(b"0.25", b"-inf"), KEY, "not finite", 3),
        (SCORES.replace(b"0.25", b"1_000"), KEY, "not a number", 3),
        (SCORES.replace(b"0.25", b"0,25"), KEY, "not a number", 3),
        (KEY, SCORES, "trial key", 1),
        (SCORES + b"a c-1 1\n", KEY, "no trial", 5),
        (SCORES, KEY + b"c a-1 target\n", "no score", 5),
        (SCORES + b"a a-1 9\n", KEY, "twice, with different scores", 5),
        (SCORES, KEY + b"\na a-1 nontarget\n", "twice, with different labels", 6),
        (SCORES, KEY.replace(b"nontarget", b"target"), "all 4 trials are target", None),
        (SCORES, KEY.replace(b"nontarget", b"impostr"), "none of target", 2),
        (SCORES, b"a a-1 yes\n", "neither the first nor the last", 1),
        (b"a-1 a 2\nb-1 a 1\na-1 b 1\nb-1 b 2\n", KEY, "other way round", None),
        (b"x y 2\nx z 1\n", KEY, "is this the key of these scores", None),
        (b"\xff\xfea\0", KEY, "UTF-16", 1),
        (b"a\0b c 1\n", KEY, "binary", None),
        (b"x" * 70000, KEY, "longer", 1),
        (SCORES + b"y" * 70000 + b" a 1\n", KEY, "longer", 5),
        (gzip.compress(SCORES, mtime=0)[:-9], KEY, "breaks off", 1),
        (b"\x1f\x8bnonsense", KEY, "breaks off", 1),
    ],
)
def test_faults_name_file_line_and_cure(write, scores: bytes, key: bytes, words: str, line: int | None) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=words) as caught:
        read_scores(write("s", scores), write("k", key))
    assert caught.value.path is not None
    assert caught.value.line == line


def test_only_common_and_repeats_are_remarked(write) -> None:  # type: ignore[no-untyped-def]
    key = write("k", KEY + b"z z-1 target\n")
    found, findings = read_with_findings(write("s", SCORES + b"a a-1 2.5\n"), key, only_common=True)
    assert len(found) == 4
    repeated, lost = findings
    assert (repeated.code, repeated.values["what"], repeated.values["count"]) == ("pairs_repeated", "score", 1)
    assert (lost.code, lost.values["what"], lost.values["count"]) == ("pairs_left_out", "trial", 1)


def test_latin_1_matches_utf_8(write) -> None:  # type: ignore[no-untyped-def]
    scores = "é é-1 2\né b-1 1\n".encode("latin-1")
    key = "é é-1 target\né b-1 nontarget\n".encode()
    found, findings = read_with_findings(write("s", scores), write("k", key))
    assert found.targets.tolist() == [2.0]
    assert "é" in found.names
    assert [finding.code for finding in findings] == ["file_as_latin1"]


def test_target_trials_tell_who_speaks(write) -> None:  # type: ignore[no-untyped-def]
    key = b"1 x/1 x/2\n1 x/2 x/3\n1 y/1 y/2\n0 x/1 y/1\n0 x/3 w/1\n"
    scores = b"x/1 x/2 1\nx/2 x/3 1\ny/1 y/2 1\nx/1 y/1 0\nx/3 w/1 0\n"
    found = read_scores(write("s", scores), write("k", key))
    assert found.speaker_count == 3  # x, y, and w, who is only known as an utterance
    assert found.enroll_speaker is not None
    assert found.test_speaker is not None
    assert found.enroll_speaker[0] == found.test_speaker[1]
    assert found.speakers_from == "target trials"
    given_ = read_scores(write("s", scores), write("k", key), utt2spk=write("u", b"w/1 x\nx/1 x\n"))
    assert given_.speaker_count == 2


def test_utt2spk_beside_the_key_is_used(write) -> None:  # type: ignore[no-untyped-def]
    write("utt2spk", b"a-1 a\nb-1 b\nc-1 c\nc-2 c\n")
    key = KEY + b"a c-1 nontarget\na c-2 nontarget\n"
    found = read_scores(write("s", SCORES + b"a c-1 0\na c-2 0\n"), write("k", key))
    assert found.speaker_count == 3
    assert "utt2spk" in found.speakers_from
    with pytest.raises(InputError, match="none of the ids"):
        read_scores(write("s", SCORES), write("k", KEY), utt2spk=write("other", b"q q\n"))


def test_an_utt2spk_that_does_not_fit_is_left_aside(write) -> None:  # type: ignore[no-untyped-def]
    for content in (b"q q\n", b"one two three\n", b"\0"):
        write("utt2spk", content)
        found, findings = read_with_findings(write("s", SCORES), write("k", KEY))
        assert found.speakers_from == "target trials"
        assert [finding.code for finding in findings] == ["utt2spk_unused"]


def test_pieces_give_what_the_whole_gives(write) -> None:  # type: ignore[no-untyped-def]
    lines = b"".join(b"s%d u%d %d\n" % (i % 7, i, i) for i in range(500)) + b"\n\nlast one 1"
    path = write("s", lines)
    filled = [number + 1 for number, line in enumerate(lines.split(b"\n")) if line]
    for size in (64, 1000, 1 << 20):
        parts = list(pieces(path, size=size))
        assert [token for part in parts for token in part.tokens] == lines.split()
        assert np.concatenate([part.line_numbers() for part in parts]).tolist() == filled


def test_findings_do_not_grow_with_the_faults(write) -> None:  # type: ignore[no-untyped-def]
    path = write("s", b"a b x\n" * 5000 + b"a b\n" * 5000)
    notes = Faults()
    table = read_score_table(path, findings=notes)
    assert len(table) == 0
    problems = notes.problems()
    assert len(problems) == 2
    assert any("5,000 times" in problem.what for problem in problems)


def test_check_lists_all_problems_at_once(write) -> None:  # type: ignore[no-untyped-def]
    path = write("s", b"a b 1\na c nan\na b 2\nd e x\nf\ng h 3\ng h 3\n")
    found = check(path)
    assert found.kind == "score file"
    assert not found.usable
    assert {problem.kind for problem in found.problems} == {
        "columns", "not-a-number", "not-finite", "duplicate-score", "contradiction-score",
    }  # fmt: skip
    key = write("k", b"a b target\nb c target\na c nontarget\n")
    found = check(key)
    assert (found.kind, found.usable) == ("trial key", True)
    assert [problem.kind for problem in found.problems] == ["same-speaker-impostor"]
    assert not check_scores(path, trials=key).usable
    assert check(write("e", b"")).problems[0].kind == "empty"
    assert check(write("good", KEY)).problems == []
    for unknown in (b"one two\n", b"\0\1\2"):
        with pytest.raises(InputError, match="unknown kind of input"):
            check(write("odd", unknown))
    with pytest.raises(InputError, match="no such"):
        check("not/there")


def test_an_unreadable_key_is_a_problem_too(write) -> None:  # type: ignore[no-untyped-def]
    found = check(write("k", b"1 u 1\n0 u 0\n"))
    assert not found.usable
    assert "--layout" in found.problems[0].fix


_TOKEN = st.sampled_from(
    [
        b"a",
        b"b-1",
        b"target",
        b"nontarget",
        b"1",
        b"0",
        b"-3.5",
        b"nan",
        b"1e999",
        b"\xff\xfe",
        b"\xc3\xa9",
        b"=1",
        b"\x1b[31m",
    ]
)
_BROKEN = st.lists(st.lists(_TOKEN, max_size=5).map(b" ".join), max_size=12).flatmap(
    lambda lines: st.sampled_from([b"\n", b"\r\n", b"\r", b"\n\n"]).map(lambda end: end.join(lines))
)
_BYTES = (
    st.binary(max_size=300)
    | _BROKEN
    | _BROKEN.map(gzip.compress)
    | st.binary(max_size=60).map(lambda b: b"\x1f\x8b" + b)
)


@settings(max_examples=300)
@given(_BYTES, _BYTES)
@example(b"\r", b"\r")
@example(b"a b 1\r\x00", b"")
def test_no_bytes_break_a_reader(tmp_path_factory: pytest.TempPathFactory, one: bytes, two: bytes) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    s, k = folder / "s", folder / "k"
    s.write_bytes(one)
    k.write_bytes(two)
    for read in (
        lambda: read_scores(s, k),
        lambda: read_scores(s),
        lambda: read_scores(s, k, only_common=True),
        lambda: read_scores(s, k, layout="voxceleb", utt2spk=k),
        lambda: read_trials(k),
        lambda: check(s),
        lambda: check_scores(s, trials=k),
        lambda: check_trials(k, layout="vpc"),
    ):
        with suppress(VeilmeterError):
            read()
    assert recognize(s) in ("scores", "trials", "empty", None)


def test_paths_that_are_no_files() -> None:
    for path in ("/", "a\0b", "/proc/self/mem"):
        with pytest.raises(InputError):
            read_scores(path, path)


def test_what_only_common_leaves_out_is_said_as_such(tmp_path):
    import veilmeter

    (tmp_path / "scores").write_text("a x 1\na y 0\nb x 0\n")
    (tmp_path / "key").write_text("a x target\nb x nontarget\nb y target\n")
    with pytest.raises(InputError, match="use --only-common"):
        veilmeter.read_scores(tmp_path / "scores", tmp_path / "key")
    assert len(veilmeter.read_scores(tmp_path / "scores", tmp_path / "key", only_common=True)) == 2
    _, findings = read_with_findings(tmp_path / "scores", tmp_path / "key", only_common=True)
    assert [(finding.code, finding.values["what"]) for finding in findings] == [
        ("pairs_left_out", "score"), ("pairs_left_out", "trial"),
    ]  # fmt: skip


def test_an_utt2spk_that_contradicts_itself_or_the_trials(tmp_path):
    (tmp_path / "scores").write_text("a a-1 1 target\na b-1 0 nontarget\nb a-1 0 nontarget\nb b-1 1 target\n")
    (tmp_path / "utt2spk").write_text("a-1 a\nb-1 b\na-1 b\n")
    with pytest.raises(InputError, match="a-1 is there with two speakers"):
        read_scores(tmp_path / "scores", utt2spk=tmp_path / "utt2spk")
    (tmp_path / "utt2spk").write_text("a-1 a\nb-1 b\n")
    assert read_with_findings(tmp_path / "scores", utt2spk=tmp_path / "utt2spk")[1] == []
    (tmp_path / "pairs").write_text("a-1 b-1 1 target\na-1 c-1 0 nontarget\n")
    found, findings = read_with_findings(tmp_path / "pairs", utt2spk=tmp_path / "utt2spk")
    assert found.speaker_count == 2
    assert (findings[0].code, findings[0].values["count"]) == ("speakers_joined", 1)


LINES = [("a", "a-1", "1", "2.5"), ("a", "b-1", "0", "-1"), ("b", "a-1", "0", "0.25"), ("b", "b-1", "1", "3")]


def lines_of(*order: int, gap: str = " ", header: str = "") -> bytes:
    """The four trials with these columns: 0 enroll, 1 test, 2 label, 3 score."""
    rows = [gap.join(line[place] for place in order) for line in LINES]
    return ("\n".join([header] * bool(header) + rows) + "\n").encode()


@pytest.mark.parametrize(
    "scores",
    [
        lines_of(0, 1, 2, 3),  # SpeechBrain
        lines_of(0, 1, 3, 2),  # WeSpeaker
        lines_of(2, 0, 1, 3),  # VoxCeleb's list with scores
        lines_of(0, 1, 3, 2, gap=","),
        lines_of(0, 1, 3, 2, gap=", "),
        lines_of(0, 1, 2, 3, gap="\t"),
        lines_of(0, 1, 2, 3, header="enroll test label score"),
        lines_of(3, 2, 0, 1, gap=",", header="Score,Label,Enrol,Test"),
        lines_of(3, 2, 0, 1, gap=",", header='"score","label","enrollment","utterance"'),
        lines_of(0, 1, 0, 3, 2, gap="\t", header="modelid\tsegmentid\tside\tLLR\ttargettype"),
        b"\n" + lines_of(0, 1, 2, 3, gap=",", header="id1,id2,target,similarity").replace(b"\n", b"\r\n"),
    ],
)
def test_columns_in_any_order_are_the_same_scores(write, scores: bytes) -> None:  # type: ignore[no-untyped-def]
    found = read_scores(write("s", scores))
    assert found.values.tolist() == [2.5, -1, 0.25, 3]
    assert found.is_target.tolist() == [True, False, False, True]
    streamed = list(stream(write("s", scores)))
    assert [values.tolist() for values, _ in streamed] == [[2.5, -1, 0.25, 3]]
    assert [labels.tolist() for _, labels in streamed] == [[True, False, False, True]]


@pytest.mark.parametrize(
    ("scores", "key"),
    [
        (lines_of(3, 0, 1), lines_of(2, 0, 1)),  # VoxSRC
        (lines_of(0, 1, 0, 3, header="modelid segmentid side LLR"),
         lines_of(0, 1, 0, 2, 0, header="modelid segmentid side targettype partition")),  # NIST SRE
        (lines_of(0, 1, 3, gap=","), lines_of(0, 1, 2, gap=",", header="enroll,test,label")),
        (lines_of(0, 1, 3, header="enroll test score"), lines_of(0, 1, 2)),
    ],
)  # fmt: skip
def test_scores_and_keys_of_other_toolkits(write, scores: bytes, key: bytes) -> None:  # type: ignore[no-untyped-def]
    found = read_scores(write("s", scores), write("k", key))
    assert found.values.tolist() == [2.5, -1, 0.25, 3]
    assert found.is_target.tolist() == [True, False, False, True]


def test_columns_are_asked_about_and_named(write) -> None:  # type: ignore[no-untyped-def]
    scores = write("s", lines_of(3, 3, 0, 1))
    with pytest.raises(InputError, match=r"--columns enroll,test,label,score"):
        read_scores(scores, write("k", KEY))
    found = read_scores(scores, write("k", KEY), columns="-,score,enroll,test")
    assert found.values.tolist() == [2.5, -1, 0.25, 3]
    for names, message in (("enroll,test", "are required"), ("enroll,test,score,sore", "'sore' is not a column")):
        with pytest.raises(InputError, match=message):
            read_scores(scores, write("k", KEY), columns=names)


def test_ids_with_commas_are_ids(write) -> None:  # type: ignore[no-untyped-def]
    scores, key = (data.replace(b"a ", b"a,1 ") for data in (SCORES, KEY))
    assert len(read_scores(write("s", scores), write("k", key))) == 4
