#include "transport/edge_end.h"

#include <new>
#include <utility>

namespace troupe::transport {
namespace {

constexpr std::size_t token_bytes = 64;

}  // namespace

EdgeEnd::EdgeEnd(LinkSide side, EdgesOrder order, const EdgeTerms& terms, OnEnd on_end)
    : side_(side), order_(std::move(order)), terms_(terms), on_end_(std::move(on_end)) {}

ChannelCounters EdgeEnd::counters() const {
  const Lock lock(mutex_);
  return counters_;
}

void EdgeEnd::silence() {
  Lock lock(mutex_);
  silent_ = told_ = true;
  changed_.wait(lock, [&] { return !calling_; });
}

Status EdgeEnd::form(Fabric& fabric, EdgeTime now) {
  if (auto sane = take_mistake(); !sane) return sane;
  if (deadline_ == EdgeTime::max()) deadline_ = now + order_.patience.form;
  if (formed()) return look();
  if (!link_)
    if (auto begun = begin_link(fabric); !begun) return begun;
  if (link_)
    if (auto sound = look(); !sound) return sound;
  if (formed() || now < deadline_) return Done{};
  return late(link_ ? "its link was not made" : "the sender has not named its link",
              order_.patience.form);
}

Status EdgeEnd::begin_link(Fabric& fabric) {
  Lock lock(mutex_);
  auto id = id_;
  lock.unlock();
  if (side_ == LinkSide::sends) {
    const auto named = fabric.name_link();
    if (!named) return named.error();
    id = *named;
  }
  if (!id) return Done{};
  auto begun = fabric.begin(*id, side_);
  if (!begun) return begun.error();
  link_ = std::move(*begun);
  return side_ == LinkSide::sends ? say(EdgeWordKind::name, id->bytes) : Done{};
}

Status EdgeEnd::warm_up(EdgeTime now) {
  if (auto sound = look(); !sound) return sound;
  if (posts_ == 0) {
    try {
      token_ = order_.memory->take(token_bytes);
    } catch (const std::bad_alloc&) {
      return Error{"the device has no memory for a first exchange"};
    }
    const Piece piece{token_.get()->memory, token_bytes};
    post({&piece, 1});
  }
  if (!warm() && now >= deadline_)
    return late("its first exchange was not over", order_.patience.form);
  return Done{};
}

/// Asks the link how far it is.
Status EdgeEnd::look() {
  report_ = link_->report();
  if (warm()) token_ = {};
  if (report_.phase == LinkReport::Phase::broken) return Error{link_->why_broken()};
  return Done{};
}

void EdgeEnd::post(std::span<const Piece> pieces) {
  ++posts_;
  link_->post(pieces);
}

Error EdgeEnd::late(const char* what, std::chrono::milliseconds patience) {
  return {std::string(what) + " within " + std::to_string(patience.count()) + " ms"};
}

Status EdgeEnd::say(EdgeWordKind kind, std::span<const std::byte> rest, std::uint64_t granted,
                    std::uint64_t arrived) {
  EdgeWord word;
  word.kind = kind;
  word.run = order_.epoch.run;
  word.epoch = order_.epoch.number;
  word.edge = terms_.number;
  word.granted = granted;
  word.arrived = arrived;
  if (rest.empty()) return terms_.words->send(std::as_bytes(std::span(&word, 1)), {});
  write_edge_word(word, rest, word_);
  return terms_.words->send(word_, {});
}

void EdgeEnd::blame(const Lock&, std::string text) {
  if (!mistake_) mistake_ = std::move(text);
}

Status EdgeEnd::take_mistake() {
  Lock lock(mutex_);
  if (!mistake_) return Done{};
  if (!end_) end_ = ChannelEnd{ChannelEnd::Why::broken, *mistake_};
  return Error{*mistake_};
}

void EdgeEnd::end(ChannelEnd why) {
  const Lock lock(mutex_);
  if (!end_) end_ = std::move(why);
  changed_.notify_all();
}

void EdgeEnd::tell() {
  Lock lock(mutex_);
  if (!end_ || std::exchange(told_, true) || !on_end_) return;
  call(lock, [&, why = *end_] { on_end_(why); });
}

std::unique_ptr<Link> EdgeEnd::give_up_link() { return std::move(link_); }

void EdgeEnd::release() {
  token_ = {};
  drop_line();
}

}  // namespace troupe::transport
