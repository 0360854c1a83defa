#pragma once

#include <random>
#include <span>
#include <string>

namespace troupe::tests {

/// The knowledge of an attacker: the head's addresses and the name of a run.
struct Target {
  std::string control;
  std::string events;
  std::string run;
};

/// Opens a connection, attacks, and waits until the head disconnects, if it will. An attacker has
/// no rights, so no attack may change anything.
using Attack = void (*)(const Target& target, std::mt19937_64& random);

std::span<const Attack> all_attacks();

}  // namespace troupe::tests
