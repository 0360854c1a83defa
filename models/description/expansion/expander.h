#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "models/cuts.h"
#include "models/description/description.h"
#include "models/description/divides.h"
#include "models/description/evaluation.h"
#include "models/description/expansion/built_layers.h"
#include "models/layers/concat.h"
#include "models/layers/kept_steps.h"
#include "models/layers/lora.h"
#include "models/layers/losses/cross_entropy.h"
#include "models/layers/losses/element_loss.h"
#include "models/model.h"

namespace troupe::models {

/// The stream between two steps, and the step that made it.
struct Current {
  Flow flow;
  const Step* maker = nullptr;
  std::string maker_label;
};

/// Makes a model of a description, once. Comments of its functions are in their sources.
class Expander {
 public:
  Expander(const Description& description, const Value& options, Cuts cuts)
      : description_(description), options_(options), cuts_(cuts) {}

  std::variant<Model, Fault> run();

 private:
  enum class Outermost { yes, no };
  struct Kept {
    Current stream;
    Place place;
    int number = 0;
    bool is_read = false;
  };
  struct Declared {
    Parameter parameter;
    Place place;
    bool may_share = false;
  };

  // Options and inputs (expand.cpp).
  void check_options();
  NamedInteger named(const std::string& name) const;
  void read_inputs();
  void read_lora();
  void freeze_base();

  // Parts, units and steps (expand_parts.cpp).
  void add_part(const Part& part);
  void repeat(const Part& part, std::size_t variable);
  void add_repetition(const Part& part);
  void end_unit(const Part& part);
  std::string unit_name();
  void add_steps(const std::vector<Step>& steps, Layers& into, Outermost outermost,
                 const Part& part);
  static bool makes_output(const StepKind& kind);
  void add_layers(const Step& step, Layers& into, Outermost outermost, const Part& part);
  void count_step(const Place& place);
  void count_experts(const Step& step, std::int64_t count);
  void set_given();
  void cut(const Step& step, Outermost outermost, const Part& part);
  void end_last();

  // Kept values (expand_kept.cpp).
  std::string kept_name(const Step& step);
  void keep(const Step& step, Outermost outermost, const Layers& into);
  bool is_input(const Kept& kept) const;
  std::string origin_of(const Kept& kept) const;
  KeptValue& note_reader(Kept& kept);
  void read_values(const Step& step, const std::string& words, StepOptions& options);
  void add_keeps(Layers& into);
  void read_kept(const Step& step, Outermost outermost, Layers& into);
  void take(const std::string& words, const Step& step, Outermost outermost, const Kept& kept,
            const KeptInput& input, Layers& into);
  bool may_leave_stream(const Step& step, const std::string& words, Outermost outermost);
  bool can_join(const Step& step, const std::string& words, const Kept& kept);
  void check_kept();

  // Residuals and parallel branches (expand_joins.cpp).
  void add_residual_step(const Step& step, Layers& into, const Part& part);
  void add_parallel_step(const Step& step, Layers& into, const Part& part);
  static Flow with_width(Flow flow, std::int64_t width);
  void add_concat(const Step& step, std::vector<Concat::Branch> branches, std::int64_t width,
                  Layers& into);

  // One step, and errors (expand_step.cpp).
  void add_step(const Step& step, Outermost outermost, Layers& into);
  static std::string label(const Step& step, const std::string& name);
  std::string variables_text() const;
  void fail_of_flow(const Step& step, const std::string& words, const std::string& what,
                    const Current& stream);
  void check_size(const Shape& shape, const Place& place, const std::string& what);
  void check_parameters(const Step& step, const BuiltLayer& layer, const std::string& relative);
  static Parameter layer_parameter(const BuiltLayer& layer, const std::string& name);
  void check_shared(const Step& step, const Declared& first, const Parameter& again,
                    bool may_share);

  // The end: the loss (expand_loss.cpp).
  void finish();
  void fail_of_output(const Place& place, const std::string& taken);
  void end_in_classes();
  void copy_held_output();
  void end_in_numbers(kernels::ElementLoss loss);
  kernels::CrossEntropyForm loss_form();
  template <class IsGood>
  std::optional<Value> loss_option(const std::string& key,
                                   const std::optional<PlacedFormula>& described, IsGood is_good,
                                   const std::string& wanted);
  bool predicts_tokens(std::int64_t classes);

  const Description& description_;
  const Value& options_;
  Cuts cuts_;
  Evaluation at_;
  Model model_;
  Current current_;
  const Step* last_step_ = nullptr;  // The last outermost one.
  Layers unit_;                      // Layers of the unit that is being made.
  bool is_behind_cut_ = false;       // Whether the layers of unit_ follow a cut.
  bool has_residual_ = false;        // Whether the part has an outermost residual in unit_.
  std::string part_name_;
  std::vector<std::string> variables_;  // "i = 2"
  std::map<std::string, int> unit_names_;
  std::map<std::string, Declared> parameters_;
  std::map<std::string, Kept> kept_;
  std::vector<int> keeping_;  // Kept values that wait for the layer behind them.
  std::int64_t steps_ = 0;
  std::uint32_t draws_ = 0;
  std::optional<Lora> lora_;
};

}  // namespace troupe::models
