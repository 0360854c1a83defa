#include "apps/machine/exit_now.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <memory>
#include <thread>

namespace troupe::apps {
namespace {

constexpr auto tell_patience = std::chrono::seconds(3);
constexpr auto words_patience = std::chrono::seconds(1);
// Even where the one who is stuck holds what is needed to say so.
constexpr unsigned seconds_in_all = 6;

std::atomic<int> code_to_leave_with;

bool done_within(std::chrono::nanoseconds patience, const std::function<void()>& what) {
  const auto done = std::make_shared<std::promise<void>>();
  std::thread([what, done] {
    what();
    done->set_value();
  }).detach();
  return done->get_future().wait_for(patience) == std::future_status::ready;
}

}  // namespace

void exit_now(ExitCode code, const std::function<void()>& tell,
              const std::function<std::string()>& words) {
  code_to_leave_with = static_cast<int>(code);
  std::signal(SIGALRM, [](int) { _Exit(code_to_leave_with); });
  alarm(seconds_in_all);
  if (!done_within(tell_patience, tell))
    done_within(words_patience, [text = words()] {
      [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
    });
  _Exit(static_cast<int>(code));
}

}  // namespace troupe::apps
