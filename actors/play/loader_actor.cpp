#include "actors/play/loader_actor.h"

#include <deque>
#include <map>
#include <stdexcept>
#include <utility>

#include "actors/caf_shim.h"
#include "actors/inputs_of.h"
#include "actors/messages.h"
#include "actors/play/job.h"

namespace troupe::actors {
namespace {

class LoaderActor {
 public:
  static constexpr const char* name = "loader";

  LoaderActor(caf_shim::Base* self, RunSpecPtr spec, int replica, Half half)
      : self_(self),
        spec_(std::move(spec)),
        replica_(replica),
        half_(half),
        jobs_(*spec_->reader, caf_shim::weak(*self)) {}

  caf::behavior make_behavior() {
    self_->tell_self_after(spec_->stall_patience, Look{});
    return {
        [this](Meet& meet) {
          players_ = std::move(meet.players);
          self_->end_with(players_->supervisor);
        },
        [this](Play& play) { append(play); },
        [this](const Taken& taken) { give_credit(taken.device); },
        [this](ReadDone) { reads_.pop_front(); },
        [this](const JobFailed& failed) { self_->fail(failed.text); },
        [this](Look) { look(); },
    };
  }

 private:
  /// The micro-batches for one device, in order.
  struct Line {
    struct Entry {
      RoundPtr round;
      std::int64_t first_step = 0;
      int m = 0;
    };
    std::deque<Entry> to_send;
    int credit = 0;
  };

  void append(const Play& play) {
    const auto& schedule = play.round->schedule;
    const auto stage = half_ == Half::inputs ? 0 : schedule.stages - 1;
    for (int device = 0; device < schedule.devices(); ++device) {
      for (const auto action : schedule.lanes[static_cast<std::size_t>(device)])
        if (action.kind == schedules::Kind::forward && action.stage == stage)
          line(device).to_send.push_back(
              {play.round, play.first_step, static_cast<int>(action.micro_batch)});
      if (lines_.contains(device)) advance(device);
    }
  }

  Line& line(int device) {
    const auto [entry, is_new] = lines_.try_emplace(device);
    if (is_new) entry->second.credit = spec_->loader_credit;
    return entry->second;
  }

  void give_credit(int device) {
    ++line(device).credit;
    advance(device);
  }

  void advance(int device) {
    auto& line = lines_.at(device);
    for (; line.credit > 0 && !line.to_send.empty(); --line.credit) {
      read(device, line.to_send.front());
      line.to_send.pop_front();
    }
  }

  void read(int device, const Line::Entry& entry) {
    const auto place = place_of(*entry.round, replica_, entry.m);
    const bool training = entry.round->purpose == Round::Purpose::training;
    const auto& source = training ? spec_->batches : spec_->validation;
    const auto* batches = half_ == Half::inputs ? source.inputs : source.targets;
    const int per_step = batches->per_step();
    // An evaluation always reads its data from the beginning.
    const std::int64_t step =
        training ? entry.first_step + place.step : std::int64_t{place.index / per_step};
    const int index = training ? place.index : place.index % per_step;
    const auto devices = entry.round->devices();
    auto* memory = &spec_->memory(replica_, device, devices);
    const auto to = players_->stages[static_cast<std::size_t>(replica_ * devices + device)];
    reads_.push_back(title_of(entry));
    jobs_.post(reads_.back(), [=, this_half = half_, first_step = entry.first_step, m = entry.m,
                               owner = jobs_.owner()](Stream&) {
      auto batch = batches->read(*memory, step, index);
      if (!batch) throw std::runtime_error(batch.error().text);
      caf_shim::post(owner, ReadDone{});
      const Header header{.first_step = first_step,
                          .m = m,
                          .samples = batch->samples,
                          .content = batch->content,
                          .counted = batch->counted};
      switch (this_half) {
        case Half::inputs:
          return caf_shim::post(to, Activation{header, 0, inputs_of(std::move(*batch))});
        case Half::targets:
          return caf_shim::post(to, Targets{header, std::move(batch->target)});
      }
    });
  }

  std::string title_of(const Line::Entry& entry) const {
    const auto place = place_of(*entry.round, replica_, entry.m);
    return step_title(*entry.round, entry.first_step, entry.m) + ", micro-batch " +
           std::to_string(place.index);
  }

  void look() {
    const Wait wait = waits_for();
    if (players_)
      self_->tell(players_->supervisor,
                  Pulse{players_->attempt, player(), wait, patience_.look(wait)});
    self_->tell_self_after(spec_->stall_patience, Look{});
  }

  PlayerId player() const {
    return {half_ == Half::inputs ? PlayerId::Kind::inputs : PlayerId::Kind::targets, replica_};
  }

  Wait waits_for() const {
    if (!reads_.empty()) return {Wait::On::executor, "it still reads " + reads_.front()};
    for (const auto& [device, line] : lines_)
      if (!line.to_send.empty())
        return waits(title_of(line.to_send.front()) + " waits until device " +
                     std::to_string(device) + " has taken the one before");
    return {};
  }

  caf_shim::Base* self_;
  RunSpecPtr spec_;
  int replica_;
  Half half_;
  Jobs jobs_;
  PlayersPtr players_;
  std::map<int, Line> lines_;
  std::deque<std::string> reads_;  // Reads that are not done.
  Patience patience_;
};

}  // namespace

caf::actor spawn_loader(const caf_shim::Spawner& spawner, RunSpecPtr spec, int replica, Half half) {
  return caf_shim::spawn<LoaderActor>(spawner, std::move(spec), replica, half);
}

}  // namespace troupe::actors
