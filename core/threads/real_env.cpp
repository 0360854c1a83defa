#include "core/threads/real_env.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <random>
#include <string_view>
#include <utility>

#include "core/threads/worker.h"

namespace troupe {
namespace {

constexpr unsigned seconds_for_words = 5;

std::atomic<int> code_to_end_with;

/// Writes without the lock of stderr, which a stuck thread may hold.
void write_to_stderr(std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

Env::Time RealEnv::now() { return std::chrono::steady_clock::now(); }

Env::WallTime RealEnv::wall_time() { return std::chrono::system_clock::now(); }

std::uint64_t RealEnv::random() {
  std::random_device random;
  return static_cast<std::uint64_t>(random()) << 32 | random();
}

std::unique_ptr<Loop> RealEnv::make_loop(LoopOptions options) {
  return std::make_unique<Worker>(std::move(options));
}

void RealEnv::end_process(int code, const std::string& last_words) {
  code_to_end_with = code;
  std::signal(SIGALRM, [](int) { _Exit(code_to_end_with); });
  alarm(seconds_for_words);
  write_to_stderr(last_words);
  _Exit(code);
}

void RealEnv::crash(const std::string& last_words) {
  alarm(seconds_for_words);
  write_to_stderr(last_words);
  std::abort();
}

}  // namespace troupe
