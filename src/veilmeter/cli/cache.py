"""`veilmeter cache`: what veilmeter keeps on this machine outside of your folders, and how to remove it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from veilmeter.cli.command import CommaCommand, CommandGroup
from veilmeter.core.errors import VeilmeterError

if TYPE_CHECKING:
    from contextlib import ExitStack

app = typer.Typer(
    cls=CommandGroup,
    add_completion=False,
    help="Show or clear cached models and embeddings.\n\nEmbeddings are biometric data.",
)


def _entries(folder: Path) -> list[tuple[Path, int]]:
    """The entries of the cache with the bytes below each; links are entries, never followed."""
    if not folder.is_dir():
        return []
    entries = []
    for entry in sorted(folder.iterdir()):
        files = [entry] if entry.is_symlink() or not entry.is_dir() else [p for p in entry.rglob("*") if p.is_file()]
        entries.append((entry, sum(file.lstat().st_size for file in files)))
    return entries


@app.command(cls=CommaCommand)
def show() -> None:
    """Show where the cache is and what it contains, with the licenses of models where they are known."""
    from veilmeter.speech.weights import cache_folder, published

    folder = cache_folder()
    entries = _entries(folder)
    known = published()
    print(folder)
    for entry, size in entries:
        weights = known.get(entry.name)
        license_note = f"  ({weights.license})" if weights is not None and weights.license else ""
        print(f"{size / 1e6:10.1f} MB  {entry.name}{license_note}")
    if not entries:
        print("The cache is empty.")


def _hold(folder: Path, held: ExitStack) -> None:
    """Nobody may be listening meanwhile: a run would end with an error, or write again what was just removed."""
    from veilmeter.core.files import only_one

    if folder.is_symlink() or not folder.is_dir():
        return
    for lock in sorted(folder.glob("*.lock")):
        try:
            held.enter_context(only_one(lock))
        except VeilmeterError as error:
            if "another run" not in error.what:
                raise
            raise VeilmeterError(
                "a run is using this cache", path=folder, fix="wait until it has ended, or stop it, then clear it"
            ) from None


@app.command(cls=CommaCommand)
def clear() -> None:
    """Remove everything from the cache."""
    import shutil
    from contextlib import ExitStack

    from veilmeter.core.files import as_veilmeter_error
    from veilmeter.speech.weights import cache_folder

    folder = cache_folder()
    entries = _entries(folder)
    with ExitStack() as held:
        if folder.is_dir():
            for kept in ("embeddings", "annotations"):
                _hold(folder / kept, held)
        for entry, _ in entries:
            try:
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry)
                else:
                    entry.unlink()
            except OSError as error:
                raise as_veilmeter_error(error, error.filename or entry) from None
    freed = sum(size for _, size in entries)
    print(f"Removed {len(entries)} entries, {freed / 1e6:.1f} MB, from {folder}.")
