// A service on RPCs: the base of a program that answers calls or makes them. On devices each server and each client is
// a process; with --fabric sim:NAME one process has all of them, in virtual time. docs/rpc.md has an example.
#pragma once

#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/option_table.hpp"
#include "systems/service/service_thread.hpp"
#include "systems/service/sim_faults.hpp"

namespace verbscope {

class Service {
 public:
  virtual ~Service() = default;

  // The name and the summary are for --help. Client and server must have the same name.
  virtual Description describe() const = 0;
  // Registers options of the service.
  virtual void options(OptionTable&) {}
  // Number of simulated machines that serve: node0, node1, ... The clients follow. Called after the options are read.
  // If it is more than 1, the host argument of a client may be a list.
  virtual std::uint32_t servers() const { return 1; }
  // Runs in each thread of a server. Returns when thread.pass() is false: at SIGINT or SIGTERM, or when all simulated
  // clients are done.
  virtual void serve(ServiceThread& thread) = 0;
  // Runs in each thread of a client. With several threads on a host, these run at the same time. An exception ends the
  // program with exit status 1.
  virtual void call(ServiceThread& thread) = 0;
  // Called after the run: measured values for the record, whose keys carry units (docs/records.md). On devices each
  // process calls it and writes its own record.
  virtual Json result() { return Json::object(); }
  // The lines for the console, from the record's result.
  virtual std::string summary(const Json&) const { return {}; }
  // On a simulated cluster, runs beside the machines and causes faults. The run does not wait for it.
  virtual void script(SimFaults&) {}
};

// Reads the options and runs the service: with a host argument as a client, else as a server. Returns the exit code.
int service_main(Service& service, int argc, char** argv);

}  // namespace verbscope
