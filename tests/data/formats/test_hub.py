"""Data of the hub and of other tools: JSON Lines, audiofolder, datasets with audio inside, lhotse, SpAnE."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from veilmeter.core.errors import InputError
from veilmeter.data.corpus import Stretch, read_corpus
from veilmeter.data.formats.vectors import is_embeddings
from veilmeter.data.layouts import recognize


def put(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def lines(path: Path, *objects: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(found) + "\n" for found in objects).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VEILMETER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_json_lines_of_companies(tmp_path: Path) -> None:
    put(tmp_path, "a/1.wav", "a/2.wav")
    rows = [
        {"audio_filepath": "a/1.wav", "speaker": 17, "duration": 2.5, "text": "hello", "age": 30},
        {"audio_filepath": "a/2.wav", "speaker": 18, "offset": 1.0, "duration": 2.0},
        {"audio_filepath": "a/3.wav", "speaker": 18},
        {"speaker": 18},
    ]
    file = lines(tmp_path / "manifest.json", *rows)
    for place in (file, tmp_path):
        corpus = read_corpus(place)
        assert corpus.layout == "jsonl"
        assert next((u.id, u.speaker, u.text) for u in corpus) == ("a/1", "17", "hello")
        assert [p.kind for p in corpus.problems] == ["missing-audio", "bad-line"]
    assert corpus.utterances[1].stretch == Stretch(1.0, 3.0)
    file.write_text('{"audio_filepath": "a/1.wav", "speaker": "s"}\nnot json\n')
    with pytest.raises(InputError, match=r"manifest.json:2: invalid JSON"):
        read_corpus(file)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_audiofolder(tmp_path: Path, form: str) -> None:
    for split, speaker in (("train", "anna"), ("test", "bert")):
        put(tmp_path, f"{split}/x/1.wav")
        if form == "csv":
            (tmp_path / split / "metadata.csv").write_text(f"file_name,speaker_id,emotion\nx/1.wav,{speaker},sad\n")
        else:
            row = {"file_name": "x/1.wav", "speaker_id": speaker, "emotion": "sad"}
            lines(tmp_path / split / "metadata.jsonl", row)
    corpus = read_corpus(tmp_path)
    assert corpus.layout == "audiofolder"
    assert [(u.id, u.speaker) for u in corpus] == [("test/x/1", "bert"), ("train/x/1", "anna")]
    assert corpus.utterances[0].attributes == {"emotion": "sad", "part": "test"}
    assert [u.id for u in read_corpus(tmp_path, part="train")] == ["x/1"]
    with pytest.raises(InputError, match="no split 'nonsense'"):
        read_corpus(tmp_path, part="nonsense")


def sound(samples: NDArray[np.float32]) -> bytes:
    soundfile = pytest.importorskip("soundfile")
    packed = io.BytesIO()
    soundfile.write(packed, samples, 16000, format="FLAC")
    return packed.getvalue()


def table(speechlike: Callable[..., NDArray[np.float32]], **columns: list[Any]) -> pa.Table:
    audio = [{"bytes": sound(speechlike(1, seed)), "path": f"clip{seed}.flac"} for seed in range(4)]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    facts = {"speaker_id": [1, 1, 2, 2], "text": ["a", "b", "c", None], **columns}
    return pa.table({"audio": pa.array(audio, kind), **facts})


def written(root: Path, form: str, made: pa.Table) -> Path:
    if form == "parquet":
        (root / "data").mkdir(parents=True)
        for number in range(2):
            part = made.slice(2 * number, 2)
            pq.write_table(part, root / "data" / f"train-{number:05d}-of-00002.parquet")
        return root
    split = root / "train"
    split.mkdir(parents=True)
    (root / "dataset_dict.json").write_text('{"splits": ["train"]}')
    (split / "dataset_info.json").write_text("{}")
    (split / "state.json").write_text('{"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}')
    with (
        pa.OSFile(str(split / "data-00000-of-00001.arrow"), "wb") as out,
        pa.ipc.new_stream(out, made.schema) as stream,
    ):
        stream.write_table(made)
    return root


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_datasets_with_their_audio_inside(
    tmp_path: Path, cache: Path, speechlike: Callable[..., NDArray[np.float32]], form: str
) -> None:
    from veilmeter.speech.audio import read_audio

    root = written(tmp_path / "set", form, table(speechlike))
    assert recognize(root) == "dataset"
    assert not is_embeddings(root)
    corpus = read_corpus(root, part="train")
    assert [(u.id, u.speaker, u.text) for u in corpus] == [
        ("clip0", "1", "a"), ("clip1", "1", "b"), ("clip2", "2", "c"), ("clip3", "2", ""),
    ]  # fmt: skip
    np.testing.assert_allclose(read_audio(corpus.utterances[2].path), speechlike(1, 2), atol=1e-4)
    assert all(u.path.is_relative_to(cache) for u in corpus)
    assert all(u.path.stat().st_mode & 0o077 == 0 for u in corpus)
    assert [p.kind for p in corpus.problems] == ["unpacked"]
    before = {u.path: u.path.stat().st_mtime_ns for u in corpus}
    assert {u.path: u.path.stat().st_mtime_ns for u in read_corpus(root)} == before
    with pytest.raises(InputError, match="no split 'test'"):
        read_corpus(root, part="test")


def test_rows_are_named_by_a_column_never_by_their_number(
    tmp_path: Path, speechlike: Callable[..., NDArray[np.float32]]
) -> None:
    made = table(speechlike, key=["d", "c", "b", "a"])
    audio = [{"bytes": row["bytes"], "path": "audio.flac"} for row in made.column("audio").to_pylist()]
    made = made.set_column(0, "audio", pa.array(audio, made.schema.field("audio").type))
    root = written(tmp_path / "set", "arrow", made)
    with pytest.raises(InputError, match="its rows have no ids"):
        read_corpus(root)
    corpus = read_corpus(root, columns={"utterance": "key"})
    assert {u.id: u.text for u in corpus} == {"d": "a", "c": "b", "b": "c", "a": ""}


def test_a_dataset_that_names_files_elsewhere_or_is_broken(tmp_path: Path) -> None:
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    put(tmp_path, "secret.wav", "set/near.wav")
    audio = [{"bytes": None, "path": str(tmp_path / "secret.wav")}, {"bytes": None, "path": "../secret2.wav"},
             {"bytes": None, "path": "near.wav"}]  # fmt: skip
    pq.write_table(pa.table({"audio": pa.array(audio, kind), "speaker": ["a", "b", "c"]}), tmp_path / "set/x.parquet")
    corpus = read_corpus(tmp_path / "set")
    assert [u.id for u in corpus] == ["near"]
    assert [p.kind for p in corpus.problems] == ["outside-root", "outside-root", "unpacked"]
    whole = (tmp_path / "set/x.parquet").read_bytes()
    (tmp_path / "set/x.parquet").write_bytes(whole[:100] + bytes(50) + whole[150:])
    with pytest.raises(InputError):
        read_corpus(tmp_path / "set")


RECORDING = {"id": "call1", "sources": [{"type": "file", "channels": [0, 1], "source": "call1.wav"}],
             "sampling_rate": 8000, "num_samples": 80000, "duration": 10.0}  # fmt: skip


def supervision(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "recording_id": "call1", "start": 1.0, "duration": 2.5, "speaker": "anna", **more}


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz"])
def test_lhotse_supervisions(tmp_path: Path, suffix: str) -> None:
    put(tmp_path, "call1.wav")
    lines(tmp_path / f"x_recordings_dev.{suffix}", RECORDING)
    lines(
        tmp_path / f"x_supervisions_dev.{suffix}",
        supervision("a", channel=0, text="HELLO", gender="female", custom={"accent": "north"}),
        supervision("b", channel=1, speaker="bert"),
        supervision("c", recording_id="call2"),
        supervision("d", channel=[0, 1]),
        {**supervision("e"), "speaker": None},
    )
    corpus = read_corpus(tmp_path)
    assert corpus.layout == "lhotse"
    assert [(u.id, u.speaker, u.gender, u.text, u.stretch) for u in corpus] == [
        ("a", "anna", "f", "HELLO", Stretch(1.0, 3.5, 0)), ("b", "bert", "", "", Stretch(1.0, 3.5, 1)),
    ]  # fmt: skip
    assert corpus.utterances[0].attributes == {"accent": "north"}
    assert [(p.kind, p.line) for p in corpus.problems] == [("missing-audio", 3), ("channels", 4), ("no-speaker", 5)]
    lines(tmp_path / f"x_recordings_test.{suffix}", RECORDING)
    lines(tmp_path / f"x_supervisions_test.{suffix}", supervision("z"))
    with pytest.raises(InputError, match=r"several manifests.*--part"):
        read_corpus(tmp_path)
    assert [u.id for u in read_corpus(tmp_path, part="test")] == ["z"]


def test_lhotse_cuts_count_from_the_cut_and_transforms_are_refused(tmp_path: Path) -> None:
    put(tmp_path, "call1.wav")
    cut = {"id": "c1", "start": 4.0, "duration": 2.5, "channel": 1, "type": "MonoCut", "recording": RECORDING}
    perturbed = {**RECORDING, "transforms": [{"name": "Speed"}]}
    commanded = {**RECORDING, "sources": [{"type": "command", "channels": [0, 1], "source": "touch x"}]}
    file = lines(
        tmp_path / "cuts.jsonl",
        {**cut, "supervisions": [{**supervision("a", start=0.5, duration=1.0), "channel": 1}]},
        {**cut, "supervisions": [supervision("b")], "recording": perturbed},
        {**cut, "supervisions": [supervision("c")], "recording": commanded},
        {**cut, "supervisions": []},
        {"id": "m", "type": "MixedCut", "tracks": []},
    )
    for place in (file, tmp_path):
        corpus = read_corpus(place)
        assert [(u.id, u.stretch) for u in corpus] == [("a", Stretch(4.5, 5.5, 1))]
        assert [(p.kind, p.line) for p in corpus.problems] == [
            ("not-used", 2), ("not-used", 3), ("no-speaker", 4), ("not-used", 5),
        ]  # fmt: skip


def test_spane_datafiles(tmp_path: Path) -> None:
    put(tmp_path, "audio/LibriSpeech/1320/1320-1-1.flac", "audio/LibriSpeech/1320/1320-1-2.flac")
    rows = [
        {"path": f"{{root}}/LibriSpeech/1320/1320-1-{i}.flac", "text": "LET US", "duration": 4.8, "label": "1320",
         "gender": "M", "age": 30, "utt_noise": "none"}
        for i in (1, 2, 3)
    ]  # fmt: skip
    file = lines(tmp_path / "libri.txt", *rows)
    with pytest.raises(InputError, match=r"it is unknown which folder that is.*--root"):
        read_corpus(file)
    corpus = read_corpus(file, roots=[tmp_path / "audio"])
    assert corpus.layout == "spane"
    first = corpus.utterances[0]
    assert (first.id, first.speaker, first.gender) == ("LibriSpeech/1320/1320-1-1", "1320", "m")
    assert first.attributes == {"age": "30", "noise": "none"}
    assert [(p.kind, p.line) for p in corpus.problems] == [("missing-audio", 3)]
