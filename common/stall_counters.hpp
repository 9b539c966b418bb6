// Adapter counters that show why QPs are stalled, with the names used by drivers and the simulator.
#pragma once

#include <array>
#include <string_view>

namespace verbscope {

struct StallCounter {
  std::string_view name;   // "rnr_nak_retry_err"
  std::string_view cause;  // "too few RECVs"
  std::string_view unit;   // "RNR NAKs"
};

// Grouped by cause. Names in hw_counters: Linux 6.12, drivers/infiniband: hw/mlx5/counters.c, hw/mlx4/main.c,
// hw/bnxt_re/hw_counters.c, hw/irdma/verbs.c, hw/efa/efa_verbs.c, sw/rxe/rxe_hw_counters.c.
inline constexpr std::array kStallCounters{
    // The simulator.
    StallCounter{"rnr_naks_sent", "too few RECVs", "RNR NAKs"},
    StallCounter{"dropped_no_recv", "too few RECVs", "dropped messages"},
    // mlx5
    StallCounter{"rnr_nak_retry_err", "too few RECVs", "RNR NAKs"},
    StallCounter{"out_of_buffer", "too few RECVs", "packets without a RECV"},
    // mlx4: the receive and the send side
    StallCounter{"rq_num_rnr", "too few RECVs", "RNR NAKs sent"},
    StallCounter{"sq_num_rnr", "too few RECVs", "RNR NAKs"},
    // bnxt_re
    StallCounter{"rnr_naks_rcvd", "too few RECVs", "RNR NAKs"},
    StallCounter{"rx_out_of_buffer", "too few RECVs", "packets without a RECV"},
    // irdma
    StallCounter{"RNR sent", "too few RECVs", "RNR NAKs sent"},
    StallCounter{"RNR received", "too few RECVs", "RNR NAKs"},
    // Soft-RoCE
    StallCounter{"send_rnr_err", "too few RECVs", "RNR NAKs sent"},
    StallCounter{"rcvd_rnr_err", "too few RECVs", "RNR NAKs"},

    // The simulator, on Ethernet.
    StallCounter{"dropped_full_buffer", "go-back-N after drops", "packets without buffer"},
    StallCounter{"rx_pauses", "pauses of the switch", "pauses"},

    StallCounter{"packets_resent", "loss", "packets sent again"},
    StallCounter{"out_of_sequence", "loss", "packets out of sequence"},
    StallCounter{"packet_seq_err", "loss", "NAKs of a sequence error"},
    StallCounter{"implied_nak_seq_err", "loss", "responses out of sequence"},
    StallCounter{"local_ack_timeout_err", "loss", "ACK timeouts"},
    StallCounter{"rq_num_oos", "loss", "packets out of sequence"},
    StallCounter{"sq_num_oos", "loss", "NAKs of a sequence error"},
    StallCounter{"sq_num_to", "loss", "ACK timeouts"},
    StallCounter{"oos_drop_count", "loss", "packets out of sequence"},
    StallCounter{"seq_err_naks_rcvd", "loss", "NAKs of a sequence error"},
    StallCounter{"to_retransmits", "loss", "ACK timeouts"},
    StallCounter{"Nak Sequence Error", "loss", "NAKs of a sequence error"},
    StallCounter{"RetransSegs", "loss", "TCP segments sent again"},
    StallCounter{"tcpRetransSegs", "loss", "TCP segments sent again"},
    StallCounter{"retrans_pkts", "loss", "packets sent again"},
    StallCounter{"retrans_timeout_events", "loss", "timeouts of a path"},
    StallCounter{"rx_drops", "loss", "dropped packets"},
    StallCounter{"out_of_seq_request", "loss", "packets out of sequence"},
    StallCounter{"rcvd_seq_err", "loss", "NAKs of a sequence error"},

    StallCounter{"np_cnp_sent", "congestion", "CNPs sent"},
    StallCounter{"rp_cnp_handled", "rates limited by DCQCN", "CNPs handled"},
    StallCounter{"np_ecn_marked_roce_packets", "congestion", "packets marked by ECN"},
    StallCounter{"tx_cnp_pkts", "congestion", "CNPs sent"},
    StallCounter{"rx_cnp_pkts", "rates limited by DCQCN", "CNPs handled"},
    StallCounter{"rx_ecn_marked_pkts", "congestion", "packets marked by ECN"},
    StallCounter{"cnpSent", "congestion", "CNPs sent"},
    StallCounter{"cnpHandled", "rates limited by DCQCN", "CNPs handled"},
    StallCounter{"RxECNMrkd", "congestion", "packets marked by ECN"},
};

}  // namespace verbscope
