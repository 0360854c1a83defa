#pragma once

#include <signal.h>
#include <time.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "apps/program.h"
#include "catch.h"

namespace troupe::tests {

/// Waits until a file grows or, if there is none, until it has something.
inline void wait_for_growth(const std::filesystem::path& file) {
  const auto bytes = [&] {
    std::error_code none;
    const auto size = std::filesystem::file_size(file, none);
    return none ? 0 : size;
  };
  const auto before = bytes();
  for (int tries = 0; tries < 20'000 && bytes() <= before; ++tries) {
    const timespec pause{0, 500'000};
    nanosleep(&pause, nullptr);
  }
}

/// Trains run.toml to its end. Some processes are killed, each at a random moment after the run's
/// ledger has grown, and the next ones resume. Returns how many were killed.
inline int train_through_kills(const Workplace& here, const std::string& run,
                               const std::vector<std::string>& more, int most_kills,
                               long most_microseconds, std::mt19937& random) {
  for (int kills = 0, life = 0;; ++life) {
    REQUIRE(life < 200);
    Launch launch;
    launch.arguments = {"train", "run.toml", "-q"};
    launch.arguments.insert(launch.arguments.end(), more.begin(), more.end());
    if (life > 0) launch.arguments.push_back("--resume");
    const long wait = std::uniform_int_distribution<long>(0, most_microseconds)(random);
    if (life < most_kills)
      launch.while_it_runs = [&](pid_t child) {
        wait_for_growth(here.path() / "runs" / run / "ledger");
        const timespec pause{0, wait * 1'000};
        nanosleep(&pause, nullptr);  // The test kills at a random time on purpose.
        kill(child, SIGKILL);
      };
    const Ended ended = troupe(here, launch);
    if (ended.code == 128 + SIGKILL) {
      ++kills;
      continue;
    }
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return kills;
  }
}

}  // namespace troupe::tests
