"""A corpus through an anonymizer: layouts, manifests, stops and starts, and everything that is broken or hostile."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veilmeter.anonymizers.anonymize_corpus import Anonymized, anonymize_corpus, manifest_path
from veilmeter.anonymizers.base import load_anonymizer
from veilmeter.anonymizers.manifest import read_manifest
from veilmeter.anonymizers.mcadams import McAdams, RandomMcAdams, mcadams
from veilmeter.core.engine import Engine, Pool
from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.core.files import sha256
from veilmeter.core.user_code import version_of
from veilmeter.data.corpus import Corpus, Utterance, read_corpus
from veilmeter.speech.audio import read_audio, write_audio

HALF = 0.5


class Halved:
    """Quick, and easy to check."""

    name, version = "halved", "1"

    def __init__(self, factor: float = HALF) -> None:
        self.factor = factor
        self.calls = 0

    def parameters(self, utterance: Utterance) -> dict[str, Any]:
        return {"factor": self.factor, "pseudo_speaker": f"pseudo-{utterance.speaker}"}

    def anonymize(self, samples: np.ndarray, parameters: dict[str, Any]) -> np.ndarray:
        return samples * np.float32(parameters["factor"])


class Cut(Halved):
    """Leaves a second at most."""

    def anonymize(self, samples: np.ndarray, parameters: dict[str, Any]) -> np.ndarray:
        return samples[:16_000]


class Prepared(Halved):
    """Hears the corpus first, and knows the parameters of what it heard."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: set[str] = set()

    def prepare(self, corpus: Corpus, engine: Engine) -> Prepared:
        self.heard.update(corpus.by_id)
        return self

    def parameters(self, utterance: Utterance) -> dict[str, Any]:
        if utterance.id not in self.heard:
            raise InputError("it was never heard")
        return super().parameters(utterance)


def run(root: Path, out: Path, system: Any = None, **options: Any) -> Anonymized:
    layout = options.pop("layout", None)
    return anonymize_corpus(read_corpus(root, layout), out, system or Halved(), source=root, **options)


def state(folder: Path) -> dict[str, tuple[int, int]]:
    """Which file is which, and when it was written."""
    return {str(p): (p.stat().st_ino, p.stat().st_mtime_ns) for p in folder.rglob("*") if p.is_file()}


def test_layout_ids_and_samples(folder_corpus: Path, tmp_path: Path) -> None:
    done = run(folder_corpus, tmp_path / "out", McAdams())
    again = read_corpus(tmp_path / "out")
    assert again.layout == "folder"
    before = read_corpus(folder_corpus)
    assert list(before.by_id) == list(again.by_id)
    assert len(again) == 12
    assert (done.done, done.written, done.kept, done.failed) == (12, 12, 0, ())
    source, output = before.utterances[5], again.utterances[5]
    assert output.path.suffix == ".flac"
    expected = mcadams(read_audio(source.path), 0.8)
    gain = read_manifest(done.manifest)[source.id].gain
    assert gain == pytest.approx(min(1.0, 32767 / 32768 / np.abs(expected).max()))
    np.testing.assert_allclose(read_audio(output.path), gain * expected, atol=0.51 / 32768)


def test_the_manifest_says_all_and_is_private(folder_corpus: Path, tmp_path: Path) -> None:
    done = run(folder_corpus, tmp_path / "out", audio="wav")
    assert done.manifest == tmp_path / "out.manifest.jsonl" == manifest_path(tmp_path / "out")
    assert os.stat(done.manifest).st_mode & 0o777 == 0o600
    lines = [json.loads(line) for line in done.manifest.read_text().splitlines()]
    assert [line["utterance"] for line in lines] == sorted(f"s{s}/u{u}" for s in range(3) for u in range(4))
    line = lines[4]
    assert (line["speaker"], line["source"], line["output"]) == ("s1", "s1/u0.wav", "s1/u0.wav")
    assert line["source_sha256"] == sha256(folder_corpus / "s1/u0.wav")
    assert line["output_sha256"] == sha256(tmp_path / "out/s1/u0.wav")
    assert (line["system"], line["version"], line["pseudo_speaker"]) == ("halved", version_of(Halved()), "pseudo-s1")
    assert line["parameters"] == {"factor": HALF, "pseudo_speaker": "pseudo-s1"}
    assert line["seconds"] == pytest.approx(0.7)
    assert not [p for p in tmp_path.iterdir() if p.name.endswith((".part", ".lock"))]
    assert not [p for p in (tmp_path / "out").rglob("*") if p.is_file() and p.suffix != ".wav"]


