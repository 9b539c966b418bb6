#include "tests/conformance/victim.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <iostream>

#include "common/error.hpp"
#include "tests/conformance/rig.hpp"

namespace verbscope::conformance {
namespace {

constexpr std::uint64_t kRecvs = 12;

// The victim's objects on a side.
class Objects {
 public:
  explicit Objects(Side& side)
      : side_(side), rc_(side.make_qp(IBV_QPT_RC)), uc_(side.make_qp(IBV_QPT_UC)), ud_(side.make_qp(IBV_QPT_UD)) {}

  VictimAddress address() const { return {rc_->qp_num, uc_->qp_num, ud_->qp_num, side_.mr()->rkey, side_.address()}; }
  void connect(const Side& survivor, std::uint32_t rc, std::uint32_t uc) {
    check_errno("the victim's RC QP", bring_up(side_, rc_, survivor, rc));
    check_errno("the victim's UC QP", bring_up(side_, uc_, survivor, uc));
    check_errno("the victim's UD QP", bring_up(side_, ud_, survivor, 0));
    for (ibv_qp* qp : {rc_, uc_, ud_}) {
      for (std::uint64_t i = 0; i < kRecvs; ++i) {
        ibv_sge room = side_.sge(0, 256);
        ibv_recv_wr wr{.wr_id = i, .next = nullptr, .sg_list = &room, .num_sge = 1};
        ibv_recv_wr* bad = nullptr;
        check_errno("the victim's RECV", ibv_post_recv(qp, &wr, &bad));
      }
    }
  }

 private:
  Side& side_;
  ibv_qp* rc_;
  ibv_qp* uc_;
  ibv_qp* ud_;
};

class SimulatedVictim final : public Victim {
 public:
  SimulatedVictim(Side& a, Side& b) : a_(a), b_(b), objects_(b), address_(objects_.address()) {}
  VictimAddress address() const override { return address_; }
  void connect(std::uint32_t rc, std::uint32_t uc) override { objects_.connect(a_, rc, uc); }
  void die() override { b_.destroy_all(); }

 private:
  Side& a_;
  Side& b_;
  Objects objects_;
  VictimAddress address_;  // outlives the objects
};

// One end of a pipe.
class End {
 public:
  explicit End(int fd) : fd_(fd) {}
  End(const End&) = delete;
  End& operator=(const End&) = delete;
  ~End() { close(); }
  int fd() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  std::string read_line() const {
    std::string line;
    char byte = 0;
    while (::read(fd_, &byte, 1) == 1) {
      if (byte == '\n') return line;
      line += byte;
    }
    throw Error("the victim ended early");
  }
  void write_line(const std::string& line) const {
    const std::string text = line + "\n";
    if (::write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) throw Error("the victim is gone");
  }

 private:
  int fd_;
};

class Process final : public Victim {
 public:
  explicit Process(const std::string& device) : Process(device, make_pipe(), make_pipe()) {}
  ~Process() override { die(); }

  VictimAddress address() const override { return address_; }
  void connect(std::uint32_t rc, std::uint32_t uc) override {
    to_.write_line(fmt::format("{} {}", rc, uc));
    if (from_.read_line() != "ready") throw Error("the victim did not connect");
  }
  void die() override {
    if (id_ <= 0) return;
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
    id_ = -1;
  }

 private:
  using Pipe = std::array<int, 2>;
  static Pipe make_pipe() {
    Pipe ends{};
    check("pipe2", ::pipe2(ends.data(), O_CLOEXEC));
    return ends;
  }

  Process(const std::string& device, Pipe to, Pipe from) : to_(to[1]), from_(from[0]) {
    End its_input(to[0]);
    End its_output(from[1]);
    std::string program = "/proc/self/exe";
    std::string fabric_option = "--fabric=verbs:" + device;
    std::string victim_option = "--victim";
    char* arguments[] = {program.data(), fabric_option.data(), victim_option.data(), nullptr};
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, its_input.fd(), 0);
    posix_spawn_file_actions_adddup2(&files, its_output.fd(), 1);
    const int error = posix_spawn(&id_, program.c_str(), &files, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&files);
    check_errno("starting the victim", error);
    its_input.close();
    its_output.close();
    std::istringstream line(from_.read_line());
    line >> address_.rc >> address_.uc >> address_.ud >> address_.rkey >> address_.memory;
    if (!line) throw Error("the victim said something else than its address");
  }

  pid_t id_ = -1;
  End to_;
  End from_;
  VictimAddress address_;
};

}  // namespace

std::unique_ptr<Victim> make_victim(Side& a, Side& b) {
  if (fabric().simulated()) return std::make_unique<SimulatedVictim>(a, b);
  return std::make_unique<Process>(fabric().device());
}

int be_the_victim() {
  Side side(1);
  Objects objects(side);
  const VictimAddress address = objects.address();
  std::cout << address.rc << ' ' << address.uc << ' ' << address.ud << ' ' << address.rkey << ' ' << address.memory
            << std::endl;
  std::uint32_t rc = 0;
  std::uint32_t uc = 0;
  if (!(std::cin >> rc >> uc)) return 1;
  objects.connect(side, rc, uc);  // the survivor has the same device, and so the same address
  std::cout << "ready" << std::endl;
  std::string never;
  std::cin >> never;
  return 0;
}

}  // namespace verbscope::conformance
