#include "apps/head/errands.h"

#include <utility>

#include "core/threads/thread_name.h"

namespace troupe::apps {

Errands::Errands(std::string thread_name, std::size_t most_waiting)
    : most_waiting_(most_waiting), thread_([this, name = std::move(thread_name)] { run(name); }) {}

Errands::Taken Errands::post(Errand errand) {
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return Taken::closed;
    if (waiting_.size() >= most_waiting_) return Taken::full;
    waiting_.push_back(std::move(errand));
  }
  came_.notify_one();
  return Taken::yes;
}

void Errands::close() {
  std::deque<Errand> dropped;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    dropped.swap(waiting_);
  }
  came_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Errands::run(const std::string& thread_name) {
  name_thread(thread_name.c_str());
  std::unique_lock lock(mutex_);
  for (;;) {
    came_.wait(lock, [&] { return closing_ || !waiting_.empty(); });
    if (closing_) return;
    const Errand errand = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    errand();
    lock.lock();
  }
}

}  // namespace troupe::apps
