#include "apps/machine/watchdog.h"

#include <pthread.h>

#include <utility>

#include "core/threads/thread_name.h"

namespace troupe::apps {
namespace {

// The watchdog counts looks instead of time: a process that was stopped has missed at most one
// look.
constexpr int looks_in_patience = 10;

}  // namespace

Watchdog::Watchdog(std::chrono::nanoseconds patience,
                   std::function<void(const std::string& last)> stuck)
    : patience_(patience), stuck_(std::move(stuck)), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::sign(std::string doing) {
  const std::lock_guard lock(mutex_);
  doing_ = std::move(doing);
  silent_ = 0;
}

void Watchdog::rest() {
  const std::lock_guard lock(mutex_);
  doing_.reset();
}

void Watchdog::watch() {
  name_thread("watchdog");
  pthread_setname_np(pthread_self(), "watchdog");
  std::unique_lock lock(mutex_);
  const auto ends = [this] { return ending_; };
  while (!changed_.wait_for(lock, patience_ / looks_in_patience, ends)) {
    if (!doing_ || ++silent_ <= looks_in_patience) continue;
    silent_ = 0;
    stuck_(*doing_);
  }
}

}  // namespace troupe::apps
