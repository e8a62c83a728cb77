"""The program of test_begun.py, where there is a GPU: moves that are begun, polled, waited for, dropped."""

from __future__ import annotations

import gc

import cupy
import numpy as np
import pytest

from spinloom import layout
from spinloom.common.errors import Trouble

SHAPE = (200, 200, 20)
WHERE = np.s_[:, 1:-1, 3]


def polls_until_done(done) -> int:
    """Polls until the move is done; returns how often "not yet" was the answer."""
    times = 0
    while not done.test():
        times += 1
    return times


base = np.random.default_rng(1).random(SHAPE)
there = cupy.asarray(base)
face = layout.from_array(there[WHERE], base=there)
items = np.ascontiguousarray(base[WHERE])

# Within the device.
packed = cupy.zeros(face.size, "u1")
plan = face.bind(there, packed)
done = plan.begin_pack()
polls_until_done(done)
assert done.test()
assert packed.get().tobytes() == items.tobytes()
target = cupy.zeros(SHAPE, "f8")
back = face.bind(target, packed).begin_unpack()
back.hold(0)  # the default stream, which the copy of get() is on
assert (target.get()[WHERE] == items).all()
back.wait()

# Between host and device: nothing comes before somebody asks.
host = np.zeros(SHAPE)
here = face.bind_copy(there, face, host)
coming = here.begin_copy()
assert not host.any()
with pytest.raises(Trouble, match="a stream cannot wait for them"):
    coming.hold(0)
polls_until_done(coming)
assert (host[WHERE] == items).all()
assert not host[:, :, :3].any()
coming.wait()
coming.hold(0)

# Two at once through the same layouts, and the blocking call between.
other = np.zeros(SHAPE)
two = [here.begin_copy(), face.bind_copy(there, face, other).begin_copy()]
third = np.zeros(SHAPE)
face.copy(there, face, third)
while two:
    two = [one for one in two if not one.test()]
assert (other[WHERE] == items).all()
assert (third[WHERE] == items).all()

# Into the device from the host, waited for; the plan's own arrays are kept by what was begun.
target = cupy.zeros(SHAPE, "f8")
done = face.bind_copy(base.copy(), face, target).begin_copy()
gc.collect()
done.wait()
assert (target.get()[WHERE] == items).all()

# Dropped: the next one is whole.
del done
here.begin_copy().test()
gc.collect()
host[:] = 0
here.begin_copy().wait()
assert (host[WHERE] == items).all()

# Sets, copies of sets, copies within one array.
layout.bind_set([(face, there, packed)]).begin_pack().wait()
assert packed.get().tobytes() == items.tobytes()
target = cupy.zeros(SHAPE, "f8")
layout.bind_copies([(face, there, face, target)]).begin_copy().wait()
assert (target.get()[WHERE] == items).all()
print("begun")
