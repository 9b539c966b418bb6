#include "microbench/run/counted_provider.hpp"

#include <algorithm>

#include "common/error.hpp"
#include "counters/sources.hpp"
#include "drivers_patch/objects.hpp"

namespace verbscope {
namespace {

constexpr std::uint64_t kCapacity = std::uint64_t{4} << 30;  // address space; only used pages take memory

driver::WireFacts facts_of_device(std::optional<NicFamily> family) {
  driver::WireFacts facts = driver::usual_facts(family.value_or(NicFamily::mlx5), false);
  facts.known = family.has_value();
  return facts;
}

// Destroys `object`. Its counts are detached before, because its address may be reused at once, and attached again if
// the provider refuses.
template <class Record, class Object>
int destroy_counted(Provider& provider, Object* object, Record* (*detach)(const Object&), void (*keep)(Record*),
                    int (Provider::*destroy)(Object*)) {
  Record* const record = detach(*object);
  const int result = (provider.*destroy)(object);
  if (result != 0) keep(record);
  return result;
}

}  // namespace

bool asks_for_driver(const std::string& counter_sources) {
  return std::ranges::count(parse_counters(counter_sources, "--counter_sources", false), "driver") > 0;
}

driver::Sums CountedProvider::sums(const driver::Summary& summary) const {
  driver::Sums sums;
  for (const driver::ContextSummary& context : summary.contexts) {
    if (std::ranges::count(contexts_, context.number) > 0) driver::add_scaled(sums, context.sums, 1);
  }
  return sums;
}

int CountedProvider::set_doorbell_registers(const std::string& name, std::uint32_t total) {
  const int result = provider_.set_doorbell_registers(name, total);
  if (result == 0) registers_ = DoorbellRegisters{total == 0 ? DoorbellRegisters::kDefault : total};
  return result;
}

// Throws Error if there is no memory for the counts.
ibv_context* CountedProvider::open(const std::string& name) {
  ibv_context* const context = provider_.open(name);
  if (context == nullptr) return context;
  const std::optional<NicFamily> family = wire_ ? wire_->family : driver::family_of_device(context->device);
  if (!driver::counting()) {
    const int error = driver::start_counting("", kCapacity, wire_.value_or(facts_of_device(family)));
    if (error != 0) throw_errno("--counter_sources driver: memory for counts", error);
  }
  driver::attach_context(*context, {.family = family, .sample_times = real_time_, .registers = registers_});
  if (const driver::WrappedContext* const wrapped = driver::find_context(context)) {
    contexts_.push_back(wrapped->record->number);
  }
  return context;
}

int CountedProvider::close(ibv_context* context) {
  driver::detach_context(*context);
  return provider_.close(context);
}

ibv_mr* CountedProvider::reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  ibv_mr* const mr = provider_.reg_mr(pd, address, length, access);
  if (mr != nullptr) driver::count_registration(*pd->context, address, length);
  return mr;
}

int CountedProvider::dereg_mr(ibv_mr* mr) {
  const ibv_context* const context = mr->context;
  const int result = provider_.dereg_mr(mr);
  if (result == 0) driver::count_deregistration(*context);
  return result;
}

ibv_cq* CountedProvider::create_cq(ibv_context* context, int entries, ibv_comp_channel* channel) {
  ibv_cq* const cq = provider_.create_cq(context, entries, channel);
  if (cq != nullptr) driver::attach_cq(*cq);
  return cq;
}

int CountedProvider::destroy_cq(ibv_cq* cq) {
  return destroy_counted(provider_, cq, driver::detach_cq, driver::restore_cq, &Provider::destroy_cq);
}

ibv_srq* CountedProvider::create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  const std::uint32_t max_sge = attr->attr.max_sge;
  ibv_srq* const srq = provider_.create_srq(pd, attr);
  if (srq != nullptr) driver::attach_srq(*srq, max_sge);
  return srq;
}

int CountedProvider::destroy_srq(ibv_srq* srq) {
  return destroy_counted(provider_, srq, driver::detach_srq, driver::restore_srq, &Provider::destroy_srq);
}

ibv_qp* CountedProvider::attached(ibv_qp* qp, const ibv_qp_cap& asked, bool signal_all) {
  if (qp != nullptr) driver::attach_qp(*qp, provider_.qp_to_qp_ex(qp), asked, signal_all, driver::kInitialMtu);
  return qp;
}

ibv_qp* CountedProvider::create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  const ibv_qp_cap asked = attr->cap;
  return attached(provider_.create_qp(pd, attr), asked, attr->sq_sig_all != 0);
}

ibv_qp* CountedProvider::create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  const ibv_qp_cap asked = attr->cap;
  return attached(provider_.create_qp_ex(context, attr), asked, attr->sq_sig_all != 0);
}

int CountedProvider::modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  const int result = provider_.modify_qp(qp, attr, mask);
  if (result == 0) driver::modify_qp(*qp, *attr, mask);
  return result;
}

int CountedProvider::destroy_qp(ibv_qp* qp) {
  return destroy_counted(provider_, qp, driver::detach_qp, driver::restore_qp, &Provider::destroy_qp);
}

ibv_ah* CountedProvider::create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  ibv_ah* const ah = provider_.create_ah(pd, attr);
  if (ah != nullptr) driver::count_address_handle(*pd->context);
  return ah;
}

}  // namespace verbscope
