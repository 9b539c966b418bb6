// Reports the objects of a provider to drivers_patch/, which then counts the posts and polls of a benchmark. Simulated
// and null devices have no libibverbs that a preloaded library could wrap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "drivers_patch/summary.hpp"
#include "verbs/provider.hpp"
#include "wire/doorbell.hpp"

namespace verbscope {

// True if --counter_sources names the source driver.
bool asks_for_driver(const std::string& counter_sources);

class CallCounter final : public ProviderObserver {
 public:
  // Observes `provider`, which must outlive the counter. `wire`: the facts from which costs are computed; the first
  // device of the process sets them for all. None: the usual facts of the device's family. `real_time`: the device runs
  // in the time of this machine, so the time from post to completion is sampled.
  CallCounter(Provider& provider, const std::optional<driver::WireFacts>& wire, bool real_time);
  CallCounter(const CallCounter&) = delete;
  CallCounter& operator=(const CallCounter&) = delete;
  ~CallCounter() override { provider_.set_observer(nullptr); }

  // The counts of this provider's contexts, from a summary of the process.
  driver::Sums sums(const driver::Summary& summary) const;

  void set_doorbell_registers(std::uint32_t total) override;
  // Throws Error if there is no memory for the counts.
  void created(ibv_context& context) override;
  void created(ibv_mr& mr, const ibv_context& context, void* address, std::size_t length) override;
  void created(ibv_cq& cq) override;
  void created(ibv_srq& srq, std::uint32_t max_sge) override;
  void created(ibv_qp& qp, ibv_qp_ex* builder, const ibv_qp_cap& asked, bool signal_all) override;
  void created(ibv_ah& ah, const ibv_context& context) override;
  void modified(ibv_qp& qp, const ibv_qp_attr& attr, int mask) override;
  void destroying(ibv_context& context) override;
  void destroying(ibv_mr& mr) override;
  void destroying(ibv_cq& cq) override;
  void destroying(ibv_srq& srq) override;
  void destroying(ibv_qp& qp) override;

 private:
  Provider& provider_;
  std::optional<driver::WireFacts> wire_;
  bool real_time_;
  std::optional<DoorbellRegisters> registers_;
  std::vector<std::uint32_t> contexts_;  // numbers in the summary
};

}  // namespace verbscope
