#include "transport/listening_door.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <span>

#include "transport/socket.h"

namespace troupe::transport {
namespace {

constexpr std::size_t most_knocks = 64;  // At once: of those who have not said hello yet.

void answer(int connection, Verdict verdict) {
  Answer answer;
  answer.verdict = verdict;
  // A new connection has room for sixteen bytes.
  send_now(connection, std::as_bytes(std::span(&answer, 1)));
}

std::uint64_t DoorCounters::*counter_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::welcome:
      return &DoorCounters::welcome;
    case Verdict::other_run:
      return &DoorCounters::other_run;
    case Verdict::other_epoch:
      return &DoorCounters::other_epoch;
    case Verdict::unknown_token:
      return &DoorCounters::unknown_token;
    case Verdict::other_version:
    case Verdict::other_terms:
      return &DoorCounters::other_terms;
  }
  return &DoorCounters::garbage;
}

}  // namespace

void GuestList::expect(Token token, Guest& guest) {
  const std::lock_guard lock(mutex_);
  const bool is_new = guests_.emplace(static_cast<std::uint64_t>(token), &guest).second;
  assert(is_new && "every channel has a token of its own");
}

void GuestList::forget(Guest& guest) {
  const std::lock_guard lock(mutex_);
  std::erase_if(guests_, [&](const auto& entry) { return entry.second == &guest; });
}

Verdict GuestList::admit(const Hello& hello, Descriptor& connection, Descriptor& file) {
  const std::lock_guard lock(mutex_);
  const auto found = guests_.find(hello.token);
  if (found == guests_.end()) return Verdict::unknown_token;
  const auto verdict = found->second->judge(hello, file);
  if (verdict == Verdict::welcome) {
    answer(connection.number(), verdict);
    found->second->arrive(hello, std::move(connection), std::move(file));
    guests_.erase(found);
  }
  return verdict;
}

/// Somebody who has not said hello yet.
class ListeningDoor::Knock final : public ChannelSource {
 public:
  Knock(ListeningDoor& door, Descriptor connection)
      : door_(door),
        connection_(std::move(connection)),
        until_(Clock::now() + door.order_.patience) {
    door.thread_.add(*this, connection_.number(), EPOLLIN | EPOLLRDHUP, place_);
  }
  ~Knock() { door_.thread_.remove(place_); }

  void on_ready(std::uint32_t) override { door_.hear(*this); }
  Clock::time_point deadline() const override { return until_; }
  void on_deadline() override {
    door_.count(&DoorCounters::silent);
    door_.dismiss(*this);
  }

 private:
  friend class ListeningDoor;

  ListeningDoor& door_;
  Descriptor connection_;
  Descriptor file_;
  Clock::time_point until_;
  std::array<std::byte, sizeof(Hello)> hello_{};
  std::size_t got_ = 0;
  ChannelThread::Place place_{};
};

ListeningDoor::ListeningDoor(ChannelThread& thread, Descriptor socket, std::string address,
                             Carrier carrier, const DoorOrder& order, MakeReceiver make_receiver)
    : thread_(thread),
      socket_(std::move(socket)),
      address_(std::move(address)),
      carrier_(carrier),
      order_(order),
      make_receiver_(make_receiver) {
  thread.add(*this, socket_.number(), EPOLLIN, place_);
}

ListeningDoor::~ListeningDoor() {
  const ChannelThread::Turn turn(thread_);
  thread_.remove(place_);
  knocks_.clear();
}

std::unique_ptr<Receiver> ListeningDoor::expect(Token token, Receiving receiving) {
  return make_receiver_(thread_, guests_, token, order_.epoch, std::move(receiving));
}

DoorCounters ListeningDoor::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

void ListeningDoor::count(std::uint64_t DoorCounters::*what) {
  const std::lock_guard lock(mutex_);
  ++(counters_.*what);
}

void ListeningDoor::on_ready(std::uint32_t) {
  for (;;) {
    Descriptor connection(
        accept4(socket_.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!connection && SpareDescriptor::is_needed(errno)) {
      (void)spare_.turn_away(socket_.number());
      return count(&DoorCounters::crowded_out);
    }
    if (!connection && errno == ECONNABORTED) continue;
    if (!connection) return;
    if (knocks_.size() == most_knocks) {
      count(&DoorCounters::crowded_out);
      knocks_.pop_front();  // Who has stood there longest without a word.
    }
    knocks_.push_back(std::make_unique<Knock>(*this, std::move(connection)));
  }
}

void ListeningDoor::hear(Knock& knock) {
  const int connection = knock.connection_.number();
  const auto to = std::span(knock.hello_).subspan(knock.got_);
  const auto came = receive_with_file(connection, to, knock.file_);
  if (came < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (came > 0) knock.got_ += static_cast<std::size_t>(came);
  Hello hello;
  const auto known = std::min(knock.got_, sizeof hello.magic);
  const bool strange = std::memcmp(knock.hello_.data(), &hello.magic, known) != 0;
  if (came <= 0 || strange) {
    count(&DoorCounters::garbage);
    return dismiss(knock);
  }
  if (knock.got_ < sizeof hello) return;
  std::memcpy(&hello, knock.hello_.data(), sizeof hello);
  // Whoever takes the connection on looks after it in its own way.
  thread_.remove(knock.place_);
  auto verdict = judge(hello);
  if (verdict == Verdict::welcome) verdict = guests_->admit(hello, knock.connection_, knock.file_);
  count(counter_of(verdict));
  if (verdict != Verdict::welcome) answer(connection, verdict);
  dismiss(knock);
}

Verdict ListeningDoor::judge(const Hello& hello) const {
  if (hello.version != channel_version) return Verdict::other_version;
  if (hello.run != order_.epoch.run) return Verdict::other_run;
  if (hello.epoch != order_.epoch.number) return Verdict::other_epoch;
  if (hello.carrier != carrier_ || hello.zero != 0 || hello.checksums > 1)
    return Verdict::other_terms;
  return Verdict::welcome;
}

void ListeningDoor::dismiss(Knock& knock) {
  knocks_.remove_if([&](const auto& one) { return one.get() == &knock; });
}

}  // namespace troupe::transport
