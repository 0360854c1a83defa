#include "sim_world.h"

#include <algorithm>
#include <cstring>

namespace sim_device {

using troupe::transport::LinkReport;
using troupe::transport::LinkSide;
using troupe::transport::Piece;

namespace {

// What a link takes from a sender before its receive is posted.
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

bool has_transfer(const std::deque<Item>& queue) {
  return !queue.empty() && queue.front().kind == Item::Kind::transfer;
}

}  // namespace

int SimWorld::add_device() {
  const Lock lock(mutex_);
  devices_.push_back(std::make_unique<Device>());
  return static_cast<int>(devices_.size()) - 1;
}

void SimWorld::give(int device, std::function<void()> work) {
  const Lock lock(mutex_);
  at(device).work.push_back({.work = std::move(work)});
}

void SimWorld::block(int device) {
  const Lock lock(mutex_);
  at(device).work.push_back({.kind = Item::Kind::wait, .event = std::make_shared<bool>(false)});
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
    if (!device->alive) continue;
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
  auto& pair = pairs_[end.pair];
  const auto& item = end.queue.front();
  if (end.aborted) return may(&SimWorld::leave_aborted);
  if (item.met) return may(&SimWorld::leave);
  if (end.side == LinkSide::sends) {
    if (bytes_of(item.pieces) <= most_ahead && pair.on_the_way.size() < most_on_the_way)
      may(&SimWorld::send_ahead);
    return;
  }
  if (!pair.on_the_way.empty()) return may(&SimWorld::take_sent);
  const auto* sender = other(end);
  if (sender && !sender->aborted && sender->device->alive && has_transfer(sender->queue) &&
      !sender->queue.front().met)
    may(&SimWorld::meet);
}

void SimWorld::find_steps_of_end(End& end) {
  const auto may = [&](void (SimWorld::*act)(const Step&)) {
    steps_.push_back({act, end.device, &end, nullptr});
  };
  if (end.aborted) return;
  const auto* peer = other(end);
  const bool met = peer && !peer->aborted && peer->device->alive;
  const bool idle = quiet(*end.device);
  if (end.report.phase == LinkReport::Phase::forming && met && idle) may(&SimWorld::become_ready);
  if (!end.posting.empty() && !pairs_[end.pair].connected) {
    if (met && !peer->posting.empty() && idle && quiet(*peer->device)) may(&SimWorld::connect);
  } else if (!end.posting.empty()) {
    // The first operation takes memory, and loads what the device runs.
    if (end.posted > 1 || idle) may(&SimWorld::issue);
  }
  if (deaths_ == Deaths::told && peer && !peer->device->alive &&
      end.report.phase != LinkReport::Phase::broken)
    may(&SimWorld::hear_of_death);
}

bool SimWorld::quiet(const Device& device) const {
  return std::ranges::none_of(device.ends,
                              [](const auto& end) { return has_transfer(end->queue); });
}

End* SimWorld::other(const End& end) {
  return pairs_[end.pair].ends[end.side == LinkSide::sends ? 1 : 0];
}

void SimWorld::do_item(const Step& step) {
  auto item = std::move(step.queue->front());
  step.queue->pop_front();
  if (item.kind == Item::Kind::mark) *item.event = true;
  if (item.kind == Item::Kind::work) item.work();
}

void SimWorld::leave_aborted(const Step& step) {
  if (step.end->side == LinkSide::receives)
    for (const auto& piece : step.queue->front().pieces)
      std::memset(piece.memory, std::to_integer<int>(garbage), piece.bytes);
  leave(step);
}

void SimWorld::send_ahead(const Step& step) {
  pairs_[step.end->pair].on_the_way.push_back(gathered(step.queue->front().pieces));
  leave(step);
}

void SimWorld::take_sent(const Step& step) {
  auto& on_the_way = pairs_[step.end->pair].on_the_way;
  auto& pieces = step.queue->front().pieces;
  if (on_the_way.front().size() == bytes_of(pieces))
    scatter(on_the_way.front(), pieces);
  else
    note_misuse("a receive met a send of another size");
  on_the_way.pop_front();
  ++transfers_;
  leave(step);
}

/// Each end leaves by itself afterwards.
void SimWorld::meet(const Step& step) {
  auto& receive = step.queue->front();
  auto& send = other(*step.end)->queue.front();
  if (bytes_of(send.pieces) == bytes_of(receive.pieces))
    scatter(gathered(send.pieces), receive.pieces);
  else
    note_misuse("a receive met a send of another size");
  send.met = receive.met = true;
  ++transfers_;
}

void SimWorld::leave(const Step& step) {
  step.queue->pop_front();
  ++step.end->report.ended;
}

void SimWorld::connect(const Step& step) { pairs_[step.end->pair].connected = true; }

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
