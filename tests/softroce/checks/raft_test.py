"""raft_kv: three replicas and their clients on soft-RoCE under faults. What the clients were answered must be linearizable."""

import pathlib
import shutil
import tempfile
import time

from raft_cluster import RaftCluster, wait_for
from support import ADDRESS, BIN, DEVICE, BenchmarkTest, Program, run

REPLICAS = range(3)


class RaftProgram(Program):
    def ended(self):
        return self.process.poll() is not None

    def stop(self):
        self.process.terminate()
        return self.finish()


class RaftTest(BenchmarkTest):
    def setUp(self):
        super().setUp()
        self.logs = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.logs)

    def make_cluster(self, devices):
        """Three replicas and the clients, each on a device. Their TCP connections are on another interface."""
        replicas = []
        for _ in REPLICAS:
            BenchmarkTest.next_port += 1
            replicas.append(f"{ADDRESS}:{BenchmarkTest.next_port}")

        def start(name, place, *options):
            self.programs.append(RaftProgram(self.folder, name, [BIN / "raft_kv", "-d", devices[place], "--cores", place % 2, *options]))
            return self.programs[-1]

        self.folder.mkdir(parents=True, exist_ok=True)
        return RaftCluster(start, replicas, lambda number: f"file:{self.logs}/{number}", len(REPLICAS), self.folder)


class Raft(RaftTest):
    def start_cluster(self):
        cluster = self.make_cluster([DEVICE] * 4)
        cluster.start(*REPLICAS)
        return cluster

    def test_leader_killed(self):
        cluster = self.start_cluster()
        leader, term = cluster.leader()
        cluster.start_load()
        waited = []
        for _ in range(20):
            begin = time.monotonic()
            cluster.kill(leader)
            killed = leader
            leader, term = cluster.leader(after=term)
            waited.append(time.monotonic() - begin)
            cluster.start(killed)
            cluster.wait_for_load()
        cluster.finish(BIN / "verbscope")
        print(f"a leader after {max(waited):.1f} s at the most, term {term}")

    def test_all_killed(self):
        cluster = self.start_cluster()
        cluster.start_load()
        for _ in range(3):
            _, term = cluster.leader()
            cluster.kill(*REPLICAS)
            begin = time.monotonic()
            cluster.start(*REPLICAS)
            cluster.leader(after=term)
            print(f"a leader {time.monotonic() - begin:.1f} s after the start")
            cluster.wait_for_load()
        cluster.finish(BIN / "verbscope")

    def test_disk_of_the_leader_full(self):
        def remove_disks():
            for program in self.programs:
                program.kill()
            for number in REPLICAS:
                run(f"umount {self.logs}/{number}")

        for number in REPLICAS:
            (self.logs / str(number)).mkdir()
            run(f"mount -t tmpfs -o size=24k log {self.logs}/{number}")
        self.addCleanup(remove_disks)
        cluster = self.make_cluster([DEVICE] * 4)
        cluster.log = lambda number: f"file:{self.logs}/{number}/log"
        cluster.start(*REPLICAS)
        leader, term = cluster.leader()
        others = [number for number in REPLICAS if number != leader]
        for number in others:
            run(f"mount -o remount,size=16M {self.logs}/{number}")
        cluster.start_load()
        said = cluster.running[leader].err
        wait_for(lambda: f"a full disk: {cluster.describe()}", lambda: "no space left for the log" in said.read_text())
        cluster.leader(after=term)
        cluster.wait_for_load()
        run(f"mount -o remount,size=16M {self.logs}/{leader}")
        wait_for(lambda: f"space: {cluster.describe()}", lambda: "has space again" in said.read_text())
        cluster.kill(others[0])  # the majority needs the one that was full
        cluster.wait_for_load()
        cluster.finish(BIN / "verbscope")


class RaftCut(RaftTest):
    """Each replica and the clients have a device at the end of a cable to a bridge. Packets to the other ends leave this machine only
    by rules that prefer the cable to the machine's own addresses."""

    ends = range(1, 5)
    rules = ["pref 200 to 10.9.2.0/24 lookup 100", "pref 300 lookup local", *(f"pref 100 iif end{n} lookup local" for n in ends)]

    def setUp(self):
        super().setUp()
        self.addCleanup(self.remove_network)
        run("modprobe -a veth bridge")
        run("ip link add switch type bridge")
        run("ip link set switch up")
        for n in self.ends:
            run(f"ip link add end{n} type veth peer name port{n}")
            run(f"ip link set port{n} master switch up")
            run(f"ip address add 10.9.2.{n}/24 dev end{n}")
            run(f"ip link set end{n} up")
            run(f"sysctl -q net.ipv4.conf.end{n}.accept_local=1 net.ipv4.conf.end{n}.rp_filter=0")
            run(f"rdma link add rxe{n} type rxe netdev end{n}")
            run(f"ip route add 10.9.2.0/24 dev end{n} metric {n} table 100")
        macs = {n: pathlib.Path(f"/sys/class/net/end{n}/address").read_text().strip() for n in self.ends}
        for n in self.ends:
            for other in set(self.ends) - {n}:
                run(f"ip neigh replace 10.9.2.{other} dev end{n} lladdr {macs[other]} nud permanent")
        for rule in self.rules:
            run(f"ip rule add {rule}")
        run("ip rule del pref 0")

    def remove_network(self):
        for program in self.programs:
            program.kill()
        run("ip rule add pref 0 lookup local")
        for rule in self.rules:
            run(f"ip rule del {rule}")
        for n in self.ends:
            run(f"rdma link delete rxe{n}")
            run(f"ip link delete end{n}")
        run("ip link delete switch")

    def test_leader_cut_off(self):
        cluster = self.make_cluster([f"rxe{n}" for n in self.ends])
        cluster.start(*REPLICAS)
        leader, term = cluster.leader()
        cluster.start_load()
        for _ in range(3):
            cut = leader
            run(f"ip link set port{cut + 1} down")
            leader, term = cluster.leader(after=term)
            cluster.wait_for_load()
            run(f"ip link set port{cut + 1} up")
            cluster.wait_for_load()
            leader, term = cluster.leader()
        cluster.finish(BIN / "verbscope")
