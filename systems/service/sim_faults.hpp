// Faults of a simulated cluster, which a script of the service causes while its machines run.
#pragma once

#include <cstdint>

#include "common/units.hpp"

namespace verbscope {

// Machines have numbers: the servers from 0 on, then the clients. All functions throw Error for a machine that does not
// exist. The same script and --seed give the same run.
class SimFaults {
 public:
  virtual ~SimFaults() = default;

  virtual Picos now() const = 0;
  // Returns at virtual time `when`. If the clients are done before, the run ends, and this does not return.
  virtual void wait_until(Picos when) = 0;
  // A random number, from --seed.
  virtual std::uint64_t random() = 0;

  // Ends the process of a machine, as kill -9 does: its threads do not return from the pass() in which they are, their
  // QPs and memory are gone, and the peers notice that its TCP connections break. Throws Error if it does not run.
  virtual void kill(std::uint32_t machine) = 0;
  // Starts the process of a killed machine again. Throws Error if it runs.
  virtual void restart(std::uint32_t machine) = 0;
  virtual bool runs(std::uint32_t machine) const = 0;

  // Cuts the cables of a machine. Packets from and to it are lost. Its TCP connections stand still until join(), and
  // break after kPeerSilence (exchange/tcp.hpp).
  virtual void cut(std::uint32_t machine) = 0;
  virtual void join(std::uint32_t machine) = 0;

  // The threads of a machine stand still for `time`.
  virtual void pause(std::uint32_t machine, Picos time) = 0;
  // The threads of a machine run `factor` times slower from now on, 1 or more: they stand still for a part of each
  // 100 us, as if another program used their cores.
  virtual void slow(std::uint32_t machine, double factor) = 0;
};

}  // namespace verbscope
