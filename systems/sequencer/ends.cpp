#include "systems/sequencer/ends.hpp"

#include "systems/sequencer/herd_places.hpp"

namespace verbscope {

std::uint64_t sequencer_region_bytes(const SequencerOptions& options, std::uint32_t client_threads) {
  if (options.design != SequencerDesign::herd) return HerdPlaces::kLine;
  return HerdPlaces{options.workers, client_threads, options.outstanding}.bytes();
}

std::unique_ptr<Workload> make_sequencer_end(const ThreadSetup& setup, const SequencerOptions& options) {
  const bool client = setup.side == Side::client;
  switch (options.design) {
    case SequencerDesign::herd:
      return client ? make_herd_client(setup, options) : make_herd_worker(setup, options);
    case SequencerDesign::spec:
      return client ? make_spec_client(setup, options) : make_spec_worker(setup, options);
    case SequencerDesign::atomic:
      break;
  }
  return client ? make_fetch_client(setup, options) : make_counter_home(setup);
}

}  // namespace verbscope
