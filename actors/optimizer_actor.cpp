#include "actors/optimizer_actor.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <stdexcept>
#include <utility>

#include "actors/cast.h"
#include "actors/job.h"
#include "actors/messages.h"
#include "actors/rt.h"

namespace troupe::actors {
namespace {

using Clock = std::chrono::steady_clock;

/// What a stage's optimizer works on. Jobs alone touch it, one after another.
struct Workshop {
  models::Optimizer optimizer;
  models::WeightsPtr weights;
  models::StageGradients gradients;  // Of the step that is being made.
  Clock::duration worked{};          // On it.

  /// Adds the time of its scope.
  class Timed {
   public:
    explicit Timed(Workshop& workshop) : workshop_(workshop), start_(Clock::now()) {}
    ~Timed() { workshop_.worked += Clock::now() - start_; }

   private:
    Workshop& workshop_;
    Clock::time_point start_;
  };
};

Tensor copy_of(Stream& stream, const Tensor& tensor) {
  Tensor copy = stream.make(tensor.shape(), tensor.dtype());
  std::memcpy(copy.raw(), tensor.raw(), tensor.bytes());
  return copy;
}

class OptimizerActor {
 public:
  static constexpr const char* name = "optimizer actor";

  OptimizerActor(rt::Base* self, RunSpecPtr spec, int stage,
                 std::shared_ptr<const StartPoint> start)
      : self_(self),
        spec_(std::move(spec)),
        stage_(stage),
        usual_(spec_->round(0, 1)),
        holders_(holders_of(*usual_, stage)),
        start_(std::move(start)),
        step_(start_->step),
        jobs_(spec_->executor(holders_[0].replica, holders_[0].device, usual_->devices()),
              rt::weak(*self)) {
    for (const auto& shared : models::shared_parameters(*spec_->model, spec_->stages)) {
      if (std::ranges::find(shared.stages, stage) == shared.stages.end()) continue;
      if (shared.stages[0] != stage) borrowed_.emplace(shared.name, shared.stages[0]);
      if (shared.stages[0] == stage) uses_elsewhere_ += static_cast<int>(shared.stages.size()) - 1;
    }
    const auto index = static_cast<std::size_t>(stage);
    const models::Stage passes(*spec_->model, spec_->stages[index],
                               {.precision = spec_->precision, .keep = spec_->keep[index]});
    models::Lateness lateness{
        .staleness = spec_->staleness, .delay = spec_->delays[index], .borrowed = {}};
    for (const auto& [name, owner] : borrowed_) lateness.borrowed.push_back(name);
    auto config = spec_->optimizer;
    if (spec_->clip == ClipScope::each_stage)
      config.clip_norm = models::clip_norm_of(spec_->staleness, config.clip_norm,
                                              parameters_of(stage), parameters_of_all());
    workshop_ = std::make_shared<Workshop>(
        Workshop{models::Optimizer(config, passes.parameters(), passes.buffers(), spec_->precision,
                                   std::move(lateness)),
                 {},
                 {},
                 {}});
  }

  caf::behavior make_behavior() {
    self_->tell_self_after(spec_->stall_patience, Look{});
    return {
        [this](Meet& meet) {
          cast_ = std::move(meet.cast);
          self_->end_with(cast_->supervisor);
          begin();
        },
        [this](StepGradients& in) {
          shares_[in.step].emplace(in.holder, std::move(in.gradients));
          advance();
        },
        [this](TiedGradient& in) {
          tied_[in.step].emplace(std::pair(in.name, in.stage), std::move(in.value));
          advance();
        },
        [this](Normed& in) { normed(std::move(in)); },
        [this](const Decision& decision) { step(decision.norm); },
        [this](Stepped& in) { publish(std::move(in)); },
        [this](TakeSnapshot) { take_snapshot(); },
        [this](const JobFailed& failed) { self_->fail(failed.text); },
        [this](Look) { look(); },
    };
  }

