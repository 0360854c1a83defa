#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "actors/run_spec.h"
#include "core/integer_bounds.h"
#include "core/memory/shape.h"
#include "core/memory/tensor.h"
#include "core/number_bounds.h"
#include "core/result.h"

/// The shapes, types and counts of tensors that messages of a run may carry. They follow from the
/// model, the plan and the data. may() checks them before anything uses a message.
namespace troupe::actors {

/// The shape and the type of one tensor.
struct TensorForm {
  Shape shape;
  DType type = DType::f32;
  IntegerBounds bounds = {};  // The bounds of i32.
  /// An integer that is accepted besides: the target that does not count.
  std::optional<std::int32_t> ignored = {};
  std::optional<NumberBounds> numbers = {};  // The bounds of f32.

  bool has_bounds() const { return bounds.below > 0 || bounds.are_spans || numbers; }
};

/// "f32 [2, 3]"
std::string to_string(const TensorForm& form);

/// Returns whether the tensor has this form.
bool fits(const Tensor& tensor, const TensorForm& form);
/// Returns an error with both forms if the tensor has another form. `what` names the tensor.
Status check(const Tensor& tensor, const TensorForm& form, const std::string& what);

/// The tensor forms of a bundle.
struct BundleForm {
  struct Kept {
    std::string name;
    TensorForm form;
    bool has_gradient = true;
  };

  TensorForm stream;
  std::vector<Kept> kept;
};

/// Returns an error if a tensor of the bundle has another form, or if one is missing or too much.
Status check(const models::Bundle& bundle, const BundleForm& form, const std::string& what);

/// The tensor forms of one micro-batch.
struct BatchForms {
  std::vector<BundleForm> inputs;  // Indexed by stage.
  TensorForm targets;

  /// Returns null if the source has no data.
  static std::shared_ptr<const BatchForms> of(const RunSpec& spec, const Source& source);
};

/// The tensor forms of an optimizer, which updates one section of a stage.
struct OptimizerForms {
  struct Parameter {
    std::string name;
    TensorForm form;
    std::vector<std::string> moments;  // Their names. They have the parameter's form.
    std::int64_t first_block = 0;      // The first sum of squares.
    std::int64_t blocks = 0;
    bool frozen = false;  // It has no moments, no gradient and no sums of squares.
  };
  struct Buffer {
    std::string name;
    TensorForm form;
  };

  std::vector<TensorForm> slots;      // The slots of new weights.
  std::vector<bool> frozen;           // Slots that may be left out after the first weights.
  std::vector<Parameter> parameters;  // In the order in which the slots first name them.
  bool has_buffers = false;           // The section has its stage's buffers, maybe none.
  std::vector<Buffer> buffers;
};

/// The gradients that go to an optimizer: one set, by the stage whose passes give them. Frozen
/// parameters have none.
using GradientForms = std::map<int, std::vector<std::optional<TensorForm>>>;

/// Checks the tensors of messages. Any thread. The specification must outlive this.
class TensorBounds {
 public:
  explicit TensorBounds(const RunSpec& spec);

  // The caller has checked the numbers of stages, holders and optimizers in these messages.

  Status check(const Activation& message) const;
  Status check(const Targets& message) const;
  Status check(const Gradient& message) const;
  Status check(const LoanFor& message) const;
  Status check(const StepGradients& message, int optimizer) const;
  Status check(const Norms& message, int optimizer) const;
  Status check(const NewWeights& message) const;
  /// Checks a complete state of an optimizer in host memory.
  Status check(const Snapshot& state) const;

  /// Returns the stage that owns a parameter which several stages use; -1 if there is no such
  /// parameter.
  int owner_of(const std::string& parameter) const;

  /// The expected forms, for tests that send good tensors.
  const OptimizerForms& of(int optimizer) const;
  const GradientForms& gradients_for(int optimizer) const;
  /// Returns the forms for training, then the forms for evaluation if they differ.
  const std::vector<std::shared_ptr<const BatchForms>>& batches() const { return batches_; }

 private:
  struct Shared {
    std::vector<int> stages;  // Their owner first.
    TensorForm form;
  };

  std::unique_ptr<const OptimizerForms> make_forms(int optimizer) const;
  std::unique_ptr<const GradientForms> make_gradients(int optimizer) const;
  template <class Value, class FormOf>
  Status check_batch(const Value& value, const std::string& what, FormOf form_of) const;
  Status check_sum(const StepGradients& message, const models::PartialSum& sum,
                   int optimizer) const;
  Status check_buffers(const std::vector<Tensor>& tensors, const OptimizerForms& forms,
                       const std::string& what) const;

  const RunSpec& spec_;
  std::vector<std::shared_ptr<const BatchForms>> batches_;
  std::map<std::string, Shared, std::less<>> shared_;
  std::vector<std::vector<models::Share>> shares_;  // Indexed by stage, then holder.
  std::vector<bool> wants_gradient_;                // Whether a stage receives gradients, by stage.
  int groups_ = 1;                                  // Groups per step.
  int sets_ = 1;                                    // Sets of corrected gradients.
  int raw_set_ = 0;

  mutable std::mutex mutex_;
  // Made on demand, because a process needs the forms of few optimizers.
  mutable std::vector<std::unique_ptr<const OptimizerForms>> optimizers_;
  mutable std::vector<std::unique_ptr<const GradientForms>> gradients_;
};

/// Returns an error if the gradients of all who hold a stage do not add up to one sum: `shares` are
/// those of one step, by holder.
Status fit_together(const std::vector<const models::GradientShare*>& shares);

}  // namespace troupe::actors
