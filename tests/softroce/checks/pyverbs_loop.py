#!/usr/bin/python3
"""A program of pyverbs for trace_test.py: two QPs of one process, connected to each other over rxe0; MESSAGES SENDs of 64
bytes from one to the other, one after another, then as many WRITEs by its second argument, every third of them inline, then as
many WRITEs by its third argument, built in lists of two by the ibv_wr_* interface."""

import sys

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QPAttr, QPCap, QPEx, QPInitAttrEx
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
    messages, writes, built = (int(word) for word in sys.argv[1:])
    context = Context(name="rxe0")
    pd = PD(context)
    mr = MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE)
    cq = CQ(context, 100)
    cap = QPCap(max_send_wr=16, max_recv_wr=16, max_send_sge=1, max_recv_sge=1, max_inline_data=BYTES)
    given = e.IBV_QP_INIT_ATTR_PD | e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS
    asked = QPInitAttrEx(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=cap, pd=pd, comp_mask=given, send_ops_flags=e.IBV_QP_EX_WITH_RDMA_WRITE)
    first, second = (QPEx(context, asked) for _ in range(2))
    gid = context.query_gid(1, 1)
    connect(first, second, gid)
    connect(second, first, gid)
    element = SGE(mr.buf, BYTES, mr.lkey)
    for _ in range(messages):
        second.post_recv(RecvWR(num_sge=1, sg=[element]))
        first.post_send(SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[element], send_flags=e.IBV_SEND_SIGNALED))
        poll(cq, 2)
    for i in range(writes):
        flags = e.IBV_SEND_SIGNALED | (e.IBV_SEND_INLINE if i % 3 == 0 else 0)
        write = SendWR(opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=[element], send_flags=flags)
        write.set_wr_rdma(mr.rkey, mr.buf)
        first.post_send(write)
        poll(cq, 1)
    for _ in range(0, built, 2):
        first.wr_start()
        for _ in range(2):
            first.wr_flags = e.IBV_SEND_SIGNALED
            first.wr_rdma_write(mr.rkey, mr.buf)
            first.wr_set_sge(element)
        first.wr_complete()
        poll(cq, 2)
    print(f"{messages} messages, {writes} writes, {built} built")


if __name__ == "__main__":
    main()
