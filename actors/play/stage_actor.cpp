#include "actors/play/stage_actor.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <stdexcept>
#include <utility>

#include "actors/caf_shim.h"
#include "actors/exchange.h"
#include "actors/messages.h"
#include "actors/play/gradient_sum.h"
#include "actors/play/held_stage.h"
#include "actors/play/inbox.h"
#include "actors/play/incoming.h"
#include "actors/play/job.h"
#include "actors/play/outgoing.h"
#include "actors/play/players.h"

namespace troupe::actors {
namespace {

using schedules::Action;
using schedules::Kind;
using What = Inbox::What;

// Actions posted besides the running one, so that the device never waits for its actor.
constexpr int actions_ahead = 2;

class StageActor {
 public:
  static constexpr const char* name = "stage actor";

  StageActor(caf_shim::Base* self, RunSpecPtr spec, int replica, int device)
      : self_(self),
        spec_(std::move(spec)),
        replica_(replica),
        device_(device),
        jobs_(spec_->executor(replica, device, spec_->evaluation->devices()),
              caf_shim::weak(*self)),
        held_(stages_held(*spec_, replica, device)),
        incoming_(spec_),
        outgoing_(spec_, replica, device, incoming_.inbox()) {}

  caf::behavior make_behavior() {
    self_->tell_self_after(spec_->stall_patience, Look{});
    return {
        [this](Meet& meet) {
          players_ = std::move(meet.players);
          outgoing_.meet(players_);
          self_->end_with(players_->supervisor);
        },
        [this](Play& play) {
          to_play_.push_back(std::move(play));
          advance();
        },
        [this](Activation& in) {
          keep(What::input, in.stage, {in.header, std::move(in.value), {}, in.after});
        },
        [this](Targets& in) {
          keep(What::targets, 0, {in.header, std::move(in.value), {}, {}});
        },
        [this](Gradient& in) {
          keep(What::gradient, in.stage, {in.header, std::move(in.value), {}, in.after});
        },
        [this](LoanFor& in) {
          keep(What::loan, in.stage, {in.header, {}, std::move(in.loan), in.after});
        },
        [this](NewWeights& in) {
          auto& on = held(in.stage);
          if (const auto expected = on.expects(in); !expected)
            return self_->fail(sender_of(in) + ": " + std::string(NewWeights::type) + ": " +
                               expected.error().text);
          on.published.at(static_cast<std::size_t>(in.section)) = {std::move(in.version),
                                                                   in.worked};
          if (!on.has_weights && on.is_published()) adopt(on);
          advance();
        },
        [this](const ActionDone& done) { finished(done); },
        [this](const JobFailed& failed) { self_->fail(failed.text); },
        [this](Look) { look(); },
    };
  }

 private:
  HeldStage& held(int stage) {
    for (auto& held : held_)
      if (held.number == stage) return held;
    throw std::logic_error("device " + std::to_string(device_) + " has no stage " +
                           std::to_string(stage));
  }

  std::string sender_of(const NewWeights& in) const {
    const int optimizer = optimizer_of(*spec_, {in.stage, in.section});
    return actors::title_of(*spec_, {PlayerId::Kind::optimizer, optimizer});
  }

  // The round that is being played.

  const Play& play() const { return to_play_.front(); }
  const Round& round() const { return *play().round; }
  bool training() const { return round().purpose == Round::Purpose::training; }
  const schedules::Lane& lane() const {
    return round().schedule.lanes[static_cast<std::size_t>(device_)];
  }
  int last_stage() const { return round().schedule.stages - 1; }
  std::int64_t first_step() const { return play().first_step; }

  /// Continues with the lane as far as inputs have arrived.
  void advance() {
    while (players_ && !to_play_.empty()) {
      if (position_ == 0 && !begin_round()) return;
      while (position_ < lane().size()) {
        if (in_executor_ > actions_ahead || !missing(lane()[position_]).empty()) return;
        if (is_held_up(lane()[position_]))
          in_play_.back().held_up.push_back(static_cast<int>(position_));
        perform(lane()[position_++]);
      }
      if (lane().empty()) tell_played({to_play_.front(), 0, {}, {}});
      to_play_.pop_front();
      position_ = 0;
      begun_ = false;
    }
  }

