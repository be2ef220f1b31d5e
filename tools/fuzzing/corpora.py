"""Corpora in every layout, lists that go with them, and audio."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

Make = Callable[[Path], None]
Read = Callable[[Path], object]
AUDIO = ("wav", "flac", "ogg", "mp3", "m4a")


def _put(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def _lists(**files: str) -> Make:
    """The files of a layout, `_DOT_` and `_IN_` in their names standing for what Python's names can't have."""
    named = {name.replace("_DOT_", ".").replace("_IN_", "/"): text for name, text in files.items()}
    return lambda folder: _put(folder, named)


def _lines(*entries: dict[str, object]) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def _kaldi(folder: Path) -> None:
    _put(folder, {
        "wav.scp": "a1 wav/a1.wav\na2 wav/a2.wav\nb1 wav/b1.wav\n", "utt2spk": "a1 a\na2 a\nb1 b\n",
        "spk2utt": "a a1 a2\nb b1\n", "spk2gender": "a f\nb m\n", "text": "a1 one\na2 two words\nb1 three\n",
        "utt2dur": "a1 1.0\na2 2.0\nb1 1.5\n", "segments": "a1 a1 0.0 0.5\na2 a2 0.1 0.9\nb1 b1 0 1\n",
        "wav/a1.wav": "x", "wav/a2.wav": "x", "wav/b1.wav": "x",
    })  # fmt: skip


def _voiceprivacy(folder: Path) -> None:
    for name in ("libri_test_enrolls", "libri_test_trials_f", "libri_test_enrolls_x", "libri_test_trials_f_x"):
        _kaldi(folder / name)
        (folder / name / "segments").unlink()
    _put(folder / "libri_test_trials_f", {"trials": "a a1 target\na b1 nontarget\n"})
    _put(folder / "libri_test_enrolls", {"enrolls": "a1\n"})


def _librispeech(folder: Path) -> None:
    _put(folder, {
        "SPEAKERS.TXT": ";id|sex|subset|minutes|name\n84 | F | test | 8.0 | A B\n85 | M | test | 8.0 | C D\n",
        "test/84/121/84-121-0000.flac": "x", "test/84/121/84-121.trans.txt": "84-121-0000 ONE TWO\n",
        "test/85/122/85-122-0000.flac": "x", "test/85/122/85-122.trans.txt": "85-122-0000 ONE TWO\n",
    })  # fmt: skip


def _lhotse(folder: Path) -> None:
    recordings = [{"id": f"r{n}", "sources": [{"type": "file", "channels": [0], "source": f"r{n}.wav"}],
                   "sampling_rate": 16000, "num_samples": 16000, "duration": 1.0} for n in range(2)]  # fmt: skip
    supervisions = [{"id": f"s{n}", "recording_id": f"r{n}", "start": 0.0, "duration": 1.0, "channel": 0, "text": "a",
                     "speaker": f"p{n}", "gender": "F", "custom": {"accent": "x"}} for n in range(2)]  # fmt: skip
    cuts = [{"id": "c", "start": 0.0, "duration": 1.0, "channel": 0, "type": "MonoCut", "recording": recording,
             "supervisions": [supervision]}
            for recording, supervision in zip(recordings, supervisions, strict=True)]  # fmt: skip
    _put(folder, {"x_recordings.jsonl": _lines(*recordings), "x_supervisions.jsonl": _lines(*supervisions),
                  "r0.wav": "x", "r1.wav": "x", "cuts/x_cuts.jsonl": _lines(*cuts)})  # fmt: skip


def _dataset(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    sounds = [{"bytes": b"RIFF0000", "path": f"u{n}.wav"} for n in range(3)]
    table = pa.table({"audio": sounds, "speaker_id": ["a", "a", "b"], "text": ["x", "y", "z"]})
    pq.write_table(table, folder / "train-00000-of-00001.parquet")


def _saved_dataset(folder: Path) -> None:
    import pyarrow as pa

    table = pa.table({"audio": [{"bytes": b"RIFF", "path": "u.wav"}], "speaker_id": ["a"]})
    with pa.OSFile(str(folder / "data.arrow"), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    _put(folder, {"state.json": json.dumps({"_data_files": [{"filename": "data.arrow"}]}), "dataset_info.json": "{}"})


def _vctk(folder: Path) -> None:
    _put(folder, {"speaker-info.txt": "ID  AGE  GENDER  ACCENTS\np225  23  F  English\np226 22 M English\n",
                  "wav48/p225/p225_001.wav": "x", "wav48/p226/p226_001.wav": "x",
                  "txt/p225/p225_001.txt": "Please call.\n", "txt/p226/p226_001.txt": "Please call.\n"})  # fmt: skip


_COMMON = "client_id\tpath\tsentence\tage\tgender\naa\ta.mp3\tOne\t20\tfemale\nbb\tb.mp3\tTwo\t30\tmale\n"
_ROWS = [{"path": "a.wav", "speaker": "x", "text": "one", "gender": "f", "start": 0, "end": 1},
         {"path": "b.wav", "speaker": "y", "text": "two", "gender": "m", "start": 0, "end": 1}]  # fmt: skip
_SPANE = [{"path": "a.wav", "label": 1, "text": "x", "gender": "F", "utt_rate": 3},
          {"path": "b.wav", "label": 2, "text": "y", "gender": "M", "utt_rate": 4}]  # fmt: skip
_CSV = "path,speaker,utterance,gender,age\na.wav,x,u1,f,20\nb.wav,y,u2,m,30\n"

# How to make one, and which of its files say something: audio files are only looked for here.
LAYOUTS: dict[str, tuple[Make, tuple[str, ...]]] = {
    "folder": (_lists(x_IN_a_DOT_wav="x", y_IN_b_DOT_wav="x"), ("",)),
    "librispeech": (_librispeech, (".TXT", ".txt")),
    "vctk": (_vctk, (".txt",)),
    "commonvoice": (
        _lists(validated_DOT_tsv=_COMMON, clips_IN_a_DOT_mp3="x", clips_IN_b_DOT_mp3="x"),
        (".tsv",),
    ),
    "kaldi": (_kaldi, ("scp", "utt2spk", "spk2utt", "gender", "text", "dur", "segments")),
    "vpc": (_voiceprivacy, ("scp", "utt2spk", "spk2utt", "gender", "text", "dur", "trials", "enrolls")),
    "csv": (_lists(list_DOT_csv=_CSV, a_DOT_wav="x", b_DOT_wav="x"), (".csv",)),
    "jsonl": (_lists(list_DOT_jsonl=_lines(*_ROWS), a_DOT_wav="x", b_DOT_wav="x"), (".jsonl",)),
    "audiofolder": (_lists(metadata_DOT_csv="file_name,speaker_id,id\na.wav,x,1\nb.wav,y,2\n", a_DOT_wav="x",
                           b_DOT_wav="x"), (".csv",)),
    "dataset": (_dataset, (".parquet",)),
    "lhotse": (_lhotse, (".jsonl",)),
    "spane": (_lists(list_DOT_txt=_lines(*_SPANE), a_DOT_wav="x", b_DOT_wav="x"), (".txt",)),
}  # fmt: skip
_FILES = {"csv": "list.csv", "jsonl": "list.jsonl", "spane": "list.txt"}
_OPTIONS = {"vpc": {"suffix": "_x"}}


def read(layout: str) -> Read:
    """By the layout's name, and by whatever is recognized."""

    def reader(folder: Path) -> object:
        from veilmeter.core.errors import VeilmeterError
        from veilmeter.data.corpus import read_corpus

        path, options = folder / _FILES.get(layout, ""), _OPTIONS.get(layout, {})
        try:
            return read_corpus(path, **options)
        except VeilmeterError:
            return read_corpus(path, layout, **options)

    return reader


