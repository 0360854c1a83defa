// `troupe help`: the list of commands in groups, and examples for the help of each command.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command.h"
#include "apps/commands/usage.h"
#include "apps/events/terminal_width.h"

namespace troupe::apps {
namespace {

struct CommandGroup {
  const char* title;
  std::vector<std::string_view> commands;
};

const std::vector<CommandGroup>& command_groups() {
  static const std::vector<CommandGroup> groups = {
      {"Train, and look at the result",
       {"init", "train", "report", "eval", "sample", "audit", "trace", "rm"}},
      {"Data, checkpoints, configurations and models", {"data", "checkpoint", "config", "model"}},
      {"Plan before training", {"plan", "sim", "schedule"}},
      {"Runs of a head",
       {"submit", "attach", "logs", "events", "runs", "set", "pause", "resume", "stop"}},
      {"Machines",
       {"head", "node", "up", "down", "nodes", "status", "top", "stacks", "probe", "keys", "render",
        "doctor"}},
      {"Tests and measurements", {"verify", "play", "chaos", "bench"}},
      {"About this program", {"help", "completion", "version"}},
  };
  return groups;
}

/// Command lines that work as they stand, except for names of files, runs and nodes.
struct Examples {
  std::string_view command;
  std::vector<const char*> lines;
};

const std::vector<Examples>& all_examples() {
  static const std::vector<Examples> examples = {
      {"init",
       {"troupe init book.txt", "troupe init book.txt --name own --size small --steps 2000"}},
      {"train",
       {"troupe train config/quickstart.toml",
        "troupe train config/quickstart.toml --set train.steps=1000 --set optimizer.lr=1e-3",
        "troupe train config/quickstart.toml --resume",
        "troupe train config/quickstart.toml --resume --extend 500",
        "troupe train tuned.toml --set model.init=run:quickstart"}},
      {"report",
       {"troupe report quickstart --out report.html",
        "troupe report quickstart quickstart.1 --format svg --out loss.svg"}},
      {"eval", {"troupe eval own", "troupe eval own --data other.txt --samples 1000"}},
      {"sample",
       {"troupe sample own --prompt \"You may\"",
        "troupe sample own --tokens 200 --temperature 0.7 --top-k 40 --seed 2"}},
      {"audit", {"troupe audit quickstart", "troupe audit runs/quickstart --data"}},
      {"trace export",
       {"troupe trace export quickstart --out trace.json",
        "troupe trace export quickstart --format pprof --out run.pb.gz"}},
      {"data make", {"troupe data make 'made:markov?states=64' --to text.bin --context 64"}},
      {"data prepare",
       {"troupe data prepare book.txt --to book --validate 5%",
        "troupe data prepare book.txt --to book --validate 5% --train-tokenizer 1024"}},
      {"data inspect", {"troupe data inspect 'book_*.bin'"}},
      {"checkpoint ls", {"troupe checkpoint ls quickstart"}},
      {"checkpoint inspect", {"troupe checkpoint inspect quickstart"}},
      {"checkpoint verify", {"troupe checkpoint verify runs/quickstart/checkpoints"}},
      {"checkpoint prune", {"troupe checkpoint prune quickstart --keep 1"}},
      {"checkpoint export",
       {"troupe checkpoint export quickstart --to exported",
        "troupe checkpoint export quickstart --to weights.safetensors"}},
      {"checkpoint import", {"troupe checkpoint import gpt2 --to gpt2/checkpoints"}},
      {"config check",
       {"troupe config check own.toml --data",
        "troupe config check own.toml --set model.width=96"}},
      {"config show", {"troupe config show own.toml --origin"}},
      {"config schema", {"troupe config schema > troupe.schema.json"}},
      {"config reference", {"troupe config reference > config.md"}},
      {"model ls", {"troupe model ls"}},
      {"model show",
       {"troupe model show own.toml --set width=16",
        "troupe model show mlp --set 'dims=[784, 64, 10]' --output json"}},
      {"model check", {"troupe model check own.toml"}},
      {"model layers", {"troupe model layers > layers.md"}},
      {"plan",
       {"troupe plan config/gpt-small.toml --nodes 4",
        "troupe plan config/gpt2.toml --device h100"}},
      {"sim", {"troupe sim config/gpt-small.toml --cluster cluster.toml --spot --hours 24"}},
      {"schedule",
       {"troupe schedule zb-h1 --stages 4 --micro-batches 8",
        "troupe schedule 1f1b --stages 4 --micro-batches 8 --format svg > 1f1b.svg",
        "troupe schedule --search --stages 8 --micro-batches 32 --cap 6"}},
      {"submit",
       {"troupe submit own.toml --wait",
        "troupe submit own.toml --set pipeline.stages=2 --resume"}},
      {"attach", {"troupe attach own"}},
      {"logs", {"troupe logs own | grep warning", "troupe logs own --follow"}},
      {"events", {"troupe events", "troupe events own --output json"}},
      {"runs", {"troupe runs", "troupe runs --local"}},
      {"rm", {"troupe rm quickstart.1", "troupe rm runs/quickstart.*"}},
      {"set",
       {"troupe set own optimizer.lr=1e-4", "troupe set own checkpoint.every=500 --from 2000"}},
      {"pause", {"troupe pause own"}},
      {"resume", {"troupe resume own"}},
      {"stop", {"troupe stop own"}},
      {"head",
       {"troupe head", "troupe head --listen 0.0.0.0:4700 --keys head.key --allow allowed.txt"}},
      {"node", {"troupe node --name alpha", "troupe node --head tcp://10.0.0.1:4700 --cores 8"}},
      {"up", {"troupe up hosts.txt --head tcp://10.0.0.1:4700"}},
      {"down", {"troupe down hosts.txt"}},
      {"nodes", {"troupe nodes", "troupe nodes drain alpha"}},
      {"status", {"troupe status", "troupe status --output json"}},
      {"top", {"troupe top", "troupe top --every 5", "troupe top --once --output json"}},
      {"stacks",
       {"troupe stacks own", "troupe stacks own --stage 1", "troupe stacks --node alpha"}},
      {"probe", {"troupe probe", "troupe probe own --output json"}},
      {"keys new", {"troupe keys new head", "troupe keys new alpha --roles daemon"}},
      {"render slurm", {"troupe render slurm own.toml --nodes 4 --time 12:00:00 > own.sbatch"}},
      {"render k8s", {"troupe render k8s own.toml --nodes 4 --image troupe:0.1 > own.yaml"}},
      {"render ssh", {"troupe render ssh hosts.txt > nodes.sh"}},
      {"doctor", {"troupe doctor", "troupe doctor --hosts hosts.txt"}},
      {"verify", {"troupe verify config/gpt-tiny.toml --set pipeline.schedule=zb-h1"}},
      {"play", {"troupe play config/scenarios/loses-a-node.toml"}},
      {"chaos", {"troupe chaos kill alpha", "troupe chaos slow alpha --times 3 --for 30s"}},
      {"bench transport", {"troupe bench transport"}},
      {"bench train", {"troupe bench train --alone"}},
      {"bench link",
       {"troupe bench link --listen 0.0.0.0:4800", "troupe bench link tcp://10.0.0.1:4800"}},
      {"bench gpu", {"troupe bench gpu --micro 16 --context 1024"}},
      {"bench kernels", {"troupe bench kernels --profile core.json"}},
      {"help", {"troupe help", "troupe help data prepare"}},
      {"completion", {"source <(troupe completion bash)"}},
      {"version", {"troupe version"}},
  };
  return examples;
}

/// Lists the program's commands in groups, in lines that fit 80 columns.
class GroupedHelp final : public CLI::Formatter {
 public:
  GroupedHelp() { column_width(14); }

