#include "actors/play/optimizer_actor.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "actors/caf_shim.h"
#include "actors/exchange.h"
#include "actors/messages.h"
#include "actors/play/job.h"
#include "actors/play/players.h"
#include "actors/tensor_bounds.h"

namespace troupe::actors {
namespace {

using Clock = std::chrono::steady_clock;

/// The optimizer's data. Only its jobs use it, one after another.
struct Workshop {
  models::Optimizer optimizer;
  models::WeightsPtr weights;
  models::StageGradients gradients;  // Gradients of the current step.
  Clock::duration worked{};          // Spent on the current step.
};

/// The initial weights while jobs create them piece by piece.
struct Beginning {
  StartPoint start;
  std::uint64_t seed = 0;
  std::int64_t at_once = 1;
  std::optional<models::FirstVersion> first;
};

/// Returns whether all is done.
bool go_on(Stream& stream, Workshop& workshop, Beginning& beginning) {
  auto& optimizer = workshop.optimizer;
  auto& [start, seed, at_once, first] = beginning;
  if (!first && start.weights.empty() && start.step == 0) first = optimizer.begin(stream, seed);
  if (!first) {
    auto given = optimizer.begin_from(stream, start.weights, start.step, start.loss_scale);
    if (!given) throw std::runtime_error(given.error().text);
    first = std::move(*given);
  }
  optimizer.go_on(stream, *first, at_once);
  if (!first->is_done()) return false;
  workshop.weights = std::move(first->weights);
  const auto restored = optimizer.restore(stream, start.moments, start.step);
  if (!restored) throw std::runtime_error(restored.error().text);
  return true;
}

Tensor copy_on_host(Stream& stream, const Tensor& tensor) {
  Tensor copy = Tensor::make(stream.host_memory(), tensor.shape(), tensor.dtype());
  stream.copy(tensor, copy);
  return copy;
}

/// The gradients of several stages, by stage, then holder.
using Given = std::map<std::pair<int, int>, std::shared_ptr<models::GradientShare>>;

/// Returns the gradients of one stage, in the order of its holders.
std::vector<const models::GradientShare*> shares_of(const Given& given, int stage) {
  std::vector<const models::GradientShare*> shares;
  for (const auto& [from, share] : given)
    if (from.first == stage) shares.push_back(share.get());
  return shares;
}

/// Sums the gradients of the holders of one stage.
models::StageGradients join(Stream& stream, Given& given, int stage) {
  std::vector<models::GradientShare> shares;
  for (auto& [from, share] : given)
    if (from.first == stage) shares.push_back(std::move(*share));
  return models::join(stream, std::move(shares));
}

class OptimizerActor {
 public:
  static constexpr const char* name = "optimizer actor";

