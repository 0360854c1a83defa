#pragma once

#include <string>

#include "catch.h"
#include "storage/checkpoint/checkpoint.h"

/// Returns a tensor [count] of first, first + 1, ...
inline troupe::NamedTensor numbers(troupe::MemoryPool& pool, const std::string& name,
                                   std::int64_t count, float first) {
  auto tensor = troupe::Tensor::make(pool, troupe::Shape{count});
  for (std::int64_t i = 0; i < count; ++i) tensor.f32()[i] = first + static_cast<float>(i);
  return {name, tensor};
}

/// Returns a checkpoint of a model with two weights; every number depends on the step.
inline troupe::storage::CheckpointContent content_of(troupe::MemoryPool& pool, std::int64_t step) {
  const auto value = static_cast<float>(step);
  troupe::storage::CheckpointContent content;
  content.step = step;
  content.samples = step * 32;
  content.model.set("kind", "mlp");
  content.model.set("width", 384);
  content.recipe.set("seed", 1);
  content.recipe.set("lr", 3e-4);
  content.state.set("loss_scale", 1024.0);
  content.weights = {numbers(pool, "w", 40, value), numbers(pool, "b", 3, -value)};
  content.optimizer = {numbers(pool, "w.m", 40, value + 0.5f)};
  return content;
}

/// Returns whether a checkpoint equals content_of() for its step.
inline bool is_whole(const troupe::storage::Checkpoint& checkpoint) {
  troupe::MemoryPool pool;
  const auto expected = content_of(pool, checkpoint.manifest().step);
  const auto same = [](const troupe::Result<troupe::Tensor>& found, const troupe::Tensor& wanted) {
    return found && found->shape() == wanted.shape() &&
           std::equal(found->f32(), found->f32() + found->count(), wanted.f32());
  };
  bool whole = checkpoint.manifest().samples == expected.samples &&
               checkpoint.manifest().recipe == expected.recipe;
  for (const auto& [name, tensor] : expected.weights)
    whole = whole && same(checkpoint.load_weight(name, pool), tensor);
  for (const auto& [name, tensor] : expected.optimizer)
    whole = whole && same(checkpoint.load_optimizer(name, pool), tensor);
  return whole;
}
