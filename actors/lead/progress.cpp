#include "actors/lead/progress.h"

#include <algorithm>
#include <string>

#include "actors/exchange.h"

namespace troupe::actors {

void Progress::change(const RunSpec& spec) {
  usual_ = spec.round(0, 1);
  most_parcels_.assign(static_cast<std::size_t>(spec.devices()), 0);
}

void Progress::attempt_begins(const RunSpec& spec) {
  ledger_.emplace(static_cast<int>(spec.stages.size()), optimizers_of(spec),
                  usual_->micro_batches_in_step());
  rounds_.clear();
}

void Progress::give_out(Play play) {
  if (play.round->purpose == Round::Purpose::training)
    given_out_ = play.first_step + play.round->steps;
  rounds_.emplace_back(std::move(play));
}

const RoundUnderWay* Progress::find(const RoundPlayed& played) const {
  const auto found = std::ranges::find_if(rounds_, [&](const RoundUnderWay& round) {
    return round.play.first_step == played.first_step &&
           round.play.round->purpose == played.purpose;
  });
  return found == rounds_.end() ? nullptr : &*found;
}

Status Progress::expects(const RoundPlayed& played) const {
  const auto from_step = "a round from step " + std::to_string(played.first_step + 1);
  const auto* round = find(played);
  if (!round) return Error{"found " + from_step + " played, but no such round is under way"};
  const auto place = round->place_of(played);
  if (place >= round->has_told.size())
    return Error{"found " + from_step + " played by a device that has no part in it"};
  if (round->has_told[place]) return Error{"found " + from_step + " played twice"};
  const auto& schedule = round->play.round->schedule;
  const auto actions = schedule.lanes[static_cast<std::size_t>(played.device)].size();
  if (played.spans->size() != actions)
    return Error{"found " + from_step + " played with " + std::to_string(played.spans->size()) +
                 " actions, wanted " + std::to_string(actions)};
  return troupe::Done{};
}

void Progress::add(const RoundPlayed& played) {
  const int device = played.replica * usual_->devices() + played.device;
  auto& most = most_parcels_[static_cast<std::size_t>(device)];
  most = std::max(most, played.most_parcels);
  for (auto& round : rounds_)
    if (&round == find(played)) return round.add(played);
}

std::optional<Progress::Done> Progress::take_done() {
  if (rounds_.empty() || !ledger_->complete(step_)) return {};
  auto& round = rounds_.front();
  const bool is_last = step_ + 1 == round.play.first_step + round.play.round->steps;
  if (is_last && !round.is_through()) return {};
  Done done{ledger_->take(step_++), {}};
  furthest_ = std::max(furthest_, step_);
  if (is_last) {
    done.round = std::move(round);
    rounds_.pop_front();
  }
  return done;
}

}  // namespace troupe::actors
