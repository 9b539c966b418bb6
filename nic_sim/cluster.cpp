#include "nic_sim/cluster.hpp"

#include <deque>
#include <vector>

#include "common/error.hpp"
#include "nic_sim/engine.hpp"
#include "nic_sim/fabric.hpp"
#include "nic_sim/nic.hpp"
#include "nic_sim/provider.hpp"

namespace verbscope {
namespace {

// Parts of the simulation draw from generators of their own, so that one more draw in one does not move the others.
constexpr std::uint64_t seed_of(std::uint64_t seed, std::uint64_t part) {
  return seed * 0x9e3779b97f4a7c15 + part;
}

}  // namespace

struct SimCluster::Impl {
  struct Machine {
    Machine(sim::Engine& engine, sim::Fabric& fabric, sim::ThreadSlot& threads, const Profile& profile,
            std::uint32_t node, std::uint64_t seed)
        : nic(engine, fabric, threads, profile, node, seed), provider(nic) {}

    sim::Nic nic;
    sim::SimProvider provider;
    std::vector<bool> core_used;
    std::vector<const sim::SimThread*> own_threads;
  };

  Impl(const Profile& p, int nodes, std::uint64_t seed) : profile(p), fabric(engine, profile, seed_of(seed, 0)) {
    for (int i = 0; i < nodes; ++i) {
      const auto node = static_cast<std::uint32_t>(i);
      machines.emplace_back(engine, fabric, running, profile, node, seed_of(seed, node + 1));
      machines.back().core_used.resize(static_cast<std::size_t>(profile.host.cores));
    }
  }

  struct Appointment {
    Impl* impl;
    std::function<void()> action;
  };

  static void keep_appointment(void* object, std::uint64_t) {
    const Appointment& appointment = *static_cast<Appointment*>(object);
    appointment.action();
    for (sim::SimThread& thread : appointment.impl->threads) thread.nudge();
  }

  static void start_thread(void* thread, std::uint64_t) { static_cast<sim::SimThread*>(thread)->start(); }

  Profile profile;
  sim::Engine engine;
  sim::ThreadSlot running;
  sim::Fabric fabric;
  std::deque<Machine> machines;
  std::deque<sim::SimThread> threads;
  std::deque<Appointment> appointments;
};

SimCluster::SimCluster(const Profile& profile, int nodes, std::uint64_t seed)
    : impl_(std::make_unique<Impl>(profile, nodes, seed)) {}
SimCluster::~SimCluster() = default;

Provider& SimCluster::provider(int node) {
  return impl_->machines.at(static_cast<std::size_t>(node)).provider;
}
int SimCluster::nodes() const {
  return static_cast<int>(impl_->machines.size());
}
int SimCluster::cores() const {
  return impl_->profile.host.cores;
}

void SimCluster::add_thread(int node, int core, std::function<void(SimNode&)> body) {
  Impl::Machine& machine = impl_->machines.at(static_cast<std::size_t>(node));
  if (core < 0 || core >= cores()) fail("core {}: a node of {} has cores 0-{}", core, impl_->profile.name, cores() - 1);
  if (machine.core_used[static_cast<std::size_t>(core)]) fail("core {} of node {}: has a thread already", core, node);
  machine.core_used[static_cast<std::size_t>(core)] = true;
  sim::SimThread& thread = impl_->threads.emplace_back(
      impl_->engine, impl_->running, impl_->profile.host, core,
      [&machine, look_cost = impl_->profile.host.poll_memory, body = std::move(body)](sim::SimThread& self) {
        SimNode sim_node(self, machine.nic.memory_watch(), machine.nic.shared_lines(), look_cost);
        body(sim_node);
      });
  machine.own_threads.push_back(&thread);
  ++impl_->running.unfinished;
  impl_->engine.schedule(impl_->engine.now(), &Impl::start_thread, &thread);
}

void SimCluster::at(Picos when, std::function<void()> action) {
  Impl::Appointment& appointment = impl_->appointments.emplace_back(impl_.get(), std::move(action));
  impl_->engine.schedule(when, &Impl::keep_appointment, &appointment);
}

void SimCluster::run() {
  while (impl_->running.unfinished > 0) {
    if (!impl_->engine.step()) {
      fail("simulation at {:.3f} us: all threads wait and nothing can happen any more", to_seconds(now()) * 1e6);
    }
  }
}

Picos SimCluster::now() const {
  return impl_->engine.now();
}
std::uint64_t SimCluster::events_run() const {
  return impl_->engine.events_run();
}
std::size_t SimCluster::event_places() const {
  return impl_->engine.places();
}
std::size_t SimCluster::packets_allocated() const {
  return impl_->fabric.packets().size();
}

PcieCounts SimCluster::pcie_counts(int node) const {
  return impl_->machines.at(static_cast<std::size_t>(node)).nic.bus().counts();
}
NicCounts SimCluster::nic_counts(int node) const {
  return impl_->machines.at(static_cast<std::size_t>(node)).nic.counts();
}

UsageTimes SimCluster::usage_times(int node) const {
  const Impl::Machine& machine = impl_->machines.at(static_cast<std::size_t>(node));
  UsageTimes times = machine.nic.usage();
  for (const sim::SimThread* thread : machine.own_threads) times.threads.push_back(thread->worked());
  return times;
}

Picos SimCluster::busy_time(int node) const {
  Picos busy{0};
  for (const sim::SimThread* thread : impl_->machines.at(static_cast<std::size_t>(node)).own_threads)
    busy += thread->busy();
  return busy;
}

}  // namespace verbscope
