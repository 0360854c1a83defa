#include <cstdio>

#include "apps/command.h"
#include "apps/run/run_setup.h"
#include "apps/run/schedule_file.h"
#include "config/load.h"
#include "config/pages/render.h"
#include "core/json.h"

namespace troupe::apps {
namespace {

struct FileArguments {
  std::string config;
  std::vector<std::string> settings;
  bool origin = false;
};

struct NoArguments {};

Result<config::Loaded> load(const FileArguments& arguments) {
  auto loaded = config::load({arguments.config, arguments.settings});
  if (loaded && !loaded->warnings.empty()) std::fputs(loaded->warnings.c_str(), stderr);
  return loaded;
}

struct CheckArguments : FileArguments {
  bool data = false;
};

ExitCode check(const CheckArguments& arguments, const CommonFlags& flags) {
  const auto loaded = load(arguments);
  if (!loaded) return complain(ExitCode::invalid, loaded.error().text);
  const auto files = storage::disk_files();
  if (const auto good = check_schedule_file(*files, loaded->config.pipeline); !good)
    return complain(ExitCode::invalid, "error: " + good.error().text);
  if (const auto good = check_support(loaded->config); !good) return invalid(good.error());
  if (arguments.data) {
    const auto setup = set_up(*files, loaded->config);
    if (!setup) return invalid(setup.error());
    if (const auto good = check_samples(loaded->config, *setup); !good)
      return invalid(good.error());
  }
  if (!flags.quiet)
    std::printf("%s: good%s\n", arguments.config.c_str(),
                arguments.data ? "" : "; data and model were not looked at (--data does)");
  return ExitCode::done;
}

ExitCode show(const FileArguments& arguments, const CommonFlags& flags) {
  const auto loaded = load(arguments);
  if (!loaded) return complain(ExitCode::invalid, loaded.error().text);
  const auto what = arguments.origin ? config::Show::origins : config::Show::values;
  const std::string text =
      flags.output == "json" ? to_json_lines(loaded->tree) : config::show(*loaded, what);
  std::fputs(text.c_str(), stdout);
  return ExitCode::done;
}

ExitCode schema(const NoArguments&, const CommonFlags&) {
  std::fputs(to_json_lines(config::json_schema()).c_str(), stdout);
  return ExitCode::done;
}

ExitCode reference(const NoArguments&, const CommonFlags&) {
  std::fputs(config::reference_page().c_str(), stdout);
  return ExitCode::done;
}

void add_file_options(CLI::App* command, FileArguments& arguments) {
  command
      ->add_option("config", arguments.config,
                   "configuration: a .toml or .json file; - reads JSON from stdin")
      ->required();
  command
      ->add_option("--set", arguments.settings,
                   "key=value: set a key of the configuration; can be repeated")
      ->allow_extra_args(false);
}

}  // namespace

void add_config(Program& program) {
  CLI::App& group = add_group(program, "config", "check and show configurations");
  auto checking =
      add_command(program, group, "check", "check the keys and values of a configuration", check);
  add_file_options(checking.app, checking.arguments);
  checking.app->add_flag("--data", checking.arguments.data,
                         "also open the data and build the model, as `troupe train` does");
  auto showing =
      add_command(program, group, "show", "print the merged configuration as TOML", show);
  add_file_options(showing.app, showing.arguments);
  showing.app->add_flag("--origin", showing.arguments.origin, "show the origin of each value");
  add_command(program, group, "schema", "print the JSON Schema of configurations", schema);
  add_command(program, group, "reference", "print the reference page, in Markdown", reference);
}

}  // namespace troupe::apps