  std::string make_subcommands(const CLI::App* program, CLI::AppFormatMode) const override {
    std::string text;
    for (const auto& group : command_groups()) {
      text += "\n" + std::string(group.title) + ":\n";
      for (const auto name : group.commands)
        text += make_subcommand(program->get_subcommand(std::string(name)));
    }
    return text;
  }

  std::string make_option(const CLI::Option* option, bool positional) const override {
    GroupedHelp wide;
    wide.column_width(20);
    return wide.CLI::Formatter::make_option(option, positional);
  }
};

void add_examples(CLI::App& command) {
  std::string text;
  for (const auto& line : examples_of(command)) text += "  " + line + "\n";
  if (!text.empty()) command.footer("Examples:\n" + text);
  for (auto* inner : command.get_subcommands([](const CLI::App*) { return true; }))
    add_examples(*inner);
}

ExitCode help(const CLI::App& program, const std::vector<std::string>& words) {
  const CLI::App* command = &program;
  for (const auto& word : words) {
    const auto inner = shown_commands(*command);
    const auto found = std::ranges::find(inner, word, &CLI::App::get_name);
    if (found == inner.end())
      return complain(ExitCode::usage, no_command(*command, word) + "`troupe help` lists them");
    command = *found;
  }
  // CLI::App::help() of the program describes the command that was called, which is `help` itself.
  const auto text = command->get_formatter()->make_help(command, full_name(*command, ' '),
                                                        CLI::AppFormatMode::Normal);
  print_columns(text);
  return ExitCode::done;
}

}  // namespace

std::vector<std::string> examples_of(const CLI::App& command) {
  if (!command.get_parent()) return {};
  const std::string name = full_name(command, ' ').substr(std::string_view("troupe ").size());
  std::vector<std::string> lines;
  for (const auto& [owner, own] : all_examples())
    if (owner == name || owner.starts_with(name + " "))
      lines.insert(lines.end(), own.begin(), own.end());
  return lines;
}

void add_help(Program& program) {
  auto& app = program.app;
  CLI::App* command = app.add_subcommand("help", "list all commands, or describe one");
  const auto words = std::make_shared<std::vector<std::string>>();
  command->add_option("command", *words, "the command, such as train or data prepare");
  command->callback(
      [&app, &exit_code = program.exit_code, words] { exit_code = help(app, *words); });
}

void arrange_help(CLI::App& program) {
  add_examples(program);
  program.formatter(std::make_shared<GroupedHelp>());
  program.footer("`troupe help COMMAND` describes a command and shows examples.\n");
}

}  // namespace troupe::apps
