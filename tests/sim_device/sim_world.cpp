#include "sim_world.h"

#include <algorithm>
#include <cstring>

namespace sim_device {

using troupe::transport::LinkReport;
using troupe::transport::Piece;

namespace {

// How much a link accepts from a sender before the receive is posted.
constexpr std::size_t most_ahead = 256;
constexpr std::size_t most_on_the_way = 2;

std::size_t bytes_of(const std::vector<Piece>& pieces) {
  std::size_t bytes = 0;
  for (const auto& piece : pieces) bytes += piece.bytes;
  return bytes;
}

std::vector<std::byte> gathered(const std::vector<Piece>& pieces) {
  std::vector<std::byte> bytes;
  for (const auto& piece : pieces)
    bytes.insert(bytes.end(), piece.memory, piece.memory + piece.bytes);
  return bytes;
}

void scatter(const std::vector<std::byte>& bytes, const std::vector<Piece>& pieces) {
  const auto* from = bytes.data();
  for (const auto& piece : pieces) {
    std::memcpy(piece.memory, from, piece.bytes);
    from += piece.bytes;
  }
}

std::vector<float> numbers_of(const std::vector<std::byte>& bytes) {
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

void spoil(const Piece& piece) {
  if (piece.bytes > 0) std::memset(piece.memory, std::to_integer<int>(garbage), piece.bytes);
}

bool has_transfer(const std::deque<Item>& queue) {
  return !queue.empty() && queue.front().kind == Item::Kind::transfer;
}

}  // namespace

int SimWorld::add_device() {
  const Lock lock(mutex_);
  devices_.push_back(std::make_unique<Device>());
  return static_cast<int>(devices_.size()) - 1;
}

void SimWorld::give(int device, std::function<void()> work, std::vector<Piece> uses) {
  const Lock lock(mutex_);
  at(device).work.push_back({.work = std::move(work), .pieces = std::move(uses)});
}

void SimWorld::hold_up(int device) {
  const Lock lock(mutex_);
  at(device).going_on = std::make_shared<bool>(false);
  at(device).work.push_back({.kind = Item::Kind::wait, .event = at(device).going_on});
}

void SimWorld::go_on(int device) {
  const Lock lock(mutex_);
  *at(device).going_on = true;
}

void SimWorld::block(int device) {
  const Lock lock(mutex_);
  at(device).blocked = true;
}

void SimWorld::kill(int device) {
  const Lock lock(mutex_);
  at(device).alive = false;
}

bool SimWorld::step() {
  const Lock lock(mutex_);
  return step_once();
}

bool SimWorld::idle(int device) const {
  const Lock lock(mutex_);
  const auto& ends = at(device).ends;
  return at(device).work.empty() && std::ranges::all_of(ends, [](const auto& end) {
           return end->queue.empty() && end->posting.empty();
         });
}

bool SimWorld::occupied(int device) const {
  const Lock lock(mutex_);
  return !quiet(at(device));
}

std::set<std::string> SimWorld::misuses() const {
  const Lock lock(mutex_);
  return misuses_;
}

std::size_t SimWorld::most_under_way() const {
  const Lock lock(mutex_);
  return most_under_way_;
}

std::uint64_t SimWorld::transfers() const {
  const Lock lock(mutex_);
  return transfers_;
}

bool SimWorld::step_once() {
  find_steps();
  if (steps_.empty()) return false;
  const Step step = steps_[random_() % steps_.size()];
  (this->*step.act)(step);
  return true;
}

void SimWorld::meanwhile(Device& caller) {
  const auto id = std::this_thread::get_id();
  if (caller.caller.value_or(id) != id) note_misuse("two threads called one fabric");
  caller.caller = id;
  for (auto steps = random_() % (most_meanwhile_ + 1); steps > 0; --steps)
    if (!step_once()) return;
}

void SimWorld::long_meanwhile(Device& caller) {
  for (auto calls = random_() % 16; calls > 0; --calls) meanwhile(caller);
}

void SimWorld::find_steps() {
  steps_.clear();
  for (const auto& device : devices_) {
    if (!device->alive || device->blocked) continue;
    find_step_of_queue(*device, nullptr, device->work);
    bool empty = true;
    for (const auto& end : device->ends) {
      find_step_of_queue(*device, end.get(), end->queue);
      find_steps_of_end(*end);
      empty &= !end->aborted || end->queue.empty();
    }
    if (device->ending && empty && quiet(*device))
      steps_.push_back({&SimWorld::finish_ending, device.get(), nullptr, nullptr});
  }
}

void SimWorld::find_step_of_queue(Device& device, End* end, std::deque<Item>& queue) {
  if (queue.empty()) return;
  const auto& item = queue.front();
  if (item.kind == Item::Kind::transfer) return find_step_of_transfer(*end);
  if (item.kind != Item::Kind::wait || *item.event)
    steps_.push_back({&SimWorld::do_item, &device, end, &queue});
}

void SimWorld::find_step_of_transfer(End& end) {
  const auto may = [&](void (SimWorld::*act)(const Step&)) {
    steps_.push_back({act, end.device, &end, &end.queue});
  };
  const auto& item = end.queue.front();
  if (end.aborted) return may(&SimWorld::leave_aborted);
  if (item.met) return may(&SimWorld::leave);
  const auto& bond = bonds_[end.bond];
  const bool gives_only = bond.adds ? item.pieces[end.member].bytes == 0 : end.member == 0;
  if (gives_only && bytes_of(item.pieces) <= most_ahead && end.on_the_way.size() < most_on_the_way)
    may(&SimWorld::send_ahead);
  if (bond.adds) return find_step_of_sum(end);
  if (end.member == 0) return;
  if (bond.ends[0] && !bond.ends[0]->on_the_way.empty()) return may(&SimWorld::take_sent);
  for (const auto* sender : others(end))
    if (has_transfer(sender->queue) && !sender->queue.front().met) may(&SimWorld::meet);
}

/// Adds the event of a sum once all members have reached it. A member that is ahead is at the next
/// sum.
void SimWorld::find_step_of_sum(End& end) {
  if (!end.on_the_way.empty()) return;
  for (const auto* one : bonds_[end.bond].ends) {
    if (!one) return;
    if (!one->on_the_way.empty()) continue;
    if (one->aborted || !one->device->alive) return;
    if (!has_transfer(one->queue) || one->queue.front().met) return;
  }
  steps_.push_back({&SimWorld::add_up, end.device, &end, &end.queue});
}

void SimWorld::find_steps_of_end(End& end) {
  const auto may = [&](void (SimWorld::*act)(const Step&)) {
    steps_.push_back({act, end.device, &end, nullptr});
  };
  if (end.aborted) return;
  const auto peers = others(end);
  const bool met = !peers.empty();
  const bool idle = quiet(*end.device);
  if (end.report.phase == LinkReport::Phase::forming && met && idle) may(&SimWorld::become_ready);
  if (!end.posting.empty() && !bonds_[end.bond].connected) {
    const bool all_ask = std::ranges::all_of(
        peers, [this](const End* peer) { return !peer->posting.empty() && quiet(*peer->device); });
    if (met && all_ask && idle) may(&SimWorld::connect);
  } else if (!end.posting.empty()) {
    // The first operation allocates memory and loads code onto the device.
    if (end.posted > 1 || idle) may(&SimWorld::issue);
  }
  const bool one_is_dead = std::ranges::any_of(
      bonds_[end.bond].ends, [](const End* one) { return one && !one->device->alive; });
  if (deaths_ == Deaths::told && one_is_dead && end.report.phase != LinkReport::Phase::broken)
    may(&SimWorld::hear_of_death);
}

bool SimWorld::quiet(const Device& device) const {
  return !device.blocked && std::ranges::none_of(device.ends, [](const auto& end) {
    return has_transfer(end->queue);
  });
}

bool SimWorld::has_yet_to_use(const Device& device, const Piece& piece) {
  return std::ranges::any_of(device.work, [&](const Item& item) {
    return std::ranges::any_of(item.pieces, [&](const Piece& used) {
      return used.memory < piece.memory + piece.bytes && piece.memory < used.memory + used.bytes;
    });
  });
}

std::vector<End*> SimWorld::others(const End& end) {
  std::vector<End*> others;
  for (auto* one : bonds_[end.bond].ends) {
    if (!one || one->aborted || !one->device->alive) return {};
    if (one != &end) others.push_back(one);
  }
  return others;
}

void SimWorld::do_item(const Step& step) {
  auto item = std::move(step.queue->front());
  step.queue->pop_front();
  if (item.kind == Item::Kind::mark) *item.event = true;
  if (item.kind == Item::Kind::work) item.work();
}

void SimWorld::leave_aborted(const Step& step) {
  if (bonds_[step.end->bond].adds || step.end->member == 1)
    std::ranges::for_each(step.queue->front().pieces, spoil);
  leave(step);
}

void SimWorld::send_ahead(const Step& step) {
  step.end->on_the_way.push_back(gathered(step.queue->front().pieces));
  leave(step);
}

void SimWorld::take_sent(const Step& step) {
  auto& on_the_way = bonds_[step.end->bond].ends[0]->on_the_way;
  auto& pieces = step.queue->front().pieces;
  if (on_the_way.front().size() == bytes_of(pieces))
    scatter(on_the_way.front(), pieces);
  else
    note_misuse("a receive met a send of another size");
  on_the_way.pop_front();
  ++transfers_;
  leave(step);
}

/// Copies from the send to the receive. Each end leaves the operation by itself afterwards.
void SimWorld::meet(const Step& step) {
  auto& receive = step.queue->front();
  auto& send = bonds_[step.end->bond].ends[0]->queue.front();
  if (bytes_of(send.pieces) == bytes_of(receive.pieces))
    scatter(gathered(send.pieces), receive.pieces);
  else
    note_misuse("a receive met a send of another size");
  send.met = receive.met = true;
  ++transfers_;
}

/// Sums in a random order. Each end leaves the operation by itself afterwards.
void SimWorld::add_up(const Step& step) {
  const auto& pieces = step.queue->front().pieces;
  std::vector<End*> present;
  std::vector<std::vector<float>> addends;
  for (auto* end : bonds_[step.end->bond].ends) {
    if (end->on_the_way.empty()) {
      present.push_back(end);
      addends.push_back(numbers_of(gathered(end->queue.front().pieces)));
    } else {
      addends.push_back(numbers_of(end->on_the_way.front()));
      end->on_the_way.pop_front();
    }
  }
  bool same = std::ranges::all_of(
      addends, [&](const auto& addend) { return addend.size() == addends[0].size(); });
  for (const auto* end : present)
    same &= std::ranges::equal(end->queue.front().pieces, pieces, {}, &Piece::bytes, &Piece::bytes);
  if (!same) note_misuse("a sum met one of another size");
  std::ranges::shuffle(addends, random_);
  for (auto* end : present) {
    end->queue.front().met = true;
    const auto& own = end->queue.front().pieces;
    std::size_t first = 0;
    for (std::size_t k = 0; k < own.size(); ++k) {
      spoil(own[k]);
      const auto count = own[k].bytes / sizeof(float);
      for (std::size_t i = 0; same && k == end->member && i < count; ++i) {
        float sum = 0;
        for (const auto& addend : addends) sum += addend[first + i];
        std::memcpy(own[k].memory + i * sizeof sum, &sum, sizeof sum);
      }
      first += count;
    }
  }
  ++transfers_;
}

void SimWorld::leave(const Step& step) {
  step.queue->pop_front();
  ++step.end->report.ended;
}

void SimWorld::connect(const Step& step) { bonds_[step.end->bond].connected = true; }

void SimWorld::issue(const Step& step) {
  auto& end = *step.end;
  for (auto& item : end.posting) end.queue.push_back(std::move(item));
  end.posting.clear();
  end.report.issued = end.posted;
}

void SimWorld::become_ready(const Step& step) { step.end->report.phase = LinkReport::Phase::ready; }

void SimWorld::hear_of_death(const Step& step) {
  step.end->report.phase = LinkReport::Phase::broken;
}

void SimWorld::finish_ending(const Step& step) { step.device->ending = false; }

}  // namespace sim_device
