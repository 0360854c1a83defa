#include "tests/cuda_on_cores/nccl_operation.h"

#include <cstring>
#include <utility>

namespace cuda_on_cores {

Operation::Operation(std::shared_ptr<Membership> of, std::vector<Part> parts)
    : membership_(std::move(of)), parts_(std::move(parts)) {
  ++membership_->in_queue;
}

bool Operation::go_on() {
  auto& membership = *membership_;
  if (membership.is_aborted) {
    for (const auto& part : parts_)
      if (part.kind != Part::Kind::send) spoil(part);
  } else {
    if (!std::exchange(is_begun_, true)) begin();
    const bool all_sent = go_on(outgoing_, &Operation::send);
    const bool all_received = go_on(incoming_, &Operation::receive);
    if (!all_sent || !all_received) return false;
    for (const auto& part : parts_)
      if (part.kind == Part::Kind::reduce)
        part.peer == membership.member ? add_up(part) : spoil(part);
  }
  --membership.in_queue;
  return true;
}

void Operation::begin() {
  const int self = membership_->member;
  for (const auto& part : parts_) {
    const bool is_own = part.peer == self;
    switch (part.kind) {
      case Part::Kind::send:
        if (!is_own) add_outgoing(part, part.peer);
        break;
      case Part::Kind::receive:
        if (!is_own) add_incoming(part, part.peer, part.memory);
        break;
      case Part::Kind::reduce:
        if (!is_own) add_outgoing(part, part.peer);
        for (int member = 0; is_own && member < static_cast<int>(membership_->sent.size());
             ++member) {
          if (member == self) continue;
          addends_.push_back(std::make_unique<std::byte[]>(part.bytes));
          add_incoming(part, member, addends_.back().get());
        }
        break;
    }
  }
  copy_own();
}

void Operation::add_outgoing(const Part& part, int to) {
  const auto number = membership_->sent[static_cast<std::size_t>(to)]++;
  const bool adds = part.kind == Part::Kind::reduce;
  outgoing_.push_back({to, part.memory, {number, adds ? 1u : 0u, part.bytes, 0}});
}

void Operation::add_incoming(const Part& part, int from, std::byte* memory) {
  const auto number = membership_->received[static_cast<std::size_t>(from)]++;
  const bool adds = part.kind == Part::Kind::reduce;
  incoming_.push_back({from, memory, {number, adds ? 1u : 0u, part.bytes, 0}});
}

/// Moves the transfers on. Those with one peer run one after another.
bool Operation::go_on(std::vector<Transfer>& transfers, bool (Operation::*move)(Transfer&)) {
  std::vector<bool> waits(membership_->sent.size());
  bool all_over = true;
  for (auto& transfer : transfers) {
    const auto peer = static_cast<std::size_t>(transfer.peer);
    while (!transfer.is_over && !waits[peer]) {
      if (!(this->*move)(transfer)) {
        waits[peer] = true;
        break;
      }
      transfer.next.offset += transfer.next.size();
      transfer.is_over = transfer.next.offset == transfer.next.bytes;
    }
    all_over &= transfer.is_over;
  }
  return all_over;
}

bool Operation::send(Transfer& transfer) {
  return membership_->wires.send(transfer.peer, transfer.next, transfer.memory);
}

bool Operation::receive(Transfer& transfer) {
  Packet came;
  if (!membership_->wires.look(transfer.peer, came)) return false;
  const auto& wanted = transfer.next;
  if (came.operation != wanted.operation || came.kind != wanted.kind || came.bytes != wanted.bytes)
    end_by_misuse("member " + std::to_string(membership_->member) + " wants " +
                  std::to_string(wanted.bytes) + " bytes, and member " +
                  std::to_string(transfer.peer) + " has " + std::to_string(came.bytes) +
                  ", perhaps for something else");
  membership_->wires.take(transfer.peer, transfer.memory);
  return true;
}

/// Copies what a member sends to itself. The communicator has checked that sends and receives
/// match.
void Operation::copy_own() {
  std::vector<const Part*> sends, receives;
  for (const auto& part : parts_) {
    if (part.peer != membership_->member || part.kind == Part::Kind::reduce) continue;
    (part.kind == Part::Kind::send ? sends : receives).push_back(&part);
  }
  for (std::size_t i = 0; i < sends.size(); ++i)
    std::memcpy(receives[i]->memory, sends[i]->memory, sends[i]->bytes);
}

/// Adds in an order that depends on the size.
void Operation::add_up(const Part& part) {
  const std::size_t count = part.bytes / sizeof(float);
  const std::size_t others = addends_.size();
  for (std::size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (std::size_t k = 0; k <= others; ++k) {
      const std::size_t which = (k + count) % (others + 1);
      const auto* from = which == others ? part.memory : addends_[which].get();
      float addend = 0;
      std::memcpy(&addend, from + i * sizeof addend, sizeof addend);
      sum += addend;
    }
    std::memcpy(part.memory + i * sizeof sum, &sum, sizeof sum);
  }
}

void Operation::spoil(const Part& part) const {
  if (part.bytes > 0) std::memset(part.memory, nccl_garbage, part.bytes);
}

}  // namespace cuda_on_cores