@pytest.mark.slow
def test_jobs_do_not_change_a_byte(folder_corpus: Path, tmp_path: Path) -> None:
    system = RandomMcAdams(seed=3)
    run(folder_corpus, tmp_path / "one", system)
    pool = Pool(2)
    try:
        run(folder_corpus, tmp_path / "two", system, engine=pool)
    finally:
        pool.close()
    assert sha256(tmp_path / "one") == sha256(tmp_path / "two")
    assert (tmp_path / "one.manifest.jsonl").read_bytes() == (tmp_path / "two.manifest.jsonl").read_bytes()


def test_a_second_run_does_nothing(folder_corpus: Path, tmp_path: Path) -> None:
    run(folder_corpus, tmp_path / "out")
    before = state(tmp_path / "out"), (tmp_path / "out.manifest.jsonl").read_bytes()
    done = run(folder_corpus, tmp_path / "out")
    assert (done.written, done.kept) == (0, 12)
    assert before == (state(tmp_path / "out"), (tmp_path / "out.manifest.jsonl").read_bytes())


def test_only_what_changed_is_done_again(folder_corpus: Path, tmp_path: Path, make_voice: Callable[..., Any]) -> None:
    run(folder_corpus, tmp_path / "out")
    write_audio(folder_corpus / "s0/u1.wav", make_voice(99))
    (tmp_path / "out/s1/u2.flac").unlink()
    (tmp_path / "out/s2/u2.flac").write_bytes(b"changed by somebody")
    (folder_corpus / "s2/u3.wav").unlink()
    write_audio(folder_corpus / "s3/u0.wav", make_voice(98))
    done = run(folder_corpus, tmp_path / "out")
    assert (done.written, done.kept, done.removed) == (4, 8, 1)
    assert not (tmp_path / "out/s2/u3.flac").exists()
    run(folder_corpus, tmp_path / "fresh")
    assert sha256(tmp_path / "out") == sha256(tmp_path / "fresh")
    assert (tmp_path / "out.manifest.jsonl").read_bytes() == (tmp_path / "fresh.manifest.jsonl").read_bytes()


def test_what_is_too_long_is_not_listened_to_before_it_is_refused(
    folder_corpus: Path, tmp_path: Path, make_voice: Callable[..., Any]
) -> None:
    write_audio(folder_corpus / "long" / "1.wav", make_voice(99, 3.0))
    system = Prepared()
    done = run(folder_corpus, tmp_path / "out", system, max_seconds=2.5)
    assert "long/1" not in system.heard
    assert len(system.heard) == done.done == 12
    assert [(problem.kind, Path(problem.path).name) for problem in done.failed] == [("too-long", "1.wav")]


def test_a_lower_limit_removes_what_is_too_long(
    folder_corpus: Path, tmp_path: Path, make_voice: Callable[..., Any]
) -> None:
    """Also where the system makes recordings shorter: the limit is on what it is given."""
    write_audio(folder_corpus / "long" / "1.wav", make_voice(99, 3.0))
    whole = run(folder_corpus, tmp_path / "out", Cut())
    lowered = run(folder_corpus, tmp_path / "out", Cut(), max_seconds=2.5)
    assert (lowered.done, lowered.written, lowered.removed) == (whole.done - 1, 0, 1)
    assert [problem.kind for problem in lowered.failed] == ["too-long"]
    assert not (tmp_path / "out/long").exists()
    raised = run(folder_corpus, tmp_path / "out", Cut())
    assert (raised.done, raised.written) == (whole.done, 1)


