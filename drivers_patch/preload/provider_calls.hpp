// Access to the functions of libibverbs that the preloaded library replaces.
#pragma once

#include <infiniband/verbs.h>

#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_query_port
#undef ibv_get_device_list

namespace verbscope::driver {

// The functions that the preloaded library replaces: name, and default version of the name in libibverbs. libibverbs's
// older versions of them call these, too.
#define VERBSCOPE_INTERPOSED(each)         \
  each(ibv_open_device, "IBVERBS_1.1");    \
  each(ibv_import_device, "IBVERBS_1.10"); \
  each(ibv_close_device, "IBVERBS_1.1");   \
  each(ibv_create_cq, "IBVERBS_1.1");      \
  each(ibv_destroy_cq, "IBVERBS_1.1");     \
  each(ibv_create_srq, "IBVERBS_1.1");     \
  each(ibv_destroy_srq, "IBVERBS_1.1");    \
  each(ibv_create_qp, "IBVERBS_1.1");      \
  each(ibv_modify_qp, "IBVERBS_1.1");      \
  each(ibv_destroy_qp, "IBVERBS_1.1");     \
  each(ibv_reg_mr, "IBVERBS_1.1");         \
  each(ibv_reg_mr_iova, "IBVERBS_1.7");    \
  each(ibv_reg_mr_iova2, "IBVERBS_1.8");   \
  each(ibv_reg_dmabuf_mr, "IBVERBS_1.12"); \
  each(ibv_dereg_mr, "IBVERBS_1.1");       \
  each(ibv_create_ah, "IBVERBS_1.1")

// Finds a function of libibverbs by name and version, wherever the program loaded libibverbs from. Null: not found.
void* find_in_libibverbs(const char* name, const char* version);

// The same, cached per name. `function` is used for its type only.
template <class Function>
struct ProviderCall {
  const char* name;
  const char* version;
  void* known = nullptr;

  Function* get() {
    if (known == nullptr) known = find_in_libibverbs(name, version);
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
