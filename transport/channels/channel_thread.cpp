#include "transport/channels/channel_thread.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <span>

#include "core/threads/thread_name.h"
#include "transport/channels/relax.h"

namespace troupe::transport {
namespace {

constexpr std::uint64_t bell_place = 0;
constexpr int most_events = 32;
constexpr int looks_in_turn = 32;
constexpr unsigned turns_for_each_wait = 64;

epoll_event event_of(std::uint64_t place, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = place;
  return event;
}

}  // namespace

// The channel thread keeps retaking its mutex; `waiting_` makes it let other threads go first.
ChannelThread::Turn::Turn(ChannelThread& thread) : lock_(thread.mutex_, std::defer_lock) {
  ++thread.waiting_;
  lock_.lock();
  --thread.waiting_;
}

ChannelThread::ChannelThread(std::chrono::microseconds look_out)
    : look_out_(look_out), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  assert(epoll_ && "the system has no file descriptors left");
  auto event = event_of(bell_place, EPOLLIN);
  epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, bell_.descriptor(), &event);
  thread_ = std::thread([this] { run(); });
}

ChannelThread::~ChannelThread() {
  stopping_ = true;
  bell_.ring();
  thread_.join();
  sweep();
  assert(entries_.empty() && "a channel's thread outlives its channels");
}

void ChannelThread::add(ChannelSource& source, int file, std::uint32_t events, Place& place) {
  {
    const Turn turn(*this);
    place = Place{++places_};
    entries_.push_back({place, &source, file});
    auto event = event_of(static_cast<std::uint64_t>(place), events);
    epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, file, &event);
  }
  bell_.ring();  // The thread may already sleep without having asked this source.
}

void ChannelThread::remove(Place place) {
  const Turn turn(*this);
  auto* entry = find(place);
  if (!entry) return;
  epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, entry->file, nullptr);
  entry->source = nullptr;
}

void ChannelThread::set_events(Place place, int file, std::uint32_t events) {
  auto event = event_of(static_cast<std::uint64_t>(place), events);
  epoll_ctl(epoll_.number(), EPOLL_CTL_MOD, file, &event);
}

void ChannelThread::run() {
  name_thread("channels");
  std::array<epoll_event, most_events> events;
  std::unique_lock lock(mutex_);
  auto patience = ChannelSource::Clock::now() + look_out_;
  for (unsigned turn = 1; !stopping_; ++turn) {
    bool busy = look();
    // While all data arrives in shared memory, poll the system only now and then.
    if (!busy || turn % turns_for_each_wait == 0)
      busy |= serve(events, epoll_wait(epoll_.number(), events.data(), most_events, 0));
    const auto now = ChannelSource::Clock::now();
    if (busy) patience = now + look_out_;
    if (!busy && now >= patience) {
      if (may_sleep()) {
        const int milliseconds = until_deadline(now);
        lock.unlock();
        const int ready = epoll_wait(epoll_.number(), events.data(), most_events, milliseconds);
        lock.lock();
        serve(events, ready);
      }
      awake();
      patience = ChannelSource::Clock::now() + look_out_;
    }
    let_others_in(lock);
  }
}

/// Returns whether any source had data. Tries many times, since that is cheap.
bool ChannelThread::look() {
  for (int i = 0; i < looks_in_turn && waiting_.load(std::memory_order_relaxed) == 0; ++i) {
    bool busy = false;
    for (std::size_t n = 0; n < entries_.size(); ++n)
      if (entries_[n].source) busy |= entries_[n].source->look();
    if (busy) return true;
    relax();
  }
  return false;
}

bool ChannelThread::may_sleep() {
  for (auto& entry : entries_)
    if (entry.source && !entry.source->may_sleep()) return false;
  return true;
}

void ChannelThread::awake() {
  for (auto& entry : entries_)
    if (entry.source) entry.source->awake();
}

bool ChannelThread::serve(std::span<const epoll_event> events, int ready) {
  bool busy = false;
  for (int i = 0; i < ready; ++i) {
    const auto& event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 == bell_place) {
      bell_.clear();
      busy = true;  // The reason is looked for before the thread sleeps.
      continue;
    }
    // A source that was removed after epoll reported it is not found any more.
    if (auto* entry = find(Place{event.data.u64})) {
      entry->source->on_ready(event.events);
      busy = true;
    }
  }
  const auto now = ChannelSource::Clock::now();
  for (std::size_t n = 0; n < entries_.size(); ++n)
    if (entries_[n].source && entries_[n].source->deadline() <= now)
      entries_[n].source->on_deadline();
  sweep();
  return busy;
}

void ChannelThread::sweep() {
  std::erase_if(entries_, [](const Entry& entry) { return entry.source == nullptr; });
}

int ChannelThread::until_deadline(ChannelSource::Clock::time_point now) {
  auto first = ChannelSource::Clock::time_point::max();
  for (const auto& entry : entries_)
    if (entry.source) first = std::min(first, entry.source->deadline());
  if (first == ChannelSource::Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(first - now).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void ChannelThread::let_others_in(std::unique_lock<std::recursive_mutex>& lock) {
  if (waiting_.load() == 0) return;
  lock.unlock();
  for (unsigned i = 1; waiting_.load() > 0; ++i) i % 64 == 0 ? std::this_thread::yield() : relax();
  lock.lock();
}

ChannelThread::Entry* ChannelThread::find(Place place) {
  const auto found = std::ranges::find_if(
      entries_, [&](const Entry& entry) { return entry.place == place && entry.source; });
  return found == entries_.end() ? nullptr : &*found;
}

}  // namespace troupe::transport
