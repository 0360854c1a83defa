#include "transport/keys/keys.h"

#include <algorithm>
#include <cstdio>

#include "apps/command.h"
#include "transport/wire/message_types.h"

namespace troupe::apps {
namespace {

struct NewArguments {
  std::string name;
  std::string roles = "node";
};

ExitCode make_keys(const NewArguments& arguments, const CommonFlags&) {
  const auto pair = transport::make_key_pair();
  if (!pair) return complain(ExitCode::failed, "error: " + pair.error().text);
  const std::string file = arguments.name + ".key";
  if (auto written = transport::write_key_pair(file, *pair); !written)
    return complain(ExitCode::failed, "error: " + written.error().text);
  std::printf("# in %s: both keys, for nobody else's eyes. In the head's allow list:\n",
              file.c_str());
  std::printf("%-16s %-14s %s\n", arguments.name.c_str(), arguments.roles.c_str(),
              pair->public_key.c_str());
  return ExitCode::done;
}

}  // namespace

void add_keys(Program& program) {
  CLI::App& keys = add_group(program, "keys", "manage the keys of heads, nodes and people");
  auto [command, arguments] =
      add_command(program, keys, "new", "create a key pair in NAME.key", make_keys);
  command->add_option("name", arguments.name, "name of a host or a person")->required();
  command
      ->add_option("--roles", arguments.roles,
                   "roles, separated by commas: node, daemon, operator, viewer (default: node)")
      ->check([](const std::string& text) {
        std::string rest = text;
        while (!rest.empty()) {
          const auto comma = std::min(rest.find(','), rest.size());
          if (!transport::parse_role(rest.substr(0, comma)))
            return "'" + rest.substr(0, comma) +
                   "' is no role; there are node, daemon, operator, viewer";
          rest.erase(0, comma + 1);
        }
        return std::string();
      });
}

}  // namespace troupe::apps
