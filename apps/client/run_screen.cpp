#include "apps/client/run_screen.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string_view>

#include "apps/client/table.h"
#include "apps/events/number_text.h"
#include "apps/events/tone.h"
#include "core/json.h"

namespace troupe::apps {
namespace {

constexpr std::size_t most_shares = 60;   // Steps on the page.
constexpr std::size_t most_devices = 16;  // Lines on the page.

constexpr std::array<std::string_view, 8> blocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

std::optional<double> number_of(const Value& value, std::string_view key) {
  const Value* number = value.find(key);
  return number && number->is_number() ? std::optional(number->number()) : std::nullopt;
}

/// Returns lines of parts with separators between them. A part that does not fit any more begins
/// another line.
std::string joined(const std::vector<std::string>& parts, const std::string& separator,
                   std::size_t columns) {
  std::string text, line;
  for (const auto& part : parts) {
    const auto longer = line.empty() ? part : line + separator + part;
    if (!line.empty() && width_of(longer) > columns) {
      text += line + separator.substr(0, separator.find(' ')) + "\n";
      line = "  " + part;
    } else {
      line = longer;
    }
  }
  return text + line + "\n";
}

/// Returns the parts between semicolons.
std::vector<std::string> parts_of_places(const std::string& text) {
  const std::string separator = "; ";
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (auto end = text.find(separator); end != text.npos; end = text.find(separator, begin)) {
    parts.push_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

}  // namespace

void RunScreen::add(const Value& event) {
  history_.add(event);
  const std::string type = text_of(event, "type");
  if (type == "step") {
    rate_ = number_of(event, "rate");
    rate_is_of_tokens_ = event.find("tokens") != nullptr;
  }
  if (const Value* busy = event.find("busy"); busy && busy->list()) add_busy(*busy->list());
  if (type == "run.chosen")
    choice_ = text_of(event, "schedule") + ", precision " + text_of(event, "precision");
}

void RunScreen::add_busy(const Value::List& shares) {
  // Another plan has other devices.
  if (shares.size() != busy_.size()) busy_.assign(shares.size(), {});
  for (std::size_t device = 0; device < shares.size(); ++device) {
    auto& of_one = busy_[device];
    of_one.push_back(shares[device].is_number() ? shares[device].number() : 0);
    if (of_one.size() > most_shares) of_one.pop_front();
  }
}

/// Returns a line for each device: how much of each of the last steps it computed.
std::string RunScreen::devices_text(std::size_t columns) const {
  if (busy_.empty()) return {};
  constexpr std::size_t beside = 20;  // "  device 12    93 %  "
  std::string text = "\nhow much of each of the last steps the devices computed\n";
  for (std::size_t device = 0; device < std::min(busy_.size(), most_devices); ++device) {
    const auto& shares = busy_[device];
    const auto shown =
        std::min({shares.size(), most_shares, columns > beside ? columns - beside : 1});
    std::array<char, 48> name{};
    std::snprintf(name.data(), name.size(), "  device %-3zu %4lld %%  ", device,
                  std::llround(shares.back()));
    text += name.data() +
            share_line({shares.end() - static_cast<std::ptrdiff_t>(shown), shares.end()}) + "\n";
  }
  if (busy_.size() > most_devices)
    text += "  and " + std::to_string(busy_.size() - most_devices) + " more\n";
  return text;
}

std::string RunScreen::page(const Value& run, double speed, const TextForm& form) const {
  const auto columns = form.columns;
  const double step = number_in(run, "step"), steps = number_in(run, "steps");
  const auto state = text_of(run, "state");
  const auto tone = form.has_colours ? tone_of_state(state) : Tone::plain;
  std::vector<std::string> head{text_of(run, "name") + ": " + toned(state, tone),
                                "step " + thousands(step) + " of " + thousands(steps)};
  if (steps > 0) head.push_back(std::to_string(std::llround(100 * step / steps)) + " %");
  if (speed > 0) {
    head.push_back(brief(speed, 3) + " steps/s");
    head.push_back(duration((steps - step) / speed) + " left");
  }
  std::string text = joined(head, ", ", columns);
  std::vector<std::string> facts;
  const auto add = [&](const std::string& fact) { facts.push_back(fact); };
  if (const auto loss = number_of(run, "loss")) add("loss " + loss_text(*loss));
  if (rate_) add(thousands(*rate_) + (rate_is_of_tokens_ ? " tokens/s" : " samples/s"));
  if (const auto goodput = number_of(run, "goodput"))
    add("goodput " + brief(100 * *goodput) + " %");
  if (const auto recoveries = number_in(run, "recoveries"); recoveries > 0)
    add(recoveries == 1 ? "recovered once" : "recovered " + brief(recoveries) + " times");
  if (!facts.empty()) text += joined(facts, ", ", columns);
  if (const std::string why = text_of(run, "why"); !why.empty()) text += toned(why, tone) + "\n";
  if (const auto losses = history_.losses(); losses.size() > 1) {
    const auto [low, high] = std::ranges::minmax(losses);
    text += "\nloss from step " + thousands(static_cast<double>(history_.first_step())) +
            " on, between " + loss_text(low) + " and " + loss_text(high) + "\n" +
            sparkline(losses, columns) + "\n";
  }
  if (const std::string where = text_of(run, "where"); !where.empty())
    text += "\n" +
            joined(parts_of_places(where + (choice_.empty() ? "" : "; " + choice_)), "; ", columns);
  text += devices_text(columns);
  const auto& told = history_.told();
  if (!told.empty()) text += "\nevents, the newest first\n";
  for (auto one = told.rbegin(); one != told.rend(); ++one) text += "  " + one->text + "\n";
  return text;
}

std::string share_line(const std::deque<double>& shares) {
  std::string text;
  for (const double share : shares) {
    const auto height = std::lround(share / 100 * (blocks.size() - 1));
    text += blocks[static_cast<std::size_t>(std::clamp<long>(height, 0, blocks.size() - 1))];
  }
  return text;
}

std::string sparkline(const std::vector<double>& numbers, std::size_t columns) {
  columns = std::min(columns, numbers.size());
  std::vector<double> means;
  for (std::size_t i = 0; i < columns; ++i) {
    const auto first = numbers.size() * i / columns, end = numbers.size() * (i + 1) / columns;
    double mean = 0;
    for (auto k = first; k < end; ++k) mean += numbers[k] / static_cast<double>(end - first);
    means.push_back(mean);
  }
  if (means.empty()) return {};
  const auto [low, high] = std::ranges::minmax(means);
  std::string text;
  for (const double mean : means) {
    const double height = high > low ? (mean - low) / (high - low) : 0;
    text += blocks[static_cast<std::size_t>(std::lround(height * (blocks.size() - 1)))];
  }
  return text;
}

}  // namespace troupe::apps
