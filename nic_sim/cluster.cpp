#include "nic_sim/cluster.hpp"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "common/error.hpp"
#include "nic_sim/device/provider.hpp"
#include "nic_sim/host/thread.hpp"
#include "nic_sim/net/fabric.hpp"
#include "nic_sim/nic/nic.hpp"
#include "nic_sim/time/fiber.hpp"
#include "nic_sim/time/logical_process.hpp"
#include "nic_sim/time/quanta.hpp"

namespace verbscope {
namespace {

// Each part of the simulation has its own random generator, so that a draw in one does not change the others.
constexpr std::uint64_t seed_of(std::uint64_t seed, std::uint64_t part) {
  return seed * 0x9e3779b97f4a7c15 + part;
}

// The core is free again when its thread ends, also by an exception.
struct FreedAtEnd {
  explicit FreedAtEnd(sim::SimThread** place) : core(place) {}
  FreedAtEnd(const FreedAtEnd&) = delete;
  FreedAtEnd& operator=(const FreedAtEnd&) = delete;
  ~FreedAtEnd() {
    if (core != nullptr) *core = nullptr;
  }
  sim::SimThread** core;  // null: it has none
};

}  // namespace

struct SimCluster::Impl {
  struct Machine {
    Machine(sim::Partition& partition, sim::Fabric& fabric, const Profile& profile, std::uint32_t node,
            std::uint64_t seed)
        : home(partition), nic(partition, fabric, profile, node, seed), provider(nic) {}

    sim::Partition& home;
    sim::Nic nic;
    sim::SimProvider provider;
    std::vector<sim::SimThread*> on_hardware_thread;
    std::vector<sim::SimThread*> own_threads;
  };

  static std::deque<sim::Partition> make_partitions(sim::PacketMemory& packets, std::size_t all) {
    if (all > SimWork::kMaxPartitions) fail("partition {}: must be at most {}", all - 1, SimWork::kMaxPartitions - 1);
    static_assert(SimWork::kMaxPartitions <= sim::PacketMemory::kMaxPools);
    std::deque<sim::Partition> partitions;
    for (std::size_t i = 0; i < all; ++i) partitions.emplace_back(packets, i, all);
    return partitions;
  }

  // The partitions of the nodes, followed by those of the switches, which are assigned round robin.
  static std::vector<std::size_t> with_switches(const Profile& profile, std::vector<std::size_t> homes) {
    const std::size_t partitions = *std::ranges::max_element(homes) + 1;
    const std::uint32_t switches = sim::switches_of(profile, static_cast<std::uint32_t>(homes.size()));
    for (std::uint32_t i = 0; i < switches; ++i) homes.push_back(i % partitions);
    return homes;
  }

  std::vector<sim::SwitchHome> switch_homes(std::size_t nodes, const std::vector<std::size_t>& homes) {
    std::vector<sim::SwitchHome> switches;
    for (std::size_t i = nodes; i < homes.size(); ++i) {
      switches.push_back({&partitions[homes[i]].engine, &partitions[homes[i]].packets});
    }
    return switches;
  }

  // `homes`: the partition of each node.
  Impl(const Profile& p, std::uint64_t seed, const std::vector<std::size_t>& homes, std::size_t threads_of_host)
      : profile(p),
        all_homes(with_switches(profile, homes)),
        mailbox(all_homes, *std::ranges::max_element(homes) + 1),
        packets(profile.wire.mtu, mailbox.partitions()),
        partitions(make_partitions(packets, mailbox.partitions())),
        quanta(processes(), mailbox, sim::min_latency(profile),
               std::clamp<std::size_t>(threads_of_host, 1, mailbox.partitions()),
               [this](std::size_t partition) { collect_packets(partition); }),
        fabric(sim::make_fabric(mailbox, profile, static_cast<std::uint32_t>(homes.size()),
                                switch_homes(homes.size(), all_homes), seed_of(seed, 0))) {
    for (std::uint32_t node = 0; node < homes.size(); ++node) {
      machines.emplace_back(partitions[homes[node]], *fabric, profile, node, seed_of(seed, node + 1));
      machines.back().on_hardware_thread.resize(static_cast<std::size_t>(profile.host.hardware_threads()));
    }
  }

