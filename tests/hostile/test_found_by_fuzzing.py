"""Inputs that `make fuzz` found, each of which ended a command with a traceback: refused, or taken for missing."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tools.fuzzing.readers import readers

from veilmeter.core.errors import InputError

DEEP = "[" * 100_000


@pytest.mark.parametrize(
    "text",
    ['"k"', "[]", DEEP, '{"key": "k"}', '{"key": "k", "losses": -1, "speakers": 3, "utterances": 9}',
     '{"key": "k", "losses": [""], "speakers": 3, "utterances": 9}', '{"key": "k", "losses": [1], "speakers": 1e999}'],
)  # fmt: skip
def test_facts_of_a_fine_tuned_model_that_are_none(tmp_path: Path, text: str) -> None:
    pytest.importorskip("torch")
    from veilmeter.attacks.finetune import _read_finished

    (tmp_path / "model.safetensors").write_bytes(b"x")
    (tmp_path / "finetuned.json").write_text(text)
    assert _read_finished(tmp_path, "k", "campplus") is None


@pytest.mark.parametrize("change", [{"utterance": {}}, {"utterance": None}, {"speaker": []}, {"version": 3}])
def test_a_manifest_of_other_types(tmp_path: Path, change: dict[str, object]) -> None:
    from veilmeter.anonymizers.manifest import Entry, read_manifest

    entry = Entry("u", "a", "u.wav", "0" * 64, "u.wav", "1" * 64, "mcadams", "1", {})
    (tmp_path / "m.jsonl").write_text(json.dumps({**entry.to_json(), **change}) + "\n")
    with pytest.raises(InputError, match="not a line of a manifest"):
        read_manifest(tmp_path / "m.jsonl")


def test_files_that_nest_without_end(tmp_path: Path) -> None:
    from veilmeter.anonymizers.manifest import read_manifest, read_timings

    (tmp_path / "m.jsonl").write_text(DEEP + "\n")
    with pytest.raises(InputError, match="not a line of a manifest"):
        read_manifest(tmp_path / "m.jsonl")
    (tmp_path / "out.timings.json").write_text(DEEP)
    assert read_timings(tmp_path / "out") is None


def test_a_kept_transcript_whose_id_is_an_object(tmp_path: Path) -> None:
    from veilmeter.speech.annotations import Annotation, _Store
    from veilmeter.speech.recordings import Record

    class Heard:
        name, version = "asr", "1"

        def annotate(self, samples: object) -> dict[str, object]:
            return {}

    store = _Store(tmp_path, Heard())
    store.finish({name: Annotation(Record(name, 1, 1, "0", 1.0), {"text": name}) for name in ("u1", "u2")})
    store.path.write_text(store.path.read_text().replace('"u1"', "{}", 1))
    assert list(store.read()) == ["u2"]


@pytest.mark.parametrize("name", ["weights\udc80", "weights\0bin"])
def test_names_of_weights_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    onnx = pytest.importorskip("onnx")
    from onnx import helper, numpy_helper

    from veilmeter.speech.extractors.onnx import external_files

    weights = numpy_helper.from_array(np.ones((4, 2), np.float32), "w")
    ports = [helper.make_tensor_value_info("x", 1, [1, 4]), helper.make_tensor_value_info("y", 1, [1, 2])]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", ports[:1], ports[1:], [weights])
    path = tmp_path / "model.onnx"
    place = "X" * len(name.encode("utf-8", "surrogateescape"))
    onnx.save(helper.make_model(graph), str(path), save_as_external_data=True, location=place, size_threshold=0)
    path.write_bytes(path.read_bytes().replace(place.encode(), name.encode("utf-8", "surrogateescape")))
    with pytest.raises(InputError, match=r"can't be loaded|are not there"):
        external_files(path)


class Stream:
    """As PyAV gives it for a damaged file."""

    def __init__(self, **facts: int) -> None:
        self.__dict__.update(facts)


@pytest.mark.parametrize(
    ("facts", "what"),
    [({}, "can't be identified"), ({"rate": 16000, "channels": 0}, "is zero"), ({"rate": 0, "channels": 1}, "is zero")],
)
def test_a_media_file_whose_stream_has_no_rate_or_channel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, facts: dict[str, int], what: str
) -> None:
    av = pytest.importorskip("av")
    from veilmeter.speech.decoding import MediaFile

    container = SimpleNamespace(streams=SimpleNamespace(audio=[Stream(**facts)]), close=lambda: None)
    monkeypatch.setattr(av, "open", lambda *_, **__: container)
    (tmp_path / "a.m4a").write_bytes(b"x")
    with open(tmp_path / "a.m4a", "rb", buffering=0) as handle, pytest.raises(ValueError, match=what):
        MediaFile(handle, tmp_path / "a.m4a")


SUPERVISION = {"id": "s", "recording_id": "r", "start": 0, "duration": 1, "channel": 0, "speaker": "p"}
RECORDING = {"id": "r", "sources": [{"type": "file", "channels": [0], "source": "r.wav"}], "duration": 1}


@pytest.mark.parametrize(
    ("supervision", "recording"),
    [({"duration": None}, {}), ({"start": {}}, {}), ({"channel": 1e999}, {}), ({}, {"sources": [0]}),
     ({}, {"sources": 3}), ({}, {"sources": [{"type": "file", "channels": 5, "source": "r.wav"}]}),
     ({}, {"sources": [{"type": "file", "channels": {"0": 0}, "source": "r.wav"}]})],
)  # fmt: skip
@pytest.mark.parametrize("form", ["supervisions", "cuts"])
def test_lhotse_manifests_of_other_types(
    tmp_path: Path, form: str, supervision: dict[str, object], recording: dict[str, object]
) -> None:
    from veilmeter.data.corpus import read_corpus

    (tmp_path / "r.wav").write_bytes(b"x")
    entries = [SUPERVISION, {**SUPERVISION, "id": "bad", "recording_id": "bad", **supervision}]
    recordings = [RECORDING, {**RECORDING, "id": "bad", **recording}]
    if form == "cuts":
        entries = [{"type": "MonoCut", "start": 0, "recording": sound, "supervisions": [entry]}
                   for sound, entry in zip(recordings, entries, strict=True)]  # fmt: skip
        entries += [{**entries[0], "start": []}, {**entries[0], "supervisions": 7}]
    (tmp_path / f"x_{form}.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    (tmp_path / "x_recordings.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in recordings))
    corpus = read_corpus(tmp_path, "lhotse")
    assert [utterance.id for utterance in corpus] == ["s"]
    assert len(corpus.problems) == (3 if form == "cuts" else 1)


def test_printed_figures_with_hundreds_of_digits(tmp_path: Path) -> None:
    from veilmeter.cli.shared_options import read_curves

    point = {"value": 0.5, "interval": [10**400, 1], "at": []}
    (tmp_path / "a.json").write_text(json.dumps({"estimates": {"linkability": [point]}}))
    with pytest.raises(InputError, match="not what the command prints"):
        read_curves(f"ignorant={tmp_path / 'a.json'}")


def test_tokens_that_end_within_a_length() -> None:
    pytest.importorskip("onnxruntime")
    from veilmeter.speech.recognizers.moonshine import read_tokens

    assert read_tokens(b"\2ab\xff") == [b"ab", b""]


def test_words_of_a_table_that_are_no_text(tmp_path: Path) -> None:
    from veilmeter.core.parquet_bounds import read_table

    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"row": ["anna", "bert"], "score": [0.5, 0.25]}), path, compression="none")
    path.write_bytes(path.read_bytes().replace(b"anna", b"\xff\xffna"))
    with pytest.raises(InputError, match="corrupt Parquet file"):
        list(read_table(path, ["row"], ["score"]))


@pytest.fixture(scope="session")
def shared_run(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("shared"))


@pytest.mark.parametrize("name", readers())
def test_fuzzing_still_reads_its_sound_files(
    name: str, shared_run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that was moved or refuses them would never see a broken one."""
    monkeypatch.setenv("VEILMETER_FUZZ_RUN", shared_run)
    monkeypatch.setenv("VEILMETER_CACHE", str(tmp_path / "cache"))
    place = tmp_path / "input"
    place.mkdir()
    readers()[name].make(place)
    readers()[name].read(place)
