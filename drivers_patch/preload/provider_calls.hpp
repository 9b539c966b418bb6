// Calls of libibverbs' own functions.
#pragma once

#include <infiniband/verbs.h>

#include "verbs/preload/dynamic_symbols.hpp"

// verbs.h wraps them.
#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_query_port
#undef ibv_get_device_list

namespace verbscope::driver {

// A function of libibverbs, by its name and default version there, found once. `Function` is its type.
template <class Function>
struct ProviderCall {
  const char* name;
  const char* version;
  void* known = nullptr;

  Function* get() {
    if (known == nullptr) known = preload::find_in_libibverbs(name, version);
    return reinterpret_cast<Function*>(known);
  }
};

// Calls libibverbs's own function of this name, which must exist.
#define VERBSCOPE_PROVIDER(name, version)                                            \
  ([]() -> decltype(&::name) {                                                       \
    static ::verbscope::driver::ProviderCall<decltype(::name)> call{#name, version}; \
    return call.get();                                                               \
  }())

}  // namespace verbscope::driver