def test_other_settings_are_refused_or_overwrite(folder_corpus: Path, tmp_path: Path) -> None:
    run(folder_corpus, tmp_path / "out")
    for change in ({"system": Halved(0.25)}, {"audio": "wav"}):
        with pytest.raises(InputError, match=r"made with halved 1\+\w+ \(factor 0\.5"):
            run(folder_corpus, tmp_path / "out", **change)
    done = run(folder_corpus, tmp_path / "out", Halved(0.25), audio="wav", overwrite=True)
    assert (done.written, done.removed) == (12, 12)
    run(folder_corpus, tmp_path / "fresh", Halved(0.25), audio="wav")
    assert sha256(tmp_path / "out") == sha256(tmp_path / "fresh")


def test_a_folder_with_something_in_it_is_not_written_to(folder_corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="not empty"):
        run(folder_corpus, tmp_path / "out")
    run(folder_corpus, tmp_path / "out", overwrite=True)
    assert (tmp_path / "out" / "thesis.txt").read_text() == "years of work"


def test_output_and_corpus_must_not_contain_each_other(folder_corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder_corpus)
    for out in (folder_corpus, folder_corpus / "out", folder_corpus / "s0", tmp_path / "link" / "out", tmp_path):
        with pytest.raises(InputError, match=r"lies in the (corpus|output)"):
            run(folder_corpus, out)
    with pytest.raises(InputError, match="a file, not a folder"):
        run(folder_corpus, folder_corpus / "s0" / "u0.wav")


def test_loud_outputs_are_scaled_and_never_clipped(folder_corpus: Path, tmp_path: Path) -> None:
    done = run(folder_corpus, tmp_path / "out", Halved(20.0))
    samples = read_audio(tmp_path / "out/s0/u0.flac")
    source = read_audio(folder_corpus / "s0/u0.wav")
    assert np.abs(samples).max() == pytest.approx(32767 / 32768)
    assert np.corrcoef(samples, source)[0, 1] > 0.999999
    assert done.scaled == 12
    assert not done.failed


# What is broken.


def test_sixty_broken_files_among_three_hundred(
    tmp_path: Path, break_audio: Callable[..., Path], broken_kinds: dict[str, str], make_voice: Callable[..., Any]
) -> None:
    root = tmp_path / "speech"
    for speaker in range(10):
        (root / f"s{speaker}").mkdir(parents=True)
    voices = [make_voice(seed) for seed in range(10)]
    for number in range(300):
        write_audio(root / f"s{number % 10}" / f"good{number}.wav", voices[number % 10] * (1 - number / 1000))
    ways = [way for way in broken_kinds if way != "clipped"]
    expected = {}
    for number in range(60):
        way = ways[number % len(ways)]
        path = break_audio(root / f"s{number % 10}" / f"bad{number}", way, number)
        expected[str(path)] = broken_kinds[way]
    done = run(root, tmp_path / "out")
    assert done.done == 300
    assert {problem.path: problem.kind for problem in done.failed} == expected
    entries = read_manifest(done.manifest)
    assert len(entries) == 360
    assert sum(entry.output is None for entry in entries.values()) == 60
    assert all(entry.problems for entry in entries.values() if entry.output is None)
    assert len(read_corpus(tmp_path / "out")) == 300


def test_strict_stops_and_keeps_what_was_done(folder_corpus: Path, tmp_path: Path) -> None:
    (folder_corpus / "s1" / "bad.wav").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"bad\.wav"):
        run(folder_corpus, tmp_path / "out", strict=True)
    (folder_corpus / "s1" / "bad.wav").unlink()
    done = run(folder_corpus, tmp_path / "out", strict=True)
    assert done.kept > 0
    assert done.done == 12


