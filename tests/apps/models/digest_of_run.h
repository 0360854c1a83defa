#pragma once

#include <string>
#include <vector>

#include "apps/program.h"
#include "catch.h"

namespace troupe::tests {

/// Trains by run.toml with more settings, and returns the digest of the weights at the end.
inline std::string digest_of_run(const Workplace& here, const std::vector<std::string>& settings) {
  std::vector<std::string> words{"train", "run.toml", "--output", "json"};
  for (const auto& setting : settings) {
    words.emplace_back("--set");
    words.push_back(setting);
  }
  const Ended ended = troupe(here, words);
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  const auto saved = ended.events("checkpoint.saved");
  REQUIRE(!saved.empty());
  return *saved.back().find("weights")->text();
}

}  // namespace troupe::tests
