"""Ways to break a sound file: bytes of anything, words of lists, values of JSON."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from copy import deepcopy
from typing import Any

WORDS = ["a", "b-1", "target", "nontarget", "1", "0", "-1.5", "nan", "inf", "1e999", "..", "../x.wav", "/etc/passwd",
         "a.wav", "x |", "| y", "\x1b[31m", "\u202e", "=1", "<b>", "\0", "\ufeff", "client_id", "path", "speaker",
         "utterance", "gender", '"', "'", "[", "]", "{", "}", "=", "#", "\\", "sentence", "9" * 400, "\u0130", "\u00b2",
         "\u0663", "-0", "1_0", "0x1", "+", "%s", "{0}", "a" * 5000, "javascript:alert(1)", "\ud800"]  # fmt: skip
SEPARATORS = [" ", "\t", ",", ";", "|", " = ", "\n", "\r\n", "\r", "\n\n", "\x0b", "\u2028", ""]
NUMBERS = (0, 1, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1)
VALUES: list[Any] = [None, True, False, 0, 1, -1, 0.5, 1e308, 2**63, 10**400, float("nan"), float("inf"), "", "x", "1",
                     "\ud800", "\0", [], {}, [[]], [None], [1, 2], ["x"], {"x": 1}, {"": None}, "x" * 5000, -1e-320,
                     [0.1, 0.9], ["x", "x"], {"value": 1}, [[1], [2, 3]]]  # fmt: skip


def change(data: bytes, name: str, rng: random.Random) -> bytes:
    """The content of a file of this name, broken in a way that suits it."""
    if name.endswith((".json", ".jsonl")) and rng.random() < 0.7:
        return change_json(data, rng)
    is_text = b"\0" not in data[:512]
    return (change_words if is_text and rng.random() < 0.7 else change_bytes)(data, rng)


def change_bytes(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        # Headers and footers say what the rest means: half of all changes are made there.
        place = rng.randrange(max(1, len(changed)))
        place = rng.choice((place, place, place % 64, len(changed) - 1 - place % 256))
        place = max(0, min(place, len(changed) - 1))
        kind = rng.randrange(7)
        if kind == 0 and changed:
            changed[place] = rng.choice((0, 255, 127, 128, rng.randrange(256)))
        elif kind == 1 and changed:
            changed[place] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del changed[place : place + rng.choice((1, 2, 4, 8, 200))]
        elif kind == 3:
            changed[place:place] = rng.randbytes(rng.choice((1, 2, 4, 30)))
        elif kind == 4:
            width = rng.choice((2, 4, 8))
            number = rng.choice(NUMBERS) % (1 << 8 * width)
            changed[place : place + width] = number.to_bytes(width, rng.choice(("little", "big")))
        elif kind == 5:
            stretch = changed[place : place + rng.choice((4, 16, 100))]
            other = rng.randrange(len(changed) + 1)
            changed[other:other] = stretch
        else:
            del changed[place:]
    return bytes(changed)


def change_words(data: bytes, rng: random.Random) -> bytes:
    """Lines and words of a list: taken out, doubled, swapped, or replaced by words that mean something elsewhere."""
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    for _ in range(rng.choice((1, 1, 2, 4))):
        place = rng.randrange(len(lines))
        kind = rng.randrange(8)
        if kind == 0:
            lines[place] = _joined(rng)
        elif kind == 1:
            lines.insert(place, _joined(rng))
        elif kind == 2 and len(lines) > 1:
            del lines[place]
        elif kind == 3:
            lines.insert(rng.randrange(len(lines) + 1), lines[place])
        elif kind == 4:
            at = rng.randrange(len(lines[place]) + 1)
            lines[place] = lines[place][:at] + rng.choice((*WORDS, *SEPARATORS)) + lines[place][at:]
        else:
            lines[place] = _with_other_word(lines[place], rng)
    return "\n".join(lines).encode("utf-8", "surrogatepass" if rng.random() < 0.5 else "replace")


def _joined(rng: random.Random) -> str:
    return rng.choice(SEPARATORS).join(rng.choice(WORDS) for _ in range(rng.randrange(7)))


def _with_other_word(line: str, rng: random.Random) -> str:
    separator = next((s for s in ("\t", ",", "|", " ") if s in line), " ")
    words = line.split(separator)
    words[rng.randrange(len(words))] = rng.choice((*WORDS, *words))
    return separator.join(words)


def change_json(data: bytes, rng: random.Random) -> bytes:
    """One JSON text, or one line of several: some values become others, keys vanish or change."""
    lines = data.splitlines() or [b""]
    try:
        form = json.loads(data)
    except (ValueError, RecursionError):
        place = rng.randrange(len(lines))
        try:
            form = json.loads(lines[place])
        except (ValueError, RecursionError):
            return change_bytes(data, rng)
        lines[place] = _text(_changed(form, rng))
        return b"\n".join(lines) + b"\n"
    return _text(_changed(form, rng))


def _text(form: Any) -> bytes:
    return json.dumps(form).encode()


def _changed(form: Any, rng: random.Random) -> Any:
    if rng.random() < 0.002:
        return json.loads("[" * 900 + "]" * 900)
    holder = [form]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places: list[tuple[Any, Any]] = [(holder, 0)]
        _collect(holder[0], places)
        inside, key = rng.choice(places if len(places) == 1 else places[1:])
        _CHANGES[rng.randrange(len(_CHANGES))](inside, key, rng)
        if not holder:
            return None
    return holder[0]


def _collect(form: Any, places: list[tuple[Any, Any]]) -> None:
    entries = form.items() if isinstance(form, dict) else enumerate(form) if isinstance(form, list) else ()
    for key, value in entries:
        places.append((form, key))
        _collect(value, places)


def _replace(inside: Any, key: Any, rng: random.Random) -> None:
    inside[key] = deepcopy(rng.choice(VALUES))


def _remove(inside: Any, key: Any, rng: random.Random) -> None:
    del inside[key]


def _rename(inside: Any, key: Any, rng: random.Random) -> None:
    if isinstance(inside, dict):
        inside[rng.choice(WORDS)] = inside.pop(key)
    else:
        inside.append(inside[key])


def _nudge(inside: Any, key: Any, rng: random.Random) -> None:
    """Another value of the same type: what a type check lets pass."""
    value = inside[key]
    if isinstance(value, bool):
        inside[key] = not value
    elif isinstance(value, int | float):
        inside[key] = rng.choice((-value, value + 1, value * 1000, 0, -1, 10**18, 0.5, 1e-300, float("nan")))
    elif isinstance(value, str):
        inside[key] = rng.choice((*WORDS, value + "x", value[:1]))
    elif isinstance(value, list):
        inside[key] = rng.choice((value[:1], value * 2, value[::-1]))
    elif isinstance(value, dict):
        inside[key] = {name: value[name] for name in list(value)[::2]}
    else:
        _replace(inside, key, rng)


_CHANGES: tuple[Callable[[Any, Any, random.Random], None], ...] = (_replace, _replace, _remove, _rename, _nudge, _nudge)
