#include "apps/events/step_text.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "apps/events/number_text.h"

namespace troupe::apps {
namespace {

// The times are in seconds. Several steps may be told at once, so that the time of a single step
// says little.
constexpr double least_time = 0.5;   // The shortest time that a pace is measured over.
constexpr double time_of_rate = 5;   // The time that the rate is measured over,
constexpr double time_of_pace = 60;  // and that of the pace, on which the time left is based.

std::string position_text(std::int64_t step, std::int64_t total) {
  std::string text = "step " + std::to_string(step);
  if (total < step) return text;
  text += " of " + std::to_string(total);
  // Floor: 100 % means that all steps are done.
  const std::string share = std::to_string(100 * step / total) + " %";
  const std::size_t width = 2 * std::to_string(total).size() + std::string("step  of ").size();
  text.resize(std::max(text.size(), width), ' ');
  return text + "  " + std::string(share.size() < 5 ? 5 - share.size() : 0, ' ') + share;
}

}  // namespace

void StepText::add(const Value& step) {
  const auto number = integer_in(step, "step");
  if (!done_.empty() && number <= done_.back().step) stand_still();
  newest_ = step;
  done_.push_back({number, number_in(step, "time"), number_in(step, "seconds")});
  recent_seconds_ += done_.back().seconds;
  ++recent_;
  for (; recent_ > 1; --recent_) {
    const double oldest = done_[done_.size() - recent_].seconds;
    if (recent_seconds_ - oldest < time_of_rate) break;
    recent_seconds_ -= oldest;
  }
  while (done_.size() > recent_ && done_.size() > 2 &&
         done_.back().told - done_[1].told >= time_of_pace)
    done_.pop_front();
}

void StepText::stand_still() {
  done_.clear();
  recent_ = 0;
  recent_seconds_ = 0;
}

std::optional<double> StepText::rate() const {
  if (recent_ == 0 || recent_seconds_ < least_time) return {};
  // Events count all tokens, or all samples, since step 0.
  const double in_step = number_in(newest_, newest_.find("tokens") ? "tokens" : "samples") /
                         number_in(newest_, "step");
  return in_step * static_cast<double>(recent_) / recent_seconds_;
}

std::optional<double> StepText::seconds_left() const {
  if (done_.size() < 2) return {};
  const auto left = total_steps_ - done_.back().step;
  const double took = done_.back().told - done_.front().told;
  if (left <= 0 || took < least_time) return {};
  return took / static_cast<double>(done_.back().step - done_.front().step) *
         static_cast<double>(left);
}

std::string StepText::line(std::size_t columns) const {
  // In the order of their weight.
  std::vector<std::string> parts{
      newest_.find("loss") ? "loss " + loss_text(number_in(newest_, "loss")) : "loss not finite"};
  if (const auto known = rate())
    parts.push_back(thousands(*known) + (newest_.find("tokens") ? " tokens/s" : " samples/s"));
  if (const auto known = seconds_left()) parts.push_back(duration(std::ceil(*known)) + " left");
  if (newest_.find("grad_norm"))
    parts.push_back("grad norm " + brief(number_in(newest_, "grad_norm"), 3));
  else if (newest_.find("counted") && integer_in(newest_, "counted") == 0)
    parts.push_back("skipped: no target counted");
  else if (newest_.find("loss_scale"))
    parts.push_back("skipped at loss scale " + brief(number_in(newest_, "loss_scale"), 8));
  else if (newest_.find("skipped"))
    parts.push_back("skipped: samples left out");
  parts.push_back("lr " + brief(number_in(newest_, "lr"), 3));
  if (newest_.find("memory")) parts.push_back(memory_text(number_in(newest_, "memory")));

  std::string text = position_text(integer_in(newest_, "step"), total_steps_);
  if (text.size() > columns) text.resize(columns);
  for (const auto& part : parts) {
    if (text.size() + 2 + part.size() > columns) break;
    text += "  " + part;
  }
  return text;
}

}  // namespace troupe::apps
