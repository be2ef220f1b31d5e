"""The program `veilmeter`. Ctrl-C while its modules are loaded ends it without a traceback: nothing has begun yet."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from veilmeter.cli.main import main

if __name__ == "__main__":
    main()