def _scores(folder: Path) -> None:
    lines = [f"s{a} s{b}-u1 {0.5 * (a == b) + 0.1 * b:.2f}" for a in range(4) for b in range(4)]
    keys = [f"s{a} s{b}-u1 {'target' if a == b else 'nontarget'}" for a in range(4) for b in range(4)]
    _put(folder, {"scores": "\n".join(lines) + "\n", "trials": "\n".join(keys) + "\n"})


def _packed_scores(folder: Path) -> None:
    _scores(folder)
    for name in ("scores", "trials"):
        (folder / name).write_bytes(gzip.compress((folder / name).read_bytes(), mtime=0))


def _read_scores(folder: Path) -> object:
    from veilmeter.data.formats.scores import read_scores

    return read_scores(folder / "scores", folder / "trials")


def _stream_scores(folder: Path) -> object:
    from veilmeter.data.formats.scores import stream

    return list(stream(folder / "scores", folder / "trials", size=64))


def _check_scores(folder: Path) -> object:
    from veilmeter.data.checks import check_scores, check_text

    return check_text(folder / "trials"), check_scores(folder / "scores", trials=folder / "trials")


def _read_trials(folder: Path) -> object:
    from veilmeter.data.formats.trials import read_trials
    from veilmeter.data.formats.vpc import read_trial_list

    read_trials(folder / "trials")
    return read_trial_list(folder / "trials")


