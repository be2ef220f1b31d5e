"""Sessions: linkability within, across and to the original, against a plain count and on voices made to link or not."""

from __future__ import annotations

import numpy as np
import pytest

from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.legal.sessions import linkability_by_session

S, K, U, D = 12, 3, 6, 24


def conference(*, across: float, original: float, seed: int = 0) -> tuple[Embeddings, Embeddings]:
    """Every speaker in every session: one pseudo-voice a session, of which `across` is the speaker's in all sessions
    and `original` their own voice."""
    rng = np.random.default_rng(seed)
    own, lasting, passing = rng.normal(size=(S, D)), rng.normal(size=(S, D)), rng.normal(size=(S, K, D))
    rows = [(s, k, u) for s in range(S) for k in range(K) for u in range(U)]
    clear = np.array([own[s] + 0.4 * rng.normal(size=D) for s, k, u in rows])
    voices = original * own[:, None] + across * lasting[:, None] + (1 - across) * passing
    hidden = np.array([voices[s, k] + 0.4 * rng.normal(size=D) for s, k, u in rows])
    ids, who = [f"{s}-{k}-{u}" for s, k, u in rows], [f"s{s}" for s, _, _ in rows]
    session = {"session": [f"k{k}" for _, k, _ in rows]}
    return Embeddings(hidden, ids, who, session), Embeddings(clear, ids, who)


def test_pseudonyms_as_they_should_be_and_not() -> None:
    hidden, clear = conference(across=0, original=0)
    good = linkability_by_session(hidden, clear)
    assert good.within.value(S) > 0.97
    assert good.across.value(S) < 0.25
    assert good.original is not None
    assert good.original.value(S) < 0.25
    assert good.sessions == K
    lasting = linkability_by_session(*conference(across=1, original=0))
    assert lasting.across.value(S) > 0.97
    leaking = linkability_by_session(*conference(across=0, original=1.5))
    assert leaking.original is not None
    assert leaking.original.value(S) > 0.9
    assert linkability_by_session(hidden).original is None


def test_plain_count() -> None:
    hidden, clear = conference(across=0.4, original=0.4, seed=3)
    found = linkability_by_session(hidden, clear, length=2)

    def x(e: Embeddings, ids: list[str]) -> np.ndarray:
        v = np.mean([np.float64(e.unit[e.utterance_rows[u]]) for u in ids], 0)
        return v / np.linalg.norm(v)

    links: dict[str, list[bool]] = {"within": [], "across": [], "original": []}
    for s in range(S):
        for k in range(K):
            half = [[f"{q}-{k}-{u}" for u in (0, 2, 4)] for q in range(S)]
            test = x(hidden, [f"{s}-{k}-{u}" for u in (1, 3)])  # of three tested utterances one conversation of two
            others = [float(test @ x(hidden, half[q])) for q in range(S) if q != s]
            links["within"].append(float(test @ x(hidden, half[s])) > max(others))
            for b in range(K):
                if b != k:
                    links["across"].append(float(test @ x(hidden, [f"{s}-{b}-{u}" for u in (0, 2, 4)])) > max(others))
            clear_others = [float(test @ x(clear, half[q])) for q in range(S) if q != s]
            links["original"].append(float(test @ x(clear, half[s])) > max(clear_others))
    assert found.original is not None
    for name, one in (("within", found.within), ("across", found.across), ("original", found.original)):
        assert one.value(S) == pytest.approx(np.mean(links[name]), abs=1e-9)
        assert one.length == 2


def test_sessions_of_ones_own() -> None:
    """Chapters instead of meetings: nobody shares a session; the gallery still has one voice per speaker."""
    hidden, clear = conference(across=0, original=0)
    own = [f"{s}/{k}" for s, k in zip(hidden.speakers, hidden.attributes["session"], strict=True)]
    alone = Embeddings(hidden.vectors, hidden.utterances, hidden.speakers, {"session": own})
    found = linkability_by_session(alone, clear, seed=1)
    assert found.within.impostors == S - 1
    assert found.within.value(S) > 0.97
    assert found.across.value(S) < 0.25
    again = linkability_by_session(alone, clear, seed=1)
    assert again.across.value(S) == found.across.value(S)


def test_who_is_tested_and_who_is_left_out() -> None:
    hidden, _ = conference(across=0, original=0)
    session = hidden.attributes["session"].copy()
    session[hidden.speakers == "s0"] = ""  # unknown: nowhere
    session[(hidden.speakers == "s1") & (session != "k0")] = ""  # one session: an impostor only
    found = linkability_by_session(Embeddings(hidden.vectors, hidden.utterances, hidden.speakers, {"session": session}))
    assert found.left_out == ("s0",)
    assert found.within.impostors == S - 2
    assert set(found.within.names) == {f"s{i}" for i in range(2, S)}


def test_estimates() -> None:
    hidden, clear = conference(across=0, original=0)
    found = linkability_by_session(hidden, clear).estimates()
    assert list(found) == ["linkability_within_session", "linkability_across_sessions", "linkability_to_original"]
    assert [one.at["speakers"] for one in found["linkability_within_session"]] == [2, 5, 12]
    assert found["linkability_across_sessions"][0].better == "lower"
    assert found["linkability_within_session"][0].better == "neither"
    assert found["linkability_across_sessions"][0].interval is not None
    values = linkability_by_session(hidden, clear).estimates([3], intervals=False)
    assert values["linkability_to_original"][0].interval is None


def test_what_can_not_be_measured() -> None:
    hidden, clear = conference(across=0, original=0)
    with pytest.raises(InputError, match="no column 'session'"):
        linkability_by_session(clear)
    with pytest.raises(InputError, match="two sessions"):
        linkability_by_session(hidden, length=4)
    with pytest.raises(InputError, match="at least 1 utterance"):
        linkability_by_session(hidden, length=0)
    with pytest.raises(InputError, match="same utterances"):
        linkability_by_session(hidden, clear.take(np.arange(5)))
    with pytest.raises(InputError, match="nobody to mistake"):
        linkability_by_session(hidden.take(hidden.speakers == "s0"))


@pytest.mark.parametrize("dimension", [12, 37, 192, 256])
def test_one_voice_for_everybody_links_nothing(dimension):
    voice = np.random.default_rng(dimension).standard_normal(dimension)
    names, days = [f"s{i // 8}" for i in range(80)], [f"d{i % 2}" for i in range(80)]
    one = Embeddings(np.tile(voice, (80, 1)), [str(i) for i in range(80)], names, {"session": days})
    found = linkability_by_session(one, one)
    for curve in found.estimates([5], intervals=False).values():
        assert curve[0].value == 0
