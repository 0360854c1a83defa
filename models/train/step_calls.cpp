#include "models/train/step_calls.h"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

#include "models/train/account.h"
#include "models/train/optimizer.h"

namespace troupe::models {
namespace {

/// Adds calls to the list, and clears them.
void count_calls(std::vector<kernels::KernelCall>& calls, std::vector<KernelCalls>& list) {
  for (const auto& call : calls) {
    const auto known = std::ranges::find(list, call, &KernelCalls::call);
    if (known != list.end())
      ++known->times;
    else
      list.push_back({call, 1});
  }
  calls.clear();
}

Bundle made_of(Stream& stream, const std::vector<BundlePart>& parts) {
  Bundle bundle = stream.make(parts[0].shape, parts[0].type);
  for (std::size_t i = 1; i < parts.size(); ++i)
    bundle.kept.push_back(stream.make(parts[i].shape, parts[i].type));
  return bundle;
}

Bundle gradients_of(Stream& stream, std::vector<BundlePart> parts) {
  std::erase_if(parts, [](const BundlePart& part) { return !part.has_gradient; });
  return made_of(stream, parts);
}

/// A rehearsal of whole steps.
class StepRehearsal {
 public:
  StepRehearsal(const Model& model, const StepRequest& step, const CostRequest& costs)
      : step_(step),
        costs_(costs),
        target_type_(model.sample.target_type),
        account_(Computer::gpu, &calls_),
        stage_(model, step.units,
               {.precision = costs.precision, .keep = step.keep, .seed = 0, .short_rows = 0}),
        optimizer_(costs.optimizer, stage_.parameters(), stage_.buffers(), costs.precision,
                   {.staleness = costs.staleness, .delay = 0, .borrowed = {}}, {}, Graphs::none),
        weights_(optimizer_.initial(account_.stream, 0)) {
    const auto bundles = bundles_of(model, with_batch(costs.micro, costs.input));
    input_ = bundles[static_cast<std::size_t>(step.units.first)];
    output_ = bundles[static_cast<std::size_t>(step.units.last)];
    calls_.clear();
  }

  StepCalls run() {
    StepCalls made;
    Stream& stream = account_.stream;
    const Shape target = with_batch(costs_.micro, costs_.target);
    stage_.begin_step(Share::whole(step_.micro_batches, step_.groups),
                      target.count() * step_.micro_batches);
    for (int m = 0; m < step_.micro_batches; ++m) {
      Tensor targets = stage_.is_last() ? stream.make(target, target_type_) : Tensor();
      stage_.forward(stream, {.step = steps_, .index = m, .first_sample = m * costs_.micro},
                     *weights_, made_of(stream, input_), std::move(targets));
      count_calls(calls_, made.forward);
      if (step_.keep == Keep::input) stage_.recompute(stream, m, *weights_);
      stage_.backward(stream, m, *weights_,
                      stage_.is_last() ? Bundle() : gradients_of(stream, output_));
      count_calls(calls_, made.backward);
    }
    std::vector<GradientShare> shares;
    shares.push_back(stage_.take_gradients());
    StageGradients gradients = join(stream, std::move(shares));
    count_calls(calls_, made.backward);
    (void)optimizer_.squared_norms(stream, gradients);
    weights_ = optimizer_.step(stream, weights_, std::move(gradients), 1);
    count_calls(calls_, made.end);
    ++steps_;
    return made;
  }

 private:
  const StepRequest step_;
  const CostRequest& costs_;
  const DType target_type_;
  std::vector<kernels::KernelCall> calls_;
  Account account_;
  Stage stage_;
  Optimizer optimizer_;
  WeightsPtr weights_;
  std::vector<BundlePart> input_, output_;
  std::int64_t steps_ = 0;
};

}  // namespace

double StepCalls::forward_operations() const {
  double sum = 0;
  for (const auto& [call, times] : forward) sum += call.operations * static_cast<double>(times);
  return sum;
}

Result<StepCalls> step_calls(const Model& model, const StepRequest& step,
                             const CostRequest& costs) {
  assert(costs.computer == Computer::gpu);
  try {
    StepRehearsal rehearsal(model, step, costs);
    rehearsal.run();  // The first step also makes the moments.
    return rehearsal.run();
  } catch (const std::bad_alloc&) {
    return too_few_addresses();
  }
}

}  // namespace troupe::models
