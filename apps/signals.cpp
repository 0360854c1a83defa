#include "apps/signals.h"

#include <atomic>
#include <csignal>
#include <cstdlib>

namespace troupe::apps {
namespace {

// Signal handlers may touch no more than this.
Bell* bell_for_signals = nullptr;
std::atomic<bool> stop_requested = false;

void on_signal(int signal) {
  // The second one does not wait: whoever sends it means now.
  if (stop_requested.exchange(true)) _Exit(128 + signal);
  bell_for_signals->ring();
}

}  // namespace

bool signal_came() { return stop_requested; }

void ring_on_signals(Bell& bell) {
  bell_for_signals = &bell;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

}  // namespace troupe::apps
