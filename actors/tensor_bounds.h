#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "actors/run_spec.h"
#include "core/memory/shape.h"
#include "core/memory/tensor.h"
#include "core/result.h"

/// The tensors that the messages of a run may carry. Their shapes, types and number follow from the
/// model, the plan and the data. may.h asks before anything reacts to a message.
namespace troupe::actors {

/// The shape and the type of one tensor.
struct TensorForm {
  Shape shape;
  DType type = DType::f32;
  /// Each element is in [0, classes); 0: any number will do. Only tensors of i32 have a bound.
  std::int64_t classes = 0;
};

/// "f32 [2, 3]"
std::string to_string(const TensorForm& form);

/// Returns whether the tensor has this form.
bool fits(const Tensor& tensor, const TensorForm& form);
/// Returns an error with both forms if the tensor has another form. `what` names the tensor.
Status check(const Tensor& tensor, const TensorForm& form, const std::string& what);

/// The tensors of one micro-batch.
struct BatchForms {
  std::vector<TensorForm> inputs;  // By stage.
  TensorForm targets;

  /// Returns null if the source has no data.
  static std::shared_ptr<const BatchForms> of(const RunSpec& spec, const Source& source);
};

/// The tensors of an optimizer, which steps one section of a stage.
struct OptimizerForms {
  struct Parameter {
    std::string name;
    TensorForm form;
    std::vector<std::string> moments;  // Their names; their form is the parameter's.
    std::int64_t first_block = 0;      // Of the sums of squares.
    std::int64_t blocks = 0;
  };
  struct Buffer {
    std::string name;
    TensorForm form;
  };

  std::vector<TensorForm> slots;      // Of new weights.
  std::vector<Parameter> parameters;  // In the order in which the slots first name them.
  bool has_buffers = false;           // The section has those of its stage, which may be none.
  std::vector<Buffer> buffers;
};

/// The gradients that go to an optimizer: one set, by the stage whose passes give them.
using GradientForms = std::map<int, std::vector<TensorForm>>;

/// Checks the tensors of messages. Any thread. The specification must outlive this.
class TensorBounds {
 public:
  explicit TensorBounds(const RunSpec& spec);

  // The numbers of stages, holders and optimizers in these messages have been checked already.

  Status check(const Activation& message) const;
  Status check(const Targets& message) const;
  Status check(const Gradient& message) const;
  Status check(const LoanFor& message) const;
  Status check(const StepGradients& message, int optimizer) const;
  Status check(const Norms& message, int optimizer) const;
  Status check(const NewWeights& message) const;
  /// A complete state of an optimizer, which lies with the host.
  Status check(const Snapshot& state) const;

  /// Returns the stage that owns a parameter which several stages use; -1 if there is no such
  /// parameter.
  int owner_of(const std::string& parameter) const;

  /// What these checks ask for.
  const OptimizerForms& of(int optimizer) const;
  const GradientForms& gradients_for(int optimizer) const;
  /// Those of training come first, then those of evaluation if they are others.
  const std::vector<std::shared_ptr<const BatchForms>>& batches() const { return batches_; }

 private:
  struct Shared {
    std::vector<int> stages;  // Their owner first.
    TensorForm form;
  };

  std::unique_ptr<const OptimizerForms> make_forms(int optimizer) const;
  std::unique_ptr<const GradientForms> make_gradients(int optimizer) const;
  template <class FormOf>
  Status check_batch(const Tensor& tensor, const std::string& what, FormOf form_of) const;
  Status check_sum(const StepGradients& message, const models::PartialSum& sum,
                   int optimizer) const;
  Status check_buffers(const std::vector<Tensor>& tensors, const OptimizerForms& forms,
                       const std::string& what) const;

  const RunSpec& spec_;
  std::vector<std::shared_ptr<const BatchForms>> batches_;
  std::map<std::string, Shared, std::less<>> shared_;
  std::vector<std::vector<models::Share>> shares_;  // By stage, then holder.
  int groups_ = 1;                                  // Of a step.
  int sets_ = 1;                                    // Of gradients that were mended.
  int raw_set_ = 0;

  mutable std::mutex mutex_;
  // Made when asked for: a process needs those of few optimizers.
  mutable std::vector<std::unique_ptr<const OptimizerForms>> optimizers_;
  mutable std::vector<std::unique_ptr<const GradientForms>> gradients_;
};

/// Returns an error if the gradients of all who hold a stage do not add up to one sum: `shares` are
/// those of one step, by holder.
Status fit_together(const std::vector<const models::GradientShare*>& shares);

}  // namespace troupe::actors
