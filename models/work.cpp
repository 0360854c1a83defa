#include "models/work.h"

#include <algorithm>

namespace troupe::models {
namespace {

constexpr double bytes_each = sizeof(float);

void append(std::vector<KernelWork>& all, const std::vector<KernelWork>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

void Work::add(const Work& more) {
  append(forward, more.forward);
  append(backward_input, more.backward_input);
  append(backward_weight, more.backward_weight);
}

Work elementwise_work(const Shape& input, const Shape& output, Trained trained) {
  const auto in = static_cast<double>(input.count()), out = static_cast<double>(output.count());
  Work work{.forward = {{"elementwise", out, bytes_each * (in + out)}},
            .backward_input = {{"elementwise", in, bytes_each * (2 * in + out)}},
            .backward_weight = {}};
  if (trained == Trained::yes)
    work.backward_weight = {{"elementwise", in + out, bytes_each * (in + out)}};
  return work;
}

Work product_work(std::int64_t rows, std::int64_t inputs, std::int64_t outputs) {
  const auto r = static_cast<double>(rows), i = static_cast<double>(inputs),
             o = static_cast<double>(outputs);
  const double operations = 2 * r * i * o, bytes = bytes_each * (r * i + i * o + r * o);
  return {.forward = {{"linear_forward", operations, bytes}},
          .backward_input = {{"linear_backward_input", operations, bytes}},
          .backward_weight = {{"linear_backward_weight", operations, bytes}}};
}

Work attention_work(const kernels::AttentionShape& shape) {
  const auto rows = static_cast<double>(shape.batch * shape.length);
  const auto queries = static_cast<double>(shape.heads * shape.width);
  const auto keys = static_cast<double>(shape.kv_heads * shape.width);
  const auto key_rows = static_cast<double>(shape.batch * shape.key_count());
  // A position attends to all keys, or with a causal mask to half of them on average.
  const double all =
      static_cast<double>(shape.key_count()) * (shape.mask == kernels::Mask::causal ? 0.5 : 1.0);
  const double seen = shape.window > 0 ? std::min(all, static_cast<double>(shape.window)) : all;
  const double product = 2 * rows * seen * queries;
  const double bytes = bytes_each * (rows * 2 * queries + key_rows * 2 * keys);
  // Forward: two products. Backward: the scores again, and the gradients of all four operands.
  return {.forward = {{"attention_forward", 2 * product, bytes}},
          .backward_input = {{"attention_backward", 5 * product, 2 * bytes}},
          .backward_weight = {}};
}

}  // namespace troupe::models
