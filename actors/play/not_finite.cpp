#include "actors/play/not_finite.h"

#include "actors/play/players.h"

namespace troupe::actors {

std::string loss_not_finite(const RunSpec& spec, const MicroBatchLoss& loss) {
  const bool training = loss.purpose == Round::Purpose::training;
  return device_title(spec, loss.replica, loss.device) + ": " +
         (training ? "step " + std::to_string(loss.step + 1)
                   : "evaluation after step " + std::to_string(loss.step)) +
         ", micro-batch " + std::to_string(loss.index) + ": the loss is not a number any more";
}

std::string gradient_not_finite(const RunSpec& spec, const Divergence& divergence) {
  const PlayerId optimizer{PlayerId::Kind::optimizer, divergence.optimizer};
  return title_of(spec, optimizer) + ": step " + std::to_string(divergence.step + 1) +
         ": the gradient of " + divergence.parameter + " is not finite any more" +
         (spec.loss_scaling.is_on() ? ", at a loss scale of 1" : "");
}

}  // namespace troupe::actors
