#include "apps/machine/watchdog.h"

#include <utility>

namespace troupe::apps {
namespace {

// The watchdog counts looks instead of time: a process that was stopped has missed at most one
// look.
constexpr int looks_in_patience = 10;

}  // namespace

Watchdog::Watchdog(Env& env, std::chrono::nanoseconds patience,
                   std::function<void(const std::string& last)> stuck)
    : patience_(patience), stuck_(std::move(stuck)), loop_(env.make_loop({"watchdog"})) {
  watch();
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
  loop_->after(patience_ / looks_in_patience, [this] {
    look();
    watch();
  });
}

void Watchdog::look() {
  const std::lock_guard lock(mutex_);
  if (!doing_ || ++silent_ <= looks_in_patience) return;
  silent_ = 0;
  stuck_(*doing_);
}

}  // namespace troupe::apps
