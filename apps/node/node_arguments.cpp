#include "apps/node/node_arguments.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "apps/exit_code.h"
#include "transport/control/conversation.h"

namespace troupe::apps {

void NodeArguments::add_to(CLI::App& command) {
  command.add_option("--head", head, "address of the head");
  command.add_option("--name", name, "name of the node (default: the host's name)");
  command.add_option("--cores", cores, "number of cores to use (default: all)");
  command.add_option(
      "--interface", interface,
      "address at which other nodes reach this machine (default: that of the route to the head)");
  keys.add_to(command);
  command
      .add_option("--precision", precision,
                  "fastest precision to offer if the configuration says auto (default: what the "
                  "processor has)")
      ->check(CLI::IsMember({"fp32", "bf16-pairs", "bf16-blocks"}));
  command
      .add_option("--carrier", carrier,
                  "transport: auto (GPU to GPU, and shared memory within a machine) or tcp")
      ->check(CLI::IsMember({"auto", "tcp"}));
}

std::vector<std::string> NodeArguments::words() const {
  std::vector<std::string> words{"node-process",
                                 "--head",
                                 head,
                                 "--cores",
                                 std::to_string(cores),
                                 "--carrier",
                                 carrier,
                                 "--term",
                                 std::to_string(term),
                                 "--first-gpu",
                                 std::to_string(first_gpu)};
  const std::pair<std::string, std::string> said[] = {
      {"--name", name},           {"--interface", interface}, {"--term-proof", term_proof},
      {"--precision", precision}, {"--keys", keys.keys},      {"--head-key", keys.head_key}};
  for (const auto& [option, value] : said)
    if (!value.empty()) words.insert(words.end(), {option, value});
  return words;
}

std::int64_t new_life(Env& env) {
  return static_cast<std::int64_t>(transport::new_incarnation(env) >> 2 | 1);
}

std::vector<std::string> environment_of(std::int64_t life) {
  return {std::string(life_variable) + "=" + std::to_string(life)};
}

actors::ExitNotice notice_of(std::int64_t life, const ProcessEnd& end) {
  if (end.signal == 0 && end.code == static_cast<int>(ExitCode::dismissed))
    return {life, "was stopped permanently", "", 0};
  const bool ended_well = end.signal == 0 && end.code == 0;
  return {life, to_text(end), ended_well ? "" : end.last_words, end.signal};
}

}  // namespace troupe::apps
