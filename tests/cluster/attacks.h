#pragma once

#include <random>
#include <span>
#include <string>

namespace troupe::tests {

/// What one who means no good knows: where a head listens and publishes, and the name of a run.
struct Target {
  std::string control;
  std::string events;
  std::string run;
};

/// Opens a connection, does its worst, and waits until the head has had enough of it where it will
/// have. None of them has the right to anything: what it says must change nothing.
using Attack = void (*)(const Target& target, std::mt19937_64& random);

std::span<const Attack> all_attacks();

}  // namespace troupe::tests