  OptimizerActor(caf_shim::Base* self, RunSpecPtr spec, int optimizer, StartPoint start)
      : self_(self),
        spec_(std::move(spec)),
        number_(optimizer),
        stage_(place_of(*spec_, optimizer).stage),
        clip_with_(clipped_with(*spec_, optimizer)),
        usual_(spec_->round(0, 1)),
        beginning_(std::make_shared<Beginning>(
            Beginning{std::move(start), spec_->seed, spec_->first_weights_at_once, {}})),
        step_(beginning_->start.step),
        jobs_(executor_at(home_of(*spec_, optimizer)), caf_shim::weak(*self)) {
    assert((!spec_->loss_scaling.is_on() || spec_->clip == ClipScope::all_stages) &&
           "who does not hear of all overflows cannot skip what others skip");
    const auto index = static_cast<std::size_t>(stage_);
    const models::Stage passes(*spec_->model, spec_->stages[index], {});
    auto config = spec_->optimizer;
    if (spec_->clip == ClipScope::each_stage)
      config.clip_norm = models::clip_norm_of(spec_->staleness, config.clip_norm,
                                              parameters_of(stage_), parameters_of_all());
    const auto givings = given_to(*spec_, optimizer);
    for (const auto& giving : givings) {
      const auto holders = holders_of(*usual_, giving.stage);
      for (int holder = 0; holder < static_cast<int>(holders.size()); ++holder)
        givers_.emplace(std::pair(giving.stage, holder), holders[static_cast<std::size_t>(holder)]);
      if (giving.stage == stage_) continue;
      const models::Stage user(*spec_->model, spec_->stages[static_cast<std::size_t>(giving.stage)],
                               {});
      for (const auto& piece : models::parameters_of(giving.section, user.parameters()))
        tied_[giving.stage].push_back(piece.name);
    }
    const auto& section = givings[0].section;
    parameters_ = models::parameters_of(section, passes.parameters());
    workshop_ = std::make_shared<Workshop>(
        Workshop{models::Optimizer(
                     config, parameters_,
                     section.has_buffers ? passes.buffers() : std::vector<models::Buffer>(),
                     spec_->precision,
                     {.staleness = spec_->staleness, .delay = spec_->delays[index], .borrowed = {}},
                     spec_->loss_scaling,
                     spec_->short_rows > 0 ? models::Graphs::of_steps : models::Graphs::none),
                 {},
                 {},
                 {}});
  }

  caf::behavior make_behavior() {
    self_->tell_self_after(spec_->stall_patience, Look{});
    return {
        [this](Meet& meet) {
          players_ = std::move(meet.players);
          self_->end_with(players_->supervisor);
          begin();
        },
        [this](StepGradients& in) {
          const std::pair from(in.stage, in.holder);
          auto& of_step = given_[in.step];
          if (in.step < step_ || !of_step.emplace(from, std::move(in.gradients)).second)
            return self_->fail("found the gradients of step " + std::to_string(in.step + 1) +
                               " from holder " + std::to_string(in.holder) + " of stage " +
                               std::to_string(in.stage) + " twice");
          advance();
        },
        [this](const Begun& begun) {
          begun_ = begun;
          begin();
        },
        [this](Normed& in) { normed(std::move(in)); },
        [this](Norms& in) { heard(std::move(in)); },
        [this](Stepped& in) { publish(std::move(in)); },
        [this](TakeSnapshot) {
          is_snapshot_wanted_ = true;
          give_snapshot();
        },
        [this](const KeepStep& order) { heard(order); },
        [this](const JobFailed& failed) { self_->fail(failed.text); },
        [this](Look) { look(); },
    };
  }

 private:
  Executor& executor_at(const Holder& home) const {
    return spec_->executor(home.replica, home.device, usual_->devices());
  }

  /// Returns how many numbers of a stage its optimizers train.
  std::int64_t parameters_of(int stage) const {
    const models::Stage passes(*spec_->model, spec_->stages[static_cast<std::size_t>(stage)], {});
    std::int64_t count = 0;
    for (const auto& section : spec_->sections[static_cast<std::size_t>(stage)]) {
      std::set<std::string_view> names;
      for (const auto& piece : section.pieces)
        if (const auto& parameter = passes.parameters()[piece.slot];
            !parameter.frozen && names.insert(parameter.name).second)
          count += piece.count;
    }
    return count;
  }
  std::int64_t parameters_of_all() const {
    std::int64_t count = 0;
    for (int stage = 0; stage < static_cast<int>(spec_->stages.size()); ++stage)
      count += parameters_of(stage);
    return count;
  }

  /// The phases of a step, in order.
  enum class Phase : std::uint8_t {
    beginning,  // The initial weights are being created.
    gathering,
    measuring,
    deciding,
    stepping,
  };

