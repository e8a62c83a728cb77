"""The check that the options of `spinloom goal run` fit together.

Contract: Trouble('invalid') or Trouble('unsupported') names the option that does not fit, and what to do.
"""

from __future__ import annotations

from typing import Any

from spinloom.common.errors import Trouble
from spinloom.nics import machines
from spinloom.predict import goal_fidelity


def refuse_with_strategy(strategy: str | None, nic: str | None, options: dict[str, Any]) -> None:
    if strategy is None:
        return
    if nic is None:
        raise Trouble("invalid", f"--layout {strategy}: name the NIC, such as --nic {machines.NIC}")
    for name, value in options.items():
        if value:
            raise Trouble(
                "unsupported", f"--layout {strategy}: {name} does not know of NICs' work; leave it out"
            )


def sample_of(
    fidelities: list[str], full_ranks: str | None, nic_ranks: str | None
) -> tuple[str, list[int]] | None:
    """The fidelity of some ranks among others at message level, and which."""
    if full_ranks is None and nic_ranks is None:
        return None
    if full_ranks is not None and nic_ranks is not None:
        raise Trouble("invalid", "--nic-ranks: --full-ranks is given, too; a sample has one fidelity")
    name, text = (goal_fidelity.FULL, full_ranks) if full_ranks else (goal_fidelity.NIC, nic_ranks)
    if fidelities != [goal_fidelity.MESSAGE]:
        raise Trouble(
            "invalid", f"--{name}-ranks: the others are at --fidelity message, not {', '.join(fidelities)}"
        )
    return name, goal_fidelity.parse_ranks(f"--{name}-ranks", text or "")


def refuse_on_nics(fidelities: list[str], nic: str | None, options: dict[str, Any]) -> None:
    if not fidelities:
        return
    if nic is None:
        raise Trouble("invalid", f"--fidelity {fidelities[0]}: name the NIC, such as --nic {machines.NIC}")
    for name, value in options.items():
        if value:
            raise Trouble(
                "unsupported", f"{name}: --fidelity {fidelities[0]} has none; leave it out, or use message"
            )