  /// Returns whether a pass can run now because its targets or a loan have just arrived: then its
  /// start says nothing about the stage before.
  bool is_held_up(Action action) const {
    if (!came_ || action.kind != Kind::forward || came_->first_step != first_step() ||
        came_->m != index(action))
      return false;
    return came_->what == What::targets ||
           (came_->what == What::loan && came_->stage == action.stage);
  }

  bool begin_round() {
    if (begun_) return true;
    for (const auto& held : held_)
      if (!held.has_weights) return false;
    begun_ = true;
    if (!lane().empty()) in_play_.push_back({to_play_.front(), lane().size(), {}, {}});
    if (!training()) return true;
    for (auto& held : held_) {
      held.steps_given = held.steps_taken = 0;
      models::Round begun{.delays = delays_of(lane(), held.number, round().schedule.micro_batches),
                          .step_every = held.share.count(),
                          .share = held.share,
                          .targets_in_step = spec_->targets_in_step};
      jobs_.post("beginning a round",
                 [stage = held.stage, begun = std::move(begun)](Stream&) mutable {
                   stage->begin_round(std::move(begun));
                 });
    }
    return true;
  }

  std::string missing(Action action) {
    return incoming_.missing(play(), action, held(action.stage));
  }

  void perform(Action action) {
    auto& on = held(action.stage);
    switch (action.kind) {
      case Kind::forward:
        return training() ? forward(action, on) : evaluate(action, on);
      case Kind::recompute:
        return run(action, [stage = on.stage, m = index(action)](Stream& stream) {
          stage->recompute(stream, m);
        });
      case Kind::backward:
        return backward(action, on, [](auto& stage, Stream& stream, int m, models::Bundle dy) {
          return stage.backward(stream, m, std::move(dy));
        });
      case Kind::backward_input:
        return backward(action, on, [](auto& stage, Stream& stream, int m, models::Bundle dy) {
          return stage.backward_input(stream, m, std::move(dy));
        });
      case Kind::backward_weight:
        return run(action, [stage = on.stage, m = index(action)](Stream& stream) {
          stage->backward_weight(stream, m);
        });
      case Kind::give:
        return give(action, on);
      case Kind::update:
        ++on.steps_taken;
        return adopt(on, action);
      case Kind::gather:  // In one process weights are always whole.
      case Kind::release:
        return run(action, [](Stream&) {});
    }
  }

  void forward(Action action, HeldStage& on) {
    const auto place = place_of(round(), replica_, index(action));
    const auto targets = spec_->targets_in_step / (spec_->samples_in_step / spec_->micro);
    models::MicroBatch id{.step = first_step() + place.step,
                          .index = index(action),
                          .first_sample = place.index * spec_->micro,
                          .targets = {.all = targets, .counted = 0}};
    run(action,
        [=, stage = on.stage, in = take_input(action, on),
         loss = outgoing_.loss(play(), id.step, place), next = outgoing_.output(play(), action),
         lent = outgoing_.loans(play(), action, on)](Stream& stream) mutable {
          in.check();
          follow(stream, in);
          const Header header = in.input->header;
          id.targets.counted = header.counted;
          models::Bundle y = stage->forward(stream, id, std::move(in.input->value),
                                            in.take_targets(), in.take_loans());
          for (const auto& [name, send] : lent) send(header, stage->lend(id.index, name));
          in.targets ? tell_mean(stream, loss, header, std::move(y.stream))
                     : next(header, std::move(y));
        });
  }

  void evaluate(Action action, HeldStage& on) {
    const auto place = place_of(round(), replica_, index(action));
    run(action, [=, stage = on.stage, in = take_input(action, on),
                 loss = outgoing_.loss(play(), first_step(), place),
                 next = outgoing_.output(play(), action),
                 lent = outgoing_.loans(play(), action, on)](Stream& stream) {
      in.check();
      follow(stream, in);
      const Header header = in.input->header;
      models::Bundle y =
          stage->evaluate(stream, std::move(in.input->value), in.take_targets(), in.take_loans());
      for (const auto& [name, send] : lent) send(header, stage->lend(name));
      in.targets ? tell_mean(stream, loss, header, std::move(y.stream))
                 : next(header, std::move(y));
    });
  }

