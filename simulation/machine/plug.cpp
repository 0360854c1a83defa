#include "simulation/machine/plug.h"

#include <algorithm>
#include <span>

#include "core/digest.h"
#include "simulation/machine/cord.h"
#include "simulation/machine/wires.h"

namespace troupe::simulation {
namespace {

std::uint64_t hash_of(const Parts& parts) {
  std::uint64_t hash = parts.size();
  for (const auto& part : parts) hash = checksum_of(std::as_bytes(std::span(part)), hash);
  return hash;
}

}  // namespace

Plug& Plug::operator=(Plug&& other) noexcept {
  if (this == &other) return *this;
  close();
  cord_ = std::exchange(other.cord_, nullptr);
  side_ = other.side_;
  return *this;
}

void Plug::set_owner(Plugged& owner) {
  if (cord_->end(side_).is_open) cord_->end(side_).owner = &owner;
}

void Plug::set_patience(const Patience& patience) {
  cord_->end(side_).patience = patience;
  if (cord_->wires) cord_->wires->review(cord_, side_);
}

void Plug::set_high_water(std::size_t packets) { cord_->end(side_).high_water = packets; }

void Plug::allow_repeats() { cord_->may_repeat = true; }

bool Plug::send(Parts parts, Traced traced) {
  if (!cord_ || !cord_->wires) return true;
  auto& wires = *cord_->wires;
  const auto& here = cord_->end(side_);
  const auto& there = cord_->end(other_side(side_));
  // A packet to a closed end, or from one, goes nowhere.
  if (!here.is_open || !there.is_open || cord_->is_broken) return true;
  if (!wires.may_send(here.who)) return true;
  if (there.coming.size() > here.high_water && there.coming_bytes > wires.options_.buffer)
    return false;
  ++wires.packets_;
  if (traced == Traced::yes) wires.scheduler_.trace(hash_of(parts));
  if (wires.sent_) wires.sent_(here.who, there.who, parts);
  wires.push(cord_, other_side(side_), std::move(parts), std::nullopt);
  return true;
}

void Plug::tell(std::uint64_t number) {
  if (!cord_ || !cord_->wires || !cord_->end(side_).is_open) return;
  auto& wires = *cord_->wires;
  if (!wires.may_send(cord_->end(side_).who)) return;
  auto& there = cord_->end(other_side(side_));
  const auto due = wires.scheduler_.now() + wires.delay(wires.paths_[cord_->path]);
  there.numbers.emplace_back(
      std::max(due, there.numbers.empty() ? due : there.numbers.back().first), number);
}

std::uint64_t Plug::told() {
  if (!cord_) return 0;
  auto& here = cord_->end(side_);
  if (!cord_->wires || cord_->wires->is_blocked(*cord_, side_)) return here.told;
  const auto now = cord_->wires->scheduler_.now();
  for (; !here.numbers.empty() && here.numbers.front().first <= now; here.numbers.pop_front())
    here.told = here.numbers.front().second;
  return here.told;
}

std::uint64_t Plug::told_at_last() {
  auto told = Plug::told();
  if (!cord_ || !cord_->wires || cord_->wires->is_blocked(*cord_, side_)) return told;
  auto& numbers = cord_->end(side_).numbers;
  if (!numbers.empty()) told = cord_->end(side_).told = numbers.back().second;
  numbers.clear();
  return told;
}

void Plug::resume() {
  if (cord_ && cord_->wires) cord_->wires->resume(cord_, side_);
}

void Plug::close(Rest rest) {
  if (const auto cord = std::exchange(cord_, nullptr); cord && cord->wires)
    cord->wires->close(cord, side_, rest);
}

std::uint64_t Plug::number() const { return cord_->number; }
const std::string& Plug::far_end() const { return cord_->end(side_).far_end; }
bool Plug::stays_here() const { return cord_->stays_here; }

ListeningPlace::~ListeningPlace() {
  if (wires_) wires_->stop_listening(number_);
}

}  // namespace troupe::simulation
