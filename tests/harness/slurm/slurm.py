"""A real Slurm of one node on the loopback interface: munged, slurmctld and slurmd, children of this process, everything
they keep in one folder."""

import getpass
import os
import pathlib
import shutil
import socket
import subprocess
import time

PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin"
TOOLS = ["munged", "slurmctld", "slurmd", "srun", "salloc", "sbatch", "sinfo", "squeue"]
CONFIG = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={control_port}
SlurmdPort={node_port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,batch_sched_delay=0
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=test Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
"""
START_LIMIT_S = 60


def missing_tools():
    return [tool for tool in TOOLS if shutil.which(tool, path=PATH) is None]


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Slurm:
    """Up when made; end() ends it."""

    def __init__(self, folder):
        self.folder, self.processes = pathlib.Path(folder), []
        for name in ["state", "spool"]:
            (self.folder / name).mkdir(parents=True)
        config = self.folder / "slurm.conf"
        config.write_text(CONFIG.format(host=socket.gethostname().split(".")[0], user=getpass.getuser(), folder=self.folder,
                                        control_port=free_port(), node_port=free_port()))
        self.environment = {**os.environ, "PATH": PATH, "SLURM_CONF": str(config)}
        try:
            self.start()
        except BaseException:
            self.end()
            raise

    def start(self):
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        files = {option: f"--{option}={self.folder}/munge.{end}" for option, end in
                 [("socket", "socket"), ("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed")]}
        self.daemon("munged", "--foreground", "--force", f"--key-file={key}", *files.values())
        self.wait_for("munged", lambda: (self.folder / "munge.socket").exists())
        self.daemon("slurmctld", "-D")
        self.wait_for("slurmctld", lambda: "UP" in self.ask("scontrol", "ping"))
        self.daemon("slurmd", "-D")
        self.wait_for("the node", lambda: "idle" in self.ask("sinfo", "--noheader", "--format=%t"))

    def daemon(self, *command):
        with (self.folder / f"{command[0]}.out").open("wb") as out:
            self.processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self.environment))

    def ask(self, *command):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=30, check=False).stdout

    def wait_for(self, what, condition):
        deadline = time.monotonic() + START_LIMIT_S
        while not condition():
            dead = [process.args[0] for process in self.processes if process.poll() is not None]
            if dead or time.monotonic() > deadline:
                logs = "".join(f"{path.name}: {path.read_text(errors='replace')[-1500:]}\n" for path in
                               [*self.folder.glob("*.out"), *self.folder.glob("*.log")])
                raise RuntimeError(f"waited for {what}; ended: {dead}\n{logs}")
            time.sleep(0.1)

    def end(self):
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
