"""Names for speakers in a report that say nothing about who they are, the same in every report of one run."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from pathlib import Path

from veilmeter.core.errors import InputError
from veilmeter.core.files import write_bytes

KEY_FILE = "pseudonyms.key"


def run_key(run: str | Path | None) -> bytes:
    """The run's secret, made when first needed. Without one, ids that can be guessed could be found out by trying.
    Results that lie nowhere get a new one each time."""
    if run is None:
        return secrets.token_bytes(32)
    path = Path(run) / KEY_FILE
    if path.is_symlink():
        raise InputError("this key is a link to another file", path=path, fix="remove it; a new key is made")
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        key = b""
    if len(key) < 32:
        key = secrets.token_bytes(32)
        write_bytes(path, key)
    return key


def pseudonyms(speakers: Iterable[str], key: bytes) -> dict[str, str]:
    """P01, P02, ... in an order that only the key explains.

    >>> sorted(pseudonyms(["anna", "bert"], b"k" * 32).values())
    ['P1', 'P2']
    """
    ids = sorted(
        set(speakers), key=lambda s: hmac.new(key, s.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
    )
    width = len(str(len(ids)))
    return {speaker: f"P{number:0{width}d}" for number, speaker in enumerate(ids, 1)}
