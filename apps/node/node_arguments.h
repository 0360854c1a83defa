#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/nodes/node_messages.h"
#include "apps/client/wire_keys.h"
#include "apps/processes.h"
#include "core/env.h"

namespace troupe::apps {

/// The options of a node, which its daemon passes on to its process.
struct NodeArguments {
  std::string head;
  std::string name;
  int cores = 0;          // 0: all cores.
  std::string interface;  // Empty: reachable from this machine only.
  std::string carrier = "auto";
  // The best precision that the node offers; empty: the machine's best.
  std::string precision;
  DialKeys keys;
  std::uint64_t term = 0;  // The term of the newest known head.
  std::string term_proof;  // The proof of that term.
  int first_gpu = 0;       // The machine's GPU that the first device uses.

  void add_to(CLI::App& command);
  /// Returns the command line that starts a process with these options; `head` is an endpoint.
  std::vector<std::string> words() const;
};

/// The environment variable that has the secret of this life.
constexpr const char* life_variable = "TROUPE_LIFE";
/// Returns a new secret that a node process shares with its starter. Other users cannot see it.
std::int64_t new_life(Env& env);
/// Returns the environment variable that passes the secret to the process.
std::vector<std::string> environment_of(std::int64_t life);
/// Returns the notice that tells a head of the process' end.
actors::ExitNotice notice_of(std::int64_t life, const ProcessEnd& end);

}  // namespace troupe::apps
