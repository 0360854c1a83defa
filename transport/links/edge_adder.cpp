#include "transport/links/edge_adder.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <numeric>
#include <string>

namespace troupe::transport {

AddingEnd::AddingEnd(EdgesOrder order, const SumTerms& terms, OnEnd on_end, const Poison& poison)
    : EdgeEnd(std::move(order),
              {terms.number, static_cast<std::uint64_t>(terms.member.number), terms.others},
              std::move(on_end)),
      member_(terms.member),
      poison_(poison),
      line_(order_.places),
      heard_(static_cast<std::size_t>(terms.member.of)) {
  assert(terms.others.size() + 1 == heard_.size());
}

Status AddingEnd::add(Tensor numbers, std::span<const std::int64_t> sizes,
                      std::function<void()> done) {
  assert(!numbers.empty() && numbers.dtype() == DType::f32);
  assert(order_.memory->owns(*numbers.block()));
  assert(sizes.size() == heard_.size());
  assert(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) == numbers.count());
  {
    const Lock lock(mutex_);
    if (end_) return Error{end_->text};
    if (line_.size() == order_.places) {
      const auto text = std::to_string(line_.size()) + " sums wait already, and no more may";
      blame(lock, text);
      return Error{text};
    }
    auto& addend = line_.push();
    ++counters_.parcels;
    counters_.bytes += numbers.bytes();
    addend.numbers = std::move(numbers);
    addend.sizes.assign(sizes.begin(), sizes.end());
    addend.done = std::move(done);
    addend.operation = {};
  }
  if (order_.wake) order_.wake();
  return Done{};
}

void AddingEnd::hear(const ReadEdgeWord& read) {
  const Lock lock(mutex_);
  switch (read.word.kind) {
    case EdgeWordKind::name:
      if (member_.number == 0) return blame(lock, "the link was named by another end");
      return take_name(lock, read.rest);
    case EdgeWordKind::sum:
      return take_sum(lock, read);
    case EdgeWordKind::parcel:
    case EdgeWordKind::closed:
    case EdgeWordKind::cut:
    case EdgeWordKind::grant:
    case EdgeWordKind::let_go:
      return blame(lock, "another end says what is of no sum");
  }
}

void AddingEnd::take_sum(const Lock& lock, const ReadEdgeWord& read) {
  const auto from = read.word.member;
  if (from >= heard_.size() || from == place_.member)
    return blame(lock,
                 "a sum is of member " + std::to_string(from) + ", who is none of the others");
  // The peer has as many places as this end, and posts nothing that this end has not announced.
  if (heard_[from].size() == 2 * order_.places)
    return blame(lock, "member " + std::to_string(from) + " has more sums than can be");
  Sizes sizes(heard_.size());
  if (read.rest.size() != sizes.size() * sizeof sizes[0])
    return blame(lock, "member " + std::to_string(from) + " has a sum of other members");
  std::memcpy(sizes.data(), read.rest.data(), read.rest.size());
  heard_[from].push_back(std::move(sizes));
}

Status AddingEnd::exchange(EdgeTime now) {
  if (auto sane = take_mistake(); !sane) return sane;
  if (auto sound = look(); !sound) return sound;
  Lock lock(mutex_);
  while (said_ < line_.size())
    if (auto said = say_next(lock); !said) return said;
  while (may_post())
    if (auto posted = post_next(lock, now); !posted) return posted;
  pop_done(lock);
  for (std::size_t i = 0; i < posted_; ++i)
    if (line_[i].operation.late(now)) return late("a sum was not done", order_.patience.exchange);
  return Done{};
}

Status AddingEnd::say_next(Lock& lock) {
  const auto sizes = line_[said_++].sizes;
  lock.unlock();
  auto said = say(EdgeWordKind::sum, std::as_bytes(std::span(sizes)));
  lock.lock();
  return said;
}

/// Returns whether the next sum can be posted: all members have announced it, so it occupies the
/// device only until their words and posts arrive.
bool AddingEnd::may_post() const {
  if (posted_ == said_ || !free()) return false;
  for (std::size_t member = 0; member < heard_.size(); ++member)
    if (member != place_.member && heard_[member].empty()) return false;
  return true;
}

Status AddingEnd::post_next(Lock& lock, EdgeTime now) {
  auto& addend = line_[posted_];
  for (std::size_t member = 0; member < heard_.size(); ++member) {
    if (member == place_.member) continue;
    if (heard_[member].front() != addend.sizes)
      return Error{"member " + std::to_string(member) + " adds up pieces of other sizes"};
    heard_[member].pop_front();
  }
  addend.operation.grant(now + order_.patience.exchange);
  // Other threads only append to the queue, so this element needs no lock.
  lock.unlock();
  pieces_.clear();
  auto* numbers = addend.numbers.data<float>();
  for (const auto size : addend.sizes) {
    pieces_.push_back(
        {reinterpret_cast<std::byte*>(numbers), static_cast<std::size_t>(size) * sizeof(float)});
    numbers += size;
  }
  post(pieces_);
  auto sound = look();
  lock.lock();
  addend.operation.post(posts_, now + order_.patience.exchange);
  ++posted_;
  return sound;
}

void AddingEnd::pop_done(Lock& lock) {
  for (std::size_t i = 0; i < posted_; ++i) line_[i].operation.follow(report_);
  while (posted_ > 0 && line_.front().operation.state() == OperationState::done) {
    const auto done = std::exchange(line_.front().done, {});
    line_.front().numbers = {};
    line_.pop();
    --posted_;
    --said_;
    if (done && !end_ && !silent_ && !poison_.spoils(order_.epoch.number)) call(lock, done);
  }
}

bool AddingEnd::busy() {
  const Lock lock(mutex_);
  return posted_ > 0 || said_ < line_.size() || may_post();
}

void AddingEnd::drop_line() {
  const Lock lock(mutex_);
  for (; !line_.empty(); line_.pop()) {
    line_.front().operation.fail();
    line_.front().numbers = {};
    line_.front().done = {};
  }
  posted_ = said_ = 0;
}

}  // namespace troupe::transport
