"""How the programs of peers answer a suite: one line of input is a request, and one line of output its answer.

The first request asks for the names of the peers that are installed. Every other one is "PEER<TAB>WORK": the answer is
a number, mostly the seconds of one call, "-" if the peer does not have this work, or another text, such as that of an
error.
"""

import importlib
import os
import sys
import time

# What a library prints must not be taken for an answer.
_answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def module(name):
    """The module of that name, or None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def seconds_of(call, *, series=False):
    """Seconds of one call; those of small ones are measured in a series of about two milliseconds."""
    calls = 1
    while True:
        start = time.perf_counter()
        for _ in range(calls):
            call()
        taken = time.perf_counter() - start
        if not series or taken > 2e-3:
            return taken / calls
        calls *= 2


def serve(names, answer):
    """Answers requests until the input ends. `answer(peer, work)` returns a number, a text, or None for work that the
    peer does not have."""
    sys.stdin.readline()
    print(*names, file=_answers, flush=True)
    for line in sys.stdin:
        peer, work = line.rstrip("\n").split("\t")
        try:
            found = answer(peer, work)
            text = "-" if found is None else found if isinstance(found, str) else f"{found:.9g}"
        except Exception as error:
            text = f"failed: {error!r}"
        # Threads that spin for a while after their work must not disturb whoever is measured next.
        time.sleep(0.005)
        print(text.replace("\n", " "), file=_answers, flush=True)
