#pragma once

#include <signal.h>
#include <stdlib.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/program.h"
#include "catch.h"
#include "cluster/process.h"

namespace troupe::tests {

/// A head and one node, in a folder of their own.
class SmallCluster {
 public:
  SmallCluster() {
    start_head();
    node_ = std::make_unique<Process>(
        here_, std::vector<std::string>{"node", "--name", "alpha", "--cores", "1"});
    REQUIRE(node_->says("joined"));
  }

  const Workplace& here() const { return here_; }
  /// Ends the head without a warning. The node waits for it.
  void kill_head() {
    head_->send(SIGKILL);
    REQUIRE(head_->wait());
  }
  /// Starts a head with the state and the address of the last one.
  void start_head() {
    head_ = std::make_unique<Process>(
        here_, std::vector<std::string>{"head", "--listen", "127.0.0.1:0", "--events",
                                        "127.0.0.1:0", "--http", "off"});
    REQUIRE(head_->says("troupe submit"));
  }
  Process& head() { return *head_; }

  /// Runs a command to its end.
  Ended run(const std::vector<std::string>& arguments) const { return run_in(here_, arguments); }
  /// Runs a command in another folder.
  Ended run_in(const Workplace& there, const std::vector<std::string>& arguments) const {
    const auto of_this_cluster = [this] {
      setenv("XDG_STATE_HOME", here_.path().c_str(), 1);
      unsetenv("TROUPE_HEAD");
    };
    return troupe(there, Launch{arguments, {}, of_this_cluster, {}});
  }

 private:
  Workplace here_;
  std::unique_ptr<Process> head_, node_;
};

}  // namespace troupe::tests
