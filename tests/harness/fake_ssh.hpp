// A fake `ssh`, first in PATH: every host is this machine with its own home. As over a network,
// a program on a host notices the end of the connection only by the end of its input.
#pragma once

#include <cstdlib>

#include "tests/harness/fakes.hpp"

namespace verbscope {

class FakeSsh {
 public:
  FakeSsh() : path_(std::getenv("PATH")) {
    write_text(folder_.file("ssh"),
               "#!/bin/sh\n"
               "while [ $# -gt 2 ]; do shift; done\n"  // the host and the command are the last
               "dir='" +
                   folder_.file("") +
                   "'\n"
                   "export HOME=\"$dir/$1\"; mkdir -p \"$HOME\"\n"
                   "[ -e \"$dir/down-$1\" ] && { : > \"$dir/asked-$1\"; i=0\n"
                   "until [ $(ls \"$dir\" | grep -c ^asked-) -ge $(cat \"$dir/down-$1\") ]; do\n"
                   "[ $((i += 1)) -lt 500 ] || { echo \"$1 was asked alone\" >&2; exit 255; }; sleep 0.02; done\n"
                   "echo \"ssh: connect to host $1: No route to host\" >&2; exit 255; }\n"
                   "[ -e \"$dir/interrupt-connect\" ] && { kill -INT $PPID; exec sleep 1000; }\n"
                   // Devices come from the host's file in the folder; without a file there is one.
                   "case \"$2\" in *doctor*) cat \"$dir/facts-$1\" 2> /dev/null || "
                   "echo '{\"host\":\"h\",\"facts\":{\"devices\":[{\"name\":\"mlx5_0\"}]}}'; exit;; esac\n"
                   "[ -e \"$dir/interrupt-copy\" ] || exec sh -c \"$2\"\n"
                   "case \"$2\" in *gzip*) ;; *) exec sh -c \"$2\";; esac\n"
                   "{ head -c 10; until ls \"$HOME\"/.cache/verbscope/tmp.*; do sleep 0.01; done > /dev/null 2>&1\n"
                   "kill -INT $PPID; exec sleep 1000; } | setsid sh -c \"$2\"\n");
    std::filesystem::permissions(folder_.file("ssh"), std::filesystem::perms::owner_all);
    setenv("PATH", (folder_.file("") + ":" + path_).c_str(), 1);
  }
  FakeSsh(const FakeSsh&) = delete;
  FakeSsh& operator=(const FakeSsh&) = delete;
  ~FakeSsh() { setenv("PATH", path_.c_str(), 1); }

  std::string home(const std::string& host) const { return folder_.file(host); }
  // A dead host fails once this many dead hosts have been contacted.
  void set_down(const std::string& host, int together = 1) const {
    write_text(folder_.file("down-" + host), std::to_string(together));
  }
  // Output of `verbscope doctor --json` on the host.
  void set_facts(const std::string& host, const std::string& facts) const {
    write_text(folder_.file("facts-" + host), "{\"host\":\"" + host + "\",\"facts\":" + facts + "}\n");
  }
  void set_up(const std::string& host) const { std::filesystem::remove(folder_.file("down-" + host)); }
  // Sends SIGINT to the program that starts ssh, at the next "connect" or in the middle of a "copy";
  // ssh then hangs.
  void interrupt_in(const std::string& when) const { write_text(folder_.file("interrupt-" + when), ""); }

 private:
  TempFolder folder_;
  std::string path_;
};

}  // namespace verbscope
