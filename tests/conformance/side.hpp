// One end of a conformance test: an open device with a PD, completion queues, registered memory, and whatever else the
// test makes there. The side gives back what the test left, children first, and expects each to go without an error.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/error.hpp"
#include "machine/memory.hpp"
#include "tests/conformance/fabric.hpp"
#include "verbs/endpoint.hpp"
#include "verbs/resources.hpp"

namespace verbscope::conformance {

constexpr int kAllAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
constexpr int kRemoteAccess = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

constexpr ibv_qp_cap kUsualCap{
    .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 4, .max_recv_sge = 4, .max_inline_data = 64};

// The attributes that create_qp is asked for; a null CQ is the side's own.
struct QpAsk {
  ibv_qp_cap cap = kUsualCap;
  bool signal_all = false;
  ibv_cq* send_cq = nullptr;
  ibv_cq* recv_cq = nullptr;
  ibv_srq* srq = nullptr;
  ibv_pd* pd = nullptr;
};

class Side {
 public:
  static constexpr std::size_t kMemory = 2 << 20;

  explicit Side(int number);
  ~Side();
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  Provider& verbs() const { return provider_; }
  const Device& device() const { return device_; }
  ibv_context* context() const { return device_.get(); }
  ibv_pd* pd() const { return pd_; }
  ibv_mr* mr() const { return mr_; }  // all of memory(), every access
  ibv_cq* send_cq() const { return send_cq_; }
  ibv_cq* recv_cq() const { return recv_cq_; }
  const GidChoice& gid() const { return gid_; }

  std::uint8_t* memory(std::size_t offset = 0) const {
    return reinterpret_cast<std::uint8_t*>(buffer_.data()) + offset;
  }
  // The buffer's address and key, as a work request names it.
  std::uint64_t address(std::size_t offset = 0) const { return reinterpret_cast<std::uint64_t>(memory(offset)); }
  std::uint64_t& word(std::size_t offset) const { return *reinterpret_cast<std::uint64_t*>(memory(offset)); }
  ibv_sge sge(std::size_t offset, std::uint32_t length) const { return {address(offset), length, mr_->lkey}; }

  // Each makes an object that the test expects to get; destroyed with the side unless the test does so before.
  ibv_pd* make_pd();
  ibv_mr* make_mr(std::size_t offset, std::size_t length, int access, ibv_pd* pd = nullptr);
  ibv_comp_channel* make_channel();
  ibv_cq* make_cq(int entries, ibv_comp_channel* channel = nullptr);
  ibv_srq* make_srq(std::uint32_t depth, std::uint32_t sges = 1);
  ibv_qp* make_qp(ibv_qp_type type, const QpAsk& ask = {});
  // Makes a QP with the builder interface for `operations` (IBV_QP_EX_WITH_*).
  ibv_qp* make_qp_ex(ibv_qp_type type, std::uint64_t operations, const QpAsk& ask = {});
  ibv_ah* make_ah(const Side& to, bool global = false);

  // Takes over an object that the test expects to have got; `what` names it.
  template <class T>
  T* keep(T* object, const char* what, std::function<int()> release) {
    if (object == nullptr) {
      ADD_FAILURE() << "cannot make a " << what << ": " << std::strerror(errno);
      throw Error(std::string("no ") + what);
    }
    kept_.push_back({object, std::move(release)});
    return object;
  }
  template <class T>
  T* keep(T* object, const char* what, int (Provider::*release)(T*)) {
    return keep(object, what, [this, object, release] { return (provider_.*release)(object); });
  }

  // 0 or the errno of the call. An object that could not be destroyed is still the side's.
  int destroy(void* object);
  // Destroys everything of the side but the device and the memory, at once, as when a process dies.
  void destroy_all();

 private:
  struct Kept {
    void* object;
    std::function<int()> destroy;
  };
  Provider& provider_;
  Device device_;
  GidChoice gid_;
  Buffer buffer_;
  std::vector<Kept> kept_;
  ibv_pd* pd_;
  ibv_mr* mr_;
  ibv_cq* send_cq_;
  ibv_cq* recv_cq_;
};

// The attributes of create_qp for `ask` on `side`.
ibv_qp_init_attr init_attributes(const Side& side, ibv_qp_type type, const QpAsk& ask);
// Those of create_qp_ex, with the PD only of what may be added.
ibv_qp_init_attr_ex extended_attributes(const Side& side, ibv_qp_type type, const QpAsk& ask);

// The address of one side for packets of the other; `global` asks for a GRH where it can be left out (InfiniBand).
ibv_ah_attr path_between(const Side& from, const Side& to, bool global = false);

}  // namespace verbscope::conformance