  /// Creates the initial weights in several jobs, each of which reports progress.
  void begin() {
    jobs_.post("the first weights", [workshop = workshop_, beginning = beginning_,
                                     owner = jobs_.owner()](Stream& stream) {
      if (go_on(stream, *workshop, *beginning)) {
        const auto step = beginning->start.step - 1;
        *beginning = {};  // Free what it holds.
        caf_shim::post(owner,
                       Stepped{step, {workshop->weights, workshop->optimizer.moments()}, {}});
      } else {
        caf_shim::post(owner, Begun{beginning->first->done, beginning->first->all});
      }
    });
  }

  void advance() {
    if (phase_ != Phase::gathering) return;
    const auto found = given_.find(step_);
    if (found == given_.end() || found->second.size() < givers_.size()) return;
    if (const auto good = check_given(found->second); !good)
      return self_->fail(place() + ": " + good.error().text);
    if (spec_->leaves_out(step_ + 1)) return leave_out(std::move(found->second));
    phase_ = Phase::measuring;
    jobs_.post(
        place(),
        [workshop = workshop_, given = std::move(found->second), tied = tied_, stage = stage_,
         step = step_, owner = jobs_.owner()](Stream& stream) mutable {
          auto& [optimizer, weights, gradients, worked] = *workshop;
          gradients = join(stream, given, stage);
          for (const auto& [user, names] : tied)
            optimizer.add_uses(stream, gradients, names, join(stream, given, user));
          const auto& scale = weights->loss_scale;
          auto squares = optimizer.squared_norms(stream, gradients, scale);
          const auto penalised = optimizer.penalised_squares(stream, gradients, scale);
          caf_shim::post(owner,
                         Normed{step, std::move(squares),
                                penalised.empty() ? std::optional<double>()
                                                  : std::optional(models::global_norm(penalised))});
        },
        [workshop = workshop_](const WorkTime& time) {
          workshop->worked += time.end - time.start;
        });
    given_.erase(found);
  }

  /// Makes a version with the same weights. All optimizers do so in this step, so none of them
  /// waits for norms.
  void leave_out(Given gradients) {
    given_.erase(step_);
    phase_ = Phase::stepping;
    norm_ = 0;
    penalised_norm_.reset();
    jobs_.post(
        place(),
        [workshop = workshop_, gradients = std::move(gradients)](Stream& stream) mutable {
          gradients.clear();  // They may be no numbers.
          workshop->weights = workshop->optimizer.leave_out(stream, workshop->weights);
        },
        [workshop = workshop_, step = step_, owner = jobs_.owner()](const WorkTime& time) {
          caf_shim::post(owner,
                         Stepped{step, {workshop->weights, workshop->optimizer.moments()}, time});
        });
  }

  /// Whether the gradients of each stage add up to one sum.
  Status check_given(const Given& given) const {
    std::set<int> stages;
    for (const auto& [giver, holder] : givers_) stages.insert(giver.first);
    for (const int stage : stages)
      if (auto good = fit_together(shares_of(given, stage)); !good)
        return within("stage " + std::to_string(stage), good.error());
    return Done{};
  }

  void normed(Normed in) {
    phase_ = Phase::deciding;
    penalised_norm_ = in.penalised;
    for (const auto& square : in.squares)
      if (!can_skip() &&
          !std::ranges::all_of(square.blocks, [](double sum) { return std::isfinite(sum); }))
        return self_->tell(players_->supervisor,
                           Divergence{players_->attempt, number_, in.step, square.name});
    const Norms norms{number_, in.step, std::move(in.squares)};
    for (const int optimizer : clip_with_)
      self_->tell(players_->optimizers[static_cast<std::size_t>(optimizer)], norms);
  }

  /// Returns whether all may skip an overflow: it makes their common norm infinite.
  bool can_skip() const { return spec_->loss_scaling.can_skip(loss_scale_); }

