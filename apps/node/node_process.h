#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/nodes/node_messages.h"
#include "apps/client/wire_keys.h"
#include "apps/machine/kept_process.h"

namespace troupe::apps {

/// What a person says of a node, to its daemon and on to its process.
struct NodeArguments {
  std::string head;
  std::string name;
  int cores = 0;          // 0: all.
  std::string interface;  // Empty: this machine alone.
  std::string carrier = "auto";
  std::string precision;  // The best that it offers; empty: what it has products in.
  DialKeys keys;
  std::uint64_t term = 0;  // Of the newest head that is known,
  std::string term_proof;  // and its proof.
  int first_gpu = 0;       // Of this machine's, for the first of its devices.

  void add_to(CLI::App& command);
  /// The line that starts a process with them; `head` is an endpoint.
  std::vector<std::string> words() const;
};

std::string this_host();
/// A secret that a node process shares with who started it. Other users cannot see it.
std::int64_t new_life();
/// The variable by which the process gets it.
std::vector<std::string> environment_of(std::int64_t life);
/// What a head is told of a process' end.
actors::ExitNotice notice_of(std::int64_t life, const ProcessEnd& end);

}  // namespace troupe::apps
