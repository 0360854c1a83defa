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

/// What a connection is always asked for.
constexpr std::uint32_t usual_events = EPOLLIN | EPOLLRDHUP;

/// Something that a ChannelThread looks after. It calls one of its sources at a time.
class ChannelSource {
 public:
  using Clock = std::chrono::steady_clock;

  /// The file can be read or written, or has an error: the events of epoll.
  virtual void on_ready(std::uint32_t events) = 0;

  /// For a source that hears of news in memory. Takes what has come; false where nothing had.
  virtual bool look() { return false; }
  /// The thread is about to sleep: news must come by way of the file until awake(). False where
  /// there are some now.
  virtual bool may_sleep() { return true; }
  virtual void awake() {}

  /// When on_deadline() is to be called, where nothing came before.
  virtual Clock::time_point deadline() const { return Clock::time_point::max(); }
  virtual void on_deadline() {}

 protected:
  ~ChannelSource() = default;
};

/// The thread that moves what channels carry and calls their listeners. One serves all channels of
/// a process. After each message it looks out for the next one for a while, since to be woken takes
/// longer than most messages; then it sleeps. Outlives its channels and doors.
class ChannelThread {
 public:
  explicit ChannelThread(std::chrono::microseconds look_out = std::chrono::microseconds(100));
  ~ChannelThread();
  ChannelThread(const ChannelThread&) = delete;
  ChannelThread& operator=(const ChannelThread&) = delete;

  /// For channels. Any thread may call these, and a source from within its calls.
  enum class Place : std::uint64_t {};
  /// `place` is set before the source is called.
  void add(ChannelSource& source, int file, std::uint32_t events, Place& place);
  /// Once it returns, the source is not called any more; nor is its file looked at.
  void remove(Place place);
  /// While it is held no source is called by the thread.
  class Turn {
   public:
    explicit Turn(ChannelThread& thread);

   private:
    std::unique_lock<std::recursive_mutex> lock_;
  };
  /// Waits for nothing, and wakes the thread where one of the events is there already.
  void set_events(Place place, int file, std::uint32_t events);

 private:
  struct Entry {
    Place place{};
    ChannelSource* source = nullptr;  // Null once it was removed.
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
  std::atomic<int> waiting_{0};  // Threads that want the mutex.
  std::vector<Entry> entries_;
  std::uint64_t places_ = 0;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace troupe::transport
