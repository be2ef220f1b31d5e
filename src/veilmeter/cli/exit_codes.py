"""How a command ends: one table for code, documentation and tests."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """The exit codes of every command."""

    DONE = 0
    LIMIT_BROKEN = 1
    WRONG_INPUT = 2
    LEFT_OUT = 3
    OUR_MISTAKE = 70
    STOPPED = 130
    PIPE_CLOSED = 141


MEANINGS = {
    Exit.DONE: "it was done; for `gate`: every limit holds",
    Exit.LIMIT_BROKEN: "`gate`: a limit is broken, a figure got significantly worse, or a self-check failed",
    Exit.WRONG_INPUT: "invalid input: one line names the file or option, the problem and the fix",
    Exit.LEFT_OUT: "it was done, but some recordings could not be used and are listed",
    Exit.OUR_MISTAKE: "a mistake inside veilmeter, never of yours: please report it",
    Exit.STOPPED: "stopped by Ctrl-C or SIGTERM; the same command goes on from there",
    Exit.PIPE_CLOSED: "whoever read the output stopped reading, as `head` does",
}
