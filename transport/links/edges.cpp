#include "transport/links/edges.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "transport/links/edge_adder.h"
#include "transport/links/edge_receiver.h"
#include "transport/links/edge_sender.h"
#include "transport/links/edge_word.h"

namespace troupe::transport {
namespace {

bool comes_before(const std::shared_ptr<EdgeEnd>& end, std::uint64_t number) {
  return end->number() < number;
}

}  // namespace

Edges::Edges(Fabric& fabric, EdgesOrder order) : fabric_(fabric), order_(std::move(order)) {
  assert(order_.places > 0 && order_.memory);
}

Edges::~Edges() {
  assert((phase_ == Phase::gathering || phase_ == Phase::over) &&
         "the device may still touch the memory of these edges");
}

void Edges::add(std::shared_ptr<EdgeEnd> end) {
  const std::lock_guard lock(mutex_);
  assert(phase_ == Phase::gathering && "edges are opened before they are begun");
  const auto place = std::ranges::lower_bound(ends_, end->number(), {},
                                              [](const auto& other) { return other->number(); });
  assert((place == ends_.end() || (*place)->number() != end->number()) &&
         "an edge has one end at a device");
  ends_.insert(place, std::move(end));
}

std::unique_ptr<Sender> Edges::open_sender(const EdgeTerms& terms, OnEnd on_end) {
  auto end = std::make_shared<SendingEnd>(order_, terms, std::move(on_end));
  add(end);
  return std::make_unique<EdgeSender>(std::move(end));
}

std::unique_ptr<Receiver> Edges::open_receiver(const EdgeTerms& terms, HandedOver handed_over,
                                               Listener listener) {
  auto end = std::make_shared<ReceivingEnd>(order_, terms, handed_over, std::move(listener),
                                            fabric_.poison());
  add(end);
  return std::make_unique<EdgeReceiver>(std::move(end));
}

std::unique_ptr<Adder> Edges::open_adder(const SumTerms& terms, OnEnd on_end) {
  auto end = std::make_shared<AddingEnd>(order_, terms, std::move(on_end), fabric_.poison());
  add(end);
  return std::make_unique<EdgeAdder>(std::move(end));
}

void Edges::begin() {
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != Phase::gathering) return;
    phase_ = Phase::forming;
  }
  if (order_.wake) order_.wake();
}

void Edges::enter(Phase phase) {
  {
    const std::lock_guard lock(mutex_);
    phase_ = phase;
  }
  changed_.notify_all();
}

Edges::Phase Edges::wait_while(std::initializer_list<Phase> phases, EdgeTime until) const {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, until, [&] { return std::ranges::count(phases, phase_.load()) == 0; });
  return phase_;
}

void Edges::hear(std::span<const std::byte> bytes) {
  const auto read = read_edge_word(bytes);
  std::shared_ptr<EdgeEnd> end;
  {
    const std::lock_guard lock(mutex_);
    if (!read) {
      ++counters_.garbage;
      return;
    }
    if (read->word.run != order_.epoch.run || read->word.epoch != order_.epoch.number) {
      ++counters_.other_epoch;
      return;
    }
    const auto found = std::lower_bound(ends_.begin(), ends_.end(), read->word.edge, comes_before);
    if (found == ends_.end() || (*found)->number() != read->word.edge) {
      ++counters_.unknown_edge;
      return;
    }
    end = *found;
  }
  end->hear(*read);
  if (order_.wake) order_.wake();
}

void Edges::abort(const std::string& why) {
  fabric_.poison().spoil(order_.epoch.number);
  {
    const std::lock_guard lock(mutex_);
    if (!aborted_) aborted_ = why;
  }
  if (order_.wake) order_.wake();
}

EdgesCounters Edges::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

bool Edges::advance(EdgeTime now) {
  if (must_end()) end_all(now);
  bool soon = false;
  switch (phase_.load()) {
    case Phase::gathering:
      return false;
    case Phase::forming:
      soon = form(now);
      break;
    case Phase::ready:
      soon = exchange(now);
      break;
    case Phase::failed:
      if (now >= deadline_) abort("an edge has failed, and nobody has given an order");
      break;
    case Phase::ending:
    case Phase::stuck:
      soon = await_end(now);
      break;
    case Phase::over:
      break;
  }
  for (const auto& end : ends_) end->tell();
  return soon;
}

bool Edges::must_end() const {
  const auto phase = phase_.load();
  if (phase == Phase::ending || phase == Phase::over || phase == Phase::stuck) return false;
  const std::lock_guard lock(mutex_);
  return aborted_.has_value();
}

bool Edges::form(EdgeTime now) {
  bool all_formed = true;
  for (const auto& end : ends_) {
    if (auto status = end->form(fabric_, now); !status) return fail(*end, status.error(), now);
    all_formed &= end->formed();
  }
  if (!all_formed) return true;
  for (const auto& end : ends_) {
    if (end->warm()) continue;
    if (auto status = end->warm_up(now); !status) return fail(*end, status.error(), now);
    if (!end->warm()) return true;
  }
  enter(Phase::ready);
  for (const auto& end : ends_)
    if (auto status = end->open(); !status) return fail(*end, status.error(), now);
  return true;
}

bool Edges::exchange(EdgeTime now) {
  bool busy = false;
  for (const auto& end : ends_) {
    if (auto status = end->exchange(now); !status) return fail(*end, status.error(), now);
    busy |= end->busy();
  }
  return busy;
}

bool Edges::fail(EdgeEnd& end, const Error& error, EdgeTime now) {
  end.end({ChannelEnd::Why::lost, within("edge " + std::to_string(end.number()), error).text});
  end.tell();
  deadline_ = now + order_.patience.order;
  enter(Phase::failed);
  return false;
}

/// Aborts all links together: aborting one alone waits for the device, which the others occupy.
void Edges::end_all(EdgeTime now) {
  std::string why;
  {
    const std::lock_guard lock(mutex_);
    why = *aborted_;
  }
  std::vector<std::unique_ptr<Link>> links;
  for (const auto& end : ends_) {
    end->end({ChannelEnd::Why::lost, why});
    if (auto link = end->give_up_link()) links.push_back(std::move(link));
  }
  fabric_.end(std::move(links));
  deadline_ = now + order_.patience.end;
  enter(Phase::ending);
}

bool Edges::await_end(EdgeTime now) {
  if (fabric_.ended()) {
    for (const auto& end : ends_) end->release();
    enter(Phase::over);
    return false;
  }
  if (now >= deadline_) enter(Phase::stuck);
  return phase_ == Phase::ending;
}

}  // namespace troupe::transport
