// The kernel's NIC counters, from directory trees in the form of /sys, and rdma-statistic's output.
#include "counters/kernel_sources.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "common/error.hpp"
#include "tests/common/temp_dir.hpp"
#include "tests/counters/fake_tools.hpp"

namespace verbscope {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

Sums no_ethtool(const std::string& interface) {
  fail("{}: Operation not supported", interface);
}

class NicSourceTest : public testing::Test {
 protected:
  std::filesystem::path sys() const { return dir_.path(); }
  void plant(const std::string& file, const std::string& text) {
    const auto path = dir_ / ("class/infiniband/mlx5_0/" + file);
    std::filesystem::create_directories(path.parent_path());
    write_file(path, text);
  }
  NicSource source(NicSource::Ethtool ethtool = no_ethtool, std::vector<int> ports = {1}) {
    return {NicPlace{"mlx5_0", std::move(ports), sys()}, std::move(ethtool)};
  }
  // A window during which `change` happens; before it a background of at least 20 ms during which `before` does.
  template <class Before, class Change>
  CounterReport measure(NicSource& nic, Before&& before, Change&& change) {
    nic.start();
    nic.read(Moment::background_begin);
    before();
    std::this_thread::sleep_for(20ms);
    nic.read(Moment::background_end);
    nic.read(Moment::window_begin);
    change();
    nic.read(Moment::window_end);
    return nic.report(0);
  }

