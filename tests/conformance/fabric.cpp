#include "tests/conformance/fabric.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "common/error.hpp"
#include "machine/node.hpp"
#include "nic_sim/cluster.hpp"
#include "verbs/host_provider.hpp"

namespace verbscope::conformance {
namespace {

Fabric* current = nullptr;

struct Current {
  explicit Current(Fabric& fabric) { current = &fabric; }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() { current = nullptr; }
};

class SimFabric final : public Fabric {
 public:
  SimFabric(SimCluster& cluster, SimNode& node) : cluster_(cluster), node_(node) {}

  bool simulated() const override { return true; }
  Provider& provider(int side) override { return cluster_.provider(side); }
  std::string device() const override { return "sim0"; }
  Picos now() override { return node_.now(); }
  void idle() override { node_.idle(); }
  void watch(const void* memory, std::size_t bytes) override { node_.watch(memory, bytes); }
  void poll_memory() override { node_.poll_memory(); }
  ibv_cq* await_event(ibv_comp_channel* channel, Nanos timeout) override { return node_.await_event(channel, timeout); }
  void wake_at(Picos when) override {
    cluster_.at(when, [] {});
  }
  void pass(Nanos time) override {
    node_.compute(time);
    node_.poll_memory();
  }
  Nanos patience() const override { return std::chrono::seconds(20); }

 private:
  SimCluster& cluster_;
  SimNode& node_;
};

class HostFabric final : public Fabric {
 public:
  explicit HostFabric(std::string device) : device_(std::move(device)) {}

  bool simulated() const override { return false; }
  Provider& provider(int) override { return provider_; }
  std::string device() const override { return device_; }
  Picos now() override { return node_.now(); }
  void idle() override { std::this_thread::yield(); }  // the device is a thread of the kernel on the same few cores
  void watch(const void* memory, std::size_t bytes) override { node_.watch(memory, bytes); }
  void poll_memory() override { node_.poll_memory(); }
  ibv_cq* await_event(ibv_comp_channel* channel, Nanos timeout) override { return node_.await_event(channel, timeout); }
  void wake_at(Picos) override {}
  void pass(Nanos time) override { std::this_thread::sleep_for(time); }
  Nanos patience() const override { return std::chrono::seconds(20); }

 private:
  HostProvider provider_;
  std::string device_;
  HostNode node_;
};

int run_simulated(const std::string& profile_name, const std::function<int()>& body) {
  SimCluster cluster(load_profile(profile_name), 2, 1);
  cluster.make_pollable();
  int status = 1;
  cluster.add_thread(0, 0, [&](SimNode& node) {
    SimFabric here(cluster, node);
    const Current chosen(here);
    status = body();
  });
  cluster.run();
  return status;
}

int run_on_host(std::string device, const std::function<int()>& body) {
  if (device.empty()) {
    const std::vector<std::string> names = HostProvider{}.device_names();
    if (names.empty()) throw Error("--fabric verbs: this machine has no RDMA device");
    device = names.front();
  }
  HostFabric here(device);
  const Current chosen(here);
  return body();
}

}  // namespace

Fabric& fabric() {
  return *current;
}

int run_on(const std::string& name, const std::function<int()>& body) {
  if (name.starts_with("sim:")) return run_simulated(name.substr(4), body);
  if (name == "verbs") return run_on_host("", body);
  if (name.starts_with("verbs:")) return run_on_host(name.substr(6), body);
  throw Error(fmt::format("--fabric {}: must be sim:PROFILE, verbs or verbs:DEVICE", name));
}

}  // namespace verbscope::conformance
