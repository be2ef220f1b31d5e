"""Vectors as people save them: dictionaries and tables of NumPy and torch, with ids and speakers beside them."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from veilmeter.core.errors import InputError
from veilmeter.data.formats.vectors import is_embeddings, read_embeddings

IDS = [f"s{person}-u{take}" for person in range(5) for take in range(3)]
SPEAKERS = [name.split("-")[0] for name in IDS]
VECTORS = np.random.default_rng(0).normal(size=(len(IDS), 8)).astype(np.float32)
BY_ID = dict(zip(IDS, VECTORS, strict=True))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pairs = zip(IDS, SPEAKERS, strict=True)
    (tmp_path / "utt2spk").write_text("".join(f"{utterance} {speaker}\n" for utterance, speaker in pairs))
    return tmp_path


def same_as_written(path: Path) -> None:
    found = read_embeddings(path)
    assert list(found.utterances) == IDS
    assert list(found.speakers) == SPEAKERS
    np.testing.assert_array_equal(found.vectors, VECTORS)


def test_an_npz_with_one_array_per_id(folder: Path) -> None:
    np.savez(folder / "x.npz", **BY_ID)
    same_as_written(folder / "x.npz")
    np.savez(folder / "y.npz", a=VECTORS, b=VECTORS)
    with pytest.raises(InputError, match="nor one vector per id: 'a'"):
        read_embeddings(folder / "y.npz")


@pytest.mark.parametrize("ids", ["x.txt", "x.ids", "ids.txt"])
def test_an_npy_with_a_list_of_ids(folder: Path, ids: str) -> None:
    np.save(folder / "x.npy", VECTORS)
    with pytest.raises(InputError, match=r"put a list x.txt beside it"):
        read_embeddings(folder / "x.npy")
    (folder / ids).write_text("\n".join(IDS) + "\n")
    same_as_written(folder / "x.npy")
    (folder / ids).write_text("\n".join(IDS[1:]))
    with pytest.raises(InputError, match="14 ids for 15 vectors"):
        read_embeddings(folder / "x.npy")


def test_what_torch_saves(folder: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({name: torch.tensor(vector)[None] for name, vector in BY_ID.items()}, folder / "by-id.pt")
    torch.save({"ids": IDS, "vectors": torch.tensor(VECTORS), "speakers": SPEAKERS}, folder / "named.pt")
    torch.save(torch.tensor(VECTORS), folder / "table.pt")
    (folder / "table.txt").write_text("\n".join(IDS))
    torch.save(torch.tensor(VECTORS), folder / "old.pt", _use_new_zipfile_serialization=False)
    (folder / "old.txt").write_text("\n".join(IDS))
    for name in ("by-id", "named", "table", "old"):
        same_as_written(folder / f"{name}.pt")
    torch.save({name: torch.zeros(1).expand(1 << 20) for name in IDS}, folder / "bomb.pt")
    with pytest.raises(InputError, match="more vectors than the file holds"):
        read_embeddings(folder / "bomb.pt")


class Trap:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (self.path, "w")


@pytest.mark.parametrize("name", ["x.pkl", "x.pickle", "x", "x.pt", "x.npy"])
def test_pickles_are_never_loaded(folder: Path, name: str) -> None:
    trap = Trap(folder / "sprung")
    if name == "x.npy":
        np.save(folder / name, np.array({"a": trap}, object), allow_pickle=True)
    else:
        (folder / name).write_bytes(pickle.dumps({"a": trap}, protocol=4))
    assert is_embeddings(folder / name)
    with pytest.raises(InputError) as caught:
        read_embeddings(folder / name)
    assert not (folder / "sprung").exists()
    if name != "x.pt":
        assert "np.savez" in str(caught.value)
