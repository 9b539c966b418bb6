// The objects of the null device that its control path keeps. For provider.cpp only.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "verbs/null/device.hpp"
#include "verbs/null/provider.hpp"

namespace verbscope {

struct NullContext : ibv_context {
  int children = 0;
};

struct NullPd : ibv_pd {
  int children = 0;
};

// Owns objects and finds them by the pointer that the program holds.
template <class Base, class T>
using Table = std::unordered_map<Base*, std::unique_ptr<T>>;

// Reports a failure as the functions of libibverbs do: null and errno.
inline std::nullptr_t no_object(int error) {
  errno = error;
  return nullptr;
}

template <class Base, class T>
Base* keep(Table<Base, T>& table, std::unique_ptr<T> object) {
  Base* const pointer = object.get();
  table.emplace(pointer, std::move(object));
  return pointer;
}

struct NullProvider::State {
  NullLimits limits;
  std::mutex mutex;  // the control path; the data path has the CQs' locks
  ibv_device device{};
  std::uint32_t next_number = 1;  // the next number of a QP or a key
  Table<ibv_context, NullContext> contexts;
  Table<ibv_pd, NullPd> pds;
  Table<ibv_mr, ibv_mr> mrs;
  Table<ibv_cq, NullCq> cqs;
  Table<ibv_qp, NullQp> qps;
  Table<ibv_ah, ibv_ah> ahs;

  bool allows(const ibv_qp_cap& cap) const {
    const auto fits = [](std::uint32_t asked, int offered) { return asked <= static_cast<std::uint32_t>(offered); };
    return fits(cap.max_send_wr, limits.max_qp_wr) && fits(cap.max_recv_wr, limits.max_qp_wr) &&
           fits(cap.max_send_sge, limits.max_sge) && fits(cap.max_recv_sge, limits.max_sge) &&
           fits(cap.max_inline_data, limits.max_inline);
  }
};

}  // namespace verbscope
