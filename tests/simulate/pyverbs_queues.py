"""A pyverbs program: SENDs through an SRQ, whose completions an extended CQ tells with their times."""

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CqInitAttrEx, CQEX, PollCqAttr
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqInitAttr, SrqAttr
from pyverbs.wr import RecvWR, SendWR, SGE

MESSAGES = 5


def connect(qp, peer, port):
    attr = QPAttr(port_num=1)
    attr.path_mtu = port.active_mtu
    attr.dest_qp_num = peer.qp_num
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
    attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, 14, 7, 7
    route = GlobalRoute(dgid=context.query_gid(1, 0), sgid_index=0)
    attr.ah_attr = AHAttr(dlid=port.lid, port_num=1, is_global=1, gr=route)
    qp.to_rts(attr)


def take(cq, count):
    """The ids and times of `count` completions, polled as they come."""
    taken = []
    while len(taken) < count:
        result = cq.start_poll(PollCqAttr())
        if result == 2:  # ENOENT: the queue is empty
            continue
        assert result == 0, result
        while result == 0:
            assert cq.status == e.IBV_WC_SUCCESS, cq.status
            taken.append((cq.wr_id, cq.read_timestamp(), cq.read_opcode()))
            result = cq.poll_next()
        cq.end_poll()
    return taken


context = Context(name="sim0")
pd = PD(context)
mr = MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE)
cq = CQEX(context, CqInitAttrEx(cqe=64, wc_flags=e.IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | e.IBV_WC_EX_WITH_BYTE_LEN))
srq = SRQ(pd, SrqInitAttr(SrqAttr(max_wr=64)))
init = QPInitAttr(scq=cq, rcq=cq, srq=srq, cap=QPCap(max_send_wr=64, max_recv_wr=0), qp_type=e.IBV_QPT_RC)
qps = [QP(pd, init, QPAttr(port_num=1)) for _ in range(2)]
port = context.query_port(1)
for qp, peer in zip(qps, reversed(qps)):
    connect(qp, peer, port)
for i in range(MESSAGES):
    srq.post_recv(RecvWR(wr_id=100 + i, num_sge=1, sg=[SGE(mr.buf + 2048 + 64 * i, 64, mr.lkey)]))
mr.write("shared queue", 12)
for i in range(MESSAGES):
    qps[0].post_send(SendWR(wr_id=i, num_sge=1, sg=[SGE(mr.buf, 12, mr.lkey)]))
done = take(cq, 2 * MESSAGES)
assert sorted(number for number, _, _ in done) == [*range(MESSAGES), *range(100, 100 + MESSAGES)], done
received = [(time, number) for number, time, opcode in done if opcode == e.IBV_WC_RECV]
assert received == sorted(received) and received[0][0] < received[-1][0], received
assert mr.read(12, 2048 + 64 * (MESSAGES - 1)) == b"shared queue"
for made in (*qps, srq, cq, mr, pd, context):
    made.close()
print("ok")
