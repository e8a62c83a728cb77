"""begin_pack() and its like: on the host, on the driver of tests/gpu/driver, on a GPU where there is one."""

from __future__ import annotations

import numpy as np
import pytest

from conftest import needs_engine
from device_arrays import OnDevice
from gpu_programs import HERE, KINDS, program
from spinloom import layout
from spinloom.common.errors import Trouble

pytestmark = needs_engine


@KINDS
def test_moves_that_are_begun(kind):
    assert program(kind, HERE / "begun_program.py") == "begun\n"


@pytest.mark.parametrize("where", [np.asarray, OnDevice])
def test_without_a_gpu_it_is_over_at_once(monkeypatch, where):
    monkeypatch.setenv("SPINLOOM_GPU", "shim")
    base, target = np.arange(60.0).reshape(3, 4, 5), np.zeros((3, 4, 5))
    made = layout.from_array(base[:, :, 1], base=base)
    packed = np.zeros(made.size, "u1")
    plan = made.bind(where(base), where(packed))
    done = plan.begin_pack()
    done.wait()
    done.hold(0)
    assert done.test()
    assert packed.tobytes() == base[:, :, 1].tobytes()
    assert made.bind(where(target), where(packed)).begin_unpack().test()
    assert (target[:, :, 1] == base[:, :, 1]).all()
    target[:] = 0
    assert made.bind_copy(where(base), made, where(target)).begin_copy().test()
    assert (target[:, :, 1] == base[:, :, 1]).all()
    target[:] = 0
    assert layout.bind_set([(made, where(target), where(packed))]).begin_unpack().test()
    assert layout.bind_set([(made, where(base), where(packed))]).begin_pack().test()
    assert layout.bind_copies([(made, where(base), made, where(target))]).begin_copy().test()
    assert (target[:, :, 1] == base[:, :, 1]).all()


def test_what_a_plan_refuses_is_refused_before_it_begins(monkeypatch):
    monkeypatch.setenv("SPINLOOM_GPU", "shim")
    base = np.arange(6.0)
    base.flags.writeable = False
    made = layout.from_array(base[::2], base=base)
    plan = made.bind(OnDevice(base), OnDevice(np.zeros(made.size, "u1")))
    with pytest.raises(Trouble, match="read-only"):
        plan.begin_unpack()
