// Queue pairs: creation, with errors that name the refused capability, and state transitions.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cerrno>
#include <optional>
#include <vector>

#include "common/error.hpp"
#include "verbs/endpoint.hpp"
#include "verbs/ibv_codes.hpp"
#include "verbs/qp_rules.hpp"
#include "verbs/resources.hpp"

namespace verbscope {

namespace {

// A capability that can be lowered to find out whether it was refused.
struct Capability {
  const char* name;
  const char* unit;
  int QpOptions::*field;
  int minimum;
};

constexpr std::array kCapabilities = {
    Capability{"inline data", " bytes", &QpOptions::max_inline, 0},
    Capability{"send queue depth", "", &QpOptions::send_depth, 1},
    Capability{"receive queue depth", "", &QpOptions::recv_depth, 1},
    Capability{"send SGEs", "", &QpOptions::send_sge, 1},
    Capability{"receive SGEs", "", &QpOptions::recv_sge, 1},
};

// End of the search for the inline limit: far above the capacity of a WQE of 64 blocks of 64 bytes.
constexpr int kInlineSearchEnd = 1 << 16;

constexpr const char* kBuilderInterface = "the ibv_wr_* interface";

// The fields that ibv_qp_init_attr and ibv_qp_init_attr_ex share.
template <class Attr>
Attr init_attributes(const QpOptions& options) {
  const bool own_recv_queue = options.srq == nullptr;
  Attr attr{};
  attr.send_cq = options.send_cq;
  attr.recv_cq = options.recv_cq;
  attr.srq = options.srq;
  attr.cap.max_send_wr = static_cast<std::uint32_t>(options.send_depth);
  attr.cap.max_recv_wr = own_recv_queue ? static_cast<std::uint32_t>(options.recv_depth) : 0;
  attr.cap.max_send_sge = static_cast<std::uint32_t>(options.send_sge);
  attr.cap.max_recv_sge = own_recv_queue ? static_cast<std::uint32_t>(options.recv_sge) : 0;
  attr.cap.max_inline_data = static_cast<std::uint32_t>(options.max_inline);
  attr.qp_type = qp_type(options.transport);
  attr.sq_sig_all = options.signal_all ? 1 : 0;
  return attr;
}

// Null and errno if the device refuses.
ibv_qp* try_create(const Pd& pd, const QpOptions& options) {
  if (!options.builder) {
    auto attr = init_attributes<ibv_qp_init_attr>(options);
    return pd.provider().create_qp(pd.get(), &attr);
  }
  auto attr = init_attributes<ibv_qp_init_attr_ex>(options);
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.pd = pd.get();
  attr.send_ops_flags = send_operations(qp_type(options.transport));
  return pd.provider().create_qp_ex(pd.get()->context, &attr);
}

bool device_accepts(const Pd& pd, const QpOptions& options) {
  ibv_qp* qp = try_create(pd, options);
  if (qp == nullptr) return false;
  check_errno("destroy a trial QP", pd.provider().destroy_qp(qp));
  return true;
}

// The largest value of `field` that the device accepts with the other options unchanged. Precondition: it accepts
// `accepted` and refuses `refused`.
int bisect(const Pd& pd, QpOptions options, int QpOptions::*field, int accepted, int refused) {
  while (refused - accepted > 1) {
    const int middle = accepted + (refused - accepted) / 2;
    options.*field = middle;
    (device_accepts(pd, options) ? accepted : refused) = middle;
  }
  return accepted;
}

// One line for each option that exceeds the limits in the device's attributes.
std::vector<std::string> beyond_attributes(const ibv_device_attr& device, const QpOptions& options) {
  std::vector<std::string> lines;
  const auto compare = [&](const Capability& capability, int limit) {
    const int requested = options.*capability.field;
    if (requested > limit) {
      lines.push_back(fmt::format("{} {} requested, the device supports up to {}", capability.name, requested, limit));
    }
  };
  compare(kCapabilities[1], device.max_qp_wr);
  compare(kCapabilities[2], device.max_qp_wr);
  compare(kCapabilities[3], device.max_sge);
  compare(kCapabilities[4], device.max_sge);
  return lines;
}

// Finds the refused capability by lowering one at a time.
std::optional<std::string> refused_capability(const Pd& pd, const QpOptions& options) {
  for (const Capability& capability : kCapabilities) {
    const int requested = options.*capability.field;
    if (requested <= capability.minimum) continue;
    QpOptions lowered = options;
    lowered.*capability.field = capability.minimum;
    if (!device_accepts(pd, lowered)) continue;
    const int limit = bisect(pd, options, capability.field, capability.minimum, requested);
    return fmt::format("{} {}{} requested, the device supports up to {} with the other values as requested",
                       capability.name, requested, capability.unit, limit);
  }
  return std::nullopt;
}

[[noreturn]] void explain_refusal(const Pd& pd, const QpOptions& options, int error) {
  if (options.builder) {
    QpOptions plain = options;
    plain.builder = false;
    if (device_accepts(pd, plain)) fail_unsupported(device_name(*pd->context), kBuilderInterface);
  }
  const std::string what = fmt::format("create {} QP on {}", to_string(options.transport), device_name(*pd->context));
  ibv_device_attr device{};
  if (pd.provider().query_device(pd.get()->context, &device) == 0) {
    const auto beyond = beyond_attributes(device, options);
    if (!beyond.empty()) fail("{}: {}", what, fmt::join(beyond, "; "));
  }
  if (const auto capability = refused_capability(pd, options)) fail("{}: {}", what, *capability);
  fail("{}: {} (requested: inline data {} bytes, send queue depth {}, receive queue depth {}, SGEs {} and {})", what,
       errno_text(error), options.max_inline, options.send_depth, options.recv_depth, options.send_sge,
       options.recv_sge);
}

ibv_qp* create_qp(const Pd& pd, const QpOptions& options) {
  ibv_qp* qp = try_create(pd, options);
  if (qp == nullptr) explain_refusal(pd, options, errno);
  return qp;
}

}  // namespace

Qp::Qp(const Pd& pd, const QpOptions& options)
    : Owned(pd.provider(), create_qp(pd, options)), transport_(options.transport) {
  if (options.builder) builder_ = provider().qp_to_qp_ex(get());
  notify_created(builder_, init_attributes<ibv_qp_init_attr>(options).cap, options.signal_all);
  if (options.builder && builder_ == nullptr) fail_unsupported(device_name(*pd->context), kBuilderInterface);
}

void Qp::modify(ibv_qp_attr& attr, int mask, const char* transition) {
  check_errno(fmt::format("move {} QP {} {}", to_string(transport_), number(), transition),
              provider().modify_qp(get(), &attr, mask));
  if (provider().observer() != nullptr) provider().observer()->modified(*get(), attr, mask);
}

void Qp::to_init(const QpInit& options) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = options.port;
  attr.pkey_index = options.pkey_index;
  int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  const TransportFacts& transport = facts(transport_);
  if (!transport.connected) {
    attr.qkey = options.qkey;
    mask |= IBV_QP_QKEY;
  } else {
    const int unsupported = (transport.verbs.has(Verb::read) ? 0 : int{IBV_ACCESS_REMOTE_READ}) |
                            (transport.verbs.has(Verb::fetch_add) ? 0 : int{IBV_ACCESS_REMOTE_ATOMIC});
    attr.qp_access_flags = static_cast<unsigned>(options.access & ~unsupported);
    mask |= IBV_QP_ACCESS_FLAGS;
  }
  modify(attr, mask, "from RESET to INIT");
}