  template <class Pass>
  void backward(Action action, HeldStage& on, Pass pass) {
    const auto in = incoming_.take_gradient(play(), action);
    const auto back = outgoing_.gradient(play(), action);
    run(action, [stage = on.stage, in, back, pass, m = index(action)](Stream& stream) {
      Header header = in->header;
      follow(stream, *in);
      stage->expect_gap_factor(m, header.gap_factor);
      models::Bundle dx = pass(*stage, stream, m, std::move(in->value));
      header.gap_factor = stage->gap_factor();
      if (back) back(header, std::move(dx));
    });
  }

  /// How the sums of gradients reach an optimizer. All other parts of gradients are sent.
  enum class Way : std::uint8_t {
    sent,      // With the rest.
    added_up,  // Through an edge, to the optimizer's device.
    taken,     // From an edge, because the optimizer is here.
  };

  Way way_to(int optimizer, const HeldStage& on) const {
    const auto [stage, section] = actors::place_of(*spec_, optimizer);
    if (!adder_of(on) || stage != on.number) return Way::sent;
    return section == on.holder ? Way::taken : Way::added_up;
  }

  std::shared_ptr<transport::Adder> adder_of(const HeldStage& on) const {
    const auto stage = static_cast<std::size_t>(on.number);
    return stage < players_->adders.size() ? players_->adders[stage] : nullptr;
  }

  void give(Action action, HeldStage& on) {
    const std::int64_t step = first_step() + on.steps_given++;
    struct To {
      caf::actor optimizer;
      models::Section section;
      Way way;
    };
    std::vector<To> givings;
    for (const auto& giving : on.givings)
      givings.push_back({players_->optimizers[static_cast<std::size_t>(giving.optimizer)],
                         giving.section, way_to(giving.optimizer, on)});
    // All holders of a stage see equally stale weights; the first one reports.
    const auto ear =
        spec_->measures_staleness && on.holder == 0 ? players_->supervisor : caf::actor();
    run(action, [stage = on.stage, step, givings = std::move(givings), ear,
                 attempt = players_->attempt, number = on.number, holder = on.holder, spec = spec_,
                 adder = adder_of(on)](Stream& stream) {
      if (ear) caf_shim::post(ear, LateGradients{attempt, number, step, stage->take_metrics()});
      const auto gradients = stage->take_gradients(stream);
      const auto slots = stage->passes().parameters().size();
      std::function<void(models::PartialSum)> take;
      for (const auto& [to, section, way] : givings) {
        const auto share =
            std::make_shared<models::GradientShare>(models::part_of(gradients, section, slots));
        const StepGradients message{step, number, holder, share};
        if (way != Way::sent) share->sums.clear();
        if (way != Way::taken)
          caf_shim::post(to, message);
        else
          take = [to = caf_shim::weak(to), message](models::PartialSum sum) {
            message.gradients->sums.push_back(std::move(sum));
            caf_shim::post(to, message);
          };
      }
      if (adder) add_up(stream, adder, spec, {number, holder}, gradients, std::move(take));
    });
  }

  /// Adopts published weights. The initial weights come without an action.
  void adopt(HeldStage& on, std::optional<Action> action = {}) {
    on.has_weights = true;
    // Adopting takes no time; the reported work is that of this device's optimizer.
    const auto worked = on.worked_here();
    const auto take = [stage = on.stage, spec = spec_, number = on.number,
                       parts = on.take_published()](Stream& stream) {
      const auto& sections = spec->sections[static_cast<std::size_t>(number)];
      auto version = models::join(stream, stage->passes().parameters(), sections, parts);
      stage->adopt(stage->packed(stream, std::move(version)));
    };
    if (!action) return jobs_.post("taking the first weights", take);
    run(*action, take, worked);
  }

  PassInput take_input(Action action, const HeldStage& on) {
    auto in = incoming_.take_input(play(), action, on);
    if (on.number == 0) self_->tell(players_->inputs[replica()], Taken{device_});
    if (in.targets) self_->tell(players_->targets[replica()], Taken{device_});
    return in;
  }

