#include "microbench/run/call_counter.hpp"

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

}  // namespace

bool asks_for_driver(const std::string& counter_sources) {
  return std::ranges::count(parse_counters(counter_sources, "--counter_sources", false), "driver") > 0;
}

CallCounter::CallCounter(Provider& provider, const std::optional<driver::WireFacts>& wire, bool real_time)
    : provider_(provider), wire_(wire), real_time_(real_time) {
  provider_.set_observer(this);
}

driver::Sums CallCounter::sums(const driver::Summary& summary) const {
  driver::Sums sums;
  for (const driver::ContextSummary& context : summary.contexts) {
    if (std::ranges::count(contexts_, context.number) > 0) driver::add_scaled(sums, context.sums, 1);
  }
  return sums;
}

void CallCounter::set_doorbell_registers(std::uint32_t total) {
  registers_ = DoorbellRegisters{total == 0 ? DoorbellRegisters::kDefault : total};
}

void CallCounter::created(ibv_context& context) {
  const std::optional<NicFamily> family = wire_ ? wire_->family : driver::family_of_device(context.device);
  if (!driver::counting()) {
    const int error = driver::start_counting("", kCapacity, wire_.value_or(facts_of_device(family)));
    if (error != 0) throw_errno("--counter_sources driver: memory for counts", error);
  }
  driver::attach_context(context, {.family = family, .sample_times = real_time_, .registers = registers_});
  if (const driver::WrappedContext* const wrapped = driver::find_context(&context)) {
    contexts_.push_back(wrapped->record->number);
  }
}

void CallCounter::created(ibv_mr&, const ibv_context& context, void* address, std::size_t length) {
  driver::count_registration(context, address, length);
}

void CallCounter::created(ibv_cq& cq) {
  driver::attach_cq(cq);
}

void CallCounter::created(ibv_srq& srq, std::uint32_t max_sge) {
  driver::attach_srq(srq, max_sge);
}

void CallCounter::created(ibv_qp& qp, ibv_qp_ex* builder, const ibv_qp_cap& asked, bool signal_all) {
  driver::attach_qp(qp, builder, asked, signal_all, driver::kInitialMtu);
}

void CallCounter::created(ibv_ah&, const ibv_context& context) {
  driver::count_address_handle(context);
}

void CallCounter::modified(ibv_qp& qp, const ibv_qp_attr& attr, int mask) {
  driver::modify_qp(qp, attr, mask);
}

void CallCounter::destroying(ibv_context& context) {
  driver::detach_context(context);
}

void CallCounter::destroying(ibv_mr& mr) {
  driver::count_deregistration(*mr.context);
}

void CallCounter::destroying(ibv_cq& cq) {
  driver::detach_cq(cq);
}

void CallCounter::destroying(ibv_srq& srq) {
  driver::detach_srq(srq);
}

void CallCounter::destroying(ibv_qp& qp) {
  driver::detach_qp(qp);
}

}  // namespace verbscope
