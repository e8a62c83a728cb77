"""A Slurm cluster of this machine alone, made for a test and ended with it: munged, slurmctld and slurmd."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from patience import until

DAEMONS = ("munged", "slurmctld", "slurmd")
PLACES = f"{os.environ['PATH']}{os.pathsep}/usr/sbin{os.pathsep}/sbin"
CONFIGURATION = """
ClusterName=here
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=8
PartitionName=here Nodes=ALL Default=YES State=UP OverSubscribe=FORCE
"""


def missing() -> list[str]:
    return [name for name in (*DAEMONS, "srun", "sbatch") if shutil.which(name, path=PLACES) is None]


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[dict[str, str]]:
    """The environment in which srun and sbatch find the cluster, once its node is idle."""
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    controller_port, node_port = free_ports(2)
    configuration = folder / "slurm.conf"
    values = {"host": socket.gethostname().partition(".")[0], "user": getpass.getuser(), "folder": folder}
    configuration.write_text(
        CONFIGURATION.format(**values, controller_port=controller_port, node_port=node_port), encoding="utf-8"
    )
    environment = {**os.environ, "SLURM_CONF": str(configuration)}
    munged = ["--foreground", "--force", f"--key-file={key}", f"--socket={folder}/munge.socket"]
    munged += [f"--pid-file={folder}/munged.pid", f"--seed-file={folder}/seed"]
    options = {"munged": munged, "slurmctld": ["-D"], "slurmd": ["-D"]}

    def state() -> str:
        asked = ["sinfo", "--noheader", "--format=%T"]
        return subprocess.run(asked, env=environment, capture_output=True, text=True, check=False).stdout

    with contextlib.ExitStack() as stack:
        for name in DAEMONS:
            log = stack.enter_context((folder / f"{name}.log").open("w"))
            daemon = subprocess.Popen(
                [shutil.which(name, path=PLACES) or name, *options[name]],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
            stack.callback(daemon.wait)
            stack.callback(daemon.terminate)
            if name == "munged":
                until((folder / "munge.socket").exists)
        if not until(lambda: state().strip() == "idle"):
            logs = "\n".join((folder / f"{name}.log").read_text()[-1000:] for name in DAEMONS)
            raise RuntimeError(f"Slurm's node is not idle but '{state().strip()}':\n{logs}")
        yield environment
