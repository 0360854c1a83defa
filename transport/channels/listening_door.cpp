#include "transport/channels/listening_door.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <span>

#include "transport/channels/door_rules.h"
#include "transport/channels/socket.h"

namespace troupe::transport {
namespace {

constexpr std::size_t most_knocks = 64;  // Connections without a complete hello.

void answer(int connection, Verdict verdict, std::span<const std::byte> greeting = {}) {
  Answer answer;
  answer.verdict = verdict;
  const auto bytes = std::as_bytes(std::span(&answer, 1));
  std::vector<std::byte> all(bytes.begin(), bytes.end());
  all.insert(all.end(), greeting.begin(), greeting.end());
  // A new connection has room for this few bytes.
  send_now(connection, all);
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

Verdict GuestList::admit(Caller& caller) {
  const std::lock_guard lock(mutex_);
  const auto found = guests_.find(caller.hello.token);
  if (found == guests_.end()) return Verdict::unknown_token;
  std::vector<std::byte> greeting;
  const auto verdict = found->second->judge(caller, greeting);
  if (verdict == Verdict::welcome) {
    answer(caller.connection.number(), verdict, greeting);
    found->second->arrive(std::move(caller));
    guests_.erase(found);
  }
  return verdict;
}

/// A connection that has not sent a complete hello yet.
class ListeningDoor::Knock final : public ChannelSource {
 public:
  Knock(ListeningDoor& door, Descriptor connection)
      : door_(door), until_(Clock::now() + door.order_.patience) {
    caller_.connection = std::move(connection);
    door.thread_.add(*this, caller_.connection.number(), EPOLLIN | EPOLLRDHUP, place_);
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

  /// Returns how long the hello is, as far as its bytes so far tell.
  std::size_t wanted() const {
    Hello hello;
    if (got_ < sizeof hello) return sizeof hello;
    std::memcpy(&hello, said_.data(), sizeof hello);
    return hello.protection == Protection::sealed ? said_.size() : sizeof hello;
  }

  ListeningDoor& door_;
  Caller caller_;
  Clock::time_point until_;
  std::array<std::byte, sizeof(Hello) + sizeof(KeyOffer)> said_{};
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
      knocks_.pop_front();  // Drop the connection that has waited longest.
    }
    knocks_.push_back(std::make_unique<Knock>(*this, std::move(connection)));
  }
}

void ListeningDoor::hear(Knock& knock) {
  auto& [hello, offer, connection, file] = knock.caller_;
  const auto to = std::span(knock.said_).first(knock.wanted()).subspan(knock.got_);
  const auto came = receive_with_file(connection.number(), to, file);
  if (came < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (came > 0) knock.got_ += static_cast<std::size_t>(came);
  const auto known = std::min(knock.got_, sizeof hello.magic);
  const bool strange = std::memcmp(knock.said_.data(), &hello_magic, known) != 0;
  if (came <= 0 || strange) {
    count(&DoorCounters::garbage);
    return dismiss(knock);
  }
  if (knock.got_ < knock.wanted()) return;
  std::memcpy(&hello, knock.said_.data(), sizeof hello);
  std::memcpy(&offer, knock.said_.data() + sizeof hello, sizeof offer);
  // The receiver registers the connection itself.
  thread_.remove(knock.place_);
  auto verdict = judge_at_door(hello, order_, carrier_);
  if (verdict == Verdict::welcome) verdict = guests_->admit(knock.caller_);
  count(counter_of(verdict));
  if (verdict != Verdict::welcome) answer(connection.number(), verdict);
  dismiss(knock);
}

void ListeningDoor::dismiss(Knock& knock) {
  knocks_.remove_if([&](const auto& one) { return one.get() == &knock; });
}

}  // namespace troupe::transport