 private:
  /// Numbers that the stage owns.
  std::int64_t parameters_of(int stage) const {
    const auto& units = spec_->stages[static_cast<std::size_t>(stage)];
    std::map<std::string, std::int64_t> counts;
    for (int unit = units.first; unit < units.last; ++unit)
      for (const auto& parameter :
           spec_->model->units[static_cast<std::size_t>(unit)].layer->parameters())
        counts[parameter.name] = parameter.shape.count();
    for (const auto& shared : models::shared_parameters(*spec_->model, spec_->stages))
      if (shared.stages[0] != stage) counts.erase(shared.name);
    std::int64_t count = 0;
    for (const auto& [name, numbers] : counts) count += numbers;
    return count;
  }
  std::int64_t parameters_of_all() const {
    std::int64_t count = 0;
    for (int stage = 0; stage < static_cast<int>(spec_->stages.size()); ++stage)
      count += parameters_of(stage);
    return count;
  }

  /// What happens to the gradients of a step, one after another.
  enum class Phase : std::uint8_t {
    beginning,  // The first weights are being made.
    gathering,
    waiting_for_ties,
    measuring,
    deciding,
    stepping,
  };

  void begin() {
    jobs_.post("the first weights", [workshop = workshop_, start = start_, seed = spec_->seed,
                                     owner = jobs_.owner()](Stream& stream) {
      auto& optimizer = workshop->optimizer;
      auto& weights = workshop->weights;
      if (start->weights.empty()) {
        weights = optimizer.initial(stream, seed);
      } else {
        auto read = optimizer.from(stream, start->weights, start->step);
        if (!read) throw std::runtime_error(read.error().text);
        weights = std::move(*read);
        const auto restored = optimizer.restore(stream, start->moments, start->step);
        if (!restored) throw std::runtime_error(restored.error().text);
      }
      rt::post(owner, Stepped{start->step - 1, {weights, optimizer.moments()}, {}});
    });
    start_.reset();
  }

  void advance() {
    if (phase_ == Phase::gathering && shares_[step_].size() == holders_.size()) join_shares();
    if (phase_ == Phase::waiting_for_ties &&
        static_cast<int>(tied_[step_].size()) == uses_elsewhere_)
      measure();
  }

  void join_shares() {
    phase_ = Phase::waiting_for_ties;
    auto given = std::move(shares_.extract(step_).mapped());
    // Not the cast: what waits in an executor must not keep a run from ending.
    jobs_.post(
        place(), [workshop = workshop_, given = std::move(given), borrowed = borrowed_,
                  optimizers = cast_->optimizers, step = step_, stage = stage_](Stream& stream) {
          const Workshop::Timed timed(*workshop);
          std::vector<models::GradientShare> shares;
          for (const auto& [holder, share] : given) shares.push_back(std::move(*share));
          workshop->gradients = models::join(stream, std::move(shares));
          for (const auto& [name, owner] : borrowed)
            rt::post(optimizers[static_cast<std::size_t>(owner)],
                     TiedGradient{step, name, stage,
                                  workshop->optimizer.gradient(stream, workshop->gradients, name)});
        });
  }

  void measure() {
    phase_ = Phase::measuring;
    auto node = tied_.extract(step_);
    auto ties = node.empty() ? Ties{} : std::move(node.mapped());
    jobs_.post(place(), [workshop = workshop_, ties = std::move(ties), step = step_,
                         owner = jobs_.owner()](Stream& stream) {
      const Workshop::Timed timed(*workshop);
      for (const auto& [use, gradient] : ties)
        workshop->optimizer.add_use(stream, workshop->gradients, use.first, gradient);
      rt::post(owner, Normed{step, workshop->optimizer.squared_norms(stream, workshop->gradients)});
    });
  }

  void normed(Normed in) {
    phase_ = Phase::deciding;
    own_norm_ = models::global_norm(in.squares);
    if (spec_->clip == ClipScope::all_stages)
      return self_->tell(cast_->supervisor,
                         Norms{cast_->attempt, stage_, in.step, std::move(in.squares)});
    if (!std::isfinite(own_norm_))
      return self_->fail(place() + ": the gradient of stage " + std::to_string(stage_) +
                         " is not finite any more");
    step(own_norm_);
  }

