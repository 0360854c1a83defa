#include "apps/hosts/render.h"
#include "apps/hosts/ssh.h"

namespace troupe::apps {
namespace {

constexpr const char* beginning = R"(set -uo pipefail

# Runs a script, given on standard input, on a machine; each line stands behind the machine's name.
on() {
  ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=10 -- "$1" exec sh -s 2>&1 | sed "s/^/$1: /"
}
processes=()
)";

constexpr const char* closing_lines = R"(
failed=0
for process in "${processes[@]}"; do
  wait "$process" || failed=$((failed + 1))
done
if [ "$failed" -gt 0 ]; then
  echo "error: $failed of ${#processes[@]} machines failed" >&2
  exit 1
fi
)";

}  // namespace

std::string render_ssh(const std::vector<Host>& hosts, const NodesOrder& order) {
  std::string text = "#!/usr/bin/env bash\n";
  text += "# Nodes for the head " + order.head + " on " + std::to_string(hosts.size()) +
          " machines. bash THIS up; bash THIS down\n";
  text += beginning;
  const auto part = [&](const std::string& word, auto script_of) {
    text += word + ")\n";
    for (const auto& host : hosts)
      text += "on " + shell_quoted(host.name) + " <<'SCRIPT' &\n" + script_of(host) +
              "SCRIPT\nprocesses+=(\"$!\")\n";
    text += ";;\n";
  };
  text += "case ${1:-} in\n";
  part("up", [&](const Host& host) { return script_that_starts(host, order); });
  part("down", [&](const Host&) { return script_that_ends(order.name, order.patience); });
  text += "*)\n  echo \"usage: $0 up | down\" >&2\n  exit 2\n  ;;\nesac\n";
  return text + closing_lines;
}

}  // namespace troupe::apps
