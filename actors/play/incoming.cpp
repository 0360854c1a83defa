#include "actors/play/incoming.h"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "actors/deferred_sends.h"

namespace troupe::actors {
namespace {

using schedules::Action;
using schedules::Kind;
using What = Inbox::What;

Inbox::Address address(const Play& play, What what, int stage, Action action) {
  return {what, play.first_step, stage, static_cast<int>(action.micro_batch), {}};
}
Inbox::Address loan_address(const Play& play, const std::string& loan, Action action) {
  return {What::loan, play.first_step, action.stage, static_cast<int>(action.micro_batch), loan};
}

bool is_last(const Play& play, Action action) {
  return action.stage == play.round->schedule.stages - 1;
}

}  // namespace

void PassInput::check() const {
  const auto check_shape = [](const Tensor& tensor, const TensorForm& form,
                              const std::string& what) {
    if (tensor.shape() != form.shape)
      throw std::runtime_error("found " + what + " of shape " + to_string(tensor.shape()) +
                               ", wanted " + to_string(form.shape));
  };
  const auto& form = forms->inputs[static_cast<std::size_t>(stage)];
  check_shape(input->value.stream, form.stream, "an input");
  if (input->value.kept.size() != form.kept.size())
    throw std::runtime_error("found an input with " + std::to_string(input->value.kept.size()) +
                             " kept values, wanted " + std::to_string(form.kept.size()));
  for (std::size_t i = 0; i < form.kept.size(); ++i)
    check_shape(input->value.kept[i], form.kept[i].form, "the kept value " + form.kept[i].name);
  if (targets) check_shape(targets->value.stream, forms->targets, "targets");
  if (const auto all = forms->targets.shape.count(); input->header.counted > all)
    throw std::runtime_error("found " + std::to_string(input->header.counted) +
                             " targets that count, wanted at most " + std::to_string(all));
  check_halves();
}

void PassInput::check_halves() const {
  if (!targets) return;
  const auto& one = input->header;
  const auto& other = targets->header;
  if (one.samples == other.samples && one.content != other.content)
    throw std::runtime_error(
        "the loader of inputs and the loader of targets read different bytes for the same samples "
        "in micro-batch " +
        std::to_string(one.m) +
        "; the data must be the same on every node: compare the files of "
        "data.train and data.validate there");
  if (one.samples == other.samples && one.counted != other.counted)
    throw std::runtime_error("the loaders of inputs and of targets count " +
                             std::to_string(one.counted) + " and " + std::to_string(other.counted) +
                             " targets in micro-batch " + std::to_string(one.m));
  if (one.samples == other.samples) return;
  throw std::runtime_error("the input of micro-batch " + std::to_string(input->header.m) +
                           " is of the samples " + to_string(input->header.samples) +
                           ", but its targets are of " + to_string(targets->header.samples) +
                           "; both loaders must read the same data");
}

Tensor PassInput::take_targets() const {
  return targets ? std::move(targets->value.stream) : Tensor();
}

std::vector<models::Loan> PassInput::take_loans() const {
  std::vector<models::Loan> loans;
  for (const auto& parcel : borrowed) loans.push_back(std::move(parcel->loan));
  return loans;
}

void follow(Stream& stream, const Inbox::Parcel& parcel) {
  if (parcel.after.device)
    DeferredSends::of_this_thread()->begin_after(*stream.device(), parcel.after);
}

void follow(Stream& stream, const PassInput& in) {
  follow(stream, *in.input);
  if (in.targets) follow(stream, *in.targets);
  for (const auto& parcel : in.borrowed) follow(stream, *parcel);
}

std::string Incoming::missing(const Play& play, Action action, const HeldStage& held) const {
  const int stage = action.stage;
  const auto of_micro_batch = " of micro-batch " + std::to_string(action.micro_batch);
  switch (action.kind) {
    case Kind::forward: {
      if (!inbox_.has(address(play, What::input, stage, action)))
        return "the input" + of_micro_batch + " from " +
               (stage == 0 ? "the loader of inputs" : "stage " + std::to_string(stage - 1));
      if (is_last(play, action) && !inbox_.has(address(play, What::targets, 0, action)))
        return "the targets" + of_micro_batch + " from the loader of targets";
      const auto lacking = std::ranges::find_if(held.borrowed, [&](const std::string& loan) {
        return !inbox_.has(loan_address(play, loan, action));
      });
      return lacking == held.borrowed.end()
                 ? std::string()
                 : *lacking + " for" + of_micro_batch + " from the stage that owns it";
    }
    case Kind::backward:
    case Kind::backward_input:
      if (!is_last(play, action) && !inbox_.has(address(play, What::gradient, stage, action)))
        return "the gradient" + of_micro_batch + " from stage " + std::to_string(stage + 1);
      return {};
    case Kind::update:
      return held.is_published() ? ""
                                 : "the new weights from the " + missing_optimizer(*spec_, held);
    case Kind::recompute:
    case Kind::backward_weight:
    case Kind::give:
    case Kind::gather:
    case Kind::release:
      return {};
  }
  return {};
}

PassInput Incoming::take_input(const Play& play, Action action, const HeldStage& held) {
  const bool is_training = play.round->purpose == Round::Purpose::training;
  PassInput in;
  in.stage = action.stage;
  in.forms = is_training ? of_training_ : of_evaluation_;
  in.input = inbox_.take(address(play, What::input, action.stage, action));
  if (is_last(play, action)) in.targets = inbox_.take(address(play, What::targets, 0, action));
  for (const auto& loan : held.borrowed)
    in.borrowed.push_back(inbox_.take(loan_address(play, loan, action)));
  return in;
}

Inbox::ParcelPtr Incoming::take_gradient(const Play& play, Action action) {
  auto parcel = is_last(play, action)
                    ? std::make_shared<Inbox::Parcel>()
                    : inbox_.take(address(play, What::gradient, action.stage, action));
  parcel->header.first_step = play.first_step;
  parcel->header.m = static_cast<int>(action.micro_batch);
  return parcel;
}

}  // namespace troupe::actors
