// Changes of a run under way: settings, nodes, and plan.

#include <algorithm>
#include <utility>

#include "apps/events/event.h"
#include "apps/head/head_run.h"
#include "config/run_config.h"
#include "config/schema.h"

namespace troupe::apps {

void HeadRun::save(Answer answer) {
  supervisor_.hold(actors::BoundaryChange{.change = {}, .done = std::move(answer)});
}

void HeadRun::cast_anew(Answer answer) {
  supervisor_.hold(actors::BoundaryChange{
      .change = [this](std::int64_t) { return Result(session_.run().changed(*now())); },
      .done = std::move(answer)});
}

std::optional<Refusal> HeadRun::set(const std::string& setting, std::optional<std::int64_t> from,
                                    Answer answer) {
  const auto known = report();
  if (known.has_ended())
    return transport::refusal(RefusalCode::conflict, "run",
                              "the run '" + known.name + "' is not active: it is " + known.state);
  const auto step = known.step;
  if (auto good = config::set_live(*now(), setting, std::max(from.value_or(step), step)); !good)
    return transport::refusal(RefusalCode::invalid, setting.substr(0, setting.find('=')),
                              good.error().text);
  supervisor_.hold(actors::BoundaryChange{
      .change = [this, setting,
                 from](std::int64_t reached) { return change(setting, from, reached); },
      .done = std::move(answer)});
  return {};
}

/// Called on the supervisor's thread while nothing is in flight.
Result<actors::RunSpecPtr> HeadRun::change(const std::string& setting,
                                           std::optional<std::int64_t> from, std::int64_t step) {
  if (from.value_or(step) < step)
    return Error{"found " + setting + " from step " + std::to_string(*from) + " on, but " +
                 std::to_string(step) + " steps are done; wanted that step or a later one"};
  auto loaded = config::set_live(*now(), setting, from.value_or(step));
  if (!loaded) return loaded.error();
  auto changed = take_over(std::move(*loaded));
  if (!changed) return changed;
  Value told = event("run.changed", session_.config().name);
  told.set("step", from.value_or(step));
  told.set("set", setting);
  tell(told);
  return changed;
}

/// Called on the supervisor's thread while no step counts.
Result<actors::RunSpecPtr> HeadRun::leave_out(std::int64_t step) {
  return take_over(config::leave_out_step(*now(), step));
}

/// Writes a changed configuration down first, and then continues with it.
Result<actors::RunSpecPtr> HeadRun::take_over(config::Loaded loaded) {
  if (auto kept = session_.keep(loaded); !kept) return kept.error();
  const auto changed = std::make_shared<const config::Loaded>(std::move(loaded));
  {
    const std::lock_guard lock(mutex_);
    now_ = changed;
    report_.steps = changed->config.train.steps;
    report_.log_every = changed->config.log.every;
  }
  player_host_->change(order(*changed));
  return Result(session_.run().changed(*changed));
}

// Changes of nodes and plan.

std::optional<Replanner::Standing> HeadRun::standing() const {
  const std::lock_guard lock(mutex_);
  if (!supervisor_.is_there() || !lineup_) return {};
  Replanner::Standing standing{lineup_->nodes, player_host_->choose(around_.nodes.usable(least_)),
                               *choice_, *now_, times_};
  actors::drop_old_links(standing.usable, around_.program.env.now());
  // The same speeds count for the plan in force and for others.
  actors::level_speeds(standing.usable);
  // The figures of their links have come since.
  for (auto& node : standing.used) {
    const auto known =
        std::ranges::find(standing.usable, node.incarnation, &actors::NodeHere::incarnation);
    // A node is gone, and the run is about to continue without it.
    if (known == standing.usable.end()) return {};
    node = *known;
  }
  open_plan(standing.open);
  return standing;
}

/// Resets the plan to the configured settings.
void HeadRun::open_plan(config::Loaded& loaded) const {
  config::set_at(loaded.tree, "pipeline", asked_pipeline_);
  loaded.config.pipeline = config::read_run_config(loaded.tree).pipeline;
}

void HeadRun::begin_switch() {
  supervisor_.hold(actors::BoundaryChange{
      .change = [this](std::int64_t) -> Result<actors::RunSpecPtr> {
        const auto choice = replanner_.take();
        if (!choice) return Error{"the nodes that had come have a part, or are gone"};
        return switch_to(*choice);
      },
      .done = [this](const Result<std::int64_t>& step) { replanner_.over(bool(step)); }});
}

/// Called on the supervisor's thread while nothing is in flight.
Result<actors::RunSpecPtr> HeadRun::switch_to(const RunChoice& choice) {
  auto loaded = std::make_shared<config::Loaded>(*now());
  if (!choice.has_plan_of(*choice_)) {
    open_plan(*loaded);
    take(choice, *loaded);
    auto staging = session_.run().stage(loaded->config);
    if (!staging) return staging.error();
    // Recorded first, so that the next head knows of it.
    if (auto kept = around_.chosen(choice); !kept) return kept.error();
    {
      const std::lock_guard lock(mutex_);
      session_.run().restage(std::move(*staging));
      choice_ = choice;
      now_ = loaded;
    }
    player_host_->change(order(*loaded));
    tell_choice();
  }
  return Result<actors::RunSpecPtr>(session_.run().changed(*loaded));
}

}  // namespace troupe::apps