  void step(double norm) {
    phase_ = Phase::stepping;
    jobs_.post(place(),
               [workshop = workshop_, norm, step = step_, owner = jobs_.owner()](Stream& stream) {
                 auto& [optimizer, weights, gradients, worked] = *workshop;
                 const auto start = Clock::now();
                 weights = optimizer.step(stream, weights, std::exchange(gradients, {}), norm);
                 const WorkTime time{start - std::exchange(worked, {}), Clock::now()};
                 rt::post(owner, Stepped{step, {weights, optimizer.moments()}, time});
               });
  }

  void publish(Stepped in) {
    // Moments are for those who mend what is late.
    if (!is_late()) in.version.moments.clear();
    for (const auto& holder : holders_)
      self_->tell(cast_->stages[static_cast<std::size_t>(holder.replica * usual_->devices() +
                                                         holder.device)],
                  NewWeights{stage_, in.version, in.worked});
    if (phase_ == Phase::stepping) {
      self_->tell(cast_->supervisor, StepDone{cast_->attempt, stage_, in.step, own_norm_});
      ++step_;
    }
    phase_ = Phase::gathering;
    advance();
  }

  /// Weights never change; moments do with the next step, so the snapshot has copies of them.
  void take_snapshot() {
    jobs_.post("a snapshot", [workshop = workshop_, stage = stage_, step = step_,
                              attempt = cast_->attempt, to = cast_->supervisor](Stream& stream) {
      const auto& optimizer = workshop->optimizer;
      Snapshot snapshot{attempt, stage, step, optimizer.named(*workshop->weights),
                        optimizer.state()};
      for (auto& moment : snapshot.moments) moment.tensor = copy_of(stream, moment.tensor);
      rt::post(to, std::move(snapshot));
    });
  }

  void look() {
    const Wait wait = waits_for();
    if (cast_)
      self_->tell(
          cast_->supervisor,
          Pulse{cast_->attempt, {PlayerId::Kind::optimizer, stage_}, wait, patience_.look(wait)});
    self_->tell_self_after(spec_->stall_patience, Look{});
  }

  Wait waits_for() const {
    switch (phase_) {
      case Phase::beginning:
        return computes("the first weights");
      case Phase::gathering: {
        const auto given = shares_.find(step_);
        if (given == shares_.end() || given->second.empty()) return {};
        int missing = 0;
        while (given->second.contains(missing)) ++missing;
        const auto& holder = holders_[static_cast<std::size_t>(missing)];
        return waits(place() + " waits for the gradients of " +
                     device_title(*spec_, holder.replica, holder.device));
      }
      case Phase::waiting_for_ties:
        return waits(place() + " waits for the gradients of shared parameters");
      case Phase::measuring:
        return computes(place() + ", the norm of its gradients");
      case Phase::deciding:
        return waits(place() + " waits for the norm of all gradients");
      case Phase::stepping:
        return computes(place() + ", the new weights");
    }
    return {};
  }

  bool is_late() const {
    return std::ranges::any_of(spec_->delays, [](int delay) { return delay > 0; });
  }
  std::string place() const { return "step " + std::to_string(step_ + 1); }

  using Ties = std::map<std::pair<std::string, int>, Tensor>;

  rt::Base* self_;
  RunSpecPtr spec_;
  int stage_;
  RoundPtr usual_;
  std::vector<Holder> holders_;
  std::shared_ptr<const StartPoint> start_;
  std::int64_t step_;  // The one that is being made, 0-based.
  Jobs jobs_;
  CastPtr cast_;
  std::map<std::string, int> borrowed_;  // To their owners.
  int uses_elsewhere_ = 0;
  std::shared_ptr<Workshop> workshop_;

  Phase phase_ = Phase::beginning;
  std::map<std::int64_t, std::map<int, std::shared_ptr<models::GradientShare>>> shares_;
  std::map<std::int64_t, Ties> tied_;
  double own_norm_ = 0;
  Patience patience_;
};

}  // namespace

caf::actor spawn_optimizer_actor(caf::actor_system& system, RunSpecPtr spec, int stage,
                                 std::shared_ptr<const StartPoint> start) {
  return rt::spawn<OptimizerActor>(system, std::move(spec), stage, std::move(start));
}

}  // namespace troupe::actors