  static void tell_mean(Stream& stream, const Outgoing::TellLoss& tell, const Header& header,
                        Tensor losses) {
    once_done([tell, header, losses = stream.to_host(std::move(losses))] {
      tell(header, models::Losses{losses}.mean(header.counted));
    });
  }

  template <class Work>
  void run(Action action, Work work, std::optional<WorkTime> told = {}) {
    ++in_executor_;
    jobs_.post(title_of(play(), action), std::move(work),
               [action, told, owner = jobs_.owner()](const WorkTime& worked) {
                 caf_shim::post(owner, ActionDone{action, told.value_or(worked)});
               });
  }

  void finished(const ActionDone& done) {
    --in_executor_;
    auto& played = in_play_.front();
    played.spans.push_back({done.action, done.worked});
    if (played.spans.size() == played.actions) {
      tell_played(std::move(played));
      in_play_.pop_front();
    }
    advance();
  }

  struct InPlay {
    Play play;
    std::size_t actions = 0;
    std::vector<DeviceSpan> spans;
    std::vector<int> held_up;  // As in RoundPlayed.
  };

  void tell_played(InPlay played) {
    const RoundPlayed told{players_->attempt,
                           replica_,
                           device_,
                           played.play.first_step,
                           played.play.round->purpose,
                           std::make_shared<const std::vector<DeviceSpan>>(std::move(played.spans)),
                           incoming_.most(),
                           std::move(played.held_up)};
    self_->tell(players_->supervisor, told);
  }

  void keep(What what, int stage, Inbox::Parcel parcel) {
    const Inbox::Address address{what, parcel.header.first_step, stage, parcel.header.m,
                                 parcel.loan.name};
    *incoming_.inbox().put(address) = std::move(parcel);
    came_ = address;
    advance();
    came_.reset();
  }

  void look() {
    const Wait wait = waits_for();
    if (players_)
      self_->tell(
          players_->supervisor,
          Pulse{players_->attempt, {PlayerId::Kind::stage, place()}, wait, patience_.look(wait)});
    self_->tell_self_after(spec_->stall_patience, Look{});
  }

  Wait waits_for() {
    if (in_executor_ > 0) return computes(title_of(in_play_.front().play, oldest_in_executor()));
    if (to_play_.empty()) return {};
    if (begun_) {
      const Action next = lane()[position_];
      return waits(title_of(play(), next) + " waits for " + missing(next));
    }
    const auto found = std::ranges::find(held_, false, &HeldStage::has_weights);
    return waits("it waits for the first weights from the " + missing_optimizer(*spec_, *found));
  }

  /// Returns a title like "step 3, 1F2".
  static std::string title_of(const Play& play, Action action) {
    return step_title(*play.round, play.first_step, index(action)) + ", " + to_string(action);
  }

  Action oldest_in_executor() const {
    const auto& played = in_play_.front();
    return played.play.round->schedule
        .lanes[static_cast<std::size_t>(device_)][played.spans.size()];
  }

  /// Among all devices of all replicas.
  int place() const { return replica_ * spec_->evaluation->devices() + device_; }
  std::size_t replica() const { return static_cast<std::size_t>(replica_); }
  static int index(Action action) { return static_cast<int>(action.micro_batch); }

  caf_shim::Base* self_;
  RunSpecPtr spec_;
  int replica_;
  int device_;
  Jobs jobs_;
  PlayersPtr players_;
  std::vector<HeldStage> held_;
  Incoming incoming_;
  Outgoing outgoing_;

  std::deque<Play> to_play_;  // The first is being played.
  bool begun_ = false;
  std::size_t position_ = 0;
  std::deque<InPlay> in_play_;  // Rounds that the executor has not finished.
  int in_executor_ = 0;
  std::optional<Inbox::Address> came_;  // The parcel that makes it advance now, if one does.
  Patience patience_;
};

}  // namespace

caf::actor spawn_stage_actor(const caf_shim::Spawner& spawner, RunSpecPtr spec, int replica,
                             int device) {
  return caf_shim::spawn<StageActor>(spawner, std::move(spec), replica, device);
}

}  // namespace troupe::actors
