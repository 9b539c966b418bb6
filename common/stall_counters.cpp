#include "common/stall_counters.hpp"

#include <array>

namespace verbscope {
namespace {

constexpr std::string_view kRecvs = "too few RECVs", kLoss = "loss", kCongestion = "congestion";
constexpr std::string_view kDrops = "go-back-N after drops", kPauses = "pauses of the switch",
                           kDcqcn = "rates limited by DCQCN";

// Names in hw_counters: Linux 6.12, drivers/infiniband: hw/mlx5/counters.c, hw/mlx4/main.c, hw/bnxt_re/hw_counters.c,
// hw/irdma/verbs.c, hw/efa/efa_verbs.c, sw/rxe/rxe_hw_counters.c.
constexpr std::array kCounters{
    // The simulator.
    StallCounter{"rnr_naks_sent", kRecvs, "RNR NAKs"},
    StallCounter{"dropped_no_recv", kRecvs, "dropped messages"},
    // mlx5
    StallCounter{"rnr_nak_retry_err", kRecvs, "RNR NAKs"},
    StallCounter{"out_of_buffer", kRecvs, "packets without a RECV"},
    // mlx4: the receive and the send side
    StallCounter{"rq_num_rnr", kRecvs, "RNR NAKs sent"},
    StallCounter{"sq_num_rnr", kRecvs, "RNR NAKs"},
    // bnxt_re
    StallCounter{"rnr_naks_rcvd", kRecvs, "RNR NAKs"},
    StallCounter{"rx_out_of_buffer", kRecvs, "packets without a RECV"},
    // irdma
    StallCounter{"RNR sent", kRecvs, "RNR NAKs sent"},
    StallCounter{"RNR received", kRecvs, "RNR NAKs"},
    // Soft-RoCE
    StallCounter{"send_rnr_err", kRecvs, "RNR NAKs sent"},
    StallCounter{"rcvd_rnr_err", kRecvs, "RNR NAKs"},

    // The simulator, on Ethernet.
    StallCounter{"dropped_full_buffer", kDrops, "packets without buffer"},
    StallCounter{"rx_pauses", kPauses, "pauses"},

    StallCounter{"packets_resent", kLoss, "packets sent again"},
    StallCounter{"out_of_sequence", kLoss, "packets out of sequence"},
    StallCounter{"packet_seq_err", kLoss, "NAKs of a sequence error"},
    StallCounter{"implied_nak_seq_err", kLoss, "responses out of sequence"},
    StallCounter{"local_ack_timeout_err", kLoss, "ACK timeouts"},
    StallCounter{"rq_num_oos", kLoss, "packets out of sequence"},
    StallCounter{"sq_num_oos", kLoss, "NAKs of a sequence error"},
    StallCounter{"sq_num_to", kLoss, "ACK timeouts"},
    StallCounter{"oos_drop_count", kLoss, "packets out of sequence"},
    StallCounter{"seq_err_naks_rcvd", kLoss, "NAKs of a sequence error"},
    StallCounter{"to_retransmits", kLoss, "ACK timeouts"},
    StallCounter{"Nak Sequence Error", kLoss, "NAKs of a sequence error"},
    StallCounter{"RetransSegs", kLoss, "TCP segments sent again"},
    StallCounter{"tcpRetransSegs", kLoss, "TCP segments sent again"},
    StallCounter{"retrans_pkts", kLoss, "packets sent again"},
    StallCounter{"retrans_timeout_events", kLoss, "timeouts of a path"},
    StallCounter{"rx_drops", kLoss, "dropped packets"},
    StallCounter{"out_of_seq_request", kLoss, "packets out of sequence"},
    StallCounter{"rcvd_seq_err", kLoss, "NAKs of a sequence error"},

    StallCounter{"np_cnp_sent", kCongestion, "CNPs sent"},
    StallCounter{"rp_cnp_handled", kDcqcn, "CNPs handled"},
    StallCounter{"np_ecn_marked_roce_packets", kCongestion, "packets marked by ECN"},
    StallCounter{"tx_cnp_pkts", kCongestion, "CNPs sent"},
    StallCounter{"rx_cnp_pkts", kDcqcn, "CNPs handled"},
    StallCounter{"rx_ecn_marked_pkts", kCongestion, "packets marked by ECN"},
    StallCounter{"cnpSent", kCongestion, "CNPs sent"},
    StallCounter{"cnpHandled", kDcqcn, "CNPs handled"},
    StallCounter{"RxECNMrkd", kCongestion, "packets marked by ECN"},
};

}  // namespace

std::span<const StallCounter> stall_counters() {
  return kCounters;
}

}  // namespace verbscope
