// Move-only RAII over the control path of a Provider. Each creation error is one line: what was attempted, the
// requested values and, if known, the device's limits. Objects refer to their parents, so declare Device, Pd, Mr,
// CompChannel, Cq, Srq, Qp, Ah in this order; they are then destroyed in reverse order.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "verbs/provider.hpp"
#include "wire/transport.hpp"

namespace verbscope {

// Owns one verbs object and frees it through `Release`. The result of Release is ignored, because it fails only if a
// child is still alive, which is a program error.
template <class T, int (Provider::*Release)(T*)>
class Owned {
 public:
  Owned(Owned&& other) noexcept : provider_(other.provider_), object_(std::exchange(other.object_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(provider_, other.provider_);
    std::swap(object_, other.object_);
    return *this;
  }
  ~Owned() {
    if (object_ == nullptr) return;
    if (provider_->observer() != nullptr) provider_->observer()->destroying(*object_);
    (provider_->*Release)(object_);
  }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  Provider& provider() const { return *provider_; }

 protected:
  Owned(Provider& provider, T* object) : provider_(&provider), object_(object) {}
  // For the constructor of the derived class.
  template <class... Details>
  void notify_created(const Details&... details) const {
    if (provider_->observer() != nullptr) provider_->observer()->created(*object_, details...);
  }

 private:
  Provider* provider_;
  T* object_;
};

// The device of a context, as errors name it.
std::string device_name(const ibv_context& context);
// For a feature that the device does not support: "not supported by mlx5_0: completion events".
[[noreturn]] void fail_unsupported(const std::string& device, const std::string& feature);

// An open device, for queries.
class Context : public Owned<ibv_context, &Provider::close> {
 public:
  Context(Provider& provider, const std::string& name);
};

// An open device and the port in use.
class Device : public Context {
 public:
  // `spec`: "mlx5_0", "mlx5_0:2" (port 2) or "" (the first device, port 1). Throws if the device does not exist
  // (listing those found), the port does not exist, or the port is not active.
  Device(Provider& provider, const std::string& spec);

  const std::string& name() const { return name_; }
  std::uint8_t port() const { return port_; }
  const ibv_device_attr& attributes() const { return attributes_; }
  const ibv_port_attr& port_attributes() const { return port_attributes_; }

 private:
  struct Spec;
  Device(Provider& provider, const Spec& spec);

