"""Times of a GPU's work: by events of the device, and by the host's clock of a launch.

Contract: sample() puts `calls` calls between two events, behind enough other work that all of them are queued
before the first begins: the time between the events is the device's alone. It returns device and host time of
one call in us. Where the host cannot queue as fast as the device works, even so, `starved` is counted.
alone_us() is one call from its launch until the host knows that it has ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from spinloom.layout.cuda import Driver

GATE_BYTES = 256 << 20  # filled before a sample, some 0.1 ms of an H100
GATES_MAX = 64


class Clock:
    def __init__(self, driver: Driver, stream: int) -> None:
        self.driver, self.stream = driver, stream
        self.gate = driver.allocate(GATE_BYTES)
        self.begin, self.end = driver.event(), driver.event()
        self.fills = 1
        self.starved = 0

    def close(self) -> None:
        self.driver.free(self.gate)

    def sample(self, call: Callable[[], object], calls: int) -> tuple[float, float]:
        while True:
            for _ in range(self.fills):
                self.driver.fill(self.gate, 0, GATE_BYTES, self.stream)
            self.driver.record(self.begin, self.stream)
            begun = time.perf_counter_ns()
            for _ in range(calls):
                call()
            host_us = (time.perf_counter_ns() - begun) / calls / 1e3
            began_early = self.driver.has_happened(self.begin)
            self.driver.record(self.end, self.stream)
            self.driver.synchronise(self.stream)
            device_us = self.driver.between_us(self.begin, self.end) / calls
            if not began_early or device_us > 1.5 * host_us:  # here the device is what is waited for
                return device_us, host_us
            if self.fills >= GATES_MAX:
                self.starved += 1
                return device_us, host_us
            self.fills *= 2

    def alone_us(self, call: Callable[[], object]) -> float:
        self.driver.synchronise(self.stream)
        begun = time.perf_counter_ns()
        call()
        self.driver.synchronise(self.stream)
        return (time.perf_counter_ns() - begun) / 1e3
