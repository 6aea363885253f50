"""The first signal stops in order, the second at once."""

import signal
import subprocess
import sys
import time

_WAITS = """
import time
from penstock.cli.signals import handle_stop_signals
handle_stop_signals(lambda: print("stopping", flush=True))
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""


def test_a_second_signal_ends_the_process() -> None:
    process = subprocess.Popen([sys.executable, "-c", _WAITS], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "stopping\n"
        time.sleep(0.2)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 128 + signal.SIGINT
    finally:
        process.kill()
        process.stdout.close()