  std::vector<sim::LogicalProcess*> processes() {
    std::vector<sim::LogicalProcess*> all;
    for (sim::Partition& partition : partitions) all.push_back(&partition);
    return all;
  }

  // Packets of this partition's pool were given back in other partitions.
  void collect_packets(std::size_t partition) {
    for (sim::Partition& other : partitions) partitions[partition].packets.collect_from(other.packets);
  }

  // Sums over the partitions.
  std::uint64_t sum(const auto& of) const {
    std::uint64_t sum = 0;
    for (const sim::Partition& partition : partitions) sum += of(partition);
    return sum;
  }

  static void start_thread(void* thread, std::uint64_t) { static_cast<sim::SimThread*>(thread)->start(); }

  Profile profile;
  std::vector<std::size_t> all_homes;
  sim::Mailbox mailbox;
  sim::PacketMemory packets;
  std::deque<sim::Partition> partitions;
  sim::Quanta quanta;
  std::unique_ptr<sim::Fabric> fabric;
  std::deque<Machine> machines;
  std::deque<sim::SimThread> threads;
  std::optional<sim::Fiber> controller;
  bool threads_expected = false;
};

SimCluster::SimCluster(const Profile& profile, int nodes, std::uint64_t seed, const SimWork& work) {
  std::vector<std::size_t> homes = work.partitions;
  homes.resize(static_cast<std::size_t>(nodes));
  impl_ = std::make_unique<Impl>(profile, seed, homes, work.threads);
}
SimCluster::~SimCluster() = default;

Provider& SimCluster::provider(int node) {
  return impl_->machines.at(static_cast<std::size_t>(node)).provider;
}
void SimCluster::make_pollable() {
  for (Impl::Machine& machine : impl_->machines) machine.provider.make_pollable();
}

int SimCluster::nodes() const {
  return static_cast<int>(impl_->machines.size());
}
int SimCluster::cores() const {
  return impl_->profile.host.cores;
}

std::optional<int> SimCluster::free_core(int node) const {
  const auto& places = impl_->machines.at(static_cast<std::size_t>(node)).on_hardware_thread;
  const auto found = std::ranges::find(places, nullptr);
  if (found == places.end()) return std::nullopt;
  return static_cast<int>(found - places.begin());
}

void SimCluster::add_thread(int node, std::optional<int> core, std::function<void(SimNode&)> body) {
  Impl::Machine& machine = impl_->machines.at(static_cast<std::size_t>(node));
  const HostProfile& host = impl_->profile.host;
  sim::SimThread** place = nullptr;
  if (core) {
    if (*core < 0 || *core >= host.hardware_threads())
      fail("core {}: a node of {} has cores 0 to {}", *core, impl_->profile.name, host.hardware_threads() - 1);
    place = &machine.on_hardware_thread[static_cast<std::size_t>(*core)];
    if (*place != nullptr) fail("core {} of node {} already has a thread", *core, node);
  }
  sim::SimThread& thread = impl_->threads.emplace_back(
      machine.home, host,
      [&machine, place, poll_cost = host.poll_memory, body = std::move(body)](sim::SimThread& self) {
        const FreedAtEnd freed{place};
        SimNode sim_node(self, machine.nic.payload_writer().watch(), machine.nic.shared_lines(), poll_cost);
        body(sim_node);
      });
  if (core) {
    *place = &thread;
    sim::SimThread* const beside =
        machine.on_hardware_thread[static_cast<std::size_t>((*core + host.cores) % host.hardware_threads())];
    if (beside != &thread && beside != nullptr) {
      thread.share_core(host.shared_core_speed);
      beside->share_core(host.shared_core_speed);
    }
  }
  machine.own_threads.push_back(&thread);
  ++machine.home.unfinished_threads;
  machine.home.engine.schedule(now(), &Impl::start_thread, &thread);
}

void SimCluster::end_threads(int node) {
  Impl::Machine& machine = impl_->machines.at(static_cast<std::size_t>(node));
  for (sim::SimThread* thread : machine.own_threads) thread->end();
  std::ranges::fill(machine.on_hardware_thread, nullptr);
}
void SimCluster::hold_threads(int node, Picos time) {
  for (sim::SimThread* thread : impl_->machines.at(static_cast<std::size_t>(node)).own_threads) thread->hold(time);
}
void SimCluster::cut(int node) {
  impl_->fabric->cut(static_cast<std::uint32_t>(node));
}
void SimCluster::join(int node) {
  impl_->fabric->join(static_cast<std::uint32_t>(node));
}

std::uint64_t SimCluster::translation_places() const {
  return impl_->profile.nic.translation_cache.value / sim::Translation::bytes;
}

void SimCluster::at(Picos when, std::function<void()> action) {
  impl_->quanta.at(when, [impl = impl_.get(), action = std::move(action)] {
    action();
    for (sim::SimThread& thread : impl->threads) thread.recheck();
  });
}

void SimCluster::run() {
  impl_->quanta.run();
}

void SimCluster::run(std::function<void()> controller) {
  impl_->controller.emplace(impl_->partitions.front().engine, std::move(controller)).resume();
  run();
}

void SimCluster::ask_outside(std::function<bool(bool stuck)> ask) {
  impl_->quanta.ask_outside(std::move(ask));
}

sim::Engine& SimCluster::engine() {
  return impl_->partitions.front().engine;
}

void SimCluster::expect_threads(bool expected) {
  if (expected == std::exchange(impl_->threads_expected, expected)) return;
  sim::Partition& partition = impl_->partitions.front();
  if (expected) {
    ++partition.unfinished_threads;
  } else {
    partition.thread_ended();
  }
}

void SimCluster::wait_until(Picos when) {
  sim::Fiber& controller = *impl_->controller;
  at(when, [&controller] { controller.resume(); });
  controller.park();
}

void SimCluster::settle(Picos limit) {
  impl_->quanta.settle(limit);
}

Picos SimCluster::now() const {
  return impl_->quanta.now();
}

std::uint64_t SimCluster::events_run() const {
  return impl_->sum([](const sim::Partition& partition) { return partition.engine.events_run(); });
}
std::size_t SimCluster::event_places() const {
  return impl_->sum([](const sim::Partition& partition) { return partition.engine.places(); });
}
std::size_t SimCluster::packets_allocated() const {
  return impl_->sum([](const sim::Partition& partition) { return partition.packets.size(); });
}

PcieCounts SimCluster::pcie_counts(int node) const {
  return impl_->machines.at(static_cast<std::size_t>(node)).nic.bus().counts();
}
NicCounts SimCluster::nic_counts(int node) const {
  const auto& machine = impl_->machines.at(static_cast<std::size_t>(node));
  NicCounts counts = machine.nic.counts();
  counts.dropped_by_switch += impl_->fabric->ethernet_counts(static_cast<std::uint32_t>(node)).dropped_by_chance;
  return counts;
}
std::optional<EthernetCounts> SimCluster::ethernet_counts(int node) const {
  if (!facts(impl_->profile.wire.link_type).ethernet) return std::nullopt;
  EthernetCounts counts = impl_->fabric->ethernet_counts(static_cast<std::uint32_t>(node));
  counts += impl_->machines.at(static_cast<std::size_t>(node)).nic.ethernet_counts();
  return counts;
}
std::uint64_t SimCluster::deepest_queue(int node) const {
  return impl_->fabric->deepest_queue(static_cast<std::uint32_t>(node));
}

UsageTimes SimCluster::usage_times(int node) const {
  const Impl::Machine& machine = impl_->machines.at(static_cast<std::size_t>(node));
  UsageTimes times = machine.nic.usage();
  times.shared_lines = machine.nic.shared_lines().busy();
  times.locks = machine.nic.lock_times().busy();
  for (const sim::SimThread* thread : machine.own_threads) {
    times.threads.push_back(thread->work_time());
    times.threads_memory.push_back(thread->memory_time());
    times.threads_polling.push_back(thread->polling_time());
  }
  return times;
}

Picos SimCluster::busy_time(int node) const {
  Picos busy{0};
  for (const sim::SimThread* thread : impl_->machines.at(static_cast<std::size_t>(node)).own_threads)
    busy += thread->busy();
  return busy;
}

}  // namespace verbscope
