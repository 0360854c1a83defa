#include "apps/hosts/check.h"

#include <algorithm>
#include <array>

namespace troupe::apps {
namespace {

constexpr std::array verdicts = {Verdict::ok, Verdict::warn, Verdict::fail, Verdict::skip};
constexpr std::size_t verdict_width = 6, name_width = 16;

std::string padded(std::string_view text, std::size_t width) {
  std::string out(text);
  out.resize(std::max(width, out.size() + 1), ' ');
  return out;
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
      return "ok";
    case Verdict::warn:
      return "warn";
    case Verdict::fail:
      return "FAIL";
    case Verdict::skip:
      return "skip";
  }
  return "";
}

std::string to_text(const Check& check) {
  std::string text = padded(to_string(check.verdict), verdict_width) +
                     padded(check.name, name_width) + check.found + "\n";
  if (!check.fix.empty()) text += std::string(verdict_width, ' ') + "fix: " + check.fix + "\n";
  return text;
}

Value to_event(const Check& check) {
  Value event = Value::Map{};
  event.set("type", "check");
  event.set("check", check.name);
  event.set("verdict", to_string(check.verdict));
  event.set("found", check.found);
  if (!check.fix.empty()) event.set("fix", check.fix);
  return event;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const auto& text : texts) all += (all.empty() ? "" : ", ") + text;
  return all;
}

Check from_event(const Value& event) {
  const auto word = text_in(event, "verdict");
  const auto verdict = std::ranges::find(verdicts, word, [](Verdict v) { return to_string(v); });
  if (verdict == verdicts.end())
    return {text_in(event, "check"), Verdict::fail, "its `troupe doctor` reports '" + word + "'",
            "install the same version everywhere"};
  return {text_in(event, "check"), *verdict, text_in(event, "found"), text_in(event, "fix")};
}

}  // namespace troupe::apps
