#include "apps/gpu/gpu_watch.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "apps/hosts/nvml.h"
#include "core/threads/thread_name.h"

namespace troupe::apps {
namespace {

/// How long the destructor waits for a driver that is slow but answers.
constexpr auto end_patience = std::chrono::milliseconds(500);

}  // namespace

struct GpuWatch::Shared {
  GpuWatchOptions options;
  std::mutex mutex;
  std::condition_variable changed;
  bool is_ending = false;
};

GpuWatch::GpuWatch(GpuWatchOptions options) : shared_(std::make_shared<Shared>()) {
  shared_->options = std::move(options);
  std::promise<void> ended;
  ended_ = ended.get_future();
  thread_ = std::thread([shared = shared_, ended = std::move(ended)]() mutable {
    name_thread("GPUs");
    watch(*shared);
    ended.set_value();
  });
}

GpuWatch::~GpuWatch() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->is_ending = true;
  }
  shared_->changed.notify_all();
  if (ended_.wait_for(end_patience) == std::future_status::ready)
    thread_.join();
  else
    thread_.detach();
}

void GpuWatch::watch(Shared& shared) {
  const auto nvml = Nvml::open();
  std::string said;
  for (;;) {
    const auto gpus = nvml ? nvml->read() : nvml.error();
    // The lock is held while `tell` runs, so that the watch cannot end during the call.
    std::unique_lock lock(shared.mutex);
    if (shared.is_ending) return;
    if (gpus && gpus->empty()) return;
    if (gpus) {
      shared.options.tell(*gpus);
    } else if (gpus.error().text != said) {
      said = gpus.error().text;
      shared.options.say(said);
    }
    if (!nvml) return;
    if (shared.changed.wait_for(lock, shared.options.every, [&] { return shared.is_ending; }))
      return;
  }
}

}  // namespace troupe::apps
