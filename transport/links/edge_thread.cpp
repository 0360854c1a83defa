#include "transport/links/edge_thread.h"

#include <cassert>
#include <chrono>

#include "core/threads/thread_name.h"

namespace troupe::transport {
namespace {

// The polling intervals while operations are under way, and otherwise: deadlines and some failures
// are found only by polling.
constexpr auto while_busy = std::chrono::microseconds(20);
constexpr auto now_and_then = std::chrono::milliseconds(2);

}  // namespace

EdgeThread::EdgeThread(std::function<void()> enter)
    : thread_([this, enter = std::move(enter)] {
        name_thread("edges");
        if (enter) enter();
        run();
      }) {}

EdgeThread::~EdgeThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void EdgeThread::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

void EdgeThread::drive(Edges& edges) {
  {
    const std::lock_guard lock(mutex_);
    assert(!edges_ && "one epoch after another");
    edges_ = &edges;
    woken_ = true;
  }
  changed_.notify_all();
}

void EdgeThread::leave() {
  std::unique_lock lock(mutex_);
  edges_ = nullptr;
  changed_.wait(lock, [&] { return !advancing_; });
}

void EdgeThread::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    woken_ = false;
    bool soon = false;
    if (auto* edges = edges_) {
      advancing_ = true;
      lock.unlock();
      soon = edges->advance(std::chrono::steady_clock::now());
      lock.lock();
      advancing_ = false;
      changed_.notify_all();
    }
    changed_.wait_for(lock, soon ? std::chrono::nanoseconds(while_busy) : now_and_then,
                      [&] { return woken_ || stopping_; });
  }
}

}  // namespace troupe::transport