def _read_settings(folder: Path) -> object:
    from veilmeter.assessment import make_settings, read_settings

    return make_settings(read_settings(folder / "run.toml"), where=folder / "run.toml")


def _read_cluster(folder: Path) -> object:
    from veilmeter.core.cluster import read_config

    return read_config(folder / "slurm.yaml")


def _read_protocol(folder: Path) -> object:
    from veilmeter.assessment.protocol import _lines

    return _lines(folder / "trials")


_TOML = (
    'original = "a"\nanonymized = ["b", "c"]\nseed = 3\nlengths = [1, 3]\nmeasures = ["scores"]\n'
    '[attackers.informed]\nbackend = "plda"\n'
)
_YAML = "jobqueue:\n  slurm:\n    cores: 4\n    memory: 8GB\n    queue: normal\n    job-extra: ['-p x']\n"
LISTS: dict[str, tuple[Make, Read, int]] = {
    "scores": (_scores, _read_scores, 1),
    "gzipped scores": (_packed_scores, _read_scores, 1),
    "streamed scores": (_scores, _stream_scores, 1),
    "checked scores": (_scores, _check_scores, 2),
    "trials": (_scores, _read_trials, 1),
    "protocol": (_scores, _read_protocol, 1),
    "settings": (_lists(run_DOT_toml=_TOML), _read_settings, 1),
    "cluster": (_lists(slurm_DOT_yaml=_YAML), _read_cluster, 1),
    "saved dataset": (_saved_dataset, read("dataset"), 20),
}


def make_audio(suffix: str) -> Make:
    def make(folder: Path) -> None:
        import soundfile

        from veilmeter.speech.audio import write_audio

        samples = np.sin(np.arange(9000) / 9) * 0.3
        if suffix == "m4a":
            _encode(folder / "x.m4a", samples)
        elif suffix in ("wav", "flac"):
            write_audio(folder / f"x.{suffix}", samples)
        else:
            soundfile.write(folder / f"x.{suffix}", samples, 16000)

    return make


def _encode(path: Path, samples: np.ndarray) -> None:
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=16000)
        stream.layout = "mono"
        frame = av.AudioFrame.from_ndarray(samples.astype(np.float32)[None], format="fltp", layout="mono")
        frame.sample_rate = 16000
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            container.mux(packet)


def read_audio(suffix: str) -> Read:
    def read(folder: Path) -> object:
        from veilmeter.speech.audio import read_audio as read_samples

        return read_samples(folder / f"x.{suffix}", max_seconds=60)

    return read
