// The functions of libibverbs for devices and contexts, and what a context tells about itself.
#include <endian.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "simulate/preload/exported.hpp"
#include "simulate/preload/objects.hpp"

namespace verbscope::simulate {
namespace {

template <class Answer>
int answered(Request& request, Answer& answer) {
  const int error = request.ask();
  if (error == 0) answer = request.get<Answer>();
  return error;
}

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attr,
                    std::size_t size) {
  if ((input != nullptr && input->comp_mask != 0) || size < sizeof attr->orig_attr) return EINVAL;
  ibv_device_attr_ex all{};
  Request request(Operation::query_device);
  request.put(own(context).handle);
  const int error = answered(request, all);
  if (error != 0) return error;
  std::memset(attr, 0, size);
  std::memcpy(static_cast<void*>(attr), &all, std::min(size, sizeof all));
  return 0;
}

int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr, std::size_t size) {
  ibv_port_attr all{};
  Request request(Operation::query_port);
  request.put(own(context).handle).put(port);
  const int error = answered(request, all);
  if (error == 0) std::memcpy(static_cast<void*>(attr), &all, std::min(size, sizeof all));
  return error;
}

int query_gid_entry(ibv_context* context, std::uint32_t port, std::uint32_t index, ibv_gid_entry* entry) {
  Request request(Operation::query_gid);
  request.put(own(context).handle).put(static_cast<std::uint8_t>(port)).put(index);
  return answered(request, *entry);
}

void close_files(ibv_context& context) {
  close(context.async_fd);
  close(context.cmd_fd);
}

// ibv_query_rt_values_ex(3).
int query_clock(ibv_context* context, ibv_values_ex* values) {
  if ((values->comp_mask & ~std::uint32_t{IBV_VALUES_MASK_RAW_CLOCK}) != 0) return EINVAL;
  if (values->comp_mask == 0) return 0;
  Request request(Operation::query_clock);
  request.put(own(context).handle);
  std::uint64_t cycles = 0;
  const int error = answered(request, cycles);
  values->raw_clock = {.tv_sec = 0, .tv_nsec = static_cast<long>(cycles)};
  return error;
}

}  // namespace

ibv_device& device() {
  // Providers look behind libibverbs' part of a device for their own, and find zeros.
  struct Padded : ibv_device {
    std::byte of_providers[512];
  };
  static Padded only = [] {
    Padded made{};
    made.node_type = IBV_NODE_CA;
    made.transport_type = IBV_TRANSPORT_IB;
    std::strcpy(made.name, "sim0");
    std::strcpy(made.dev_name, "uverbs0");
    std::strcpy(made.dev_path, "/sys/class/infiniband_verbs/uverbs0");
    std::strcpy(made.ibdev_path, "/sys/class/infiniband/sim0");
    return made;
  }();
  return only;
}

void set_device_calls(Context& context) {
  context.query_device_ex = &query_device_ex;
  context.query_port = &query_port;
  context.query_rt_values = &query_clock;
}

}  // namespace verbscope::simulate

using namespace verbscope::simulate;

EXPORTED ibv_device** ibv_get_device_list(int* count) {
  auto** const list = static_cast<ibv_device**>(calloc(2, sizeof(ibv_device*)));
  if (list == nullptr) return nullptr;
  if (simulated()) list[0] = &device();
  if (count != nullptr) *count = simulated() ? 1 : 0;
  return list;
}

EXPORTED void ibv_free_device_list(ibv_device** list) {
  free(list);
}

EXPORTED const char* ibv_get_device_name(ibv_device* of) {
  return of->name;
}

EXPORTED __be64 ibv_get_device_guid(ibv_device*) {
  return htobe64(static_cast<std::uint64_t>(node()) + 1);
}

EXPORTED int ibv_get_device_index(ibv_device*) {
  return 0;
}

EXPORTED ibv_context* ibv_open_device(ibv_device* of) {
  auto* context = new Context{};
  context->sz = sizeof(verbs_context);
  context->context.device = of;
  context->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  context->context.cmd_fd = open("/dev/null", O_RDWR | O_CLOEXEC);  // for programs that copy it; there are no commands
  context->context.async_fd = eventfd(0, EFD_CLOEXEC);
  pthread_mutex_init(&context->context.mutex, nullptr);
  set_device_calls(*context);
  set_domain_calls(*context);
  set_queue_calls(*context);
  set_qp_calls(*context);
  set_data_path(context->context.ops);
  Request request(Operation::open_device);
  const int error = request.put(context->context.async_fd).ask();
  if (error != 0) {
    close_files(context->context);
    return refused<ibv_context>(context, error);
  }
  context->handle = request.get<std::uint32_t>();
  context->context.num_comp_vectors = request.get<int>();
  return &context->context;
}

