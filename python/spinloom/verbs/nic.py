"""`spinloom nic`: a live Ethernet NIC that runs handlers, its registers, and messages for it."""

from __future__ import annotations

import click

from spinloom.verbs.groups import Group


@click.group(
    cls=Group,
    places={
        "run": "nic_run:run",
        "status": "nic_registers:status",
        "list": "nic_registers:list_registers",
        "read": "nic_registers:read",
        "write": "nic_registers:write",
        "memory": "nic_registers:memory",
        "stdout": "nic_registers:stdout",
        "send": "nic_messages:send",
        "receive": "nic_messages:receive",
    },
    epilog="Examples: spinloom nic run --wire pcap:in.pcap,out.pcap --handlers icmp_echo --rules icmp; "
    "spinloom nic status; spinloom nic send data.bin 10.0.0.2",
)
def nic() -> None:
    """Run an Ethernet NIC with sPIN handlers, or speak to one.

    'run' is the NIC, as a process of this machine: docs/ethernet.md. 'status' to 'stdout' read and write the
    control registers of a NIC that runs: docs/registers.md. 'send' and 'receive' move a file as one message
    of the sPIN lightweight messaging protocol (SLMP) over UDP: docs/slmp.md.
    """
