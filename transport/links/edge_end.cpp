#include "transport/links/edge_end.h"

#include <cassert>
#include <cstring>
#include <new>
#include <utility>

namespace troupe::transport {
namespace {

constexpr std::size_t token_bytes = 64;  // Per piece.

}  // namespace

EdgeEnd::EdgeEnd(EdgesOrder order, EdgePlace place, OnEnd on_end)
    : order_(std::move(order)), place_(std::move(place)), on_end_(std::move(on_end)) {}

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
  return late(link_ ? "its link was not made" : "nobody has named its link", order_.patience.form);
}

Status EdgeEnd::begin_link(Fabric& fabric) {
  Lock lock(mutex_);
  auto id = id_;
  lock.unlock();
  const bool names = place_.member == 0;
  if (names) {
    const auto named = fabric.name_link();
    if (!named) return named.error();
    id = *named;
  }
  if (!id) return Done{};
  auto begun = begin(fabric, *id);
  if (!begun) return begun.error();
  link_ = std::move(*begun);
  return names ? say(EdgeWordKind::name, id->bytes) : Done{};
}

void EdgeEnd::take_name(const Lock& lock, std::span<const std::byte> name) {
  LinkId id;
  if (id_ || name.size() != id.bytes.size())
    return blame(lock, "the sender names its link twice, or not at all");
  std::memcpy(id.bytes.data(), name.data(), name.size());
  id_ = id;
}

Status EdgeEnd::warm_up(EdgeTime now) {
  if (auto sound = look(); !sound) return sound;
  if (posts_ == 0) {
    try {
      token_ = take(pieces() * token_bytes);
    } catch (const std::bad_alloc&) {
      return Error{"the device has no memory for a first exchange"};
    }
    std::vector<Piece> token;
    for (std::size_t i = 0; i < pieces(); ++i)
      token.push_back({token_.get()->memory + i * token_bytes, token_bytes});
    post(token);
  }
  if (!warm() && now >= deadline_)
    return late("its first exchange was not over", order_.patience.form);
  return Done{};
}

/// Updates the link's report.
Status EdgeEnd::look() {
  report_ = link_->report();
  if (warm()) token_ = {};
  if (report_.phase == LinkReport::Phase::broken) return Error{link_->why_broken()};
  return Done{};
}

/// Device threads recycle memory that the device may still use, so they may not call this.
BlockHandle EdgeEnd::take(std::size_t bytes) const {
  assert(!DeviceWork::of_this_thread() && "links wait for no work of a device");
  return order_.memory->take(bytes);
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
  word.edge = place_.edge;
  word.granted = granted;
  word.arrived = arrived;
  word.member = place_.member;
  auto bytes = std::as_bytes(std::span(&word, 1));
  if (!rest.empty()) {
    write_edge_word(word, rest, word_);
    bytes = word_;
  }
  for (auto* other : place_.others)
    if (auto said = other->send(bytes, {}); !said) return said;
  return Done{};
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
