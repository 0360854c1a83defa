#include <cstring>
#include <utility>

#include "core/memory/memory_pool.h"
#include "core/memory/tensor.h"
#include "simulation/node.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/checkpoint/checkpoint_layout.h"

// The node's training state: loading, copying and saving.

namespace troupe::simulation {
namespace {

using Cause = recon::LoadFailed::Cause;

std::string unit_name(int unit) { return "unit." + std::to_string(unit); }

}  // namespace

void Node::on(const recon::ReadState& read) {
  const bool misreads = std::exchange(misreads_next_, false);
  const bool fails = std::exchange(fails_next_load_, false);
  const auto& cost = is_in_memory(read.step) ? world_.costs.fetch : world_.costs.load;
  later(slowed(cost(member_.plan)), [this, read, misreads, fails] {
    if (read.epoch != member_.epoch) return;
    auto outcome = fails ? recon::ReadOutcome{{}, recon::LoadFailed::Cause::node, "no room"}
                         : read_state(read.step);
    if (misreads) outcome.weights = "misread";
    act(recon::has_read(member_, read, outcome));
  });
}

std::set<int> Node::units() const {
  std::set<int> mine;
  const auto& members = member_.plan.members;
  for (int unit = 0; unit < world_.model.units(); ++unit)
    if (members[static_cast<std::size_t>(unit) % members.size()] == life()) mine.insert(unit);
  return mine;
}

recon::ReadOutcome Node::read_state(std::int64_t step) {
  weights_.clear();
  if (step > 0) return is_in_memory(step) ? read_copies(step) : read_checkpoint(step);
  const auto initial = world_.model.initial();
  for (const int unit : units()) weights_[unit] = initial[static_cast<std::size_t>(unit)];
  return {"initial", Cause::node, {}};
}

recon::ReadOutcome Node::read_checkpoint(std::int64_t step) {
  auto opened = storage::Checkpoint::open(world_.files, checkpoint_folder(step));
  if (!opened && world_.bug == Bug::damage_not_seen) {
    for (const int unit : units()) weights_[unit] = 0;
    return {"unseen", Cause::node, {}};
  }
  if (!opened) return {{}, Cause::checkpoint, opened.error().text};
  MemoryPool memory;
  for (const int unit : units()) {
    const auto tensor = opened->load_weight(unit_name(unit), memory);
    if (!tensor) return {{}, Cause::checkpoint, tensor.error().text};
    std::memcpy(&weights_[unit], tensor->raw(), sizeof(std::uint64_t));
    world_.monitor.has(life(), unit, step, weights_[unit]);
  }
  return {to_string(opened->manifest().weights_digest), Cause::node, {}};
}

/// Returns whether a step is in memory and not on disk. All nodes get the same answer.
bool Node::is_in_memory(std::int64_t step) const {
  const bool is_saved =
      *world_.files.exists(checkpoint_folder(step) + "/" + std::string(storage::manifest_name));
  return step > 0 && world_.copies.are_kept() && !is_saved;
}

recon::ReadOutcome Node::read_copies(std::int64_t step) {
  for (const int unit : units()) {
    const auto weight = world_.copies.find(unit, step);
    if (!weight)
      return {{}, Cause::checkpoint, "nobody who lives has unit " + std::to_string(unit)};
    weights_[unit] = *weight;
    world_.monitor.has(life(), unit, step, *weight);
  }
  return {"step " + std::to_string(step), Cause::node, {}};
}

void Node::give_copies() {
  const Duration copying = world_.costs.copy(member_.plan);
  const bool kept =
      world_.copies.keep({member_.epoch, member_.decided, life(), member_.plan.members, weights_,
                          world_.costs.fetch(member_.plan), copying});
  // A node copies its own state to send it and also copies what it receives.
  if (kept) copying_ = 2 * copying;
}

void Node::on(const recon::WritePart& part) {
  pending_ = part;
  if (member_.decided >= part.step) write_pending();
}

/// Writes a copy of the state while training continues.
void Node::write_pending() {
  const auto part = *std::exchange(pending_, std::nullopt);
  const auto tell_failed = [this, part](const std::string& why) {
    transport::Message failed;
    failed.type = "member.part_failed";
    failed.body.set("save", static_cast<std::int64_t>(part.save));
    failed.body.set("why", why);
    tell_head(std::move(failed));
  };
  if (part.step != member_.decided && world_.bug != Bug::part_of_wrong_step)
    return tell_failed("it is beyond step " + std::to_string(part.step));
  const bool fails = saves_to_fail_ > 0;
  if (fails) --saves_to_fail_;
  auto weights = weights_;
  const bool writes_late = world_.bug == Bug::part_of_wrong_step;
  later(slowed(world_.costs.save(member_.plan)),
        [this, part, weights, tell_failed, writes_late, fails] {
          if (dropped_.contains(part.save)) return;
          if (fails) return tell_failed("no room");
          MemoryPool memory;
          std::vector<NamedTensor> tensors;
          for (const auto& [unit, weight] : writes_late ? weights_ : weights) {
            Tensor tensor = Tensor::make(memory, Shape{2}, DType::f32);
            std::memcpy(tensor.raw(), &weight, sizeof weight);
            tensors.push_back({unit_name(unit), std::move(tensor)});
          }
          transport::Message written;
          written.type = "member.part_written";
          written.body.set("save", static_cast<std::int64_t>(part.save));
          if (!tensors.empty()) {
            const auto directory = checkpoint_folder(part.step);
            Status made = world_.files.make_directory(directory);
            if (!made) return tell_failed(made.error().text);
            auto saved = storage::write_part(
                world_.files, directory,
                "weights-" + std::to_string(part.save) + "-" + std::to_string(life()),
                storage::PartKind::weights, tensors);
            if (!saved) return tell_failed(saved.error().text);
            written.body.set("file", saved->file);
            written.body.set("bytes", static_cast<std::int64_t>(saved->bytes));
            written.body.set("digest", to_string(saved->digest));
            Value::List digests;
            for (const auto& tensor : saved->tensors) {
              Value one;
              one.set("name", tensor.name);
              one.set("digest", to_string(tensor.digest));
              digests.push_back(std::move(one));
            }
            written.body.set("tensors", std::move(digests));
          }
          tell_head(std::move(written));
        });
  if (part.meanwhile == recon::Meanwhile::go_on && holds_) compute();
}

}  // namespace troupe::simulation