 private:
  TempDir dir_;
};

TEST_F(NicSourceTest, ReportsDifferencesOfEveryPortAndKind) {
  plant("ports/1/counters/port_xmit_data", "1000\n");
  plant("ports/1/hw_counters/sent_pkts", "10\n");
  plant("ports/2/counters/port_xmit_data", "5\n");
  plant("hw_counters/rx_atomic_requests", "0\n");
  NicSource nic = source(no_ethtool, {1, 2});
  const CounterReport report = measure(
      nic, [] {},
      [this] {
        plant("ports/1/counters/port_xmit_data", "1064\n");
        plant("ports/1/hw_counters/sent_pkts", "17\n");
        plant("hw_counters/rx_atomic_requests", "3\n");
      });
  EXPECT_EQ(report.extra.at("raw"), (Json{{"hw_counters/rx_atomic_requests", 3},
                                          {"port1/counters/port_xmit_data", 64},
                                          {"port1/hw_counters/sent_pkts", 7},
                                          {"port2/counters/port_xmit_data", 0}}));
  EXPECT_EQ(report.unseen.size(), 11u);  // no event of PCIe
  EXPECT_EQ(report.extra.at("ethtool").at("reason"), "no network interface belongs to mlx5_0");
}

TEST_F(NicSourceTest, ReadsOnlyThePortsInUse) {
  plant("ports/1/counters/port_xmit_data", "1\n");
  plant("ports/2/counters/port_xmit_data", "1\n");
  NicSource nic = source(no_ethtool, {2});
  EXPECT_EQ(measure(
                nic, [] {}, [] {})
                .extra.at("raw"),
            (Json{{"port2/counters/port_xmit_data", 0}}));
}

TEST_F(NicSourceTest, SubtractsTheBackground) {
  plant("ports/1/counters/port_rcv_packets", "0\n");
  NicSource nic = source();
  const CounterReport report = measure(
      nic, [this] { plant("ports/1/counters/port_rcv_packets", "1000000\n"); },
      [this] {
        std::this_thread::sleep_for(10ms);
        plant("ports/1/counters/port_rcv_packets", "31000000\n");
      });
  const std::string name = "port1/counters/port_rcv_packets";
  const double per_s = report.extra.at("background_per_s").at(name);
  EXPECT_NEAR(per_s * report.extra.at("background_s").get<double>(), 1e6, 1);
  EXPECT_EQ(report.extra.at("raw").at(name), 30'000'000);
  EXPECT_NEAR(report.extra.at("net").at(name).get<double>(), std::max(0.0, 30e6 - per_s * report.window_s), 1);
}

TEST_F(NicSourceTest, SubtractsExactlyBeyondThePrecisionOfADouble) {
  plant("ports/1/counters/port_xmit_data", "18446744073709551000\n");
  NicSource nic = source();
  const CounterReport report = measure(
      nic, [] {}, [this] { plant("ports/1/counters/port_xmit_data", "18446744073709551001\n"); });
  EXPECT_EQ(report.extra.at("raw").at("port1/counters/port_xmit_data"), 1);
}

TEST_F(NicSourceTest, IgnoresFilesWithoutACount) {
  plant("ports/1/counters/port_xmit_data", "1\n");
  plant("ports/1/counters/VL15_dropped", "N/A (no PMA)\n");
  plant("ports/1/hw_counters/lifespan", "10\n");
  NicSource nic = source();
  const CounterReport report = measure(
      nic, [] {}, [] {});
  EXPECT_EQ(report.extra.at("raw"), (Json{{"port1/counters/port_xmit_data", 0}}));
  EXPECT_THAT(report.blind, HasSubstr("hw_counters may be 10 ms old"));
}

TEST_F(NicSourceTest, ReportsAResetCounterAsNull) {
  plant("ports/1/counters/port_xmit_data", "100\n");
  NicSource nic = source();
  const CounterReport report = measure(
      nic, [] {}, [this] { plant("ports/1/counters/port_xmit_data", "7\n"); });
  EXPECT_TRUE(report.extra.at("raw").at("port1/counters/port_xmit_data").is_null());
}

TEST_F(NicSourceTest, ReadsPcieStallsFromEthtool) {
  plant("ports/1/counters/port_xmit_data", "1\n");
  plant("ports/1/gid_attrs/ndevs/0", "eth7\n");
  std::uint64_t overflows = 5;
  NicSource nic = source([&overflows](const std::string& interface) {
    EXPECT_EQ(interface, "eth7");
    return Sums{{"outbound_pci_stalled_rd", 12},
                {"outbound_pci_stalled_wr", 3},
                {"outbound_pci_buffer_overflow", overflows},
                {"rx_packets", 99}};
  });
  const CounterReport report = measure(
      nic, [] {}, [&overflows] { overflows = 9; });
  EXPECT_EQ(report.extra.at("ethtool"), (Json{{"interface", "eth7"},
                                              {"outbound_pci_stalled_rd_percent_of_last_s", 12},
                                              {"outbound_pci_stalled_wr_percent_of_last_s", 3}}));
  EXPECT_EQ(report.extra.at("raw").at("ethtool/outbound_pci_buffer_overflow"), 4);
  EXPECT_FALSE(report.extra.at("raw").contains("ethtool/rx_packets"));
  EXPECT_THAT(report.blind, HasSubstr("longer than the window"));
}

TEST_F(NicSourceTest, ExplainsWhyNothingIsCounted) {
  const auto message = [](NicSource nic) { return message_of<Error>([&nic] { nic.start(); }); };
  EXPECT_THAT(message(source()), HasSubstr("the kernel has no device mlx5_0"));
  plant("device/net/eth7/address", "02:00:00:00:00:01\n");
  EXPECT_THAT(message(source()), HasSubstr("mlx5_0 has no counters"));
  EXPECT_THAT(message(source()), HasSubstr("eth7: Operation not supported"));
}

TEST_F(NicSourceTest, FindsTheRootPortOfTheDevice) {
  const auto device = sys() / "devices/pci0000:3a/0000:3a:02.0/0000:3b:00.0/0000:3c:00.1";
  std::filesystem::create_directories(device);
  std::filesystem::create_directories(sys() / "class/infiniband/mlx5_0");
  std::filesystem::create_directory_symlink(device, sys() / "class/infiniband/mlx5_0/device");
  EXPECT_EQ(root_port_of("mlx5_0", sys()), "3a:02.0");
  EXPECT_EQ(root_port_of("rxe0", sys()), "");
}

TEST(Ethtool, ReportsErrorsOfTheRealKernel) {
  // The loopback interface has no statistics of a driver.
  EXPECT_THAT(message_of<Error>([] { read_ethtool("lo"); }), HasSubstr("lo: "));
  EXPECT_THAT(message_of<Error>([] { read_ethtool("no_such_cat0"); }), HasSubstr("No such device"));
  EXPECT_THAT(message_of<Error>([] { read_ethtool(std::string(100, 'x')); }), HasSubstr("at most 15 characters"));
}

TEST(RdmaStatistic, NamesCountersByPortAndQp) {
  const Sums counts = rdma_statistic_counts(
      R"([{"ifindex":1,"ifname":"mlx5_0","port":1,"cntn":4,"lqpn":[178],"rx_write_requests":9,"out_of_buffer":0},)"
      R"({"ifname":"mlx5_0","port":2,"cntn":5,"pid":77,"lqpn":[179,180],"rx_write_requests":3}])");
  EXPECT_THAT(counts, ElementsAre(Pair("port1/qp178/out_of_buffer", 0), Pair("port1/qp178/rx_write_requests", 9),
                                  Pair("port2/counter5/rx_write_requests", 3)));
  EXPECT_TRUE(rdma_statistic_counts("[]").empty());
  EXPECT_THROW(rdma_statistic_counts("error: Operation not supported"), Error);
}

// Two QPs share one counter; the other is alone.
TEST(RdmaStatistic, ReportsIncreasesInTheWindow) {
  const test::FakeTools tools("");
  RdmaStatisticSource source("mlx5_0", {1});
  source.start();
  source.read(Moment::background_begin);
  source.read(Moment::background_end);
  source.read(Moment::window_begin);
  std::this_thread::sleep_for(300ms);  // the window
  source.read(Moment::window_end);
  const CounterReport report = source.report(0);
  // Readings take time themselves, some of it before the tool looks at its clock.
  EXPECT_NEAR(report.extra.at("raw").at("port1/qp178/rx_write_requests").get<double>() / report.window_s, 1000, 500);
  EXPECT_TRUE(report.extra.at("raw").contains("port1/counter5/rx_write_requests"));
}

}  // namespace
}  // namespace verbscope
