#pragma once

#include "core/env.h"

namespace troupe {

/// The environment of a real process: the clocks of the machine, and a thread for each loop.
class RealEnv final : public Env {
 public:
  Time now() override;
  WallTime wall_time() override;
  std::uint64_t random() override;
  std::unique_ptr<Loop> make_loop(LoopOptions options) override;
  /// If stderr blocks, the process ends after 5 s without its last words.
  [[noreturn]] void end_process(int code, const std::string& last_words) override;
  [[noreturn]] void crash(const std::string& last_words) override;
};

}  // namespace troupe
