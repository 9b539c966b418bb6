// The functions of libibverbs that stand behind those of the preloaded library.
#pragma once

#include <infiniband/verbs.h>

#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_query_port
#undef ibv_get_device_list

namespace verbscope::driver {

// What the preloaded library defines in the place of libibverbs: name, and the version that the name has by default
// there. Older versions of libibverbs's own functions call these, as programs do.
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

// The function of libibverbs with a name and a version, wherever the program has libibverbs from; null: it has none.
void* find_in_libibverbs(const char* name, const char* version);

// The same, looked up once for each name. `function` tells of its type alone.
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

// Calls libibverbs's own function of this name. The function must be there, as it is where the program found it.
#define VERBSCOPE_PROVIDER(name, version)                                            \
  ([]() -> decltype(&::name) {                                                       \
    static ::verbscope::driver::ProviderCall<decltype(::name)> call{#name, version}; \
    return call.get();                                                               \
  }())

}  // namespace verbscope::driver