void Qp::to_rtr(const QpReceive& options) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  int mask = IBV_QP_STATE;
  std::string transition = "from INIT to RTR";
  if (facts(transport_).connected) {
    attr.ah_attr = ah_attributes(options.path);
    attr.path_mtu = options.mtu;
    attr.dest_qp_num = options.peer_qpn;
    attr.rq_psn = options.peer_psn;
    mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    transition += fmt::format(" (peer QP {}, {})", options.peer_qpn, describe_path(options.path));
  }
  if (facts(transport_).reliable) {
    attr.max_dest_rd_atomic = options.max_dest_rd_atomic;
    attr.min_rnr_timer = options.min_rnr_timer;
    mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  }
  modify(attr, mask, transition.c_str());
}

void Qp::to_rts(const QpSend& options) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = options.psn;
  int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (facts(transport_).reliable) {
    attr.timeout = options.timeout;
    attr.retry_cnt = options.retry_count;
    attr.rnr_retry = options.rnr_retry;
    attr.max_rd_atomic = options.max_rd_atomic;
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  }
  modify(attr, mask, "from RTR to RTS");
}

void Qp::to_error() {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  modify(attr, IBV_QP_STATE, "to ERROR");
}

ibv_qp_state Qp::state() const {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  check_errno(fmt::format("query {} QP {}", to_string(transport_), number()),
              provider().query_qp(get(), &attr, IBV_QP_STATE, &init));
  return attr.qp_state;
}

int largest_inline(const Pd& pd, const QpOptions& options) {
  QpOptions probe = options;
  probe.max_inline = 0;
  check_errno("destroy a trial QP", pd.provider().destroy_qp(create_qp(pd, probe)));
  int good = 0;
  int next = 64;
  for (; next < kInlineSearchEnd; good = next, next *= 2) {
    probe.max_inline = next;
    if (!device_accepts(pd, probe)) break;
  }
  return bisect(pd, probe, &QpOptions::max_inline, good, next);
}

}  // namespace verbscope