  std::string name_;
  std::uint8_t port_ = 1;
  ibv_device_attr attributes_{};
  ibv_port_attr port_attributes_{};
};

// A separate doorbell register for the QPs of one thread.
class ThreadDomain : public Owned<ibv_td, &Provider::dealloc_td> {
 public:
  // Throws if the device offers none.
  explicit ThreadDomain(const Device& device);
};

class Pd : public Owned<ibv_pd, &Provider::dealloc_pd> {
 public:
  explicit Pd(const Device& device);
  // A parent domain: its objects belong to `pd`, and its QPs use the register of `domain`.
  Pd(const Device& device, const Pd& pd, const ThreadDomain& domain);
};

// Sets the number of doorbell registers that a context of device `name`, opened from now on, shares among its QPs. 0:
// the driver's default. Throws if the driver has no such setting.
void set_doorbell_registers(Provider& provider, const std::string& name, std::uint32_t total);

// Registered memory. `access` is a mask of IBV_ACCESS_*.
class Mr : public Owned<ibv_mr, &Provider::dereg_mr> {
 public:
  Mr(const Pd& pd, void* address, std::size_t length, int access = IBV_ACCESS_LOCAL_WRITE);
  std::uint32_t lkey() const { return get()->lkey; }
  std::uint32_t rkey() const { return get()->rkey; }
};

// Receives the events of completion queues.
class CompChannel : public Owned<ibv_comp_channel, &Provider::destroy_comp_channel> {
 public:
  explicit CompChannel(const Device& device);
};

// A completion queue for at least `entries` completions. With a channel, it delivers its events there.
class Cq : public Owned<ibv_cq, &Provider::destroy_cq> {
 public:
  Cq(const Device& device, int entries, ibv_comp_channel* channel = nullptr);
};

// A receive queue shared by QPs: `depth` work requests with `sge` SGEs each.
class Srq : public Owned<ibv_srq, &Provider::destroy_srq> {
 public:
  Srq(const Pd& pd, int depth, int sge);
};

// Sets inline receive for QPs created from now on (Provider::set_inline_recv). 0 bytes: none. Throws if the device does
// not support it, or not for `bytes`.
void set_inline_recv(const Device& device, Transport transport, Verb verb, std::uint32_t bytes);

// The path to a peer.
struct PathAddress {
  std::uint8_t port = 1;       // local port
  bool global = false;         // a GRH (or RoCE's IP header) is needed: always on Ethernet
  std::uint16_t lid = 0;       // peer's LID (InfiniBand)
  ibv_gid gid{};               // peer's GID (when global)
  std::uint8_t gid_index = 0;  // local GID (when global)
  std::uint8_t service_level = 0;
  std::uint8_t traffic_class = 0;  // when global
  std::uint32_t flow_label = 0;    // when global; 20 bits
};

class Ah : public Owned<ibv_ah, &Provider::destroy_ah> {
 public:
  Ah(const Pd& pd, const PathAddress& path);
};

// The requested attributes of create_qp.
struct QpOptions {
  Transport transport = Transport::rc;
  ibv_cq* send_cq = nullptr;
  ibv_cq* recv_cq = nullptr;
  int send_depth = 128;  // work requests
  int recv_depth = 512;  // work requests
  int send_sge = 1;      // per work request
  int recv_sge = 1;      // per work request
  int max_inline = 0;    // bytes
  bool signal_all = false;
  ibv_srq* srq = nullptr;  // replaces the QP's own receive queue; recv_depth and recv_sge are then ignored
  bool builder = false;    // create the QP with the ibv_wr_* interface, for all operations of the transport
};

constexpr std::uint32_t kDefaultQkey = 0x11111111;

struct QpInit {
  std::uint8_t port = 1;
  std::uint16_t pkey_index = 0;
  std::uint32_t qkey = kDefaultQkey;                                                       // UD
  int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;  // RC; UC loses READ
};

// For INIT to RTR, the receiving side. UD uses none of it.
struct QpReceive {
  PathAddress path;
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint32_t peer_qpn = 0;
  std::uint32_t peer_psn = 0;
  std::uint8_t max_dest_rd_atomic = 1;  // RC: READs and atomics that the peer may have outstanding
  std::uint8_t min_rnr_timer = 12;      // RC: 0.64 ms (IBTA vol. 1, table "Encoding for RNR NAK Timer Field")
};

// RC retransmits after 4.096 us * 2^timeout without an acknowledgement: 67 ms (IBTA vol. 1, "Local ACK Timeout").
inline constexpr std::uint8_t kAckTimeout = 14;

// A timeout of at least twice the 4.096 us * 2^delay that the device states for its acknowledgements (ibv_device_attr,
// local_ca_ack_delay; IBTA vol. 1, "Local CA ACK Delay"). The field has 5 bits.
constexpr std::uint8_t ack_timeout(std::uint8_t delay) {
  const int longest = delay < 31 ? delay + 1 : 31;
  return longest > kAckTimeout ? static_cast<std::uint8_t>(longest) : kAckTimeout;
}

// Retransmissions on RC: the maximum of the 3-bit field (IBTA vol. 1, "Retry Count").
inline constexpr std::uint8_t kRetryCount = 7;

// For RTR to RTS, the sending side. UD uses only the PSN.
struct QpSend {
  std::uint32_t psn = 0;
  std::uint8_t timeout = kAckTimeout;         // RC: 0 means forever
  std::uint8_t retry_count = kRetryCount;     // RC
  std::uint8_t rnr_retry = kRnrRetryForever;  // RC
  std::uint8_t max_rd_atomic = 1;             // RC: own READs and atomics outstanding
};

class Qp : public Owned<ibv_qp, &Provider::destroy_qp> {
 public:
  // If the device refuses, the error names the capability, the requested value and the device's limit.
  Qp(const Pd& pd, const QpOptions& options);

  std::uint32_t number() const { return get()->qp_num; }
  Transport transport() const { return transport_; }
  // The ibv_wr_* interface; null without QpOptions::builder.
  ibv_qp_ex* builder() const { return builder_; }

  // State transitions. Errors name the QP, its transport and the transition.
  void to_init(const QpInit& options);
  void to_rtr(const QpReceive& options);
  void to_rts(const QpSend& options);
  void to_error();
  // Queries the device.
  ibv_qp_state state() const;

 private:
  void modify(ibv_qp_attr& attr, int mask, const char* transition);

  Transport transport_;
  ibv_qp_ex* builder_ = nullptr;
};

// The largest max_inline that the device accepts for a QP like `options` (whose own max_inline is ignored), found by
// creating QPs. Throws if it accepts none even at 0.
int largest_inline(const Pd& pd, const QpOptions& options);

}  // namespace verbscope
