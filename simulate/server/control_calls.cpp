// Operations on the control path: those of SimProvider, with the objects of the process by their numbers.
#include "simulate/server/connection_manager.hpp"
#include "simulate/server/control.hpp"

namespace verbscope::simulate {
namespace {

int open_device(const Call& call) {
  const auto fd = call.in.get<int>();
  call.process.memory().check_access();
  ibv_context* const context = call.process.provider().open("sim0");
  if (context == nullptr) return errno;
  const int copy = call.process.copy_fd(fd);
  if (copy < 0) return errno;
  show_by(call, sim::as_sim(context).async_events, copy);
  context->async_fd = copy;
  sim::as_sim(context).space = &call.process.memory();
  call.out.put(call.process.add(Kind::context, context));
  call.out.put(context->num_comp_vectors);
  return 0;
}

template <class Answer, class Query>
int query(const Call& call, Query&& ask) {
  auto* const context = object<ibv_context>(call, Kind::context);
  if (context == nullptr) return EINVAL;
  Answer answer{};
  const int error = ask(call.process.provider(), context, answer);
  if (error == 0) call.out.put(answer);
  return error;
}

int query_gid(sim::SimProvider& provider, ibv_context* context, const Call& call, ibv_gid_entry& entry) {
  const auto port = call.in.get<std::uint8_t>();
  return provider.query_gid(context, port, call.in.get<std::uint32_t>(), &entry);
}

int query_pkey(sim::SimProvider& provider, ibv_context* context, const Call& call, __be16& pkey) {
  const auto port = call.in.get<std::uint8_t>();
  return provider.query_pkey(context, port, call.in.get<int>(), &pkey) == 0 ? 0 : errno;
}

int query_clock(ibv_context* context, std::uint64_t& cycles) {
  ibv_values_ex values{.comp_mask = IBV_VALUES_MASK_RAW_CLOCK, .raw_clock = {}};
  const int error = ibv_query_rt_values_ex(context, &values);
  cycles = static_cast<std::uint64_t>(values.raw_clock.tv_nsec);
  return error;
}

int alloc_parent_domain(const Call& call) {
  auto* const pd = object<ibv_pd>(call, Kind::pd);
  const auto td = call.in.get<std::uint32_t>();
  auto* const thread_domain = call.process.find<ibv_td>(Kind::td, td);
  if (pd == nullptr || (td != 0 && thread_domain == nullptr)) return EINVAL;
  return tell(call, Kind::pd, call.process.provider().alloc_parent_domain(pd, thread_domain));
}

int reg_mr(const Call& call) {
  auto* const pd = object<ibv_pd>(call, Kind::pd);
  auto* const address = call.in.get<void*>();
  const auto length = call.in.get<std::size_t>();
  const auto iova = call.in.get<std::uint64_t>();
  const int access = call.in.get<int>();
  if (pd == nullptr) return EINVAL;
  // As the kernel, which pins the pages.
  const char* const last = static_cast<const char*>(address) + (length == 0 ? 0 : length - 1);
  if (length > 0 && (!call.process.memory().accessible(address) || !call.process.memory().accessible(last)))
    return EFAULT;
  ibv_mr* const mr = call.process.provider().reg_mr_iova(pd, address, length, iova, access);
  const int error = tell(call, Kind::mr, mr);
  if (error != 0) return error;
  call.out.put(mr->lkey);
  call.out.put(mr->rkey);
  return 0;
}

int rereg_mr(const Call& call) {
  auto* const mr = object<ibv_mr>(call, Kind::mr);
  const int flags = call.in.get<int>();
  auto* const pd = object<ibv_pd>(call, Kind::pd);
  auto* const address = call.in.get<void*>();
  const auto length = call.in.get<std::size_t>();
  const int access = call.in.get<int>();
  const int code =
      mr == nullptr ? IBV_REREG_MR_ERR_INPUT : call.process.provider().rereg_mr(mr, flags, pd, address, length, access);
  if (code == 0) return 0;
  call.out.put(code);
  return mr == nullptr ? EINVAL : errno;
}

int alloc_mw(const Call& call) {
  auto* const pd = object<ibv_pd>(call, Kind::pd);
  if (pd == nullptr) return EINVAL;
  ibv_mw* const mw = call.process.provider().alloc_mw(pd, call.in.get<ibv_mw_type>());
  const int error = tell(call, Kind::mw, mw);
  if (error == 0) call.out.put(mw->rkey);
  return error;
}

int open_xrcd(const Call& call) {
  auto* const context = object<ibv_context>(call, Kind::context);
  const auto fd = call.in.get<int>();
  const auto flags = call.in.get<int>();
  if (context == nullptr) return EINVAL;
  const Fd file(fd == -1 ? -1 : call.process.copy_fd(fd));
  if (fd != -1 && file.get() < 0) return errno;
  ibv_xrcd_init_attr attr{
      .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = file.get(), .oflags = flags};
  return tell(call, Kind::xrcd, call.process.provider().open_xrcd(context, &attr));
}

int describe_adapter(const Call& call) {
  const Profile& profile = call.process.provider().profile();
  AdapterFacts adapter{.device_id = static_cast<std::uint32_t>(profile.nic.pci_device_id), .driver = {}};
  facts(profile.wire.family).driver.copy(adapter.driver, sizeof adapter.driver - 1);
  call.out.put(adapter);
  return 0;
}

}  // namespace

int execute_control(Operation operation, const Call& call) {
  sim::SimProvider& provider = call.process.provider();
  switch (operation) {
    case Operation::describe_adapter:
      return describe_adapter(call);
    case Operation::open_device:
      return open_device(call);
    case Operation::close_device: {
      // As the kernel, when the device's file is closed.
      auto* const context = object<ibv_context>(call, Kind::context);
      if (context != nullptr) call.process.close(*context);
      return context == nullptr ? EINVAL : 0;
    }
    case Operation::query_device:
      return query<ibv_device_attr_ex>(call, [](auto& of, ibv_context* context, ibv_device_attr_ex& attr) {
        return of.query_device_ex(context, nullptr, &attr, sizeof attr);
      });
    case Operation::query_port:
      return query<ibv_port_attr>(call, [&call](auto& of, ibv_context* context, ibv_port_attr& attr) {
        return of.query_port(context, call.in.get<std::uint8_t>(), &attr);
      });
    case Operation::query_gid:
      return query<ibv_gid_entry>(call, [&call](auto& of, ibv_context* context, ibv_gid_entry& entry) {
        return query_gid(of, context, call, entry);
      });
    case Operation::query_pkey:
      return query<__be16>(
          call, [&call](auto& of, ibv_context* context, __be16& pkey) { return query_pkey(of, context, call, pkey); });
    case Operation::query_clock:
      return query<std::uint64_t>(
          call, [](auto&, ibv_context* context, std::uint64_t& cycles) { return query_clock(context, cycles); });
    case Operation::alloc_pd: {
      auto* const context = object<ibv_context>(call, Kind::context);
      return context == nullptr ? EINVAL : tell(call, Kind::pd, provider.alloc_pd(context));
    }
    case Operation::dealloc_pd:
      return destroy<ibv_pd>(call, Kind::pd, &sim::SimProvider::dealloc_pd);
    case Operation::alloc_td: {
      auto* const context = object<ibv_context>(call, Kind::context);
      return context == nullptr ? EINVAL : tell(call, Kind::td, provider.alloc_td(context));
    }
    case Operation::dealloc_td:
      return destroy<ibv_td>(call, Kind::td, &sim::SimProvider::dealloc_td);
    case Operation::alloc_parent_domain:
      return alloc_parent_domain(call);
    case Operation::reg_mr:
      return reg_mr(call);
    case Operation::rereg_mr:
      return rereg_mr(call);
    case Operation::dereg_mr:
      return destroy<ibv_mr>(call, Kind::mr, &sim::SimProvider::dereg_mr);
    case Operation::alloc_mw:
      return alloc_mw(call);
    case Operation::dealloc_mw:
      return destroy<ibv_mw>(call, Kind::mw, &sim::SimProvider::dealloc_mw);
    case Operation::open_xrcd:
      return open_xrcd(call);
    case Operation::close_xrcd:
      return destroy<ibv_xrcd>(call, Kind::xrcd, &sim::SimProvider::close_xrcd);
    case Operation::cm_open:
      return call.process.connections().open(call);
    case Operation::cm_close:
      return call.process.connections().close(call);
    case Operation::cm_command:
    case Operation::cm_get_event:
      return call.process.connections().command(call);
    default: {
      const int error = execute_queues(operation, call);
      return error == ENOSYS ? execute_qps(operation, call) : error;
    }
  }
}

}  // namespace verbscope::simulate
