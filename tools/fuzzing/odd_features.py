"""Odd inputs for whole commands, by feature: challenge folders, tables of vectors, standard input, models in folders,
statements for the annex, limits of gates, runs to compare, addresses, and names that are bytes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tools.fuzzing.odd_code import ASSESS, Cases, Make

DIGITS = "9" * 5000
SUFFIX = "_mine"
_TABLE = "linkability --enroll table.npy --test a.npz"
FOLDERS = (
    "libri_dev_enrolls", "libri_dev_trials_f", "libri_dev_trials_m", "libri_test_enrolls", "libri_test_trials_f",
    "libri_test_trials_m", "IEMOCAP_dev", "IEMOCAP_test", "train-clean-360",
)  # fmt: skip
"""Of the challenge of 2024."""


def make_features(folder: Path) -> None:
    """Sound inputs beside those of `odd_inputs.make_base`: a challenge's folder, and a table of vectors."""
    import soundfile

    rng = np.random.default_rng(2)
    sound = 0.1 * np.sign(np.sin(np.arange(16_000) / 20)) + 0.01 * rng.standard_normal(16_000)
    people = ("11", "12", "13")
    for name in FOLDERS:
        ids = [f"{speaker}-{name[-1]}{number}" for speaker in people for number in range(2)]
        lists = {"utt2spk": "".join(f"{u} {u[:2]}\n" for u in ids), "spk2gender": "11 f\n12 f\n13 f\n",
                 "wav.scp": "".join(f"{u} data/{name}/wav/{u}.wav\n" for u in ids)}  # fmt: skip
        if "enrolls" in name:
            lists["enrolls"] = "".join(f"{u}\n" for u in ids)
        if "trials" in name:
            pairs = [(a, b, "target" if b[:2] == a else "nontarget") for a in people for b in ids]
            lists["trials"] = "".join(f"{a} {b} {label}\n" for a, b, label in pairs)
        for suffix in ("", SUFFIX):
            place = folder / "vpc/data" / (name + suffix)
            (place / "wav").mkdir(parents=True)
            for utterance in ids:
                soundfile.write(place / "wav" / f"{utterance}.wav", sound, 16_000)
            for file, text in lists.items() if not suffix else ():
                (place / file).write_text(text)
    for file in (f"asr/x{SUFFIX}/wer.txt", f"asr/x{SUFFIX}.csv", f"asv_anon{SUFFIX}/a/scores.txt"):
        (folder / "vpc/exp" / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / "vpc/exp" / file).write_text("x 1\n")
    ids = [f"s{number // 4}-{number % 4}" for number in range(40)]
    np.save(folder / "table.npy", rng.standard_normal((40, 8)).astype(np.float32))
    (folder / "table.txt").write_text("".join(f"{name}\n" for name in ids))
    (folder / "utt2spk").write_text("".join(f"{name} {name[:2]}\n" for name in ids))


def _nothing(folder: Path) -> None:
    pass


