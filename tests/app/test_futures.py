"""Results of a pool come as they end, and signals are heard meanwhile."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from patience import seconds
from spinloom.common.futures import as_they_end

# A signal for each of many waits, sent by another thread when the main one has begun to wait, or is about to.
SCRIPT = """
import os, signal, threading
from concurrent.futures import Future
from spinloom.common.futures import as_they_end
class Told(Exception): pass
def tell(*_): raise Told
signal.signal(signal.SIGTERM, tell)
waits = threading.Semaphore(0)
def send():
    while True:
        waits.acquire()
        os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=send, daemon=True).start()
heard = 0
for _ in range(1500):
    try:
        waits.release()
        next(as_they_end([Future()]))
    except Told:
        heard += 1
print(heard, flush=True)
os._exit(0)
"""


def test_each_future_comes_once_as_it_ends():
    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(int, str(each)) for each in range(50)]
        assert sorted(each.result() for each in as_they_end(futures)) == list(range(50))
    assert not list(as_they_end([]))


def test_a_signal_is_heard_whenever_it_comes():
    """concurrent.futures.as_completed misses one in some hundred of these, and waits for ever."""
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=seconds(120))
    assert (ran.stdout, ran.stderr) == ("1500\n", "")
