// `troupe model`: the kinds of models, and descriptions of one's own.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/events/number_text.h"
#include "apps/events/terminal_width.h"
#include "config/description_file.h"
#include "config/model_kinds.h"
#include "config/pages/render.h"
#include "config/toml/toml.h"
#include "core/json.h"
#include "core/memory/dtype.h"
#include "core/text.h"

namespace troupe::apps {
namespace {

constexpr std::size_t longest_line = 100;

struct NoModelArguments {};

struct ModelArguments {
  std::string name;
  std::vector<std::string> settings;
};

ExitCode list_kinds(const NoModelArguments&, const CommonFlags& flags) {
  std::size_t width = 0;
  for (const auto& kind : config::model_kinds()) width = std::max(width, kind.name().size() + 1);
  for (const auto& kind : config::model_kinds()) {
    if (flags.output == "json") {
      Value line;
      line.set("name", kind.name());
      line.set("help", kind.help());
      Value::List presets;
      for (const auto& preset : kind.presets()) presets.emplace_back(preset.name);
      line.set("presets", std::move(presets));
      std::puts(to_json(line).c_str());
    } else {
      const std::string gap(width - kind.name().size(), ' ');
      print_wrapped(kind.name() + gap + kind.help() + "\n");
      std::string presets;
      for (const auto& preset : kind.presets())
        presets += (presets.empty() ? "" : ", ") + preset.name;
      const std::string indent(width, ' ');
      if (!presets.empty())
        print_wrapped(indent + wrapped(presets, longest_line - width, width) + "\n");
    }
  }
  return ExitCode::done;
}

/// The parameters of a model; one that two units share counts once.
struct ParameterCount {
  std::int64_t all = 0;
  std::int64_t used = 0;  // The number that a row is computed with. Fewer than all if experts are.
};
ParameterCount count_parameters(const models::Model& model) {
  std::set<std::string> seen;
  std::int64_t all = 0;
  double unused = 0;
  for (const auto& unit : model.units)
    for (const auto& parameter : unit.layer->parameters()) {
      if (!seen.insert(parameter.name).second) continue;
      all += parameter.shape.count();
      unused += (1 - parameter.share_of_rows) * static_cast<double>(parameter.shape.count());
    }
  return {all, all - std::llround(unused)};
}

std::string text_of(const ParameterCount& count) {
  const auto text = [](std::int64_t number) { return count_text(static_cast<double>(number)); };
  if (count.used == count.all) return text(count.all) + " parameters";
  return text(count.all) + " parameters, " + text(count.used) + " of them for each row";
}

Value as_value(const Shape& shape) { return Value(Value::List(shape.begin(), shape.end())); }

using Bundles = std::vector<std::vector<models::BundlePart>>;

/// Returns the shapes, without the batch, of what each unit receives. Empty if images may have any
/// size.
Bundles bundles_of_a_sample(const models::Model& model) {
  Shape one{1};
  for (const auto size : model.sample.input) {
    if (size == 0) return {};
    one.append(size);
  }
  auto bundles = models::bundles_of(model, one);
  for (auto& parts : bundles)
    for (auto& part : parts) {
      const Shape with_batch = std::exchange(part.shape, {});
      for (int i = 1; i < with_batch.rank(); ++i) part.shape.append(with_batch[i]);
    }
  return bundles;
}

/// Returns "[16, 7, 7], skip0 [8, 14, 14]".
std::string to_text(const std::vector<models::BundlePart>& parts) {
  std::string text;
  for (const auto& part : parts)
    text += (part.name.empty() ? "" : ", " + part.name + " ") + to_string(part.shape);
  return text;
}

/// Returns "[16]", or with several inputs "tokens [16], marks [16]".
std::string inputs_text(const models::SampleForm& form) {
  if (form.more.empty()) return to_string(form.input);
  std::string text = form.input_name + " " + to_string(form.input);
  for (const auto& input : form.more) text += ", " + input.name + " " + to_string(input.shape);
  return text;
}

Value as_value(const std::vector<models::BundlePart>& parts) {
  Value::List list;
  for (const auto& part : parts) {
    Value one;
    if (!part.name.empty()) one.set("kept", part.name);
    one.set("shape", as_value(part.shape));
    list.push_back(std::move(one));
  }
  return Value(std::move(list));
}

Value as_value(const models::Model& model) {
  Value::List units;
  const auto bundles = bundles_of_a_sample(model);
  for (std::size_t i = 0; i < model.units.size(); ++i) {
    const auto& unit = model.units[i];
    Value::Map parameters;
    for (const auto& parameter : unit.layer->parameters())
      parameters.push_back({parameter.name, as_value(parameter.shape), {}});
    Value one;
    one.set("name", unit.name);
    if (!bundles.empty()) one.set("receives", as_value(bundles[i]));
    one.set("parameters", std::move(parameters));
    units.push_back(std::move(one));
  }
  Value made;
  made.set("kind", model.kind);
  made.set("input", as_value(model.sample.input));
  Value::Map inputs = {{model.sample.input_name, as_value(model.sample.input), {}}};
  for (const auto& input : model.sample.more)
    inputs.push_back({input.name, as_value(input.shape), {}});
  made.set("inputs", std::move(inputs));
  made.set("classes", model.classes);
  made.set("target", as_value(model.sample.target));
  const auto count = count_parameters(model);
  made.set("parameters", count.all);
  made.set("parameters_for_each_row", count.used);
  made.set("units", std::move(units));
  return made;
}

void print_options(const models::ModelKind& kind) {
  if (kind.options().empty()) return;
  std::puts("\noptions:");
  for (const auto& option : kind.options()) {
    const std::string fallback =
        option.fallback.is_null() ? "required" : config::to_toml(option.fallback);
    char names[128];
    std::snprintf(names, sizeof names, "  %-12s %-10s ", option.name.c_str(), fallback.c_str());
    print_columns(names + option.help + "\n");
  }
}

void print_units(const models::Model& model) {
  std::size_t width = 0;
  for (const auto& unit : model.units)
    for (const auto& parameter : unit.layer->parameters())
      width = std::max(width, parameter.name.size());
  const auto bundles = bundles_of_a_sample(model);
  for (std::size_t i = 0; i < model.units.size(); ++i) {
    const auto& unit = model.units[i];
    const auto receives = bundles.empty() ? "" : " receives " + to_text(bundles[i]);
    std::printf("\n%s%s\n", unit.name.c_str(), receives.c_str());
    for (const auto& parameter : unit.layer->parameters())
      std::printf("  %-*s  %s\n", static_cast<int>(width), parameter.name.c_str(),
                  to_string(parameter.shape).c_str());
  }
}

std::string joined_words(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

ExitCode show_kind(const ModelArguments& arguments, const CommonFlags& flags) {
  const auto file = config::DescriptionFile::open(arguments.name);
  if (!file) return complain(ExitCode::invalid, file.error().text);
  const auto missing = file->missing(arguments.settings);
  if (!missing) return complain(ExitCode::invalid, missing.error().text);
  const bool is_json = flags.output == "json";
  if (!is_json) {
    print_wrapped(file->kind().name() + ": " + file->kind().help() + "\n");
    print_options(file->kind());
  }
  if (!missing->empty())
    return complain(is_json ? ExitCode::invalid : ExitCode::done,
                    "to see its units, give " + joined_words(*missing) + ": --set " +
                        missing->front() + "=...");
  const auto model = file->build(arguments.settings);
  if (!model) return complain(ExitCode::invalid, model.error().text);
  if (is_json) {
    std::fputs(to_json_lines(as_value(*model)).c_str(), stdout);
    return ExitCode::done;
  }
  print_units(*model);
  const auto targets = model->classes > 0 ? std::to_string(model->classes) + " classes"
                                          : "numbers " + to_string(model->sample.target);
  std::printf("\n%zu units, %s; from %s to %s\n", model->units.size(),
              text_of(count_parameters(*model)).c_str(), inputs_text(model->sample).c_str(),
              targets.c_str());
  return ExitCode::done;
}

ExitCode check_file(const ModelArguments& arguments, const CommonFlags& flags) {
  const auto file = config::DescriptionFile::open(arguments.name);
  if (!file) return complain(ExitCode::invalid, file.error().text);
  const auto missing = file->missing(arguments.settings);
  if (!missing) return complain(ExitCode::invalid, missing.error().text);
  if (missing->empty())
    if (const auto model = file->build(arguments.settings); !model)
      return complain(ExitCode::invalid, model.error().text);
  if (!flags.quiet)
    std::printf("%s: good%s\n", arguments.name.c_str(),
                missing->empty()
                    ? ""
                    : ("; shapes were not looked at: give " + joined_words(*missing) + " by --set")
                          .c_str());
  return ExitCode::done;
}

ExitCode print_layers(const NoModelArguments&, const CommonFlags&) {
  print_wrapped(config::layers_page());
  return ExitCode::done;
}

void add_model_options(CLI::App* command, ModelArguments& arguments, const char* help) {
  command->add_option("model", arguments.name, help)->required();
  command
      ->add_option("--set", arguments.settings,
                   "option=value: set an option of the model; can be repeated")
      ->allow_extra_args(false);
}

}  // namespace

void add_model(Program& program) {
  CLI::App& group = add_group(program, "model", "show kinds of models, and check descriptions");
  add_command(program, group, "ls", "list the kinds of models", list_kinds);
  auto showing = add_command(program, group, "show",
                             "print a model's options, units, parameters and shapes", show_kind);
  add_model_options(showing.app, showing.arguments,
                    "a kind of model, or the .toml file of a description");
  auto checking =
      add_command(program, group, "check", "check the description of a model", check_file);
  add_model_options(checking.app, checking.arguments, "the .toml file of a description");
  add_command(program, group, "layers", "print the page of steps and expressions, in Markdown",
              print_layers);
}

}  // namespace troupe::apps
