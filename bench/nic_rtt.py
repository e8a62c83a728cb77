"""Round trips of `ping` over a veth pair: answered by the kernel, and by handlers on the NIC (host time).

    python bench/nic_rtt.py [ROUNDS [PINGS]]

The ways take turns; for each round the median is printed. Needs root, because ping sends one a millisecond.
"""

from __future__ import annotations

import re
import signal
import statistics
import subprocess
import sys
from pathlib import Path

from spinloom.ethernet import namespaces

SPINLOOM = str(Path(sys.executable).with_name("spinloom"))
ANSWERS = ["--handlers", "icmp_echo", "--rules", "icmp", "--handlers", "arp_answer", "--rules", "arp"]
RUN = [SPINLOOM, "nic", "run", "--wire", "packet:nic0", "--address", "10.7.0.2", "--json", *ANSWERS]


def median_us(place: namespaces.Place, pings: int, size: int) -> float:
    words = ["ping", "-n", "-c", str(pings), "-i", "0.001", "-s", str(size), "10.7.0.2"]
    times = [float(one) for one in re.findall(r"time=([\d.]+)", place.run(words).stdout)]
    if len(times) != pings:
        sys.exit(f"{len(times)} of {pings} pings were answered")
    return 1000 * statistics.median(times)


def measure(way: str, pings: int, size: int) -> float:
    with namespaces.cable() as cable:
        if way == "kernel":
            cable.nic.ip("address add 10.7.0.2/24 dev nic0")
            return median_us(cable.client, pings, size)
        native = ["--native"] if way == "native" else []
        nic = cable.nic.start([*RUN, *native], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        nic.stderr.readline()
        try:
            return median_us(cable.client, pings, size)
        finally:
            nic.send_signal(signal.SIGINT)
            nic.communicate()


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    pings = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    for size in (56, 1400):
        times: dict[str, list[float]] = {}
        for _ in range(rounds):
            for way in ("kernel", "native", "sandbox"):
                times.setdefault(way, []).append(measure(way, pings, size))
        for way, medians in times.items():
            print(f"{size} B, {way}: " + " ".join(f"{one:.0f}" for one in medians) + " us")


if __name__ == "__main__":
    main()
