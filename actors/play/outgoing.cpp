#include "actors/play/outgoing.h"

#include "actors/caf_shim.h"

namespace troupe::actors {
namespace {

using schedules::Action;
using What = Inbox::What;

int device_of(const Play& play, int stage, Action action) {
  return play.round->schedule.route(action.micro_batch)[static_cast<std::size_t>(stage)];
}

}  // namespace

Outgoing::Send Outgoing::output(const Play& play, Action action) {
  if (action.stage == play.round->schedule.stages - 1) return nullptr;
  return to_stage(What::input, action.stage + 1, play, action);
}

Outgoing::Send Outgoing::gradient(const Play& play, Action action) {
  if (action.stage == 0) return nullptr;
  return to_stage(What::gradient, action.stage - 1, play, action);
}

Outgoing::Send Outgoing::to_stage(What what, int stage, const Play& play, Action action) {
  const int device = device_of(play, stage, action);
  if (device == device_)
    return
        [to = inbox_.put({what, play.first_step, stage, static_cast<int>(action.micro_batch), {}})](
            const Header& header, models::Bundle value) {
          to->header = header;
          to->value = std::move(value);
        };
  if (what == What::input) return send<Activation>(device, stage, play);
  return send<Gradient>(device, stage, play);
}

template <class Message>
Outgoing::Send Outgoing::send(int device, int stage, const Play& play) const {
  const auto to = peer(device, play);
  if (can_follow(device, play))
    return [to, stage](const Header& header, models::Bundle value) {
      caf_shim::hand_over(to, Message{header, stage, std::move(value)});
    };
  return [to, stage](const Header& header, models::Bundle value) {
    caf_shim::post(to, Message{header, stage, std::move(value)});
  };
}

/// Returns whether the other device is in this process, so that it can follow this one's mark.
bool Outgoing::can_follow(int device, const Play& play) const {
  const int place = replica_ * play.round->devices() + device;
  const auto* there = spec_->executors[static_cast<std::size_t>(place)];
  return there && there->has_device();
}

const caf::actor& Outgoing::peer(int device, const Play& play) const {
  const int place = replica_ * play.round->devices() + device;
  return players_->stages[static_cast<std::size_t>(place)];
}

std::vector<Outgoing::Lend> Outgoing::loans(const Play& play, Action action,
                                            const HeldStage& held) {
  std::vector<Lend> lends;
  for (const auto& [name, borrower] : held.lent) {
    const int device = device_of(play, borrower, action);
    if (device == device_) {
      auto to = inbox_.put(
          {What::loan, play.first_step, borrower, static_cast<int>(action.micro_batch), name});
      lends.push_back({name, [to](const Header& header, models::Loan loan) {
                         to->header = header;
                         to->loan = std::move(loan);
                       }});
    } else if (can_follow(device, play)) {
      lends.push_back({name, [to = peer(device, play), stage = borrower](const Header& header,
                                                                         models::Loan loan) {
                         caf_shim::hand_over(to, LoanFor{header, stage, std::move(loan)});
                       }});
    } else {
      lends.push_back({name, [to = peer(device, play), stage = borrower](const Header& header,
                                                                         models::Loan loan) {
                         caf_shim::post(to, LoanFor{header, stage, std::move(loan)});
                       }});
    }
  }
  return lends;
}

Outgoing::TellLoss Outgoing::loss(const Play& play, std::int64_t step,
                                  MicroBatchPlace place) const {
  const MicroBatchLoss known{players_->attempt,   replica_, device_, step, place.index,
                             play.round->purpose, 0,        {},      {}};
  return [to = players_->supervisor, known](const Header& header, double mean) {
    auto loss = known;
    loss.mean = mean;
    loss.samples = header.samples;
    loss.content = header.content;
    loss.counted = header.counted;
    caf_shim::post(to, loss);
  };
}

}  // namespace troupe::actors
