#include "apps/report/report_page.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <set>

#include "apps/report/markup.h"
#include "core/json.h"
#include "core/text.h"
#include "schedules/formats/svg.h"

namespace troupe::apps {
namespace {

constexpr std::size_t most_warnings = 20;
constexpr std::size_t most_stragglers = 20;
constexpr std::size_t most_delays = 32;
constexpr std::size_t recent_steps = 20;

std::string brief(double number, int digits = 4) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*g", digits, number);
  return text;
}

std::string brief(const std::optional<double>& number, int digits = 4) {
  return number ? brief(*number, digits) : "";
}

const std::string& name_of(const RunReport& run) { return run.events.name; }

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

// Tables.

std::string cell(const std::string& safe) { return "<td>" + safe + "</td>"; }

std::string overview(const std::vector<RunReport>& runs) {
  std::string text =
      "<div class=wide><table><thead><tr><th>run<th>ended<th>steps<th>loss<th>best loss"
      "<th>validation<th>best validation<th>rate<th>bubble<th>memory, MiB<th>checkpoints"
      "<th>warnings</thead>\n";
  for (const auto& run : runs) {
    const RunEvents& told = run.events;
    std::vector<double> evals;
    for (const auto& eval : told.evals)
      if (std::isfinite(eval.loss)) evals.push_back(eval.loss);
    const auto losses = known(told, &StepTold::loss);
    const auto memory = greatest(known(told, &StepTold::memory));
    const bool is_bad = told.state != "done" && told.state != "stopped";
    text += "<tr><td>" + escaped(told.name) + "</td><td class=" + (is_bad ? "bad" : "good") + ">" +
            escaped(ending_of(told)) + "</td>" +
            cell(std::to_string(told.steps.empty() ? 0 : told.steps.back().step)) +
            cell(brief(recent_mean(losses))) + cell(brief(least(losses))) +
            cell(evals.empty() ? "" : brief(evals.back())) + cell(brief(least(evals))) +
            cell(brief(median(known(told, &StepTold::rate)), 3)) +
            cell(brief(median(known(told, &StepTold::bubble)), 3)) +
            cell(memory ? brief(*memory / 1048576) : "") +
            cell(std::to_string(told.checkpoints.size())) +
            cell(std::to_string(told.warnings.size())) + "</tr>\n";
  }
  return text + "</table></div>\n<p class=note>loss: mean of the last " +
         std::to_string(recent_steps) + " steps; rate and bubble: medians; memory: the most.</p>\n";
}

/// Appends a table row for each scalar of a configuration: "model.layers" and 4.
void flatten(const Value& value, const std::string& name, std::string& rows) {
  if (const auto* map = value.map()) {
    for (const auto& [key, inner, position] : *map)
      flatten(inner, name.empty() ? key : name + "." + key, rows);
  } else if (!value.is_null()) {
    rows += "<tr><td>" + escaped(name) + "</td><td>" +
            escaped(value.text() ? *value.text() : to_json(value), 200) + "</td></tr>\n";
  }
}

std::string configuration(const Value& recipe) {
  std::string rows;
  for (const auto* section : {"seed", "model", "batch", "optimizer", "pipeline", "staleness"})
    if (const Value* found = recipe.find(section)) flatten(*found, section, rows);
  if (rows.empty()) return {};
  return "<details><summary>configuration</summary><table class=keys>\n" + rows +
         "</table></details>\n";
}

/// Lists errors and warnings of a run.
std::string troubles(const RunEvents& run) {
  std::string text;
  if (run.state == "failed")
    text +=
        "<p class=bad>first cause: " + escaped(run.why.empty() ? "unknown" : run.why) + "</p>\n";
  if (run.starts > 1)
    text += "<p>started " + std::to_string(run.starts) + " times; repeated steps count once</p>\n";
  if (run.is_torn)
    text += "<p>the last line is incomplete: the run was killed while writing it</p>\n";
  if (run.unreadable > 0)
    text += "<p>" + std::to_string(run.unreadable) + " lines are no events; " +
            escaped(run.first_flaw, 300) + "</p>\n";
  if (run.warnings.empty()) return text;
  text += "<ul>\n";
  for (std::size_t i = 0; i < std::min(run.warnings.size(), most_warnings); ++i)
    text += "<li>" + escaped(run.warnings[i], 1000) + "</li>\n";
  if (run.warnings.size() > most_warnings)
    text += "<li>and " + std::to_string(run.warnings.size() - most_warnings) + " more</li>\n";
  return text + "</ul>\n";
}

/// Lists the devices and links that slowed a run down, the newest ones if there are many.
std::string stragglers(const RunEvents& run) {
  if (run.stragglers.empty()) return {};
  const auto skipped = run.stragglers.size() - std::min(run.stragglers.size(), most_stragglers);
  std::string text =
      "<div class=wide><table><thead><tr><th>slow node<th>device<th>cause<th>times longer"
      "<th>more time, of a step<th>from step<th>to step</thead>\n";
  for (std::size_t i = skipped; i < run.stragglers.size(); ++i) {
    const auto& told = run.stragglers[i];
    const auto step = [](std::optional<std::int64_t> number) {
      return cell(number ? std::to_string(*number) : "");
    };
    text += "<tr>" + cell(escaped(told.node, 200)) + cell(std::to_string(told.device)) +
            cell(escaped(told.cause, 300)) + cell(brief(told.factor, 3)) +
            cell(told.share ? brief(100 * *told.share, 3) + " %" : "") + step(told.since) +
            step(told.until) + "</tr>\n";
  }
  return text + "</table></div>\n" +
         (skipped > 0
              ? "<p class=note>" + std::to_string(skipped) + " earlier ones are left out</p>\n"
              : "");
}

// Charts.

Curve curve_of(const RunReport& run, std::optional<double> StepTold::*member) {
  Curve curve{name_of(run), {}};
  for (const auto& step : run.events.steps)
    if (step.*member) curve.points.push_back({static_cast<double>(step.step), *(step.*member)});
  return curve;
}

LineChart chart_of(const std::vector<RunReport>& runs, const std::string& title,
                   std::optional<double> StepTold::*member, Drawing drawing) {
  LineChart chart{.title = title, .x = "step", .y = {}, .curves = {}, .drawing = drawing};
  for (const auto& run : runs)
    if (auto curve = curve_of(run, member); !curve.points.empty())
      chart.curves.push_back(std::move(curve));
  return chart;
}

void add(std::string& text, const LineChart& chart) {
  if (!chart.curves.empty()) text += to_svg(chart);
}

std::string common_charts(const std::vector<RunReport>& runs) {
  std::string text;
  add(text, loss_chart(runs, "loss"));
  LineChart validation{.title = "validation loss", .x = "step", .y = {}, .curves = {}};
  for (const auto& run : runs) {
    Curve curve{name_of(run), {}};
    for (const auto& eval : run.events.evals)
      curve.points.push_back({static_cast<double>(eval.step), eval.loss});
    if (!curve.points.empty()) validation.curves.push_back(std::move(curve));
  }
  add(text, validation);
  add(text, chart_of(runs, "gradient norm", &StepTold::grad_norm, Drawing::smoothed));
  add(text, chart_of(runs, "learning rate", &StepTold::lr, Drawing::as_is));
  add(text, chart_of(runs, "rate, samples/s or tokens/s", &StepTold::rate, Drawing::smoothed));
  add(text, chart_of(runs, "bubble", &StepTold::bubble, Drawing::smoothed));
  return text;
}

/// Draws one curve for each stage.
LineChart stages_chart(const RunReport& run, const std::string& title,
                       const std::function<double(const StageLateness&)>& value) {
  std::map<int, Curve> curves;
  for (const auto& step : run.events.steps)
    for (const auto& [stage, late] : step.late) {
      auto& curve = curves[stage];
      curve.name = "stage " + std::to_string(stage);
      curve.points.push_back({static_cast<double>(step.step), value(late)});
    }
  LineChart chart{.title = name_of(run) + ": " + title,
                  .x = "step",
                  .y = {},
                  .curves = {},
                  .drawing = Drawing::smoothed};
  for (auto& [stage, curve] : curves) chart.curves.push_back(std::move(curve));
  return chart;
}

BarChart delay_chart(const RunReport& run) {
  std::map<int, BarChart::Series> series;
  std::size_t groups = 0;
  for (const auto& step : run.events.steps)
    for (const auto& [stage, late] : step.late) {
      auto& of_stage = series[stage];
      of_stage.name = "stage " + std::to_string(stage);
      for (std::size_t delay = 0; delay < late.delays.size(); ++delay) {
        // The last bar also counts all longer delays.
        const std::size_t bar = std::min(delay, most_delays);
        if (of_stage.values.size() <= bar) of_stage.values.resize(bar + 1);
        of_stage.values[bar] += late.delays[delay];
      }
      groups = std::max(groups, of_stage.values.size());
    }
  BarChart chart{.title = name_of(run) + ": micro-batches by delay",
                 .x = "steps between the forward and the backward pass",
                 .y = "micro-batches",
                 .groups = {},
                 .series = {}};
  for (std::size_t delay = 0; delay < groups; ++delay)
    chart.groups.push_back(std::to_string(delay) + (delay == most_delays ? "+" : ""));
  for (auto& [stage, of_stage] : series) chart.series.push_back(std::move(of_stage));
  return chart;
}

bool is_late(const RunReport& run) {
  return std::ranges::any_of(run.events.steps, [](const auto& step) { return !step.late.empty(); });
}

std::string lateness(const RunReport& run) {
  if (!is_late(run)) return {};
  return to_svg(delay_chart(run)) +
         to_svg(stages_chart(run, "gap between the passes",
                             [](const auto& late) { return late.gap; })) +
         to_svg(stages_chart(run, "prediction error, below 1 it helps",
                             [](const auto& late) { return late.prediction_error; })) +
         to_svg(stages_chart(run, "mean gap penalty",
                             [](const auto& late) { return late.penalty_mean; }));
}

std::string timeline_of(const RunReport& run) {
  if (!run.timeline || run.timeline->spans.empty()) return {};
  const std::string svg =
      schedules::to_svg(*run.timeline, "measured timeline of the last rounds, in seconds");
  // Embedded as an image, so that its styles and ids do not mix with the page's.
  return "<div class=wide><img alt=\"timeline of the last rounds\" src=\"" + data_address(svg) +
         "\"></div>\n";
}

constexpr std::string_view style = R"(<style>
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:100rem;padding:0 1rem;
color:#222;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.5rem}
table{border-collapse:collapse;font-size:.9rem}
th,td{text-align:right;padding:.25rem .6rem;border-bottom:1px solid #8884;white-space:nowrap}
th:first-child,td:first-child,.keys td{text-align:left}
.wide{overflow-x:auto}.note{opacity:.7;font-size:.85rem}.bad{color:#b3261e}.good{color:#00734f}
.charts{display:flex;flex-wrap:wrap;gap:1rem}.charts svg{max-width:100%;height:auto}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#16181c}.bad{color:#ff8a80}
.good{color:#5fd3a8}}
</style>
)";

}  // namespace

LineChart loss_chart(const std::vector<RunReport>& runs, const std::string& title) {
  return chart_of(runs, title, &StepTold::loss, Drawing::smoothed);
}

std::string report_page(const std::vector<RunReport>& runs, const std::string& title) {
  std::string text =
      "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n"
      "<meta name=viewport content=\"width=device-width\">\n<title>" +
      escaped(title) + "</title>\n" + std::string(style) + "</head><body>\n<h1>" + escaped(title) +
      "</h1>\n" + overview(runs) + "<div class=charts>\n" + common_charts(runs) + "</div>\n";
  for (const auto& run : runs)
    text += "<h2>" + escaped(name_of(run)) + ": " + escaped(ending_of(run.events)) + "</h2>\n" +
            troubles(run.events) + stragglers(run.events) + configuration(run.recipe) +
            timeline_of(run) + "<div class=charts>\n" + lateness(run) + "</div>\n";
  return text + "</body></html>\n";
}

}  // namespace troupe::apps