EXPORTED int ibv_close_device(ibv_context* context) {
  if (const int error = ask(Operation::close_device, own(context).handle); error != 0) {
    errno = error;
    return -1;
  }
  close_files(*context);
  delete &own(context);
  return 0;
}

EXPORTED int ibv_query_device(ibv_context* context, ibv_device_attr* attr) {
  ibv_device_attr_ex all{};
  const int error = query_device_ex(context, nullptr, &all, sizeof all);
  if (error == 0) *attr = all.orig_attr;
  return error;
}

EXPORTED int ibv_query_port(ibv_context* context, std::uint8_t port, _compat_ibv_port_attr* attr) {
  return query_port(context, port, reinterpret_cast<ibv_port_attr*>(attr), offsetof(ibv_port_attr, port_cap_flags2));
}

EXPORTED int ibv_query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) {
  ibv_gid_entry entry{};
  const int error = index < 0 ? EINVAL : query_gid_entry(context, port, static_cast<std::uint32_t>(index), &entry);
  if (error != 0) {
    errno = error;
    return -1;
  }
  *gid = entry.gid;
  return 0;
}

EXPORTED int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port, std::uint32_t index, ibv_gid_entry* entry,
                               std::uint32_t flags, std::size_t size) {
  ibv_gid_entry all{};
  if (flags != 0) return EOPNOTSUPP;
  const int error = query_gid_entry(context, port, index, &all);
  if (error == 0) std::memcpy(static_cast<void*>(entry), &all, std::min(size, sizeof all));
  return error;
}

EXPORTED ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t most,
                                      std::uint32_t flags, std::size_t size) {
  if (flags != 0) return -EOPNOTSUPP;
  ibv_device_attr known{};
  ssize_t count = 0;
  if (const int error = ibv_query_device(context, &known); error != 0) return -error;
  for (std::uint32_t port = 1; port <= known.phys_port_cnt; ++port) {
    ibv_gid_entry entry{};
    for (std::uint32_t i = 0; query_gid_entry(context, port, i, &entry) == 0; ++i) {
      if (static_cast<std::size_t>(count) == most) return -EINVAL;
      std::memcpy(reinterpret_cast<char*>(entries) + static_cast<std::size_t>(count++) * size, &entry,
                  std::min(size, sizeof entry));
    }
  }
  return count;
}

EXPORTED int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index, int* type) {
  ibv_gid_entry entry{};
  const int error = query_gid_entry(context, port, index, &entry);
  if (error != 0) {
    errno = error;
    return -1;
  }
  // The kernel's types know RoCE v1 and InfiniBand as one.
  *type = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 1 : 0;
  return 0;
}

EXPORTED int ibv_query_pkey(ibv_context* context, std::uint8_t port, int index, __be16* pkey) {
  Request request(Operation::query_pkey);
  request.put(own(context).handle).put(port).put(index);
  const int error = answered(request, *pkey);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

EXPORTED int ibv_get_pkey_index(ibv_context* context, std::uint8_t port, __be16 pkey) {
  __be16 found = 0;
  for (int i = 0; ibv_query_pkey(context, port, i, &found) == 0; ++i) {
    if (found == pkey) return i;
  }
  return -1;
}

// Contexts and objects cannot be handed to other processes.
EXPORTED ibv_context* ibv_import_device(int) {
  return no_object(EOPNOTSUPP);
}
EXPORTED ibv_pd* ibv_import_pd(ibv_context*, std::uint32_t) {
  return no_object(EOPNOTSUPP);
}
EXPORTED void ibv_unimport_pd(ibv_pd*) {}
EXPORTED ibv_mr* ibv_import_mr(ibv_pd*, std::uint32_t) {
  return no_object(EOPNOTSUPP);
}
EXPORTED void ibv_unimport_mr(ibv_mr*) {}
EXPORTED ibv_dm* ibv_import_dm(ibv_context*, std::uint32_t) {
  return no_object(EOPNOTSUPP);
}
EXPORTED void ibv_unimport_dm(ibv_dm*) {}

// The simulated adapter reads and writes the memory of a process by its addresses: a fork moves nothing.
EXPORTED int ibv_fork_init() {
  return 0;
}
EXPORTED ibv_fork_status ibv_is_fork_initialized() {
  return IBV_FORK_UNNEEDED;
}

// The simulated network has no Ethernet addresses.
EXPORTED int ibv_resolve_eth_l2_from_gid(ibv_context*, ibv_ah_attr*, std::uint8_t*, std::uint16_t*) {
  return -EOPNOTSUPP;
}
