#include "models/layers/attention/projected_attention.h"

#include <array>
#include <utility>

#include "kernels/rounding.h"

namespace troupe::models {

ProjectedAttention::ProjectedAttention(AttentionCore core, Projections projections,
                                       std::optional<KeptInput> memory)
    : core_(std::move(core)),
      memory_(memory),
      query_(std::move(projections.query)),
      key_(std::move(projections.key)),
      value_(std::move(projections.value)),
      biases_(std::move(projections.biases)),
      additions_({&query_, &key_, &value_}, first_of_core() + core_.parameters().size()) {}

std::vector<Parameter> ProjectedAttention::parameters() const {
  std::vector<Parameter> all{query_.parameter(), key_.parameter(), value_.parameter()};
  all.insert(all.end(), biases_.begin(), biases_.end());
  for (auto& parameter : core_.parameters()) all.push_back(std::move(parameter));
  additions_.declare(all);
  return all;
}

Work ProjectedAttention::work_of(const Shape& in, const Shape& memory) const {
  Work work;
  for (std::size_t i = 0; i < projections; ++i) {
    const Shape& from = reads_memory(i) ? memory : in;
    work.add(projection(i).work(from));
    additions_.add_work(from, i, work);
  }
  work.add(core_.work(in, memory[1]));
  return work;
}

Reach ProjectedAttention::reach_from(RowSource& stream, KeptSources& kept) const {
  if (!memory_) return Layer::reach_from(stream, kept);
  const auto source = [&](int number) { return kept[static_cast<std::size_t>(number)]; };
  const auto span = core_.heads().span;
  const bool has_rows_of_text =
      stream == RowSource::text && (!span || source(*span) == RowSource::text);
  return has_rows_of_text && source(memory_->number) == RowSource::fixed ? Reach::own_row
                                                                         : Reach::all_rows;
}

Tensor ProjectedAttention::projected(const In& in, std::size_t i, const Tensor& from) const {
  const float* bias = has_biases() ? in.weights[projections + i].value.f32() : nullptr;
  Tensor y = projection(i).forward(in.pass, in.weights[i], from, bias);
  additions_.forward(in, i, from, y);
  return y;
}

/// The memory does not depend on the text, so its keys and values are made once.
Tensor ProjectedAttention::continue_with_memory(const In& in, const Tensor& operand) const {
  const auto of_core = in.weights.subspan(first_of_core());
  const Tensor& memory = kept_value(in, memory_->number);
  if (in.caches[0].empty()) {
    const Tensor from = kernels::as_operand(in.pass.stream, memory, in.pass.precision);
    core_.keep_fixed(in, of_core, projected(in, 1, from), projected(in, 2, from));
  }
  return core_.attend_to_fixed(in, of_core, projected(in, 0, operand), memory.shape()[1]);
}

Tensor ProjectedAttention::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  const Tensor operand = kernels::as_operand(in.pass.stream, x, in.pass.precision);
  if (memory_ && !in.caches.empty()) return continue_with_memory(in, operand);
  if (memory_)
    saved[memory_slot()] =
        kernels::as_operand(in.pass.stream, kept_value(in, memory_->number), in.pass.precision);
  const Tensor& from = memory_ ? saved[memory_slot()] : operand;
  Tensor q = projected(in, 0, operand), k = projected(in, 1, from), v = projected(in, 2, from);
  saved[input] = operand;
  return core_.forward(in, in.weights.subspan(first_of_core()), std::move(q), std::move(k),
                       std::move(v), of_core(saved));
}

Tensor ProjectedAttention::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  auto made = core_.backward(in.pass, in.weights.subspan(first_of_core()), dy, of_core(saved));
  std::array<Tensor, projections> gradients{std::move(made.q), std::move(made.k),
                                            std::move(made.v)};
  for (std::size_t i = 0; i < projections; ++i) {
    auto gradient =
        kernels::linear_gradient(in.pass.stream, std::move(gradients[i]), in.pass.precision);
    of_core(saved)[i] = std::move(gradient.operand);
    if (has_biases()) saved[input + 1 + i] = std::move(gradient.for_bias);
  }
  const auto add_from = [&](std::size_t first, std::size_t end, Tensor& dx) {
    for (auto i = first; i < end; ++i)
      projection(i).add_backward_input(in.pass, in.weights[i], of_core(saved)[i], dx);
    for (auto i = first; i < end; ++i) additions_.backward_input(in, i, of_core(saved)[i], dx);
  };
  if (memory_ && memory_->has_gradient) {
    Tensor dmemory;
    add_from(1, projections, dmemory);
    give_back(in, *memory_, std::move(dmemory));
  }
  if (in.input_gradient == InputGradient::unwanted) return {};

  Tensor dx;
  add_from(0, memory_ ? 1 : projections, dx);
  return dx;
}

void ProjectedAttention::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  const Tensor own = std::exchange(saved[input], {});
  const Tensor memory = memory_ ? std::exchange(saved[memory_slot()], {}) : Tensor();
  for (std::size_t i = 0; i < projections; ++i) {
    const Tensor& x = reads_memory(i) ? memory : own;
    const Tensor operand = std::exchange(of_core(saved)[i], {});
    const Tensor for_bias = has_biases() ? std::exchange(saved[input + 1 + i], {}) : Tensor();
    additions_.backward_weight(in, i, x, operand, gradients);
    if (in.is_frozen(i) && (!has_biases() || in.is_frozen(projections + i))) continue;
    if (has_biases())
      projection(i).backward_parameters(in.pass, x, {.operand = operand, .for_bias = for_bias},
                                        gradients[i], gradients[projections + i], in.is_frozen(i));
    else
      projection(i).backward_weight(in.pass, x, operand, gradients[i]);
  }
  core_.backward_weight(in.pass, of_core(saved), gradients.subspan(first_of_core()));
}

}  // namespace troupe::models
