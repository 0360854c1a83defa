#include "apps/machine/load_watch.h"

#include <algorithm>
#include <utility>

#include "apps/machine/machine_share.h"
#include "core/threads/thread_name.h"

namespace troupe::apps {

LoadWatch::LoadWatch(std::function<void(const actors::MachineLoad&)> tell,
                     std::chrono::milliseconds every)
    : tell_(std::move(tell)), every_(every), thread_([this] { watch(); }) {}

LoadWatch::~LoadWatch() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LoadWatch::watch() {
  name_thread("load");
  MachineUse before = use_of_machine();
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, every_, [&] { return is_ending_; })) {
    const auto now = use_of_machine();
    actors::MachineLoad load{.busy = {}, .memory = now.memory};
    // A processor that was switched off takes its time with it.
    if (const auto all = now.all_ticks - before.all_ticks; all > 0)
      load.busy = std::clamp(
          static_cast<double>(now.busy_ticks - before.busy_ticks) / static_cast<double>(all), 0.0,
          1.0);
    before = now;
    tell_(load);
  }
}

}  // namespace troupe::apps
