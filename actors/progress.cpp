#include "actors/progress.h"

#include <algorithm>
#include <cassert>

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
  from_ = step_;
}

void Progress::give_out(Play play) {
  if (play.round->purpose == Round::Purpose::training)
    given_out_ = play.first_step + play.round->steps;
  rounds_.emplace_back(std::move(play));
}

void Progress::add(const RoundPlayed& played) {
  const int device = played.replica * usual_->devices() + played.device;
  auto& most = most_parcels_[static_cast<std::size_t>(device)];
  most = std::max(most, played.most_parcels);
  const auto found = std::ranges::find_if(rounds_, [&](const RoundUnderWay& round) {
    return round.play.first_step == played.first_step &&
           round.play.round->purpose == played.purpose;
  });
  assert(found != rounds_.end());
  found->add(played);
}

std::optional<Progress::Done> Progress::take_done() {
  if (rounds_.empty() || !ledger_->complete(step_)) return {};
  auto& round = rounds_.front();
  const bool is_last = step_ + 1 == round.play.first_step + round.play.round->steps;
  if (is_last && !round.is_through()) return {};
  Done done{ledger_->take(step_++), {}};
  if (is_last) {
    done.round = std::move(round);
    rounds_.pop_front();
  }
  return done;
}

}  // namespace troupe::actors
