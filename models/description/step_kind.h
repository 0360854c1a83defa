#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/value.h"
#include "models/description/flow.h"
#include "models/kept_values.h"
#include "models/layers/lora.h"
#include "models/layers/norm.h"
#include "models/layers/residual_stream.h"
#include "models/parameter.h"

namespace troupe::models {

/// An option of a kind of step. Checks, errors and the page of layers read it.
struct StepOption {
  enum class Type {
    integer,
    number,
    boolean,
    choice,
    text,   // A name of parameters.
    texts,  // A list of such names.
    value,  // The name of an input or a kept value, which the step reads besides the stream.
    init,   // "normal(0.02)", "uniform(0.1)", "zeros" or "ones".
    steps,  // A list of steps. Only what has steps inside has such an option.
  };
  enum class Presence { optional, required };

  std::string_view name;
  Type type = Type::integer;
  std::string_view help;  // One sentence.
  Presence presence = Presence::optional;
  Value fallback{};  // Null: a missing option has a meaning of its own, which the help says.
  double least = 0;
  double most = 1e9;
  std::vector<std::string_view> among{};  // For a choice.
};

/// Returns what an option takes: "an integer from 1 to 255".
std::string wanted(const StepOption& option);

/// A value that a step reads besides the stream: an input of the model, or a kept value.
struct ReadValue {
  int number = 0;  // In Model::kept.
  bool has_gradient = true;
  Flow flow;
  /// Whether it is the first input, and the stream is that input still. It has no number then.
  bool is_stream = false;
};

/// The values of a step's options, checked against their rows. Null means "not given".
class StepOptions {
 public:
  StepOptions(std::span<const StepOption> rows, std::vector<Value> values)
      : rows_(rows), values_(std::move(values)) {}

  bool has(std::string_view name) const { return !value(name).is_null(); }
  std::int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  bool boolean(std::string_view name) const;
  std::string_view text(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  std::optional<Init> init(std::string_view name) const;

  /// Returns what an option of Type::value names, or null if it is not given.
  const ReadValue* read(std::string_view name) const;
  void set_read(std::string_view name, ReadValue value) {
    read_.emplace_back(name, std::move(value));
  }

  /// The low-rank additions that projections of the step may get; null: none.
  const Lora* lora() const { return lora_; }
  void set_lora(const Lora* lora) { lora_ = lora; }

  std::int64_t integer_or(std::string_view name, std::int64_t fallback) const {
    return has(name) ? integer(name) : fallback;
  }

 private:
  const Value& value(std::string_view name) const;

  std::span<const StepOption> rows_;
  std::vector<Value> values_;  // One for each row.
  std::vector<std::pair<std::string_view, ReadValue>> read_;
  const Lora* lora_ = nullptr;
};

/// A layer that a step built: exactly one member is set.
struct BuiltLayer {
  LayerPtr layer;
  NormPtr norm;  // A norm of rows: a residual stream may begin with it.
  std::vector<ResidualStream::Branch> branches;  // A residual stream that may get more branches.

  /// Each is for a layer or a norm.
  std::vector<Parameter> parameters() const {
    return norm ? norm->parameters() : layer->parameters();
  }
};

/// Returns the name of a step's parameters: behind the part's name, but for a leading '/'. The name
/// "." is the part's.
std::string full_name(const std::string& part, const std::string& own);

/// Everything that a step is built from.
struct StepContext {
  const std::string& name;  // The name of its parameters: "h.0.attn".
  const StepOptions& options;
  const Flow& input;     // The kind's check() accepted it.
  std::uint32_t& draws;  // How many layers of the model draw random numbers so far.
  std::vector<BuiltLayer>& into;
  std::vector<KeptValue>& kept;  // Model::kept.
  const std::string& part;       // The name of the part.

  /// Notes what spans look at: so many rows. A step that reads spans calls this, because spans that
  /// arrive are checked against it.
  void look_over(const ReadValue& spans, std::int64_t length) const;

  void add(LayerPtr layer) const {
    into.push_back({.layer = std::move(layer), .norm = {}, .branches = {}});
  }
  void add_norm(NormPtr norm) const {
    into.push_back({.layer = {}, .norm = std::move(norm), .branches = {}});
  }
};

/// A kind of step: "linear", "attention".
struct StepKind {
  /// The value at the kind's name: { linear = "head" }, { dropout = 0.1 }, "relu".
  enum class Head {
    name,      // The name of the step's parameters.
    option,    // The value of the first option.
    steps,     // A list of steps, the first option.
    branches,  // A list of lists of steps, the first option.
    kept,      // The name of a kept value.
    nothing,
  };

  std::string_view name;
  std::string_view help;  // One or two sentences.
  Head head = Head::name;
  std::vector<StepOption> options{};
  /// Returns what the step makes of a flow, or why it does not take it: "takes tokens".
  Result<Flow> (*check)(const StepOptions& options, const Flow& input) = nullptr;
  void (*build)(const StepContext& context) = nullptr;

  /// Steps without functions of their own: the expansion knows them.
  bool is_residual() const { return name == "residual"; }
  bool is_parallel() const { return name == "parallel"; }
  bool is_cut() const { return name == "cut"; }
  bool is_keep() const { return name == "keep"; }
  /// Whether the step reads a kept value.
  bool is_reader() const { return head == Head::kept && !is_keep(); }
};

/// Returns all kinds of steps. A new one is a row in step_kinds.cpp.
std::span<const StepKind> step_kinds();
const StepKind* find_step_kind(std::string_view name);

/// Returns the rows of kinds that compute rows of numbers, of those for the blocks of transformers,
/// of mixtures of experts, and of those for images. For step_kinds.cpp.
std::vector<StepKind> kinds_for_rows();
std::vector<StepKind> kinds_for_blocks();
std::vector<StepKind> kinds_for_experts();
std::vector<StepKind> kinds_for_images();

/// The options that several kinds share.
StepOption init_option();
StepOption place_option(std::string_view fallback);
Parameter::Place place_of(const StepOptions& options);

/// Returns the error of a step that does not take a flow.
Error not_taken(std::string_view taken, const Flow& input);

}  // namespace troupe::models
