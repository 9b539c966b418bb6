# Runs inside the machine, as root: makes the soft-RoCE device rxe0, then runs the checks. GID index 1 of rxe0 is the
# IPv4 address of dummy0 (the loopback device has none that soft-RoCE could use).
set -eu
ip link set lo up
modprobe -a dummy rdma_rxe ib_uverbs rdma_ucm
ip link add dummy0 type dummy
ip address add 10.9.0.1/24 dev dummy0
ip link set dummy0 up
rdma link add rxe0 type rxe netdev dummy0
exec python3 -B "$VERBSCOPE_SOFTROCE/checks/run.py"
