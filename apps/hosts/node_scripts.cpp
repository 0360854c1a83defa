#include "apps/hosts/node_scripts.h"

#include <utility>

#include "apps/hosts/ssh.h"

namespace troupe::apps {
namespace {

constexpr const char* place_of_notes =
    "folder=\"${XDG_STATE_HOME:-$HOME/.local/state}/troupe/@NAME@\"\n";

// A node runs in a session of its own, so it survives the end of the connection.
constexpr const char* start = R"sh(program=@PROGRAM@
(umask 077 && mkdir -p "$folder") || exit 1
command -v "$program" >/dev/null || { echo "there is no $program" >&2; exit 127; }
cores=$((($(nproc) + @SLOTS@ - 1) / @SLOTS@))
for node in @NODES@; do
  # A node that an earlier `up` has started runs on.
  grep -qszxF TROUPE_UP=@NAME@ "/proc/$(cat "$folder/$node.pid" 2>/dev/null)/environ" && continue
  : >"$folder/$node.log"
  TROUPE_UP=@NAME@ setsid "$program" node --head @HEAD@ --name "$node" --cores "$cores" </dev/null >>"$folder/$node.log" 2>&1 &
  echo $! >"$folder/$node.pid"
done
failed=0
for node in @NODES@; do
  # What it says, until it has joined, has ended, or the patience is over.
  process=$(cat "$folder/$node.pid")
  timeout @PATIENCE@ tail -n +1 -s 0.1 -f --pid="$process" "$folder/$node.log" | sed '/^joined /q'
  if ! kill -0 "$process" 2>/dev/null || ! grep -q '^joined ' "$folder/$node.log"; then
    echo "node $node has not joined the head; its log: $folder/$node.log" >&2
    failed=1
  fi
done
exit "$failed"
)sh";

constexpr const char* script_of_down =
    R"sh(ours() { grep -lzxF TROUPE_UP=@NAME@ /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3; }
# In a container without an init a process that has ended stays as a zombie. It has no environment.
runs() { grep -qszxF TROUPE_UP=@NAME@ "/proc/$1/environ"; }
seconds() { cut -d. -f1 /proc/uptime; }
wait_for() { # SECONDS PROCESS: in the background
  (
    end=$(($(seconds) + $1))
    while runs "$2" && [ "$(seconds)" -le "$end" ]; do sleep 0.1; done
  ) &
}
count=$(ours | wc -l)
for file in "$folder"/*.pid; do
  [ -e "$file" ] || break
  process=$(cat "$file")
  runs "$process" || continue
  kill -TERM "$process" 2>/dev/null
  wait_for @PATIENCE@ "$process"
done
wait
left=$(ours | tr '\n' ' ')
if [ -n "$left" ]; then
  echo "killed, as they did not end in time: $left"
  for process in $left; do
    kill -KILL "$process" 2>/dev/null
    wait_for 5 "$process"
  done
  wait
fi
left=$(ours | tr '\n' ' ')
if [ -n "$left" ]; then
  echo "these processes do not end: $left" >&2
  exit 1
fi
rm -rf "$folder"
echo "ended $count processes"
)sh";

}  // namespace

std::string script_that_starts(const Host& host, const NodesOrder& order) {
  const std::string machine = machine_of(host);
  std::vector<std::string> nodes;
  nodes.reserve(static_cast<std::size_t>(host.slots));
  for (int slot = 0; slot < host.slots; ++slot)
    nodes.push_back(host.slots == 1 ? machine : machine + "-" + std::to_string(slot));
  std::string script = script_to(order.place);
  if (!order.keys.empty())
    script += "export TROUPE_KEYS=" + shell_quoted(filled(order.keys, {{"{host}", machine}})) +
              " TROUPE_HEAD_KEY=" + shell_quoted(order.head_key) + "\n";
  return script + filled(std::string(place_of_notes) + start,
                         {{"@NAME@", order.name},
                          {"@PROGRAM@", shell_quoted(order.place.program)},
                          {"@SLOTS@", std::to_string(host.slots)},
                          {"@NODES@", shell_line(nodes)},
                          {"@HEAD@", shell_quoted(order.head)},
                          {"@PATIENCE@", std::to_string(order.patience.count())}});
}

std::string script_that_ends(const std::string& name, std::chrono::seconds patience) {
  return filled(std::string(place_of_notes) + script_of_down,
                {{"@NAME@", name}, {"@PATIENCE@", std::to_string(patience.count())}});
}

}  // namespace troupe::apps
