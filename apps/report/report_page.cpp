#include "apps/report/report_page.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "apps/page/page_files.h"
#include "core/json.h"
#include "core/text.h"

namespace troupe::apps {
namespace {

constexpr std::size_t most_stragglers = 20;
constexpr std::size_t recent_steps = 20;

// Numbers of a run.

std::vector<double> known(const RunEvents& run, std::optional<double> StepTold::*member) {
  std::vector<double> values;
  for (const auto& step : run.steps)
    if (step.*member && std::isfinite(*(step.*member))) values.push_back(*(step.*member));
  return values;
}

std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return {};
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

std::optional<double> greatest(const std::vector<double>& values) {
  if (values.empty()) return {};
  return std::ranges::max(values);
}

std::optional<double> least(const std::vector<double>& values) {
  if (values.empty()) return {};
  return std::ranges::min(values);
}

/// Returns the mean over the last steps, since a single step's loss is noisy.
std::optional<double> recent_mean(const std::vector<double>& values) {
  if (values.empty()) return {};
  const std::size_t count = std::min(values.size(), recent_steps);
  double sum = 0;
  for (std::size_t i = values.size() - count; i < values.size(); ++i) sum += values[i];
  return sum / static_cast<double>(count);
}

/// Describes how a run ended.
std::string ending_of(const RunEvents& run) {
  if (run.state.empty()) return "no events";
  if (run.state == "running") return "killed, or still running";
  return run.state;
}

Value::List notes_of(const RunReport& report) {
  const RunEvents& run = report.events;
  Value::List notes;
  if (run.state == "failed")
    notes.emplace_back("first cause: " + (run.why.empty() ? std::string("unknown") : run.why));
  if (run.starts > 1)
    notes.emplace_back("started " + std::to_string(run.starts) +
                       " times; repeated steps count once");
  if (run.is_torn)
    notes.emplace_back("the last line is incomplete: the run was killed while writing it");
  if (run.unreadable > 0)
    notes.emplace_back(std::to_string(run.unreadable) + " lines are no events; " + run.first_flaw);
  if (const Value* flaws = report.about.find("flaws"); flaws && flaws->list())
    for (const auto& flaw : *flaws->list()) notes.push_back(flaw);
  return notes;
}

/// Returns the newest devices and links that slowed a run down.
Value::List stragglers_of(const RunEvents& run) {
  Value::List all;
  const auto skipped = run.stragglers.size() - std::min(run.stragglers.size(), most_stragglers);
  for (std::size_t i = skipped; i < run.stragglers.size(); ++i) {
    const auto& told = run.stragglers[i];
    Value one;
    one.set("node", told.node);
    one.set("device", told.device);
    one.set("cause", told.cause);
    if (told.factor) one.set("factor", *told.factor);
    if (told.share) one.set("share", *told.share);
    if (told.since) one.set("since", *told.since);
    if (told.until) one.set("until", *told.until);
    all.push_back(std::move(one));
  }
  return all;
}

Value to_value(const RunReport& report) {
  const RunEvents& run = report.events;
  Value value;
  const auto set = [&](const char* key, std::optional<double> number) {
    if (number) value.set(key, *number);
  };
  value.set("name", run.name);
  value.set("state", run.state);
  value.set("ended", ending_of(run));
  value.set("step", run.steps.empty() ? std::int64_t{0} : run.steps.back().step);
  if (const Value* steps = report.about.find("steps")) value.set("steps", *steps);
  const auto losses = known(run, &StepTold::loss);
  set("loss", recent_mean(losses));
  set("best_loss", least(losses));
  std::vector<double> evals;
  for (const auto& eval : run.evals)
    if (std::isfinite(eval.loss)) evals.push_back(eval.loss);
  if (!evals.empty()) set("validation", evals.back());
  set("best_validation", least(evals));
  set("rate", median(known(run, &StepTold::rate)));
  set("bubble", median(known(run, &StepTold::bubble)));
  set("memory", greatest(known(run, &StepTold::memory)));
  value.set("checkpoints", static_cast<std::int64_t>(run.checkpoints.size()));
  value.set("warnings", static_cast<std::int64_t>(run.warnings.size()));
  value.set("notes", notes_of(report));
  value.set("stragglers", stragglers_of(run));
  if (!report.config.empty()) value.set("config", report.config);
  value.set("history", report.history);
  value.set("about", report.about);
  return value;
}

// The page.

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t at) {
      return at < bytes.size() ? std::uint32_t{static_cast<unsigned char>(bytes[at])} : 0;
    };
    const std::uint32_t three = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    for (int digit = 0; digit < 4; ++digit)
      text += i + static_cast<std::size_t>(digit) > bytes.size()
                  ? '='
                  : digits[three >> (18 - 6 * digit) & 63];
  }
  return text;
}

