#include "apps/machine/signals.h"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>

#include "apps/machine/keeper.h"

namespace troupe::apps {
namespace {

constexpr std::int64_t nanoseconds_in_second = 1'000'000'000;
/// Signals within this time count as one request: a service manager signals all processes of a
/// service at once, and a parent passes its signal on.
constexpr std::int64_t one_request = nanoseconds_in_second;

// The only state that signal handlers touch.
EventFd* bell_for_signals = nullptr;
std::atomic<std::int64_t> stop_requested_at = 0;  // On the monotonic clock; 0: not requested.
pid_t keeper = 0;

std::int64_t now_for_signals() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * nanoseconds_in_second + now.tv_nsec;
}

void on_signal(int signal, siginfo_t* info, void*) {
  if (keeper != 0 && (signal == SIGINT || signal == SIGTERM || info->si_pid != keeper)) return;
  const auto now = now_for_signals();
  std::int64_t first = 0;
  if (stop_requested_at.compare_exchange_strong(first, now)) return bell_for_signals->ring();
  // A second request ends the process at once.
  if (now - first >= one_request) _Exit(128 + (keeper != 0 ? SIGTERM : signal));
}

}  // namespace

bool signal_came() { return stop_requested_at != 0; }

void ring_on_signals(EventFd& bell) {
  bell_for_signals = &bell;
  keeper = keeper_of_this_process();
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO;
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
  if (keeper != 0) sigaction(signal_of_keeper(), &action, nullptr);
}

}  // namespace troupe::apps
