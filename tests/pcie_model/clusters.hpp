// Two adapters for the tests, written out here so that the expected figures do not move with the profiles.
#pragma once

#include "pcie_model/predict.hpp"

namespace verbscope {

// PCIe 3.0 x16 with the headers of Kalia et al., ATC 2016; mlx5; two FDR ports.
inline ClusterWire wide_mlx5() {
  return {.name = "wide",
          .pcie = {.generation = 3,
                   .lanes = 16,
                   .lane_mb_per_s = 984.6,
                   .request_header = Bytes(26),
                   .completion_header = Bytes(22),
                   .mps = Bytes(256),
                   .mrrs = Bytes(512),
                   .rcb = Bytes(128),
                   .completion = Bytes(128)},
          .family = NicFamily::mlx5,
          .ports = 2,
          .port_rate = {54.54e9 / 8},
          .mtu = Bytes(4096),
          .blueflame_max = Bytes(256),
          .cqe_bytes = Bytes(64),
          .doorbell_bytes = Bytes(8),
          .max_inline = Bytes(512),
          .recv_prefetch = 16};
}

// PCIe 3.0 x8, mlx4, one FDR port.
inline ClusterWire narrow_mlx4() {
  ClusterWire cluster = wide_mlx5();
  cluster.name = "narrow";
  cluster.pcie.lanes = 8;
  cluster.family = NicFamily::mlx4;
  cluster.ports = 1;
  cluster.cqe_bytes = Bytes(32);
  cluster.doorbell_bytes = Bytes(4);
  return cluster;
}

inline VerbShape inline_shape(Verb verb, Transport transport, std::uint64_t payload, int post_list) {
  return {.verb = verb,
          .transport = transport,
          .payload = Bytes(payload),
          .inlined = true,
          .max_inline_cap = Bytes(payload),
          .post_list = post_list};
}

inline VerbShape gather_shape(Verb verb, Transport transport, std::uint64_t payload, int post_list) {
  return {.verb = verb, .transport = transport, .payload = Bytes(payload), .post_list = post_list};
}

inline VerbShape header_only_shape(Transport transport, int post_list) {
  return {.transport = transport, .header_only = true, .post_list = post_list};
}

// The bound of `resource` in Mops; 0 when it has none.
inline double bound(const Prediction& prediction, const std::string& resource) {
  for (const RateBound& each : prediction.bounds) {
    if (each.resource == resource) return each.mops;
  }
  return 0;
}

}  // namespace verbscope