/// Returns how a Content-Security-Policy names a text within the page.
std::string source_of(std::string_view sha256) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < sha256.size(); i += 2) {
    unsigned value = 0;
    std::from_chars(sha256.data() + i, sha256.data() + i + 2, value, 16);
    bytes += static_cast<char>(value);
  }
  return " 'sha256-" + base64(bytes) + "'";
}

/// Allows the page's own scripts and styles, and nothing else: no connection, no other file.
std::string policy() {
  std::string text = "default-src 'none'; script-src";
  for (const auto& script : page_scripts()) text += source_of(script.sha256);
  return text + "; style-src" + source_of(page_css_sha256()) +
         "; base-uri 'none'; form-action 'none'";
}

/// Writes data for the inside of a script element: without "<", no text in it can end the element.
std::string data_text(const Value& data) {
  std::string text;
  for (const char letter : to_json(data))
    if (letter == '<')
      text += "\\u003c";
    else
      text += letter;
  return text;
}

void replace(std::string& page, std::string_view what, std::string_view with) {
  const auto at = page.find(what);
  if (at != page.npos) page.replace(at, what.size(), with);
}

/// Returns the runs as lines, for browsers that run no scripts.
std::string lines_of(const std::vector<RunReport>& runs) {
  std::string text;
  for (const auto& run : runs)
    text += run.events.name + ": " + ending_of(run.events) + ", step " +
            std::to_string(run.events.steps.empty() ? 0 : run.events.steps.back().step) + "\n";
  return text;
}

}  // namespace

LineChart loss_chart(const std::vector<RunReport>& runs, const std::string& title) {
  LineChart chart{.title = title, .x = "step", .y = {}, .curves = {}, .drawing = Drawing::smoothed};
  for (const auto& run : runs) {
    Curve curve{run.events.name, {}};
    for (const auto& step : run.events.steps)
      if (step.loss) curve.points.push_back({static_cast<double>(step.step), *step.loss});
    if (!curve.points.empty()) chart.curves.push_back(std::move(curve));
  }
  return chart;
}

std::string report_page(const std::vector<RunReport>& runs, const std::string& title) {
  Value data;
  data.set("title", title);
  Value::List all;
  for (const auto& run : runs) all.push_back(to_value(run));
  data.set("runs", std::move(all));

  std::string page(page_html());
  replace(page, "<meta charset=\"utf-8\">",
          "<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"" +
              policy() + "\">");
  replace(page, "<title>Troupe</title>", "<title>" + escaped(title) + "</title>");
  replace(page, "<link rel=\"stylesheet\" href=\"page.css\">",
          "<style>" + std::string(page_css()) + "</style>");
  std::string scripts =
      "<script type=\"application/json\" id=\"report\">" + data_text(data) + "</script>\n";
  for (const auto& script : page_scripts()) {
    replace(page, "<script src=\"" + std::string(script.name) + "\" defer></script>\n", "");
    scripts += "<script>" + std::string(script.text) + "</script>\n";
  }
  replace(page, "@plain@", escaped(lines_of(runs)));
  // They run once the rest of the page is there.
  const auto end = page.rfind("</body>");
  return page.insert(end, scripts);
}

}  // namespace troupe::apps
