// The `wire` section of a cluster profile (configs/clusters/NAME.json): facts about an adapter and its slot that both
// the model and the simulator need; and the same facts in a record.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "common/json.hpp"
#include "common/units.hpp"
#include "wire/packet.hpp"
#include "wire/pcie.hpp"
#include "wire/wqe.hpp"

namespace verbscope {

// The schema name in every profile. Readers reject any other value.
inline constexpr const char* kClusterSchema = "verbscope.cluster/1";

struct ClusterWire {
  std::string name;
  PcieLink pcie;
  NicFamily family = NicFamily::mlx5;
  LinkType link_type = LinkType::infiniband;
  int ports = 1;
  BytesPerSecond port_rate;  // data rate of one port, without line encoding
  Bytes mtu;                 // payload of one packet, on RoCE too
  Bytes blueflame_max;       // largest WQE for BlueFlame
  Bytes cqe_bytes;
  Bytes doorbell_bytes;
  Bytes max_inline;       // largest inline payload that a QP can be created with
  int recv_prefetch = 1;  // RECV WQEs per DMA read: a power of two, in aligned groups

  // Multi-packet receive queues: adapters of the mlx5 family on Ethernet (eRPC, NSDI 2019, section 4.1.1).
  bool multi_packet_recv() const { return family == NicFamily::mlx5 && facts(link_type).ethernet; }
};

// `profile`: the whole file; `where`: its name for messages. Throws Error with one line for a missing, unknown or
// ill-typed key, a value out of range, or a parameter without source or cite.
ClusterWire read_cluster_wire(const Json& profile, const std::string& where);

// Reads the parameters of a section of a profile: {"value": v, "source": SOURCE, "cite": "..."}. SOURCE is documented,
// measured, calibrated, learned or assumed. A calibrated one also has "row", the published point that it was calibrated
// on; a learned one "row", its records, and "interval", [low, high], which an assumed one may have. Throws Error with
// file and key for a missing or ill-typed parameter, one without source, cite or row, and a value out of range.
class ParameterSection {
 public:
  explicit ParameterSection(JsonFields fields) : fields_(std::move(fields)) {}

  double number(const std::string& key, double low, double high);
  int integer(const std::string& key, int low, int high);
  Bytes bytes(const std::string& key, int low, int high);
  Bytes power_of_two(const std::string& key, int low, int high);
  // Converts a text; `from` throws Error if it is invalid.
  template <class From>
  auto word(const std::string& key, From from) {
    return fields_.convert_text(key, text(key), from);
  }
  bool has(const std::string& key) { return fields_.has(key); }
  [[noreturn]] void fail(const std::string& key, const std::string& message) const { fields_.fail_key(key, message); }
  // Call after the last parameter: throws Error if the section has others.
  void done() const { fields_.reject_unknown(); }

 private:
  template <class T>
  T read(const std::string& key);
  std::string text(const std::string& key);

  JsonFields fields_;
};

// Returns `cluster` with another slot. The generation sets the lane rate and the header sizes (kPcieGenerations). MPS,
// MRRS, RCB and the size of completions stay, because the host sets them. Throws Error for an unknown generation or
// width.
ClusterWire with_pcie(ClusterWire cluster, std::optional<int> generation, std::optional<int> lanes);

// A flat object with the names of a profile's `wire` section, without sources. wire_from_json is the inverse of
// to_json, except for the cluster's name, which is elsewhere in a record. It throws Error with `where` for a missing,
// ill-typed or unknown key.
Json to_json(const ClusterWire& wire);
ClusterWire wire_from_json(const Json& json, const std::string& where);

}  // namespace verbscope
