#!/usr/bin/python3
"""A program of pyverbs for trace_test.py: two QPs of one process, connected to each other over rxe0; MESSAGES SENDs of 64
bytes from one to the other, one after another, then as many WRITEs by its second argument."""

import sys

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

BYTES = 64


def connect(qp, peer, gid):
    attributes = QPAttr(port_num=1)
    attributes.dest_qp_num = peer.qp_num
    attributes.path_mtu = e.IBV_MTU_1024
    attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 1
    attributes.timeout, attributes.retry_cnt, attributes.rnr_retry, attributes.min_rnr_timer = 14, 7, 7, 12
    attributes.qp_access_flags = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE
    route = GlobalRoute(dgid=gid, sgid_index=1)
    attributes.ah_attr = AHAttr(port_num=1, is_global=1, gr=route, dlid=0)
    qp.to_rts(attributes)


def poll(cq, wanted):
    while wanted > 0:
        count, completions = cq.poll(wanted)
        for completion in completions:
            if completion.status != e.IBV_WC_SUCCESS:
                raise SystemExit(f"completion with status {completion.status}")
        wanted -= count


def main():
    messages, writes = int(sys.argv[1]), int(sys.argv[2])
    context = Context(name="rxe0")
    pd = PD(context)
    mr = MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE)
    cq = CQ(context, 100)
    cap = QPCap(max_send_wr=16, max_recv_wr=16, max_send_sge=1, max_recv_sge=1)
    first, second = (QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=cap), QPAttr()) for _ in range(2))
    gid = context.query_gid(1, 1)
    connect(first, second, gid)
    connect(second, first, gid)
    element = SGE(mr.buf, BYTES, mr.lkey)
    for _ in range(messages):
        second.post_recv(RecvWR(num_sge=1, sg=[element]))
        first.post_send(SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[element], send_flags=e.IBV_SEND_SIGNALED))
        poll(cq, 2)
    for _ in range(writes):
        write = SendWR(opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=[element], send_flags=e.IBV_SEND_SIGNALED)
        write.set_wr_rdma(mr.rkey, mr.buf)
        first.post_send(write)
        poll(cq, 1)
    print(f"{messages} messages, {writes} writes")


if __name__ == "__main__":
    main()
