"""A Slurm cluster, made for a test and ended with it: munged, slurmctld and slurmd.

Its nodes are this machine alone, or imitated machines.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from machines import Machines
from patience import until

DAEMONS = ("munged", "slurmctld", "slurmd")
PLACES = f"{os.environ['PATH']}{os.pathsep}/usr/sbin{os.pathsep}/sbin"
CONFIGURATION = """
ClusterName=here
SlurmctldHost={host}({address})
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
TmpFS={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
{nodes}
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
    controller_port, node_port = free_ports(2)
    name = socket.gethostname().partition(".")[0]
    values = {"host": name, "address": "127.0.0.1"}
    values |= {"controller_port": controller_port, "node_port": node_port}
    nodes = {name: f"NodeName={name} NodeAddr=127.0.0.1 CPUs=8"}
    with running(folder, values, nodes, lambda node, words: words) as environment:
        yield environment


@contextlib.contextmanager
def cluster_of(machines: Machines, folder: Path) -> Iterator[dict[str, str]]:
    """The same on the first of these machines; each is a node."""
    first = machines[0]
    values = {"host": first.name, "address": first.address, "controller_port": 6817, "node_port": 6818}
    nodes = {each.name: f"NodeName={each.name} NodeAddr={each.address} CPUs=8" for each in machines.members}
    by_name = {each.name: each for each in machines.members}
    with running(folder, values, nodes, lambda node, words: by_name[node].words(*words)) as environment:
        yield environment


@contextlib.contextmanager
def running(
    folder: Path,
    values: dict[str, str | int | Path],
    nodes: dict[str, str],
    on: Callable[[str, list[str]], list[str]],
) -> Iterator[dict[str, str]]:
    """`nodes` are lines of the configuration by name, and the first one has the controller as well.

    on(node, words) is what runs the words there.
    """
    for name in ("state", *(f"spool-{node}" for node in nodes)):
        (folder / name).mkdir()
    key = folder / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    configuration = folder / "slurm.conf"
    values |= {"user": getpass.getuser(), "folder": folder, "nodes": "\n".join(nodes.values())}
    configuration.write_text(CONFIGURATION.format(**values), encoding="utf-8")
    environment = {**os.environ, "SLURM_CONF": str(configuration)}
    munged = ["--foreground", "--force", f"--key-file={key}", f"--socket={folder}/munge.socket"]
    munged += [f"--pid-file={folder}/munged.pid", f"--seed-file={folder}/seed"]
    controller = next(iter(nodes))
    daemons = [("munged", controller, munged), ("slurmctld", controller, ["-D"])]
    daemons += [("slurmd", node, ["-D"]) for node in nodes]
    logs = {(name, node): folder / f"{name}-{node}.log" for name, node, _ in daemons}

    def states() -> list[str]:
        words = on(controller, ["sinfo", "--noheader", "--Node", "--format=%T"])
        text = subprocess.run(words, env=environment, capture_output=True, text=True, check=False).stdout
        return text.split()

    with contextlib.ExitStack() as stack:
        for name, node, options in daemons:
            log = stack.enter_context(logs[name, node].open("w"))
            daemon = subprocess.Popen(
                on(node, [shutil.which(name, path=PLACES) or name, *options]),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
            stack.callback(daemon.wait)
            stack.callback(daemon.terminate)
            if name == "munged":
                until((folder / "munge.socket").exists)
        if not until(lambda: states() == ["idle"] * len(nodes)):
            text = "\n".join(f"{log.name}: {log.read_text()[-1000:]}" for log in logs.values())
            raise RuntimeError(f"Slurm's nodes are not idle but {states()}:\n{text}")
        yield environment
