#include <optional>
#include <utility>

#include "models/description/expansion/expander.h"
#include "models/layers/parallel.h"

namespace troupe::models {

void Expander::add_residual_step(const Step& step, Layers& into, const Part& part) {
  const Current before = current_;
  Layers inner, shortcut;
  add_steps(step.steps, inner, Outermost::no, part);
  const Current after = std::exchange(current_, before);
  add_steps(step.shortcut, shortcut, Outermost::no, part);
  if (at_.fault) return;
  if (inner.empty()) return at_.fail(step.place, "a residual has at least one step");
  const Current added = std::exchange(current_, after);
  if (after.flow.kind != added.flow.kind || !(after.flow.shape == added.flow.shape))
    return fail_of_flow(step, label(step, ""),
                        "adds " + to_text(after.flow) + " to " + to_text(added.flow), after);
  add_residual(std::move(inner), std::move(shortcut), into);
}

void Expander::add_parallel_step(const Step& step, Layers& into, const Part& part) {
  const Current before = current_;
  const bool is_concat = at_.options_of(step).text("join") == "concat";
  std::vector<Concat::Branch> branches;
  std::optional<Current> first;
  std::int64_t width = 0;  // The sum over the branches.
  for (const auto& steps : step.branches) {
    current_ = before;
    Layers inner;
    add_steps(steps, inner, Outermost::no, part);
    if (at_.fault) return;
    if (inner.empty()) return at_.fail(step.place, "a branch has at least one step");
    const std::int64_t own_width = current_.flow.width();
    branches.push_back({sequence_of(std::move(inner)), own_width});
    width += own_width;
    if (!first) first = current_;
    Flow alike = current_.flow;
    if (is_concat) alike = with_width(alike, first->flow.width());
    if (alike.kind != first->flow.kind || !(alike.shape == first->flow.shape))
      return fail_of_flow(step, label(step, ""),
                          std::string(is_concat ? "joins " : "adds ") + to_text(current_.flow) +
                              " to " + to_text(first->flow),
                          current_);
  }
  current_ = *first;
  if (is_concat) return add_concat(step, std::move(branches), width, into);
  std::vector<LayerPtr> layers;
  for (auto& branch : branches) layers.push_back(std::move(branch.layer));
  into.push_back(plain(std::make_unique<const Parallel>(std::move(layers))));
}

Flow Expander::with_width(Flow flow, std::int64_t width) {
  if (flow.has_integers()) return flow;
  const int changed = flow.kind == Flow::Kind::images ? 0 : flow.shape.rank() - 1;
  const Shape before = std::exchange(flow.shape, {});
  for (int i = 0; i < before.rank(); ++i) flow.shape.append(i == changed ? width : before[i]);
  return flow;
}

/// Joins branches whose first one made the current stream.
void Expander::add_concat(const Step& step, std::vector<Concat::Branch> branches,
                          std::int64_t width, Layers& into) {
  const auto along =
      current_.flow.kind == Flow::Kind::images ? Concat::Along::channels : Concat::Along::last;
  current_ = {with_width(current_.flow, width), &step, label(step, "") + variables_text()};
  check_size(current_.flow.shape, step.place, "the result of parallel");
  into.push_back(plain(std::make_unique<const Concat>(along, std::move(branches))));
}

}  // namespace troupe::models
