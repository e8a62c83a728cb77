"""mpi4py prefers calls with large counts where the MPI has them, and asks for others by weak references."""

from __future__ import annotations

import subprocess
import sys

import pytest

from layer_programs import BIN, MPIS, preloads, run
from test_mpi_examples import in_python

PROGRAM = """
import array
from mpi4py import MPI

world, other = MPI.COMM_WORLD, 1 - MPI.COMM_WORLD.rank
column = MPI.DOUBLE.Create_vector(4096, 1, 8).Commit()
grid, halo = array.array("d", range(4096 * 8)), array.array("d", [-1] * 4096 * 8)
packed = bytearray(4096 * 8 + 4)
found = [column.Pack(grid, packed, 4, world), column.Unpack(packed, 4, halo, world)]
found += [halo[::8] == grid[::8], set(halo[1::8])]
halo[:] = array.array("d", [-2] * len(halo))
world.Sendrecv([grid, 1, column], other, 3, [halo, 1, column], other, 3)
found += [halo[::8] == grid[::8], set(halo[1::8])]
request = world.Irecv([halo, 1, MPI.INT], other, 4)
world.Send([grid, 1, MPI.INT], other, 4)
request.Wait()
try:
    world.Isendrecv([grid, 1, MPI.INT], other, 5, [halo, 1, MPI.INT], other, 5).Wait()
except (MPI.Exception, NotImplementedError):  # MPI 3 and older
    pass
assert found == [32772, 32772, True, {-1.0}, True, {-2.0}], found
"""


@pytest.mark.parametrize("mpi", MPIS[:3], ids=lambda mpi: mpi.name)
def test_calls_with_large_counts(mpi, tmp_path):
    *python, _ = in_python(mpi, tmp_path)
    job = [mpi.launcher, *mpi.options, "-n", "2", *python, "-c", PROGRAM]
    ran = run(job, preloads(tmp_path / "report"))
    assert ran.returncode == 0, ran.stderr


ABSENT = """
from mpi4py import MPI

def answer(call):
    try:
        return call()
    except (MPI.Exception, NotImplementedError) as error:
        return type(error).__name__

null = MPI.REQUEST_NULL
answers = [answer(call) for call in (
    lambda: MPI.Request.Get_status_all([null, null]),
    lambda: MPI.Request.Get_status_any([null, null]),
    lambda: MPI.Request.Get_status_some([null, null]),
    lambda: MPI.COMM_WORLD.Barrier_init().Free(),
    lambda: MPI.COMM_WORLD.Bcast_init(bytearray(8)).Free(),
)]
if MPI.COMM_WORLD.rank == 0:
    print(answers)
"""


@pytest.mark.parametrize("mpi", MPIS[:3], ids=lambda mpi: mpi.name)
def test_calls_that_the_mpi_lacks_are_lacking(mpi, tmp_path):
    *python, _ = in_python(mpi, tmp_path)
    job = [mpi.launcher, *mpi.options, "-n", "2", *python, "-c", ABSENT]
    plain, layered = run(job, {}), run(job, preloads(tmp_path / "report"))
    assert (layered.returncode, layered.stdout) == (plain.returncode, plain.stdout), layered.stderr
    assert plain.stdout.startswith("[")


@pytest.fixture
def in_open_mpi_5():
    """Words and settings of a job under the wheel's Open MPI, whose launcher stands beside Python."""
    library, launcher = BIN.parent / "lib/libmpi.so.40", BIN / "ompirun_wrapper"
    pytest.importorskip("mpi4py")
    if not library.exists() or not launcher.exists():
        pytest.skip("the wheel of Open MPI is not here")
    words = ["--oversubscribe", "--allow-run-as-root", "-n", "2", "env", f"MPI4PY_LIBMPI={library}"]
    return [str(launcher), *words, sys.executable, "-c"], {"OPAL_PREFIX": str(BIN.parent)}


def test_calls_that_open_mpi_5_lacks_are_lacking(in_open_mpi_5, tmp_path):
    words, more = in_open_mpi_5
    job = [*words, ABSENT]
    plain, layered = run(job, more), run(job, more | preloads(tmp_path / "report"))
    assert plain.returncode == 0, plain.stderr
    assert (layered.returncode, layered.stdout) == (plain.returncode, plain.stdout), layered.stderr
    assert plain.stdout.count("NotImplementedError") == 3


STRONG = """
int MPI_Send_c(void), MPI_Recv_c(void);
int (*const large_calls[2])(void) = {MPI_Send_c, MPI_Recv_c};
"""
LARGE = """
import ctypes
from mpi4py import MPI

def handle(of):
    return ctypes.c_void_p(MPI._handleof(of))

places = (ctypes.c_void_p * 2).in_dll(ctypes.CDLL(None), "large_calls")
send, receive = map(ctypes.CFUNCTYPE(ctypes.c_int), places)
world = MPI.COMM_WORLD
text, count = ctypes.create_string_buffer(b"by calls with ints", 64), ctypes.c_longlong(64)
message = text, count, handle(MPI.CHAR), 1 - world.rank, 3, handle(world)
if world.rank == 0:
    send(*message)
else:
    text.value = b""
    receive(*message, None)
print(text.value)
"""


def test_what_refers_to_calls_with_large_counts_has_them_with_open_mpi_5(in_open_mpi_5, tmp_path):
    """They are done by those with ints, for whoever has been bound to the layer's names."""
    source, refers = tmp_path / "strong.c", tmp_path / "strong.so"
    source.write_text(STRONG, encoding="utf-8")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(refers), str(source)], check=True)
    words, more = in_open_mpi_5
    settings = preloads(tmp_path / "report")
    settings["LD_PRELOAD"] += f":{refers}"
    ran = run([*words, LARGE], more | settings)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["b'by calls with ints'"] * 2
