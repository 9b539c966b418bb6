// Where a replica keeps its log and its snapshot: bytes that outlive its process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/fd.hpp"

namespace verbscope {

class LogStorage {
 public:
  virtual ~LogStorage() = default;

  virtual std::string name() const = 0;  // for messages
  virtual std::uint64_t size() const = 0;
  // Reads bytes below size(). Throws Error.
  virtual void read(std::uint64_t at, std::span<std::byte> to) const = 0;
  // Drops all bytes from `size` on, durably. Throws Error.
  virtual void cut(std::uint64_t size) = 0;
  // Makes room for bytes below `size`, which are 0 until they are written. False: there is no space. Throws Error.
  virtual bool reserve(std::uint64_t size) = 0;
  // Writes bytes for which there is room. Throws Error.
  virtual void write(std::uint64_t at, std::span<const std::byte> bytes) = 0;
  // Makes all that is written durable. Thread-safe. Throws Error.
  virtual void sync() = 0;
  // True if sync() takes long: another thread calls it.
  virtual bool slow() const = 0;
  // Has these bytes instead of the old ones, durably; a crash leaves the old or the new ones. False: there is no space,
  // and the old ones stay. Throws Error.
  virtual bool replace(std::span<const std::byte> bytes) = 0;
};

// Bytes of a simulated machine, whose processes come and go.
class MemoryStorage final : public LogStorage {
 public:
  std::string name() const override { return "memory"; }
  std::uint64_t size() const override { return bytes_.size(); }
  void read(std::uint64_t at, std::span<std::byte> to) const override;
  void cut(std::uint64_t size) override { bytes_.resize(size); }
  bool reserve(std::uint64_t size) override;
  void write(std::uint64_t at, std::span<const std::byte> bytes) override;
  void sync() override {}
  bool slow() const override { return false; }
  bool replace(std::span<const std::byte> bytes) override;

  // From now on there is no space for more than `bytes` bytes.
  void limit(std::uint64_t bytes) { limit_ = bytes; }

 private:
  std::vector<std::byte> bytes_;
  std::uint64_t limit_ = ~std::uint64_t{0};
};

// A file. Durable: its bytes survive the machine, else only the process.
class FileStorage final : public LogStorage {
 public:
  // Opens or creates the file, and locks it: a second process is refused. Throws Error.
  FileStorage(std::string path, bool durable);

  std::string name() const override { return path_; }
  std::uint64_t size() const override { return size_; }
  void read(std::uint64_t at, std::span<std::byte> to) const override;
  void cut(std::uint64_t size) override;
  bool reserve(std::uint64_t size) override;
  void write(std::uint64_t at, std::span<const std::byte> bytes) override;
  void sync() override;
  bool slow() const override { return durable_; }
  bool replace(std::span<const std::byte> bytes) override;

 private:
  Fd open_file(const std::string& path, int flags) const;

  const std::string path_;
  const bool durable_;
  Fd file_;
  std::uint64_t size_ = 0;
};

}  // namespace verbscope
