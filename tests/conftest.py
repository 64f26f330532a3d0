"""What every test runs under."""

import signal

# A job in the background ignores Ctrl-C and hands that on to what it starts; tests of Ctrl-C need the default.
signal.signal(signal.SIGINT, signal.default_int_handler)