def _text(name: str, content: str | bytes) -> Make:
    def make(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return make


def in_place(name: str, make: Make) -> Make:
    """Make something else where a file was."""

    def put(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        make(path)

    return put


# Command lines, each of which is a case; {} is replaced by DIGITS.
LINES = """
challenge check vpc/data --suffix _mine --year 2026
challenge check vpc/data --suffix _mine --year 2026 --track 9
challenge check vpc/data --suffix _mine --run run
challenge zip vpc/data --suffix _mine --out /dev/null
challenge zip vpc/data --suffix _mine --out o.npz/x
challenge zip corpus --suffix _mine --out sent
anonymize --vpc vpc/data --suffix _b --sets nothing --jobs 1
anonymize --vpc vpc/data --suffix _b --sets libri_test_trials_f_mine --jobs 1
anonymize --vpc corpus --suffix _b --jobs 1
linkability --enroll o.npz --test a.npz --distractors corpus
linkability --enroll o.npz --test a.npz --distractors o.npz --speakers 4
linkability --enroll o.npz --test a.npz --distractors table.npy --speakers 4
singling-out --enroll o.npz --test a.npz --distractors /dev/null
measure scores.txt --trials - < key.txt
measure - --trials - < scores.txt
measure - --trials key.txt --json < scores.txt
measure - --trials key.txt < /dev/zero
measure - --trials key.txt < /dev/urandom
measure - --stream --trials key.txt < /dev/zero
measure scores.txt scores.txt scores.txt --trials key.txt --csv --resamples 50
measure scores.txt --trials key.txt --columns enroll
measure scores.txt --trials key.txt --columns enroll,test,score,score
measure scores.txt --trials key.txt --columns -,-,-
measure scores.txt --trials key.txt --columns {}
check list.csv --columns path=a,path=b
anonymize list.csv out --jobs 1 --columns path=,speaker=
embed corpus out --extractor wavlm: --offline
embed corpus out --extractor wavlm:/dev/zero --offline
embed corpus out --extractor wavlm:corpus:{} --offline
embed corpus out --extractor whisper: --offline
embed corpus out --extractor whisper:99 --offline
embed corpus out --extractor whisper:{} --offline
embed corpus out --extractor onnx:/dev/zero --offline
embed corpus out --extractor rhythm --device cuda:999
assess --original o.npz --anonymized a.npz --out out --device tpu
anonymize corpus out --system cascade --voice nobody --jobs 1 --offline
anonymize corpus out --system cascade --keep words --jobs 1 --offline
anonymize corpus out --system cascade --keep , --jobs 1 --offline
anonymize corpus out --system cascade --option x --jobs 1 --offline
anonymize corpus out --system mcadams --rate {} --jobs 1
train xvector-pool corpus out --steps {} --jobs 1 --offline
train xvector-pool corpus /dev/null --jobs 1 --offline
report run --format x --out page
report run --format pdf --annex --template authority --language fr --out page.pdf
report run --language xx --out page
report run --candidates {} --out page
report run --out /dev/full
report run --out run
report run --with-audio --out page
report run --font-size 1e9 --figures f --out page
gate run --max-level x
gate run --max-level high
gate run --max-person linkability=
gate run --max-person eer=50%
gate run --max-person linkability@{}=50%
gate run --max linkability@20,L0=5%
gate run --max linkability=nan
gate run --junit /dev/full --max linkability=5%
gate run --summary run --max linkability=5%
gate run --baseline run --resamples {}
compare A=run A=run
compare A= B=run
compare A=run,nowhere B=run --table --group
compare A=run,run B=run --table --group --sort eer --report c.html
compare run run --table --report c.html
compare run run --table --sort nothing
compare run run --table --measures linkability@{}
compare run run --report /dev/full
compare a/b=run ../c=run --report c.html --bundle
compare run run --resamples {}
linkability --enroll o.npz --test a.npz --cluster tcp://127.0.0.1:22
linkability --enroll o.npz --test a.npz --cluster tcp://user:pass@127.0.0.1:1
linkability --enroll o.npz --test a.npz --cluster file:///etc/passwd
linkability --enroll o.npz --test a.npz --cluster slurm
linkability --enroll o.npz --test a.npz --cluster slurm:o.npz
""".replace("{}", DIGITS)


def challenge(special: dict[str, Make]) -> Cases:
    found: Cases = {}
    check, archive = "challenge check vpc/data --suffix _mine", "challenge zip vpc/data --suffix _mine --out sent"
    copy, original = "vpc/data/libri_test_trials_f_mine", "vpc/data/libri_test_trials_f"
    for kind, make in special.items():
        for file in (f"{copy}/wav/11-f0.wav", f"{copy}/utt2spk", f"{original}/utt2spk", f"{original}/trials"):
            found[f"{kind} as {file} (challenge check)"] = (in_place(file, make), check)
        for file in ("vpc/exp/asr/x_mine/wer.txt", "run/x_mine.csv", "run/emotions.csv"):
            found[f"{kind} as {file} (challenge zip)"] = (in_place(file, make), archive + " --run run")
        found[f"{kind} as wav.scp (anonymize --vpc)"] = (
            in_place(f"{original}/wav.scp", make),
            "anonymize --vpc vpc/data --suffix _b --sets libri_test_trials_f --system mcadams --jobs 1",
        )
        for file in ("table.txt", "table.npy", "utt2spk"):
            found[f"{kind} as {file}"] = (in_place(file, make), _TABLE)
        for file in ("config.json", "model.safetensors"):
            found[f"{kind} as {file} of a model"] = (
                in_place(f"model/{file}", make), "embed corpus out --extractor wavlm:model --jobs 1 --offline",
            )  # fmt: skip
        found[f"{kind} as statements"] = (in_place("s.toml", make), "report run --config s.toml --annex --out a.html")
        found[f"{kind} as one of several score files"] = (
            in_place("other.txt", make), "measure scores.txt other.txt --trials key.txt --json --resamples 50",
        )  # fmt: skip
    suffixes = (
        "_",
        "_*",
        "_**",
        "_[",
        "_/..",
        "_/../../x",
        "mine",
        "_" + "x" * 300,
        "_%20",
        "_\u202e",
        "_mine/",
        "_\n",
    )
    for suffix in suffixes:
        for command in ("challenge check vpc/data", "challenge zip vpc/data --out sent",
                        "anonymize --vpc vpc/data --sets libri_test_trials_f --jobs 1"):  # fmt: skip
            found[f"{command[:16]} --suffix {suffix[:9]!r}"] = (_nothing, f"{command} --suffix {suffix}")
    return found


def _save(file: str, value: Callable[[], Any]) -> Make:
    """With torch or NumPy, by the file's name."""

    def make(folder: Path) -> None:
        if file.endswith(".pt"):
            import torch

            torch.save(value(), folder / file)
        elif file.endswith(".npz"):
            np.savez(folder / file, **value())
        else:
            np.save(folder / file, value())

    return make


def vectors() -> Cases:
    def ones(*shape: int, **facts: Any) -> Any:
        import torch

        return torch.ones(*shape, **facts)

    tables: dict[str, Callable[[], Any]] = {
        "one dimension": lambda: np.zeros(40), "three dimensions": lambda: np.zeros((40, 2, 2)),
        "texts": lambda: np.array([["a"] * 8] * 40), "complex": lambda: np.ones((40, 8), complex),
        "nan": lambda: np.full((40, 8), np.nan), "no columns": lambda: np.zeros((40, 0)),
        "large": lambda: np.full((40, 8), 1e300), "dates": lambda: np.zeros((40, 8), "M8[s]"),
        "records": lambda: np.zeros(40, [("a", "f4")]), "objects": lambda: np.array([[{}] * 8] * 40),
    }  # fmt: skip
    archives: dict[str, Callable[[], Any]] = {
        "two lengths": lambda: {"a": np.ones(8), "b": np.ones(9)}, "scalars": lambda: {"a": 1.0}, "nothing": dict,
        "paths as ids": lambda: {"../../x": np.ones(8), "/etc/passwd": np.ones(8)},
        "too many speakers": lambda: {"ids": ["a"], "vectors": np.ones((1, 8)), "speakers": ["a", "b"]},
        "bytes as ids": lambda: {"ids": [b"a", b"\xff"], "vectors": np.ones((2, 8))},
        "nested ids": lambda: {"ids": [["a"], ["b"]], "vectors": np.ones((2, 8))},
    }  # fmt: skip
    tensors: dict[str, Callable[[], Any]] = {
        "list": lambda: [ones(8)] * 3, "mixed": lambda: {"a": ones(8), "b": "text"}, "empty": dict,
        "numbers as ids": lambda: {1: ones(8), 2: ones(8)}, "meta": lambda: {"a": ones(8, device="meta")},
        "two lengths": lambda: {"a": ones(8), "b": ones(9)}, "nested": lambda: {"a": {"b": ones(8)}},
        "stretched": lambda: {"a": ones(1).expand(10**9)}, "stretched table": lambda: ones(1, 8).expand(10**9, 8),
        "sparse": lambda: ones(4, 8).to_sparse(), "ids as tensor": lambda: {"ids": ones(2), "vectors": ones(2, 8)},
    }  # fmt: skip
    found: Cases = {}
    for file, values in (("table.npy", tables), ("x.npz", archives), ("x.pt", tensors)):
        for name, value in values.items():
            command = f"linkability --enroll {file} --test a.npz --speakers 4 --no-intervals"
            found[f"{file}: {name}"] = (_save(file, value), command)
    shapes = ("(999999999999, 999999999)", "(-1, 8)", "(40, 8.5)", "None", "(40,)" * 99)
    for shape in shapes:
        head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}\n".encode()
        data = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head
        found[f"table.npy: shape {shape[:20]}"] = (
            _text("table.npy", data),
            "linkability --enroll table.npy --test a.npz",
        )
    lists = {"too few": "a\n", "none": "", "equal": "u\n" * 40, "zero bytes": "a\0b\n" * 40, "no text": b"\xff\n" * 40}
    for name, text in lists.items():
        found[f"table.txt: {name}"] = (_text("table.txt", text), _TABLE)
    return found


def standard_input() -> Cases:
    inputs = {
        "nothing": b"", "zeros": b"\0" * 1000, "gzip": b"\x1f\x8b\x08\x00", "long line": b"x" * 5_000_000,
        "utf-16": "s0 s0-0 1\n".encode("utf-16"), "nan": b"s0 s0-0 nan\ns0 s1-0 1\n", "escape": b"s0 \x1b[2J 1\n" * 3,
        "digits": f"s0 s0-0 {DIGITS}\ns0 s1-0 1\n".encode(), "json": b'{"a": 1}\n',
    }  # fmt: skip
    found: Cases = {}
    for name, data in inputs.items():
        for words in ("-", "- --stream", "- -", "scores.txt -", "--original - --mixed - --protected -"):
            found[f"measure {words} with {name}"] = (_text("given", data), f"measure {words} --trials key.txt < given")
        found[f"assess --scores with {name}"] = (
            _text("given", data), "assess --scores ignorant=- --trials key.txt --out out --no-report < given",
        )  # fmt: skip
    return found


def models() -> Cases:
    """A folder of a WavLM model whose configuration is odd."""
    sound: dict[str, Any] = {
        "model_type": "wavlm", "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4,
        "intermediate_size": 24, "conv_dim": [8, 8, 8], "conv_kernel": [10, 8, 4], "conv_stride": [5, 8, 8],
        "num_feat_extract_layers": 3, "num_conv_pos_embeddings": 6, "num_conv_pos_embedding_groups": 2,
        "num_buckets": 16, "max_bucket_distance": 40, "do_stable_layer_norm": True, "conv_bias": True,
        "feat_extract_norm": "layer",
    }  # fmt: skip
    changes: dict[str, dict[str, Any] | str] = {
        "empty": "", "list": "[]", "deep": "[" * 100_000, "number": DIGITS, "type": {"model_type": "bert"},
        "no layers": {"num_hidden_layers": 0}, "layers": {"num_hidden_layers": 10**9}, "text": {"hidden_size": "x"},
        "negative": {"hidden_size": -1}, "null": {"conv_dim": None}, "stride": {"conv_stride": [0, 0, 0]},
        "lengths": {"conv_dim": [8]}, "heads": {"num_attention_heads": 0}, "huge": {"hidden_size": 10**12},
        "groups": {"num_conv_pos_embedding_groups": 0}, "kernel": {"conv_kernel": [10**9, 1, 1]}, "sound": {},
    }  # fmt: skip
    finetune = (
        "assess --original corpus --anonymized corpus --train-anonymized corpus --attackers informed --out out "
        "--jobs 1 --adaptation finetune --extractor rhythm --network vpc2026:model --measures scores --epochs 1 "
        "--offline"
    )
    found: Cases = {}
    for name, change in changes.items():
        text = change if isinstance(change, str) else json.dumps(sound | change)

        def make(folder: Path, text: str = text) -> None:
            from safetensors.numpy import save_file

            (folder / "model").mkdir()
            (folder / "model/config.json").write_text(text)
            save_file({"x": np.ones((2, 2), np.float32)}, folder / "model/model.safetensors")

        found[f"wavlm: {name}"] = (make, "embed corpus out --extractor wavlm:model --jobs 1 --offline")
        found[f"vpc2026: {name}"] = (make, finetune)
    return found


STATEMENTS = {
    "annex is text": 'annex = "x"', "recipients are text": 'recipients = "x"', "numbers": "recipients = [1, 2]",
    "no name": "[[recipients]]\nlabels = true", "empty name": "[[recipients]]\nname = ' '",
    "twice": "[[recipients]]\nname = 'a'\n[[recipients]]\nname = 'a'", "unknown": "[annex]\nnothing = 'x'",
    "candidates": f"[[recipients]]\nname = 'a'\nlabels = true\ncandidates = {10**30}",
    "truth as text": "[[recipients]]\nname = 'a'\noriginal_speech = 'yes'", "date": "[annex]\nreview_date = 2027-13-01",
    "severity": "[annex]\nseverity = 'bad'", "route": "[annex]\nroute = 'contextual'",
    "long": f"[annex]\npurpose = '{'x' * 6000}'", "nested": "[annex.controller]\nx = 1",
    "markup": "[annex]\ncontroller = '<script>alert(1)</script>{{ 7*7 }} #set page(x) \\input{/etc/passwd} $x$ `x`'",
    "control": '[annex]\ncontroller = "a\\u0000b\\u001b[31m\\u202e\\ufffe"', "number": "[annex]\ncontroller = 3",
    "name with markup": "[[recipients]]\nname = '<img src=x onerror=alert(1)>'\nlabels = true",
    "long name": f"[[recipients]]\nname = '{'x' * 100_000}'", "surrogate": '[annex]\ncontroller = "\\ud800"',
}  # fmt: skip
_FORMS = ("annex.html --annex", "a.docx --format docx", "a.pdf --format pdf --annex", "p.json --format pia-json",
          "b.html --annex --template authority")  # fmt: skip


def statements() -> Cases:
    return {
        f"statements: {name} ({form})": (_text("s.toml", text + "\n"), f"report run --config s.toml --out {form}")
        for name, text in STATEMENTS.items()
        for form in (_FORMS if "mark" in name or name == "control" else _FORMS[:1] + _FORMS[3:4])
    }


def bytes_as_names() -> Cases:
    """Names that are bytes and no text: file systems allow them."""
    odd = "\udce9\udcff"

    def rename(folder: Path) -> None:
        for name in ("o.npz", "run", "corpus/s1", "scores.txt"):
            os.rename(folder / name, folder / Path(name).with_name(odd + Path(name).name))
        os.symlink(odd + "run", folder / "run")

    lines = (f"check {odd}o.npz", "check corpus", "anonymize corpus out --jobs 1", "report run --out page.html",
             "embed corpus out --extractor rhythm --jobs 1", f"report {odd}run --out {odd}page.html",
             f"{ASSESS} --title {odd}", f"gate run --max linkability=5% --junit {odd}.xml",
             f"compare {odd}=run B=run", f"measure {odd}scores.txt --trials key.txt")  # fmt: skip
    return {f"bytes as names: {line!r}": (rename, line) for line in lines}


def cases(special: dict[str, Make]) -> Cases:
    """Every case by name; `special` are things that may lie where a file is meant."""
    found: Cases = {f"line: {line[:80]}": (_nothing, line) for line in LINES.strip().splitlines()}
    parts = (challenge(special), vectors(), standard_input(), models(), statements(), bytes_as_names())
    for part in parts:
        found |= part
    return found
