// The facts of a device are read from a made-up sysfs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "microbench/run/prediction.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct Sysfs {
  TempDir root;
  fs::path device = root / "class/infiniband/dev0";

  void file(const fs::path& path, const std::string& content) {
    fs::create_directories((device / path).parent_path());
    std::ofstream(device / path) << content << "\n";
  }
  void driver(const std::string& name) {
    fs::create_directories(device / "device");
    fs::create_symlink("../../drivers/" + name, device / "device/driver");
  }
  DeviceFacts read() { return read_device_facts(root / "", "dev0", 1, 1, 4096, 220); }
};

TEST(DeviceFacts, ReadAnMlx5CardAndItsSlot) {
  Sysfs sysfs;
  sysfs.driver("mlx5_core");
  sysfs.file("device/current_link_speed", "8.0 GT/s PCIe");
  sysfs.file("device/current_link_width", "16");
  sysfs.file("ports/1/rate", "100 Gb/sec (4X EDR)");
  const DeviceFacts facts = sysfs.read();
  ASSERT_TRUE(facts.wire) << facts.why_not;
  EXPECT_EQ(facts.wire->family, NicFamily::mlx5);
  EXPECT_EQ(facts.wire->pcie.generation, 3);
  EXPECT_EQ(facts.wire->pcie.lanes, 16);
  EXPECT_DOUBLE_EQ(facts.wire->port_rate.value, 12.5e9);
  EXPECT_EQ(facts.wire->doorbell_bytes, Bytes(8));
}

TEST(DeviceFacts, ReportASoftwareDeviceWithoutASlot) {
  Sysfs sysfs;
  const DeviceFacts facts = sysfs.read();
  EXPECT_FALSE(facts.wire);
  EXPECT_THAT(facts.why_not, HasSubstr("dev0 is no PCIe device"));
}

TEST(DeviceFacts, ReportAnUnknownDriver) {
  Sysfs sysfs;
  sysfs.driver("irdma");
  EXPECT_THAT(sysfs.read().why_not, HasSubstr("irdma"));
}

TEST(DeviceFacts, ReportAnUnknownLink) {
  Sysfs sysfs;
  sysfs.driver("mlx5_core");
  sysfs.file("device/current_link_speed", "Unknown");
  sysfs.file("device/current_link_width", "16");
  EXPECT_THAT(sysfs.read().why_not, HasSubstr("\"Unknown\""));
}

}  // namespace
}  // namespace verbscope
