#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "transport/links/edges.h"

namespace troupe::transport {

/// The only thread that calls a device's fabric. It advances the edges of one attempt after
/// another. While operations are under way it polls, because a device notifies nobody.
class EdgeThread {
 public:
  /// Calls `enter` first, on the new thread.
  explicit EdgeThread(std::function<void()> enter = {});
  ~EdgeThread();
  EdgeThread(const EdgeThread&) = delete;
  EdgeThread& operator=(const EdgeThread&) = delete;

  /// Wakes the thread, from any thread; meant for EdgesOrder::wake.
  void wake();

  /// Advances `edges` from now on, until leave().
  void drive(Edges& edges);
  /// When it returns, the edges are not advanced any more. Do not call it on the edge thread
  /// itself.
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
