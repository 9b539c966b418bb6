// The fixture of every conformance test: two sides, connecting QPs, posting, and waiting with a limit that says what
// for. Side a asks, side b answers, unless a test says otherwise.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/conformance/deviations.hpp"
#include "tests/conformance/link.hpp"
#include "tests/conformance/requests.hpp"
#include "tests/conformance/side.hpp"

namespace verbscope::conformance {

constexpr std::uint32_t kGrhBytes = 40;  // a GRH's room in front of a datagram's payload

// Long enough for an event that is on its way: what would cause it has been seen already.
constexpr std::chrono::milliseconds kShort(30);

// The answer of a post: the error, and which request of the list bad_wr named (-1: none).
struct Posted {
  int error = 0;
  int bad = -1;
};

// Two connected QPs, or two UD QPs that know each other's address.
struct Pair {
  ibv_qp* a = nullptr;
  ibv_qp* b = nullptr;
};

class Rig : public testing::Test {
 protected:
  Side a{0};
  Side b{1};

  Pair connect(ibv_qp_type type, const LinkOptions& options = {}, const QpAsk& ask_a = {}, const QpAsk& ask_b = {});
  // Brings both QPs to RTS, towards each other.
  void connect(const Pair& pair, const LinkOptions& options = {});

  Posted post(ibv_qp* qp, const std::vector<Request>& list);
  // Expects no error.
  void send(ibv_qp* qp, const Request& request);
  Posted post_recv(ibv_qp* qp, const std::vector<ibv_sge>& sges, std::uint64_t id = 1);
  Posted post_srq_recv(ibv_srq* srq, const std::vector<ibv_sge>& sges, std::uint64_t id = 1);
  // Expect no error.
  void recv(ibv_qp* qp, const std::vector<ibv_sge>& sges, std::uint64_t id = 1);
  void srq_recv(ibv_srq* srq, const std::vector<ibv_sge>& sges, std::uint64_t id = 1);

  // The next `count` completions of `cq`. Fewer, and a failure that names `what`, when they do not come.
  std::vector<ibv_wc> await(ibv_cq* cq, std::size_t count, const std::string& what);
  ibv_wc await_one(ibv_cq* cq, const std::string& what);
  // The next completion; a status other than the expected one is a failure of the test.
  ibv_wc await_status(ibv_cq* cq, ibv_wc_status status, const std::string& what);
  ibv_wc await_success(ibv_cq* cq, const std::string& what) { return await_status(cq, IBV_WC_SUCCESS, what); }
  // Waits until `condition` holds, which may look at watched memory and ask the device.
  void await_until(const std::function<bool()>& condition, const std::string& what);
  // The completions that can be polled now.
  std::vector<ibv_wc> poll(ibv_cq* cq);
  // One SEND over `pair` has gone and come: what was posted before on the pair is done at both ends. Takes the
  // completions of the requests before it; needs b's receive queue and CQ to be empty.
  void marker(const Pair& pair);

 private:
  struct Destination {
    ibv_ah* ah;
    std::uint32_t qpn;
  };
  std::map<ibv_qp*, Destination> destinations_;  // the destinations of UD QPs
};

// Its tests run once for each transport.
class EachTransport : public Rig, public testing::WithParamInterface<ibv_qp_type> {
 protected:
  ibv_qp_type type() const { return GetParam(); }
  bool datagram() const { return GetParam() == IBV_QPT_UD; }
  // Room for `length` bytes of message at `offset`, with that for the GRH on UD.
  ibv_sge room(std::size_t offset, std::uint32_t length) const { return b.sge(offset, length + grh()); }
  std::uint32_t grh() const { return datagram() ? kGrhBytes : 0; }
};
class EachConnected : public EachTransport {};  // RC and UC

// Skips a test of what devices of this machine may lack; the simulated device has it.
#define VERBSCOPE_NEEDS(condition, what)              \
  if (!(condition)) {                                 \
    ASSERT_FALSE(fabric().simulated()) << (what);     \
    GTEST_SKIP() << "not on this device: " << (what); \
  }

std::string transport_name(ibv_qp_type type);
#define VERBSCOPE_EACH_TRANSPORT(Suite)                                                  \
  INSTANTIATE_TEST_SUITE_P(, Suite, testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD), \
                           [](const auto& type) { return transport_name(type.param); })
#define VERBSCOPE_EACH_CONNECTED(Suite)                                      \
  INSTANTIATE_TEST_SUITE_P(, Suite, testing::Values(IBV_QPT_RC, IBV_QPT_UC), \
                           [](const auto& type) { return transport_name(type.param); })

std::vector<std::uint64_t> ids(const std::vector<ibv_wc>& completions);
std::vector<ibv_wc_status> statuses(const std::vector<ibv_wc>& completions);
// The port's active MTU in bytes.
std::uint32_t mtu_of(const Side& side);

}  // namespace verbscope::conformance
