"""The helpers of tests over cables between namespaces: the ways to make one, and a client of UDP."""

from __future__ import annotations

import os

import pytest

WAYS = [
    pytest.param(False, id="root", marks=pytest.mark.skipif(os.geteuid() != 0, reason="this is not root")),
    pytest.param(True, id="rootless"),
]

# Sends datagrams of each length and waits for each one's echo; prints how many were right.
CLIENT = """
import socket, sys
target, limit, lengths = sys.argv[1], float(sys.argv[2]), [int(word) for word in sys.argv[3:]]
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
    end.settimeout(limit)
    end.connect((target, 7))
    right = 0
    for turn, length in enumerate(lengths):
        data = bytes((turn + i) % 251 for i in range(length))
        end.send(data)
        right += end.recv(65536) == data
print(right)
"""