def test_a_system_that_fails_on_one_utterance_does_not_end_the_run(
    folder_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Moody(Halved):
        def parameters(self, utterance: Utterance) -> dict[str, Any]:
            if utterance.id == "s0/u3":
                raise InputError("this one has no voice")
            return {"id": utterance.id}

        def anonymize(self, samples: np.ndarray, parameters: dict[str, Any]) -> np.ndarray:
            results = {"s0/u0": np.full(3, np.nan), "s0/u1": np.zeros((2, 2)), "s0/u2": np.zeros(0)}
            if parameters["id"] == "s1/u0":
                raise ZeroDivisionError("oops")
            return results.get(parameters["id"], samples)

    # A class of this test can't be pickled: the work gets it by hand.
    monkeypatch.setattr("veilmeter.anonymizers.treatment.Treatment._unpack", lambda self: Moody())
    monkeypatch.setattr("pickle.dumps", lambda value: b"")
    done = run(folder_corpus, tmp_path / "out", Moody())
    assert done.done == 7
    said = {Path(problem.path).parent.name + "/" + Path(problem.path).stem: problem.what for problem in done.failed}
    assert sorted(said) == ["s0/u0", "s0/u1", "s0/u2", "s0/u3", "s1/u0"]
    assert "ZeroDivisionError: oops" in said["s1/u0"]
    assert said["s0/u3"] == "this one has no voice"
    assert all(problem.kind == "not-anonymized" for problem in done.failed)


@dataclass(frozen=True)
class Function:
    """What a system may leave: nothing, almost nothing, or no numbers."""

    how: str
    name = "broken"
    version = "1"

    def parameters(self, utterance: Utterance) -> dict[str, Any]:
        return {}

    def anonymize(self, samples: Any, parameters: dict[str, Any]) -> Any:
        return {"silence": samples * 0 + np.float32(0.1), "cut": samples[:100], "nan": samples * np.nan}[self.how]


@pytest.mark.parametrize(
    ("how", "said"),
    [("silence", "broken left nothing but silence"), ("cut", "less than 0.5 s"), ("nan", "they are not all finite")],
)
def test_outputs_that_nobody_could_use_are_failures(folder_corpus: Path, tmp_path: Path, how: str, said: str) -> None:
    with pytest.raises(InputError, match=f"10 recordings in a row failed the same way.*{said}"):
        run(folder_corpus, tmp_path / "out", Function(how))
    for path in list(folder_corpus.rglob("*.wav"))[5:]:
        path.unlink()
    done = run(folder_corpus, tmp_path / "out", Function(how))
    assert (done.written, len(done.failed)) == (0, 5)
    assert said in done.failed[0].what
    assert not list((tmp_path / "out").rglob("*.flac"))


OWN = """
class Louder:
    name, version = "louder", "1"

    def parameters(self, utterance):
        return {{}}

    def anonymize(self, samples, parameters):
        return samples * {gain}
"""


def test_a_system_whose_code_changed_does_its_work_again(folder_corpus: Path, tmp_path: Path) -> None:
    """Whoever builds one changes it many times, and its version seldom."""
    written = []
    for gain in (0.5, 0.5, 0.25):
        (tmp_path / "own.py").write_text(OWN.format(gain=gain))
        written.append(run(folder_corpus, tmp_path / "out", load_anonymizer(f"{tmp_path}/own.py:Louder")).written)
    assert written[0] == written[2] > 0
    assert written[1] == 0


def test_a_full_disk_stops_the_run_and_it_goes_on_later(
    folder_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, left = os.replace, 7

    def full(source: Any, target: Any) -> None:
        nonlocal left
        if str(target).endswith(".flac"):
            left -= 1
            if left < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(VeilmeterError, match="disk is full"):
            run(folder_corpus, tmp_path / "out")
    assert not list((tmp_path / "out").rglob("*.part"))
    done = run(folder_corpus, tmp_path / "out")
    assert (done.kept, done.written) == (7, 5)
    run(folder_corpus, tmp_path / "fresh")
    assert sha256(tmp_path / "out") == sha256(tmp_path / "fresh")


def test_a_place_that_can_not_be_written_is_said(folder_corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(VeilmeterError):
        run(folder_corpus, tmp_path / "file" / "out")
    with pytest.raises(VeilmeterError):
        run(folder_corpus, Path("/proc/no-such-place/out"))


def test_a_name_that_is_too_long_for_its_output_is_left_out(folder_corpus: Path, tmp_path: Path) -> None:
    first = min(folder_corpus.rglob("*.wav"))
    first.rename(first.with_name("x" * 251 + ".wav"))  # with .flac it has 256 bytes
    done = run(folder_corpus, tmp_path / "out")
    (problem,) = [problem for problem in done.problems if problem.fatal]
    assert "too long" in problem.what
    assert len(list((tmp_path / "out").rglob("*.flac"))) == len(list(folder_corpus.rglob("*.wav"))) - 1


def test_two_runs_do_not_write_to_one_folder(folder_corpus: Path, tmp_path: Path) -> None:
    lock = os.open(tmp_path / "out.manifest.jsonl.lock", os.O_CREAT | os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with pytest.raises(VeilmeterError, match="another run is writing"):
        run(folder_corpus, tmp_path / "out")
    os.close(lock)
    assert run(folder_corpus, tmp_path / "out").done == 12


def test_a_broken_manifest_is_named_with_its_line(folder_corpus: Path, tmp_path: Path) -> None:
    run(folder_corpus, tmp_path / "out")
    manifest = tmp_path / "out.manifest.jsonl"
    lines = manifest.read_text().splitlines(keepends=True)
    for broken in ('{"utterance": 3}\n', "not json\n", "[]\n", "\xff\n"):
        manifest.write_text("".join([*lines[:2], broken, *lines[3:]]))
        with pytest.raises(InputError, match=r"manifest\.jsonl:3: not a line of a manifest"):
            run(folder_corpus, tmp_path / "out")


def test_a_manifest_can_not_make_us_remove_files_elsewhere(folder_corpus: Path, tmp_path: Path) -> None:
    run(folder_corpus, tmp_path / "out")
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    manifest = tmp_path / "out.manifest.jsonl"
    line = json.loads(manifest.read_text().splitlines()[0])
    for place in ("../victim.txt", str(victim)):
        line |= {"utterance": "gone", "output": place, "output_sha256": sha256(victim)}
        manifest.write_text(manifest.read_text() + json.dumps(line) + "\n")
        run(folder_corpus, tmp_path / "out")
        assert victim.read_text() == "precious"


def test_hostile_ids_stay_in_the_output_folder(tmp_path: Path, make_voice: Callable[..., Any]) -> None:
    audio = tmp_path / "elsewhere"
    ids = ["../../evil", "/etc/passwd", "a/../../b", "\x1b[31mred", "..", "x" * 180, "ü\u202e", "same/id", "same_id"]
    utterances = []
    for number, one in enumerate(ids):
        path = audio / f"{number}.wav"
        write_audio(path, make_voice(number))
        utterances.append(Utterance(one, "s", path))
    corpus = Corpus(tmp_path / "lists", "kaldi", tuple(utterances))
    (tmp_path / "lists").mkdir()
    inside = tmp_path / "deep" / "out"
    done = anonymize_corpus(corpus, inside, Halved())
    assert done.done == len(ids)
    outputs = [entry.output for entry in done.entries]
    assert len(set(outputs)) == len(ids)
    found = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.flac"))
    assert len(found) == len(ids)
    assert all(name.startswith("deep/out/") for name in found)
    assert all(name.isprintable() for name in found)


def test_links_out_of_the_corpus_are_reported_and_not_followed(folder_corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    write_audio(tmp_path / "secret" / "a.wav", np.sin(np.arange(16_000)))
    (folder_corpus / "s0" / "link.wav").symlink_to(tmp_path / "secret" / "a.wav")
    (folder_corpus / "s9").symlink_to(tmp_path / "secret")
    done = run(folder_corpus, tmp_path / "out")
    assert done.done == 12
    assert [problem.kind for problem in done.failed] == ["outside-root", "outside-root"]


# Layouts that need lists.


def test_librispeech_keeps_genders_and_forgets_names(tmp_path: Path, make_voice: Callable[..., Any]) -> None:
    root = tmp_path / "LibriSpeech"
    for speaker in (14, 16):
        for number in range(2):
            write_audio(root / f"dev-clean/{speaker}/208/{speaker}-208-000{number}.flac", make_voice(speaker + number))
    (root / "SPEAKERS.TXT").write_text("14   | F | dev-clean | 25.03 | Jane Doe\n16 | M | dev-clean | 25 | John Roe\n")
    run(root, tmp_path / "out")
    again = read_corpus(tmp_path / "out")
    assert again.layout == "librispeech"
    assert again.genders == {"14": "f", "16": "m"}
    assert len(read_corpus(root).by_id.keys() & again.by_id.keys()) == 4
    assert "Doe" not in (tmp_path / "out" / "SPEAKERS.TXT").read_text()


def test_kaldi_folder(tmp_path: Path, make_voice: Callable[..., Any]) -> None:
    root, audio = tmp_path / "data" / "test", tmp_path / "audio"
    for number in range(4):
        write_audio(audio / f"{number}.wav", make_voice(number))
    root.mkdir(parents=True)
    (root / "wav.scp").write_text("".join(f"utt{n} {audio}/{n}.wav\n" for n in range(4)) + f"twice {audio}/0.wav\n")
    (root / "utt2spk").write_text("".join(f"utt{n} s{n // 2}\n" for n in range(4)) + "twice s0\n")
    (root / "spk2gender").write_text("s0 f\ns1 m\n")
    (root / "text").write_text("utt0 HELLO\n")
    (root / "cmvn.scp").write_text("not for us\n")
    done = run(root, tmp_path / "out")
    again = read_corpus(tmp_path / "out")
    assert again.layout == "kaldi"
    assert again.genders == {"s0": "f", "s1": "m"}
    assert len(read_corpus(root).by_id.keys() & again.by_id.keys()) == 5 == done.done
    assert (tmp_path / "out/text").read_text() == "utt0 HELLO\n"
    assert (tmp_path / "out/spk2utt").read_text() == "s0 twice utt0 utt1\ns1 utt2 utt3\n"
    assert not (tmp_path / "out/cmvn.scp").exists()


def test_voiceprivacy_folders(tmp_path: Path, make_voice: Callable[..., Any]) -> None:
    root = tmp_path / "vpc"
    for name, ids in {"libri_test_enrolls": ["1-a", "2-a"], "libri_test_trials_f": ["1-b", "1-c"]}.items():
        folder = root / "data" / name
        for one in ids:
            write_audio(folder / "wav" / f"{one}.wav", make_voice(ord(one[-1])))
        (folder / "utt2spk").write_text("".join(f"{one} {one[0]}\n" for one in ids))
        (folder / "spk2gender").write_text("1 f\n2 m\n")
    (root / "data/libri_test_trials_f/trials").write_text("1 1-b target\n")
    run(root, tmp_path / "out")
    again = read_corpus(tmp_path / "out")
    assert again.layout == "vpc"
    assert len(read_corpus(root).by_id.keys() & again.by_id.keys()) == 4
    assert {u.id: u.attributes["role"] for u in again} == {u.id: u.attributes["role"] for u in read_corpus(root)}
    assert (tmp_path / "out/data/libri_test_trials_f/trials").read_text() == "1 1-b target\n"


def test_common_voice_lists_name_the_new_files(tmp_path: Path, make_voice: Callable[..., Any]) -> None:
    root = tmp_path / "de"
    for number in range(3):
        write_audio(root / "clips" / f"c{number}.wav", make_voice(number))
    rows = [f'speaker{n}\tc{n}.wav\tsay "{n}\tfemale_feminine\ttwenties' for n in range(3)]
    (root / "validated.tsv").write_text("client_id\tpath\tsentence\tgender\tage\n" + "\n".join(rows) + "\n")
    (root / "clips" / "c2.wav").write_bytes(b"broken")
    done = run(root, tmp_path / "out")
    again = read_corpus(tmp_path / "out")
    assert (again.layout, len(again), done.done, len(done.failed)) == ("commonvoice", 2, 2, 1)
    assert again.problems == ()
    assert again.by_id["c0"].attributes["age"] == "twenties"
    assert 'say "0' in (tmp_path / "out/validated.tsv").read_text()


def test_csv_and_vctk(tmp_path: Path, make_voice: Callable[..., Any]) -> None:
    audio = tmp_path / "lists" / "audio"
    write_audio(audio / "x.wav", make_voice(1))
    write_audio(audio / "y.wav", make_voice(2))
    (tmp_path / "lists" / "mine.csv").write_text(
        "path,speaker,utterance,gender,session,accent\naudio/x.wav,a,first,f,s1,north\naudio/y.wav,b,second,m,s2,\n"
    )
    run(tmp_path / "lists" / "mine.csv", tmp_path / "out")
    before, again = read_corpus(tmp_path / "lists" / "mine.csv"), read_corpus(tmp_path / "out" / "mine.csv")
    assert [(u.id, u.speaker, u.gender, u.session, dict(u.attributes)) for u in again] == [
        (u.id, u.speaker, u.gender, u.session, dict(u.attributes)) for u in before
    ]
    vctk = tmp_path / "vctk"
    write_audio(vctk / "wav48" / "p226" / "p226_001.wav", make_voice(3))
    (vctk / "speaker-info.txt").write_text("ID  AGE  GENDER  ACCENTS  REGION\n226  22  M  English    Surrey\n")
    run(vctk, tmp_path / "out2")
    (only,) = read_corpus(tmp_path / "out2")
    assert (only.id, only.speaker, only.gender, only.attributes["accent"]) == ("p226_001", "p226", "m", "English")


def test_lists_hold_no_formulas_and_come_back_the_same(tmp_path: Path, make_voice: Callable[..., Any]) -> None:
    write_audio(tmp_path / "in" / "-x.wav", make_voice(1))
    write_audio(tmp_path / "in" / "y.wav", make_voice(2))
    rows = ['-x.wav,=HYPERLINK("evil"),+1,=1+1', "y.wav,@b,-2,'fine'"]
    (tmp_path / "in" / "mine.tsv").write_text("\n".join(["path,speaker,utterance,note", *rows]).replace(",", "\t"))
    run(tmp_path / "in" / "mine.tsv", tmp_path / "out")
    written = (tmp_path / "out" / "mine.csv").read_text()
    assert not any(cell.strip('"').startswith(("=", "+", "-", "@")) for cell in written.replace("\n", ",").split(","))
    before, after = read_corpus(tmp_path / "in" / "mine.tsv"), read_corpus(tmp_path / "out")
    assert [(u.id, u.speaker, dict(u.attributes)) for u in after] == [
        (u.id, u.speaker, dict(u.attributes)) for u in before
    ]
    assert after.speakers == ('=HYPERLINK("evil")', "@b")


def test_a_refused_run_leaves_no_lock(folder_corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to(tmp_path / "nowhere")
    with pytest.raises(VeilmeterError, match="this link leads nowhere"):
        run(folder_corpus, tmp_path / "out")
    assert not list(tmp_path.glob("*.lock"))


def test_an_external_program(folder_corpus: Path, tmp_path: Path) -> None:
    system = load_anonymizer("command", {"command": "cp {input} {output}"})
    done = run(folder_corpus, tmp_path / "out", system)
    assert done.done == 12
    np.testing.assert_array_equal(read_audio(tmp_path / "out/s1/u1.flac"), read_audio(folder_corpus / "s1/u1.wav"))


def test_odd_recordings_are_left_out_and_the_others_done(
    folder_corpus: Path, tmp_path: Path, make_voice: Callable[..., Any]
) -> None:
    """FLAC holds neither 768 kHz nor 12 channels, and a file of a terabyte would be hashed for an hour."""
    import soundfile

    voice = make_voice(1, 0.6)
    soundfile.write(folder_corpus / "s0" / "high.wav", np.repeat(voice, 48), 768_000)
    soundfile.write(folder_corpus / "s1" / "many.wav", np.repeat(voice[:, None], 12, axis=1), 16_000)
    with open(folder_corpus / "s2" / "endless.wav", "wb") as file:
        file.truncate(1 << 40)
    done = run(folder_corpus, tmp_path / "out", McAdams())
    assert done.written == 12
    left_out = {Path(problem.path).stem: problem.what for problem in done.problems}
    assert left_out.keys() == {"high", "many", "endless"}
    assert "768000 Hz" in left_out["high"]
    assert "12 channels" in left_out["many"]
    assert "too large" in left_out["endless"]
