#include "actors/rounds.h"

#include <algorithm>
#include <cassert>

#include "schedules/check/check.h"
#include "schedules/generators/registry.h"
#include "schedules/operators.h"

namespace troupe::actors {
namespace {

using schedules::Schedule;

bool updates_amid_passes(const Schedule& schedule) {
  return std::ranges::any_of(schedule.lanes, [](const auto& lane) {
    return std::ranges::any_of(lane, [](schedules::Action action) {
      return action.kind == schedules::Kind::update &&
             (action.flags & schedules::Action::numbered) != 0;
    });
  });
}

std::string number(int n, const char* what) { return std::to_string(n) + " " + what; }

/// Checks that a schedule from a file fits the run: its shape is fixed.
Status fits(const Schedule& written, const RoundShape& shape, int step_every) {
  if (written.stages != shape.stages)
    return Error{"the schedule has " + number(written.stages, "stages") + ", but the run has " +
                 number(shape.stages, "stages")};
  const bool whole = updates_amid_passes(written) ? written.micro_batches % step_every == 0
                                                  : written.micro_batches == step_every;
  if (!whole)
    return Error{"the schedule has " + number(written.micro_batches, "micro-batches") +
                 ", but a step has " + number(step_every, "of them for each replica")};
  return schedules::check_steps(written, step_every);
}

}  // namespace

Result<Rounds> Rounds::make(const RoundShape& shape) {
  Rounds rounds;
  rounds.shape_ = shape;
  if (shape.micro_batches % shape.replicas != 0)
    return Error{number(shape.micro_batches, "micro-batches") + " in a step cannot be shared by " +
                 number(shape.replicas, "replicas")};
  const int step_every = shape.micro_batches / shape.replicas;
  if (shape.written) {
    if (auto good = fits(*shape.written, shape, step_every); !good) return good.error();
    rounds.asynchronous_ = updates_amid_passes(*shape.written);
    rounds.steps_ = shape.written->micro_batches / step_every;
  } else if (const auto* named = schedules::find_schedule(shape.schedule)) {
    rounds.asynchronous_ = named->mode == schedules::Mode::asynchronous;
    rounds.steps_ = rounds.asynchronous_ ? shape.flush_steps : 1;
  }
  auto one = rounds.of(1);
  if (!one) return one.error();
  rounds.one_ = std::move(*one);
  if (auto good = check_shares(*rounds.one_); !good) return good.error();
  if (rounds.steps_ == 1) {
    rounds.whole_ = rounds.one_;
  } else {
    auto whole = rounds.of(rounds.steps_);
    if (!whole) return whole.error();
    rounds.whole_ = std::move(*whole);
  }
  return rounds;
}

Result<RoundPtr> Rounds::of(int steps) const {
  auto round = std::make_shared<Round>();
  round->replicas = shape_.replicas;
  round->steps = steps;
  round->step_every = shape_.micro_batches / shape_.replicas;
  round->groups = shape_.groups;
  if (shape_.written && steps == steps_) {
    round->schedule = *shape_.written;
  } else if (shape_.written) {
    // The end of a run: the same passes of fewer micro-batches.
    round->schedule = schedules::first_micro_batches(*shape_.written, steps * round->step_every);
  } else {
    auto made = schedules::generate(shape_.schedule, {.stages = shape_.stages,
                                                      .micro_batches = steps * round->step_every,
                                                      .chunks = shape_.chunks});
    if (!made) return made.error();
    round->schedule = std::move(*made);
    if (asynchronous_)
      round->schedule = schedules::with_update_every(round->schedule, round->step_every);
  }
  if (!shape_.recompute.empty())
    round->schedule = schedules::with_recompute(round->schedule, shape_.recompute);
  round->schedule = schedules::with_updates(round->schedule);
  return RoundPtr(std::move(round));
}

RoundPtr Rounds::at(std::int64_t first_step, std::int64_t steps_left) const {
  if (first_step < shape_.synchronous_steps) return one_;
  const auto to_end = steps_ - first_step % steps_;
  const auto steps = static_cast<int>(std::min(to_end, steps_left));
  if (steps == steps_) return whole_;
  if (steps == 1) return one_;
  auto round = of(steps);
  assert(round && "fewer steps of a schedule that can be made");
  return std::move(*round);
}

std::vector<models::Keep> Rounds::keep() const {
  std::vector<models::Keep> keep(static_cast<std::size_t>(shape_.stages), models::Keep::everything);
  for (const auto& lane : one_->schedule.lanes)
    for (const auto action : lane)
      if (action.kind == schedules::Kind::recompute) keep[action.stage] = models::Keep::input;
  return keep;
}

std::vector<int> Rounds::delays() const {
  std::vector<int> most(static_cast<std::size_t>(shape_.stages), 0);
  const auto& schedule = whole_->schedule;
  for (const auto& lane : schedule.lanes)
    for (int stage = 0; stage < schedule.stages; ++stage)
      for (const int delay : delays_of(lane, stage, schedule.micro_batches))
        most[static_cast<std::size_t>(stage)] =
            std::max(most[static_cast<std::size_t>(stage)], delay);
  return most;
}

}  // namespace troupe::actors
