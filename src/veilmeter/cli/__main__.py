"""The program `veilmeter`. Ctrl-C while its modules are loaded ends it without a traceback: nothing has begun yet."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` takes milliseconds to make names for its numbers

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

from veilmeter.cli.main import main

if __name__ == "__main__":
    main()
