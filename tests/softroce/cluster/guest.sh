# Runs inside a machine of the cluster, as root, until the machine is switched off: soft-RoCE on the data network, which
# joins the machines, and sshd on the management network. $NODE is 1 or 2.
set -eu
hostname "node$NODE"
ip link set lo up
modprobe -a virtio_net rdma_rxe ib_uverbs
for n in 1 2 3 4 5 6 7 8 9 10; do [ -e /sys/class/net/eth1 ] && break; sleep 0.2; done
ip address add 10.0.2.15/24 dev eth0
ip address add "10.9.0.$NODE/24" dev eth1
ip link set eth0 up
ip link set eth1 up
rdma link add rxe0 type rxe netdev eth1
# A home and a folder for temporary files of its own: the host's are full, or not readable.
mount -t tmpfs home /root
mount -t tmpfs -o mode=1777 tmp /tmp
mkdir -p /run/sshd
exec /usr/sbin/sshd -D -e -f /run/verbscope/sshd_config
