#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/descriptor.h"
#include "core/threads/event_fd.h"

namespace troupe::transport {

/// The epoll events that every connection is registered for.
constexpr std::uint32_t usual_events = EPOLLIN | EPOLLRDHUP;

/// An object that a ChannelThread serves. The thread calls one of its sources at a time.
class ChannelSource {
 public:
  using Clock = std::chrono::steady_clock;

  /// Called with epoll events when the file is readable or writable, or has an error.
  virtual void on_ready(std::uint32_t events) = 0;

  /// Takes data that arrived in shared memory. Returns false if there was none.
  virtual bool look() { return false; }
  /// Called before the thread sleeps: until awake(), new data must be signaled through the file.
  /// Returns false if there is new data already.
  virtual bool may_sleep() { return true; }
  virtual void awake() {}

  /// The time at which on_deadline() is called.
  virtual Clock::time_point deadline() const { return Clock::time_point::max(); }
  virtual void on_deadline() {}

 protected:
  ~ChannelSource() = default;
};

/// The thread that moves the data of channels and calls their listeners. One thread serves all
/// channels of a process. After each message it polls for a while, because waking a thread takes
/// longer than most messages; then it sleeps. It must outlive its channels and doors.
class ChannelThread {
 public:
  explicit ChannelThread(std::chrono::microseconds look_out = std::chrono::microseconds(100));
  ~ChannelThread();
  ChannelThread(const ChannelThread&) = delete;
  ChannelThread& operator=(const ChannelThread&) = delete;

  /// Channels use the members below, from any thread. A source may also use them within its calls.
  enum class Place : std::uint64_t {};
  /// Sets `place` before it calls the source.
  void add(ChannelSource& source, int file, std::uint32_t events, Place& place);
  /// When it returns, the thread neither calls the source nor polls its file any more.
  void remove(Place place);
  /// A lock: while it is held, the thread calls no source.
  class Turn {
   public:
    explicit Turn(ChannelThread& thread);

   private:
    std::unique_lock<std::recursive_mutex> lock_;
  };
  /// Never blocks. Wakes the thread if one of the events has occurred already.
  void set_events(Place place, int file, std::uint32_t events);

 private:
  struct Entry {
    Place place{};
    ChannelSource* source = nullptr;  // Null after remove().
    int file = -1;
  };

  void run();
  bool look();
  bool may_sleep();
  void awake();
  bool serve(std::span<const epoll_event> events, int ready);
  int until_deadline(ChannelSource::Clock::time_point now);
  void let_others_in(std::unique_lock<std::recursive_mutex>& lock);
  void sweep();
  Entry* find(Place place);

  const std::chrono::microseconds look_out_;
  Descriptor epoll_;
  EventFd bell_;
  std::recursive_mutex mutex_;   // Held while sources are called.
  std::atomic<int> waiting_{0};  // The number of threads that wait for the mutex.
  std::vector<Entry> entries_;
  std::uint64_t places_ = 0;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace troupe::transport
