#include "apps/report/steps_csv.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "core/json.h"

namespace troupe::apps {
namespace {

std::string quoted(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

}  // namespace

std::string steps_csv(const std::vector<RunReport>& runs) {
  std::string text = "run,step,loss,grad_norm,lr,rate,bubble,memory,validation_loss\r\n";
  for (const auto& run : runs) {
    std::map<std::int64_t, double> evals;
    for (const auto& eval : run.events.evals) evals[eval.step] = eval.loss;
    for (const auto& step : run.events.steps) {
      const auto eval = evals.find(step.step);
      const auto validation =
          eval == evals.end() ? std::nullopt : std::optional<double>(eval->second);
      text += quoted(run.events.name) + "," + std::to_string(step.step);
      for (const auto& number :
           {step.loss, step.grad_norm, step.lr, step.rate, step.bubble, step.memory, validation})
        text += "," + (number ? shortest(*number) : std::string());
      text += "\r\n";
    }
  }
  return text;
}

}  // namespace troupe::apps
