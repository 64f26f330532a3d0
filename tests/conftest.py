"""What every test runs under."""

import signal

# A job in the background ignores Ctrl-C, and so does what it starts; tests of Ctrl-C need the default.
signal.signal(signal.SIGINT, signal.default_int_handler)
