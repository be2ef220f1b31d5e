"""Vega, Vega-Lite and their embedder as one script for the page."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from veilmeter.core.errors import VeilmeterError
from veilmeter.core.files import cache_folder, write_text

_EXPOSED = "window.vegaEmbed = vegaEmbed;"


@lru_cache(maxsize=1)
def vega_script() -> str:
    """From the package that also draws the files. To put it together takes longer than the rest of a page, so it is
    kept for the next one."""
    import vl_convert

    made_by = version("vl-convert-python")
    try:
        folder = cache_folder()
    except VeilmeterError:  # no home folder
        return _bundle(vl_convert)
    script = kept_script(folder, made_by)
    if script is None:
        script = _bundle(vl_convert)
        with suppress(VeilmeterError):  # the page does not need it
            write_text(folder / _name(made_by, script), script)
    return script


def kept_script(folder: Path, made_by: str) -> str | None:
    """The script that this user kept. A name holds the digest of what was written, so that half a file is none; a file
    that others may have written is not put into pages."""
    for path in sorted(folder.glob(f"vega-{made_by}-*.js")):
        with suppress(OSError, UnicodeDecodeError):
            facts = path.lstat()
            own = facts.st_uid == os.getuid() if hasattr(os, "getuid") else True
            if not own or not stat.S_ISREG(facts.st_mode) or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                continue
            script = path.read_text(encoding="utf-8")
            if path.name == _name(made_by, script):
                return script
    return None


def _name(made_by: str, script: str) -> str:
    return f"vega-{made_by}-{hashlib.sha256(script.encode()).hexdigest()}.js"


def _bundle(vl_convert: Any) -> str:
    bundle: str = vl_convert.javascript_bundle(_EXPOSED)
    return bundle.replace("</script", "<\\/script")
