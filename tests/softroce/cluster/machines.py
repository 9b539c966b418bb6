"""Two emulated machines with soft-RoCE and sshd, on a data network of their own and a management network each, of which
only ssh is forwarded to a loopback port of this machine."""

import pathlib
import shlex
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import machine  # noqa: E402

SSHD_CONFIG = """HostKey /run/verbscope/host_key
AuthorizedKeysFile /run/verbscope/authorized_keys
PidFile none
UsePAM no
StrictModes no
UseDNS no
MaxStartups 50
"""
SSH_CONFIG = """Host *
  User root
  IdentityFile {key}
  IdentitiesOnly yes
  UserKnownHostsFile {known_hosts}
  GlobalKnownHostsFile /dev/null
  KexAlgorithms curve25519-sha256
"""


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def make_key(path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)], check=True, timeout=60)
    return path.with_suffix(".pub").read_text().strip()


class Node:
    def __init__(self, number, folder, ssh_config):
        self.number, self.name = number, f"node{number}"
        self.folder, self.ssh_config = folder, ssh_config
        self.socket = folder.with_suffix(".socket")
        self.ssh_port, self.process, self.connection = free_port(), None, None

    def boot(self, cache, data):
        """`data` is this machine's end of the data network, which is there before either machine is: no port, no order."""
        arguments = ["-netdev", f"user,id=management,restrict=on,hostfwd=tcp:127.0.0.1:{self.ssh_port}-:22",
                     "-device", f"virtio-net-pci,netdev=management,romfile=,mac=52:54:00:00:01:0{self.number}",
                     "-netdev", f"socket,id=data,fd={data.fileno()}",
                     "-device", f"virtio-net-pci,netdev=data,romfile=,mac=52:54:00:00:02:0{self.number}"]
        self.process = machine.boot(HERE / "guest.sh", self.folder, cache, {"NODE": self.number}, arguments, [data])
        data.close()

    def give_keys(self, user_key):
        """Before the guest's script runs: it takes seconds to get there."""
        public = make_key(self.folder / "host_key")
        (self.folder / "authorized_keys").write_text(user_key + "\n")
        (self.folder / "sshd_config").write_text(SSHD_CONFIG)
        return f"[127.0.0.1]:{self.ssh_port} {public}\n"

    def ssh(self, *words):
        return ["ssh", "-F", str(self.ssh_config), "-p", str(self.ssh_port), "-S", str(self.socket),
                "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", *words]

    def connect(self, limit_s):
        """The connection that run() uses: made once, for it takes seconds under emulation."""
        deadline = time.monotonic() + limit_s
        while not self.socket.exists():
            if self.connection is None or self.connection.poll() is not None:
                with (self.folder / "ssh.log").open("ab") as log:
                    self.connection = subprocess.Popen(self.ssh("-M", "-N", "127.0.0.1"), stdin=subprocess.DEVNULL,
                                                       stdout=log, stderr=log)
            if time.monotonic() > deadline:
                said = (self.folder / "ssh.log").read_text(errors="replace")[-1000:]
                tail = machine.console_tail(self.folder / "console.log")
                raise machine.Failed(f"no ssh to {self.name} within {limit_s} s: {said}\n{tail}")
            time.sleep(0.1)

    def run(self, script, limit_s=60):
        """The output of the shell script on the node; it must end well."""
        done = subprocess.run(self.ssh("127.0.0.1", "sh", "-c", shlex.quote(script)), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=limit_s, check=False)
        if done.returncode != 0:
            raise machine.Failed(f"{self.name}: {script}: exit status {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def switch_off(self):
        self.process.kill()
        self.process.wait()


class Cluster:
    """Booted when made. `folder` takes what the machines and ssh leave."""

    def __init__(self, folder, cache, boot_limit_s):
        self.folder = folder
        self.ssh_config = folder / "ssh_config"
        self.known_hosts = folder / "known_hosts"
        folder.mkdir(parents=True)
        user_key = make_key(folder / "user_key")
        self.ssh_config.write_text(SSH_CONFIG.format(key=folder / "user_key", known_hosts=self.known_hosts))
        self.nodes = [Node(1, folder / "node1", self.ssh_config), Node(2, folder / "node2", self.ssh_config)]
        known = ""
        for node, end in zip(self.nodes, socket.socketpair()):
            node.boot(cache, end)
            known += node.give_keys(user_key)
        self.known_hosts.write_text(known)
        for node in self.nodes:
            node.connect(boot_limit_s)
        # Without the data network every check would fail, each in its way.
        self.nodes[1].run("busybox ping -c 1 -w 30 10.9.0.1")

    def hosts_file(self, path, **changes):
        """Writes a hosts file of both nodes; changes: name of a node -> the words that follow it instead."""
        lines = []
        for node, role in zip(self.nodes, ["server", "client"]):
            words = f"management=127.0.0.1 ssh_port={node.ssh_port} address=10.9.0.{node.number} device=rxe0 role={role}"
            lines.append(f"{node.name} {changes.get(node.name, words)}\n")
        path.write_text("".join(lines))
        return path

    def end(self):
        for node in self.nodes:
            for process in (node.connection, node.process):
                if process is not None and process.poll() is None:
                    process.kill()
                    process.wait()
