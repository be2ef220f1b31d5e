"""`make third-party`: THIRD_PARTY.md, the licenses and sources of all that is installed or fetched.

Packages are those of requirements-lock.txt and torch, with what their metadata says, as installed in .venv; weights are
those that `veilmeter.speech.weights` pins.
"""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "THIRD_PARTY.md"
HEAD = """\
# Third-party software and models

veilmeter itself is MIT (LICENSE). This page lists what it installs and fetches; `make third-party` writes it, and a
test compares it with the lock and the pinned weights. Nothing of it is copied into this repository.

**GPL code** comes with two packages of optional extras, as libraries inside their wheels:

- `espeakng-loader` (extra `audio`) brings espeak-ng, GPL-3.0-or-later. Only `veilmeter demo` and tests load it, to make
  synthetic voices.
- `av` (extra `media`) brings FFmpeg with x264 and x265, GPL-2.0-or-later. It is loaded to read recordings of the mp4
  family, and only where it is installed.

`kaldiio` (extra `dev`) comes under an evaluation license of NTT. Only tests import it, to compare what it reads.

"""
# Where a package's metadata says nothing: its license and its source.
UNSTATED = {
    "espeakng-loader": (
        "GPL-3.0-or-later (espeak-ng, inside); none stated for the loader",
        "https://github.com/thewh1teagle/espeakng-loader",
    ),
    "jiwer": ("", "https://github.com/jitsi/jiwer"),
    "lazy-importer": ("", "https://github.com/pganssle/lazy_importer"),
}
_PINNED = re.compile(r"([A-Za-z0-9._-]+)==(\S+)")
_SOURCES = ("source", "source code", "repository", "code", "github", "homepage", "home", "documentation")


def packages() -> dict[str, str]:
    """Every locked package and torch, with its version."""
    found: dict[str, str] = {}
    for file in ("requirements-lock.txt", "constraints.txt"):
        for line in (ROOT / file).read_text(encoding="utf-8").splitlines():
            if match := _PINNED.match(line):
                found[match[1].lower()] = match[2]
    return dict(sorted(found.items()))


def license_of(package: metadata.Distribution) -> str:
    """The license as an expression, else as its classifiers or first line say, else the title of its license file."""
    about = package.metadata
    if expression := about.get("License-Expression"):
        return str(expression)
    classifiers = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier") or () if "License ::" in line]
    named = [line for line in classifiers if line != "OSI Approved"]
    text = (about.get("License") or "").strip()
    if text and "\n" not in text and len(text) <= 60 and not named:
        return text
    if named or text:
        return ", ".join(dict.fromkeys(named)) or text.splitlines()[0][:60]
    files = (file for file in package.files or () if file.name in about.get_all("License-File", ()))
    return next((file.read_text().strip().splitlines()[0] for file in files), "")


def source_of(about: metadata.PackageMetadata) -> str:
    """Where its source lies, as its metadata says."""
    links = dict(line.split(", ", 1) for line in about.get_all("Project-URL") or () if ", " in line)
    by_name = {name.lower(): link for name, link in links.items()}
    return next((by_name[name] for name in _SOURCES if name in by_name), about.get("Home-page") or "")


def weights() -> list[tuple[str, str, str]]:
    """Name, license and package of every pinned file of weights, those of one package and license once."""
    from veilmeter.speech import weights as pinned

    listed: list[pinned.Weights] = []
    for value in vars(pinned).values():
        listed += [
            item for item in (value if isinstance(value, tuple) else (value,)) if isinstance(item, pinned.Weights)
        ]
    rows = [(item.name, item.license, ", ".join(one.requirement for one in item.packages)) for item in listed]
    return list(dict.fromkeys(rows))


def text() -> str:
    """The whole page."""
    lines = [HEAD, "## Packages\n", "| package | version | license | source |", "|---|---|---|---|"]
    for name, version in packages().items():
        package = metadata.distribution(name)
        terms, source = UNSTATED.get(name, ("", ""))
        terms, source = terms or license_of(package).replace("|", "/"), source or source_of(package.metadata)
        lines.append(f"| {name} | {version} | {terms} | {source} |")
    lines += ["\n## Weights, fetched when first needed\n", "| weights | license | from package |", "|---|---|---|"]
    lines += [f"| {name} | {terms} | {package} |" for name, terms, package in weights()]
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


def main() -> int:
    TARGET.write_text(text(), encoding="utf-8")
    print(f"{len(packages())} packages and {len(weights())} models in {TARGET.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
