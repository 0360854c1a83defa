#include "bench/channel_side.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "transport/channels/shm_channel.h"
#include "transport/channels/tcp_channel.h"

namespace troupe::bench {
namespace {

using namespace transport;

// Large, because on a busy machine a parcel is acknowledged long after its answer has come.
constexpr Bound bound{600 * mib, 8192};
constexpr auto patience = std::chrono::seconds(60);  // For one measurement.
constexpr std::size_t address_bytes = 128;

Result<std::string> exchange_text(int control, const std::string& own) {
  std::array<char, address_bytes> text{};
  if (own.size() >= text.size()) return Error{"an address is too long: " + own};
  std::memcpy(text.data(), own.data(), own.size());
  if (!write_all(control, text.data(), text.size()) || !read_all(control, text.data(), text.size()))
    return Error{"the other side hung up before it had said where its channels end"};
  text.back() = '\0';
  return std::string(text.data());
}

}  // namespace

/// Returns the index of the link that a way uses.
std::size_t link_of(Way way) {
  switch (way) {
    case Way::in_place:
    case Way::one_copy:
      return 0;
    case Way::tcp:
      return 1;
    case Way::tcp_without_checksums:
      return 2;
    case Way::tcp_sealed:
      return 3;
  }
  return 0;
}

/// Makes a key pair and exchanges public keys over the control socket. The keys protect nothing:
/// this only measures.
Result<std::shared_ptr<const ChannelKeys>> exchange_keys(int control) {
  auto own = make_key_pair();
  if (!own) return own.error();
  const auto peer = exchange_text(control, own->public_key);
  if (!peer) return peer.error();
  return std::make_shared<const ChannelKeys>(ChannelKeys{std::move(*own), *peer});
}

Result<std::unique_ptr<ChannelSide>> ChannelSide::meet(const Meeting& meeting,
                                                       const Listener& listener,
                                                       const OnEnd& on_end) {
  const Epoch epoch{{meeting.secret, 0}, 0};
  std::unique_ptr<ChannelSide> side(new ChannelSide());
  auto tcp_door = open_tcp_door(side->thread_, meeting.interface + ":0", {epoch});
  if (!tcp_door) return tcp_door.error();
  side->tcp_door_ = std::move(*tcp_door);
  auto shm_door = open_shm_door(side->thread_, {epoch});
  if (!shm_door) return shm_door.error();
  side->shm_door_ = std::move(*shm_door);

  const auto keys = exchange_keys(meeting.control);
  if (!keys) return keys.error();

  const bool asks = meeting.seat == Meeting::Seat::asks;
  const std::uint64_t links = side->links_.size(), ours = asks ? 0 : links, theirs = links - ours;
  const auto keys_of = [&](std::uint64_t link) {
    return link == link_of(Way::tcp_sealed) ? *keys : nullptr;
  };
  for (std::uint64_t i = 0; i < side->links_.size(); ++i) {
    Door& door = i == 0 ? *side->shm_door_ : *side->tcp_door_;
    side->links_[i].receiver =
        door.expect(Token{ours + i}, {bound, &side->pool_, {listener, on_end}, keys_of(i)});
  }
  const auto shm = exchange_text(meeting.control, side->shm_door_->address());
  if (!shm) return shm.error();
  const auto tcp = exchange_text(meeting.control, side->tcp_door_->address());
  if (!tcp) return tcp.error();
  const std::uint64_t first = meeting.place == Meeting::Place::one_machine ? 0 : 1;
  for (std::uint64_t i = first; i < side->links_.size(); ++i) {
    Sending sending{epoch, Token{theirs + i}, bound, &side->pool_, on_end};
    sending.keys = keys_of(i);
    auto sender =
        i == 0 ? connect_shm(side->thread_, *shm, sending)
               : connect_tcp(side->thread_, *tcp, sending, i == 1 ? Checksums::on : Checksums::off);
    if (!sender) return within("the channel to " + (i == 0 ? *shm : *tcp), sender.error());
    side->links_[i].sender = std::move(*sender);
  }
  // Sends nothing before both sides are complete. Otherwise a listener could block the thread that
  // completes its own side.
  if (const auto ready = exchange_text(meeting.control, "ready"); !ready) return ready.error();
  return side;
}

ChannelSide::~ChannelSide() {
  for (auto& link : links_) link.sender.reset();
  for (auto& link : links_) link.receiver.reset();
}

Status ChannelSide::send(Way way, std::size_t bytes) {
  auto& sender = links_[link_of(way)].sender;
  const Shape shape{static_cast<std::int64_t>(bytes)};
  const std::byte head{static_cast<std::uint8_t>(way)};
  Tensor tensor;
  if (way == Way::in_place) {
    tensor = sender->lend(shape, DType::u8);
    *tensor.data<std::uint8_t>() = 1;  // A kernel writes alike for every carrier.
  } else {
    auto& made = made_[bytes];
    if (made.empty()) {
      made = Tensor::make(pool_, shape, DType::u8);
      std::memset(made.raw(), 1, made.bytes());
    }
    tensor = made;
  }
  return sender->send({&head, 1}, {&tensor, 1});
}

Status echo_channels(const Meeting& meeting) {
  // The first parcel may arrive before meet() returns.
  std::promise<ChannelSide*> made;
  const auto side_made = made.get_future().share();
  auto side = ChannelSide::meet(
      meeting,
      [side_made, control = meeting.control](const Parcel& parcel) {
        ChannelSide* answering = side_made.get();
        if (!answering) return;
        // Tell the other side by hanging up.
        if (!answering->send(static_cast<Way>(parcel.head[0]), parcel.tensors[0].bytes()))
          shutdown(control, SHUT_RDWR);
      },
      {});
  made.set_value(side ? side->get() : nullptr);
  if (!side) return side.error();
  char byte = 0;
  while (read(meeting.control, &byte, 1) > 0) continue;
  return Done{};
}

Result<std::unique_ptr<ChannelEcho>> ChannelEcho::meet(const Meeting& meeting) {
  auto echo = std::make_unique<ChannelEcho>();
  auto side = ChannelSide::meet(
      meeting, [echo = echo.get()](const Parcel&) { echo->came_back(); },
      [echo = echo.get()](const ChannelEnd& end) {
        echo->finish(Error{"the other side's channel has ended: " + end.text});
      });
  if (!side) return side.error();
  echo->side_ = std::move(*side);
  return echo;
}

Result<double> ChannelEcho::measure(Way way, const Size& size) {
  std::future<Result<double>> done;
  {
    const std::lock_guard lock(mutex_);
    way_ = way;
    bytes_ = size.bytes;
    // An in-place turn takes microseconds at any size, so a few turns would measure the clock.
    turns_ = way == Way::in_place ? 2000 : size.turns;
    turn_ = -1;
    done = done_.emplace().get_future();
  }
  if (auto sent = side_->send(way, size.bytes); !sent) return sent.error();
  if (done.wait_for(patience) != std::future_status::ready)
    return Error{"the other side has not answered within " + std::to_string(patience.count()) +
                 " s"};
  return done.get();
}

/// Ends a turn and begins the next. Runs on the channel's thread.
void ChannelEcho::came_back() {
  {
    const std::lock_guard lock(mutex_);
    if (++turn_ == 0) start_ = std::chrono::steady_clock::now();
  }
  if (turn_ == turns_) return finish(seconds_since(start_) / turns_ / 2);
  if (auto sent = side_->send(way_, bytes_); !sent) finish(sent.error());
}

void ChannelEcho::finish(Result<double> seconds) {
  const std::lock_guard lock(mutex_);
  if (!done_) return;
  done_->set_value(std::move(seconds));
  done_.reset();
}

}  // namespace troupe::bench
