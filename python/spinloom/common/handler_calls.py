"""The names of the calls with which handlers use their NIC, by number (src/nic/spin/handler_call.hpp)."""

from __future__ import annotations

CALLS = {
    1: "DMA to host, non-blocking",
    2: "DMA to host, blocking",
    3: "DMA from host, non-blocking",
    4: "DMA from host, blocking",
    5: "test of a DMA",
    6: "wait for a DMA",
    7: "counter increment",
    8: "yield",
    9: "counter get",
    10: "counter set",
    11: "host compare-and-swap, non-blocking",
    12: "host compare-and-swap, blocking",
    13: "host fetch-and-add, non-blocking",
    14: "host fetch-and-add, blocking",
    15: "state compare-and-swap",
    16: "state fetch-and-add",
    17: "put from device",
    18: "put from host",
    19: "debug",
    20: "get to device",
    21: "get to host",
    22: "atomic from device",
    23: "atomic from host",
    24: "fetching atomic from device",
    25: "process-put",
    26: "send of a frame",
    27: "telemetry",
    28: "mail to a context",
}