  /// Handles the norm of an optimizer that clips with this one, or of itself.
  void heard(Norms in) {
    auto& of_step = squares_[in.step];
    of_step[in.optimizer] = std::move(in.squares);
    if (of_step.size() < clip_with_.size()) return;
    // In the order of the optimizers, so that all that clip together compute the same bits.
    std::vector<models::SquaredNorm> squares;
    for (auto& [optimizer, its] : of_step) std::ranges::move(its, std::back_inserter(squares));
    squares_.erase(in.step);
    const double norm = models::global_norm(squares);
    if (!std::isfinite(norm) && !can_skip())
      return self_->fail(place() + ": the norm of the gradients is not finite, but no optimizer " +
                         "has found a gradient that is not");
    step(norm);
  }

  void step(double norm) {
    phase_ = Phase::stepping;
    norm_ = norm;
    jobs_.post(
        place(),
        [workshop = workshop_, norm](Stream& stream) {
          auto& [optimizer, weights, gradients, worked] = *workshop;
          weights = optimizer.step(stream, weights, std::exchange(gradients, {}), norm);
        },
        [workshop = workshop_, step = step_, owner = jobs_.owner()](const WorkTime& time) {
          auto& [optimizer, weights, gradients, worked] = *workshop;
          const WorkTime whole{time.start - std::exchange(worked, {}), time.end};
          caf_shim::post(owner, Stepped{step, {weights, optimizer.moments()}, whole});
        });
  }

  void publish(Stepped in) {
    const auto scale_before = std::exchange(loss_scale_, in.version.weights->loss_scale);
    if (!stages_use_moments(*spec_)) in.version.moments.clear();
    if (phase_ == Phase::stepping) in.version = models::without_frozen(in.version, parameters_);
    const NewWeights part{stage_, place_of(*spec_, number_).section, std::move(in.version),
                          in.worked};
    for (const auto& holder : holders_of(*usual_, stage_))
      self_->tell(players_->stages[static_cast<std::size_t>(holder.replica * usual_->devices() +
                                                            holder.device)],
                  part);
    if (phase_ == Phase::stepping) {
      const bool is_skipped = loss_scale_.skipped_steps > scale_before.skipped_steps;
      self_->tell(players_->supervisor,
                  StepDone{players_->attempt, number_, in.step, is_skipped ? 0 : norm_, is_skipped,
                           scale_before.factor(), loss_scale_.skipped_steps,
                           is_skipped ? std::nullopt : penalised_norm_});
      ++step_;
    }
    phase_ = Phase::gathering;
    give_snapshot();
    if (to_keep_ && step_ >= to_keep_->step) keep();
    advance();
  }

  /// Waits until the initial weights exist.
  void give_snapshot() {
    if (!is_snapshot_wanted_ || phase_ == Phase::beginning) return;
    is_snapshot_wanted_ = false;
    give_state(
        [to = players_->supervisor](Snapshot state) { caf_shim::post(to, std::move(state)); });
  }

  /// Sends a snapshot in host memory. Weights are immutable; moments change with the next step, so
  /// they are copied.
  template <class Give>
  void give_state(Give give) {
    jobs_.post("a snapshot", [workshop = workshop_, number = number_, step = step_,
                              attempt = players_->attempt, give](Stream& stream) {
      const auto& optimizer = workshop->optimizer;
      Snapshot snapshot{attempt,
                        number,
                        step,
                        optimizer.named(*workshop->weights),
                        optimizer.state(),
                        workshop->weights->loss_scale};
      for (auto& weight : snapshot.weights) weight.tensor = stream.to_host(weight.tensor);
      for (auto& moment : snapshot.moments) moment.tensor = copy_on_host(stream, moment.tensor);
      give(std::move(snapshot));
    });
  }

