"""Fuzzing of everything that reads files; `tools/fuzz.py` is the command."""
