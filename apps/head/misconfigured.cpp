#include "apps/head/misconfigured.h"

#include <algorithm>
#include <string>

#include "config/schema.h"

namespace troupe::apps {

Refusal misconfigured(const Error& error, const config::Diagnostics& found) {
  Refusal refusal{RefusalCode::invalid, error.text, {}, {}};
  const auto first = std::ranges::find(found.all(), config::Diagnostic::Severity::error,
                                       &config::Diagnostic::severity);
  if (first != found.all().end()) {
    refusal.path = first->key;
    refusal.hint = first->hint;
    return refusal;
  }
  const auto word = error.text.substr(0, error.text.find_first_of(" :="));
  if (!config::schema().rows(word).empty()) refusal.path = word;
  return refusal;
}

}  // namespace troupe::apps