  void heard(const KeepStep& order) {
    to_keep_ = order;
    // During the next step the state is changing already.
    if (step_ > order.step || (step_ == order.step && phase_ == Phase::stepping))
      miss();
    else if (step_ == order.step && phase_ != Phase::beginning)
      keep();
  }
  void keep() {
    if (step_ > to_keep_->step) return miss();
    const auto& keepers = players_->keepers;
    const auto number = static_cast<std::size_t>(number_);
    give_state([to = keepers.empty() ? std::vector<caf::actor>() : keepers[number],
                line = to_keep_->line](const Snapshot& state) {
      for (const auto& keeper : to) caf_shim::post(keeper, StateCopy{state, line});
    });
    to_keep_.reset();
  }
  void miss() {
    const auto order = *std::exchange(to_keep_, {});
    self_->tell(players_->supervisor, Kept{players_->attempt, number_, order.step, {}, true, {}});
  }

  void look() {
    const Wait wait = waits_for();
    if (players_)
      self_->tell(
          players_->supervisor,
          Pulse{
              players_->attempt, {PlayerId::Kind::optimizer, number_}, wait, patience_.look(wait)});
    self_->tell_self_after(spec_->stall_patience, Look{});
  }

  Wait waits_for() const {
    switch (phase_) {
      case Phase::beginning:
        return computes("the first weights" + far());
      case Phase::gathering: {
        const auto given = given_.find(step_);
        if (given == given_.end()) return {};
        for (const auto& [giver, holder] : givers_)
          if (!given->second.contains(giver))
            return waits(place() + " waits for the gradients of " +
                         device_title(*spec_, holder.replica, holder.device));
        return {};
      }
      case Phase::measuring:
        return computes(place() + ", the norm of its gradients");
      case Phase::deciding:
        return waits(place() + " waits for the norms of the " + missing_in_norm());
      case Phase::stepping:
        return computes(place() + ", the new weights");
    }
    return {};
  }

  /// Returns the progress of the initial weights.
  std::string far() const {
    if (begun_.all == 0) return {};
    return ": " + std::to_string(begun_.done) + " of " + std::to_string(begun_.all) +
           " numbers are drawn or packed";
  }

  std::string place() const { return "step " + std::to_string(step_ + 1); }

  /// Returns the first optimizer that clips with this one and has not sent its norm.
  std::string missing_in_norm() const {
    const auto of_step = squares_.find(step_);
    for (const int other : clip_with_)
      if (of_step == squares_.end() || !of_step->second.contains(other))
        return title_of(*spec_, {PlayerId::Kind::optimizer, other});
    return {};
  }

  caf_shim::Base* self_;
  RunSpecPtr spec_;
  int number_;  // Among all optimizers.
  int stage_;
  std::vector<int> clip_with_;  // The optimizers with the same norm, itself included.
  RoundPtr usual_;
  std::shared_ptr<Beginning> beginning_;
  Begun begun_;  // The progress of `beginning_`.
  bool is_snapshot_wanted_ = false;
  std::int64_t step_;  // The current step, counted from 0.
  Jobs jobs_;
  PlayersPtr players_;
  std::map<std::pair<int, int>, Holder> givers_;  // Keyed by stage, then holder.
  std::map<int, std::vector<std::string>> tied_;  // Parameters that other stages borrow.
  std::vector<models::Parameter> parameters_;     // The slots of its section.
  std::shared_ptr<Workshop> workshop_;

  Phase phase_ = Phase::beginning;
  std::map<std::int64_t, Given> given_;
  std::map<std::int64_t, std::map<int, std::vector<models::SquaredNorm>>> squares_;
  double norm_ = 0;  // The norm by which the step's gradients are clipped.
  std::optional<double> penalised_norm_;
  models::LossScale loss_scale_;     // The newest weights' scale.
  std::optional<KeepStep> to_keep_;  // The state to keep after that step.
  Patience patience_;
};

}  // namespace

caf::actor spawn_optimizer_actor(const caf_shim::Spawner& spawner, RunSpecPtr spec, int optimizer,
                                 StartPoint start) {
  return caf_shim::spawn<OptimizerActor>(spawner, std::move(spec), optimizer, std::move(start));
}

}  // namespace troupe::actors
