#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "transport/links/edges.h"

namespace troupe::transport {

/// The one thread that calls a device's fabric: it advances the edges of one epoch after another.
/// While something is under way it asks again and again, since a device tells nobody.
class EdgeThread {
 public:
  /// `enter` is called first, on that thread.
  explicit EdgeThread(std::function<void()> enter = {});
  ~EdgeThread();
  EdgeThread(const EdgeThread&) = delete;
  EdgeThread& operator=(const EdgeThread&) = delete;

  /// Any thread: for EdgesOrder::wake.
  void wake();

  /// It advances these from now on, until leave().
  void drive(Edges& edges);
  /// Once it returns, they are not advanced any more. Not on the thread itself.
  void leave();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  Edges* edges_ = nullptr;
  bool advancing_ = false;
  bool woken_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace troupe::transport
