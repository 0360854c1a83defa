#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// The table of all messages on the control plane. Each message type has one row: its name, the
/// roles that may send it, its largest size, the parts of Troupe that handle it, its fields and its
/// help text. docs/reference/messages.md and the list of the Python client are generated from it.
///
/// The compiler checks the table in both directions. A message struct or a name without a row does
/// not compile (MessageName, to_message()). A row without a handler does not compile either
/// (handles_all()).
namespace troupe::transport {

/// A set of values of an enumeration with at most 32 values.
template <class Of>
class EnumSet {
 public:
  constexpr EnumSet() = default;
  constexpr EnumSet(std::initializer_list<Of> members) {
    for (const Of member : members) bits_ |= bit(member);
  }

  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool has(Of member) const { return (bits_ & bit(member)) != 0; }
  constexpr bool meets(EnumSet other) const { return (bits_ & other.bits_) != 0; }
  constexpr void add(Of member) { bits_ |= bit(member); }

  friend constexpr bool operator==(EnumSet, EnumSet) = default;

 private:
  static constexpr unsigned bit(Of member) { return 1u << static_cast<unsigned>(member); }

  unsigned bits_ = 0;
};

/// A role of a key: it decides which messages the owner may send.
enum class Role {
  head,       // Knows all nodes and runs. The head alone dials nobody.
  daemon,     // Starts and watches the nodes of a host.
  node,       // A process with devices.
  operator_,  // A person or a script.
  viewer,     // A person or a script that may look and change nothing.
};
using Roles = EnumSet<Role>;

/// Returns "head", "daemon", "node", "operator" or "viewer".
std::string_view to_string(Role role);
std::optional<Role> parse_role(std::string_view text);
/// Returns "daemon, node".
std::string to_string(Roles roles);

/// The roles that dial the head.
inline constexpr Roles all_dialers = {Role::daemon, Role::node, Role::operator_, Role::viewer};

/// The part of Troupe that acts on a message. Each part keeps a table of its handlers and checks at
/// compile time that the table names all of its messages (handles_all()).
enum class Handler {
  conversation,    // transport/control/conversation.cpp
  client,          // apps/client/head_client.cpp, and clients in other languages
  gate,            // apps/head/node_gate.cpp: messages about a process
  head,            // apps/head/head_service.cpp: questions that the head answers at once
  orders,          // apps/head/head_orders.cpp: changes of runs and nodes
  questions,       // apps/head/head_questions.cpp: questions that take long
  node_questions,  // apps/head/node_questions.cpp: questions that nodes answer
  link_questions,  // apps/head/link_questions.cpp: questions about the ways between nodes
  node,            // actors/nodes/node.cpp
  attempt,         // actors/nodes/attempt.cpp: what nodes report about an attempt of a run
  player,          // actors/nodes/wire_message.cpp: messages for players and for the supervisor
  listener,        // Every subscriber to the head's events
};
using Handlers = EnumSet<Handler>;

/// The section of docs/reference/messages.md that lists a message.
enum class Topic { connection, question, answer, event, host, run };

struct MessageType {
  /// Whether a message may overtake earlier ones. Only the newest heartbeat counts, for example.
  enum class Order { kept, any };
  /// Whether a message may be the first one of a connection.
  enum class Session { goes_on, opens };

  std::string_view name;
  Topic topic = Topic::question;
  Roles from;
  std::size_t bytes = 0;  // The most that the body and its payload may have.
  Handlers handlers;
  std::string_view body;  // The fields in Markdown; optional fields stand in brackets.
  std::string_view help;  // One or two sentences for the reference page.
  Order order = Order::kept;
  Session session = Session::goes_on;
};

/// Rows of the table. Nothing else uses these names.
namespace rows {

constexpr std::size_t operator""_KiB(unsigned long long count) { return count << 10; }
constexpr std::size_t operator""_MiB(unsigned long long count) { return count << 20; }

inline constexpr auto unordered = MessageType::Order::any;
inline constexpr auto kept = MessageType::Order::kept;
inline constexpr auto opens = MessageType::Session::opens;

inline constexpr Roles head = {Role::head};
inline constexpr Roles node = {Role::node};
inline constexpr Roles hosts = {Role::daemon, Role::node};
inline constexpr Roles person = {Role::operator_};
inline constexpr Roles looks = {Role::operator_, Role::viewer};
inline constexpr Roles anyone = {Role::head, Role::daemon, Role::node, Role::operator_,
                                 Role::viewer};

using enum Topic;
using H = Handler;

// clang-format off
/// Sorted by topic, and within a topic as the reference page lists them.
inline constexpr MessageType table[] = {
    {"hello", connection, all_dialers, 64_KiB, {H::head}, "",
     "Opens a session. The answer has `version`, `events` (the address at which the head "
     "publishes) and `rights` (the roles).",
     kept, opens},

    {"status", question, looks, 4_KiB, {H::head}, "",
     "Returns the nodes and runs of the head. [`nodes`, `runs`]"},
    {"run.list", question, looks, 4_KiB, {H::head}, "",
     "Returns the state of all runs. [`runs`]"},
    {"run.get", question, looks, 4_KiB, {H::head}, "`run`",
     "Returns the state of one run. [`name`, `state`, `step`, `steps`, `loss`, `goodput`, "
     "`exactness`, `where`, `why`; `plan_why`: why it has its plan; `step_seconds`: the measured "
     "time of a step, the median of the last 16; `recoveries`: how often the run recovered from a loss; "
     "`recovered`: how it recovered the last time; `stragglers`: what slows it down now, each as in "
     "the event `node.straggler`]"},
    {"run.submit", question, person, 1_MiB, {H::head},
     "a configuration, [`resume`], [`extend`], [`from_scratch`], [`host` and `folder`]",
     "Starts a run, or resumes it from its newest checkpoint. With `from_scratch` a resumed run "
     "starts at step 0 if its checkpoints are gone. With `extend` it trains this many steps more than "
     "its last configuration says. `host` and `folder` tell where the sender is: "
     "relative names of files that the run reads are first looked for there. [`run`; `chosen` if there are enough nodes: "
     "the fields of the event `run.chosen`; `moved`: the new folder of an earlier run of this "
     "name]"},
    {"run.events", question, looks, 4_KiB, {H::head}, "[`run`], [`from`]",
     "Returns the events of a run from byte `from` of its file on. Without `run` it returns the "
     "events of the head. A page has at most 60 KiB. `goes_on` says that the next page "
     "continues a long line. [`lines`, `next`, `goes_on`]"},
    {"run.set", question, person, 64_KiB, {H::orders}, "`run`, `set` (`key=value`), [`from`]",
     "Changes a live key after step `from`, or as soon as possible. [`run`, `step`]"},
    {"run.checkpoint", question, person, 4_KiB, {H::orders}, "`run`",
     "Finishes the steps in flight and saves a checkpoint. [`run`, `step`]"},
    {"run.pause", question, person, 4_KiB, {H::head}, "`run`",
     "Finishes the steps in flight and waits. [as `run.get`]"},
    {"run.resume", question, person, 4_KiB, {H::head}, "`run`",
     "Continues a paused run. [as `run.get`]"},
    {"run.stop", question, person, 4_KiB, {H::head}, "`run`, [`mode`: drain, now]",
     "Stops a run, after it has saved its state or at once. [as `run.get`]"},
    {"node.list", question, looks, 4_KiB, {H::head}, "",
     "Returns the nodes. A node has `stragglers`, as in `run.get`, if it slows runs down. "
     "[`nodes`]"},
    {"node.cordon", question, person, 4_KiB, {H::orders}, "`node`",
     "Gives the node no new work. [`node`]"},
    {"node.uncordon", question, person, 4_KiB, {H::orders}, "`node`",
     "Lets the node get work again. [`node`]"},
    {"node.drain", question, person, 4_KiB, {H::orders}, "`node`",
     "Saves the runs on the node and moves its work to other nodes. The answer comes when the "
     "node is free. [`node`, `runs`]"},
    {"node.end", question, person, 4_KiB, {H::orders}, "[`node`]",
     "Ends a node, or all nodes, for good. A node leaves its runs first, and its daemon ends "
     "with exit code 0. [`nodes`]"},
    {"stacks", question, looks, 4_KiB, {H::node_questions}, "`run` or `node`, [`stage`]",
     "Returns where the threads of a node are, or those of all nodes of a run and of the head. With "
     "`stage`: the threads that compute for this stage alone. [`processes`, each with `kind` (node or head), `name`, `process`, "
     "`threads` and [`devices`, `left_out`, `why`]. A process that does not answer within 3 s has `why`. "
     "A thread has `name`, `thread`, `state` and `frames`, the innermost first, or `why_none`.]"},
    {"probe", question, person, 4_KiB, {H::link_questions}, "[`run`]",
     "Lets the nodes of a run, or all nodes, at most 8, measure their ways to each other by each "
     "carrier, one way after another. [`links`: `from`, `to`, `carrier`, `round_trip` in seconds, "
     "`bytes_per_second`; `seconds_ago` of a figure that runs have measured; `why` nothing was measured; "
     "`bytes`: how many were sent; `bytes_of_each`; `left_out`]"},
    {"config.validate", question, person, 1_MiB, {H::questions}, "a configuration",
     "Checks a configuration and its data on the head's machine. [`name`, `warnings`]"},
    {"plan.request", question, person, 1_MiB, {H::questions}, "a configuration",
     "Plans a run for the nodes that are there. [as `troupe plan --output json`, `chosen`, "
     "`measured`, `table`]"},
    {"sim.request", question, person, 1_MiB, {H::questions},
     "`config`, [`hours`, `fail_every`, `notice`, `spot`, `seed`]",
     "Simulates hours of a run while nodes come and go. [as `troupe sim --output json`, without "
     "`otherwise`]"},
    {"chaos", question, {Role::head, Role::operator_}, 4_KiB, {H::orders, H::node, H::listener},
     "`what`: kill, stop, slow, partition, disk-full; `target`, [`seconds`, `times`]",
     "Injects a fault, if the head allows it. The head forwards the message to the node that "
     "`target` names."},

    {"answer", answer, anyone, 4_MiB, {H::client}, "depends on the request",
     "The head has done what the request asks for, or returns what it asks for."},
    {"error", answer, anyone, 64_KiB, {H::client, H::gate, H::node},
     "`code`, `message`, [`path`, `hint`]",
     "The receiver refused a message. `message` says all of it to a person, `path` names the "
     "part of the request, `hint` says what to do."},
    {"ack", answer, anyone, 1_KiB, {H::conversation}, "",
     "Acknowledges all messages up to the number `ack` of its envelope."},

    {"run.state", event, head, 64_KiB, {H::listener}, "",
     "A run starts, is paused or ends."},
    {"step", event, head, 64_KiB, {H::listener}, "",
     "A step is done."},
    {"eval", event, head, 64_KiB, {H::listener}, "",
     "The model was evaluated on data that it is not trained on."},
    {"sample", event, head, 64_KiB, {H::listener}, "",
     "The model has written a text."},
    {"checkpoint.saved", event, head, 64_KiB, {H::listener}, "",
     "A checkpoint is on the disk."},
    {"run.chosen", event, head, 1_MiB, {H::listener}, "",
     "The head chose the values that the configuration leaves open, for the nodes that were "
     "there."},
    {"run.changed", event, head, 64_KiB, {H::listener}, "",
     "A live key was changed."},
    {"run.recovered", event, head, 64_KiB, {H::listener}, "",
     "The run recovered from a loss, and what that cost."},
    {"run.spike", event, head, 64_KiB, {H::listener}, "",
     "The loss or the gradients of a step were a spike. The run goes back and leaves out the "
     "step's samples."},
    {"run.stopped_early", event, head, 64_KiB, {H::listener}, "",
     "The validation loss did not improve any more, so the run ends before its last step."},
    {"plan.changed", event, head, 1_MiB, {H::listener}, "",
     "Which node has which devices."},
    {"decision", event, head, 64_KiB, {H::listener}, "",
     "What the head decided about the run, and why."},
    {"stage.stalled", event, head, 64_KiB, {H::listener}, "",
     "A stage has waited for long, and for what."},
    {"node.straggler", event, head, 64_KiB, {H::listener}, "",
     "A device or a link slows a run down, or no longer does, and what it costs."},
    {"node.joined", event, head, 64_KiB, {H::listener}, "",
     "A node has joined."},
    {"node.lost", event, head, 64_KiB, {H::listener}, "",
     "A node is lost."},
    {"node.cordoned", event, head, 64_KiB, {H::listener}, "",
     "A node gets no new work."},
    {"node.uncordoned", event, head, 64_KiB, {H::listener}, "",
     "A node may get work again."},
    {"warn", event, head, 64_KiB, {H::listener}, "",
     "A person should know this."},

    {"node.join", host, hosts, 64_KiB, {H::gate},
     "`name`, `inventory`, [`again`], [`term_proof`], [`life`]",
     "A node: joins the head.",
     kept, opens},
    {"node.welcome", host, head, 4_KiB, {H::node}, "`name`, [`term_proof`]",
     "The head: accepts the node under this name. From now on both number their messages, and "
     "each message arrives once."},
    {"node.reject", host, head, 4_KiB, {H::node}, "`reason`, `found`, `wanted`",
     "The head: does not accept the node."},
    {"node.heartbeat", host, hosts, 2_KiB, {H::gate}, "",
     "A node: its process is alive.",
     unordered},
    {"node.gpus", host, node, 64_KiB, {H::gate}, "`gpus`",
     "A node: the state of the GPUs of its machine, every two seconds if it has any. Each GPU "
     "has `number` and what its driver reports: [`name`, `busy` (a share), `used` and `memory` "
     "(bytes), `watts`, `megahertz`, `celsius`, `slowed_by` (a list), `fault`]. `status` and "
     "`node.list` return the same in `gpus` of the node.",
     unordered},
    {"node.load", host, node, 2_KiB, {H::gate}, "[`busy`, `memory`]",
     "A node: how much of its share of its machine is in use, every two seconds: `busy`, the share "
     "of the processors' time, and `memory` in bytes. `status` and `node.list` return them as "
     "`busy` and `memory_used` of the node.",
     unordered},
    {"node.stacks", host, node, 256_KiB, {H::gate}, "`question`, `threads`, [`left_out`]",
     "A node: where its threads are. Each has `name`, `thread`, `state`, and `frames` (separated by "
     "semicolons) or `why_none`."},
    {"tell_stacks", host, head, 1_KiB, {H::node}, "`question`, `bytes`",
     "The head: tell where your threads are, in at most this many bytes."},
    {"open_doors", host, head, 1_KiB, {H::node}, "`question`, `secret`, `nodes`",
     "The head: let the other nodes of a probe measure their ways to you."},
    {"node.doors", host, node, 4_KiB, {H::gate}, "`question`, `machine`, `shm`, `tcp`, [`why`]",
     "A node: the addresses of its doors, which are open for 20 s."},
    {"probe_links", host, head, 16_KiB, {H::node}, "`question`, `secret`, `here`, `targets`",
     "The head: measure your ways to these nodes."},
    {"node.links", host, node, 16_KiB, {H::gate}, "`question`, `links`",
     "A node: its ways to other nodes. Each has `to`, `carrier` and what was measured."},
    {"node.unfit", host, head, 64_KiB, {H::node, H::listener}, "`run`, `why`",
     "The head: the run gives this node no work. The head also publishes this as an event, with "
     "`node`."},
    {"node.leaving", host, {Role::head, Role::daemon, Role::node}, 4_KiB, {H::gate, H::listener},
     "`reason`",
     "A node: move its work away at the next step boundary. The head also publishes this as an "
     "event."},
    {"retire", host, head, 4_KiB, {H::node}, "`reason`",
     "The head: does not know this node any more. The node may join as a new one."},
    {"dismiss", host, head, 4_KiB, {H::node}, "`reason`",
     "The head: leave your runs and end, together with your daemon."},
    {"exit_notice", host, hosts, 8_KiB, {H::gate}, "`life`, `how`, `last_words`, [`signal`]",
     "A daemon: a node process has ended."},

    {"prepare", run, head, 4_MiB, {H::node},
     "`config`, `placement`, `here`, `tokens`, [`keys`], [`plain_tensors`]",
     "The head: open the data of the run, and listen for the other nodes."},
    {"prepared", run, node, 256_KiB, {H::attempt}, "`address`, [`kept`], [`data`]",
     "A node: it is prepared, and has these states of the run in memory."},
    {"prepare_failed", run, node, 8_KiB, {H::attempt}, "`why`, [`cause`], [`lost`]",
     "A node: it cannot prepare."},
    {"stage.start", run, head, 1_MiB, {H::node},
     "`addresses`, `tokens`, `step`, `states`, `keepers`",
     "The head: connect to the other nodes and start the players. For every optimizer the "
     "message names the process that sends its state and the processes that keep copies of it."},
    {"stage.stop", run, head, 4_KiB, {H::node}, "",
     "The head: this attempt is over."},
    {"forget", run, head, 1_KiB, {H::node}, "",
     "The head: the run has ended. Free all states of it."},
    {"stage.failed", run, node, 8_KiB, {H::attempt}, "`player`, `why`, [`cause`], [`lost`]",
     "A node: a player has ended."},
    {"paths", run, node, 256_KiB, {H::attempt}, "`paths`",
     "A node: what its traffic to the other processes has measured, at most every 30 s after the "
     "first seconds. Each path has `process`, `latency` (seconds, in one direction) and "
     "[`bytes_per_second`]."},
    {"play", run, head, 4_KiB, {H::player}, "`purpose`, `first_step`, `steps`",
     "The supervisor: play this round next."},
    {"take_snapshot", run, head, 4_KiB, {H::player}, "",
     "The supervisor, while nothing is in flight: send your part of a checkpoint."},
    {"keep_step", run, head, 1_KiB, {H::player}, "`step`, `line`",
     "The supervisor: keep the state after `step` in the memory of nodes. Of older states keep "
     "only the one after `line`."},
    {"kept", run, node, 4_KiB, {H::player},
     "`attempt`, `optimizer`, `step`, `took`, `is_late`, `why_not`",
     "A keeper: a copy of a state is in memory, or why it is not."},
    {"micro_batch_loss", run, node, 4_KiB, {H::player}, "",
     "The last stage: the loss of a micro-batch."},
    {"step_done", run, node, 256_KiB, {H::player},
     "`attempt`, `optimizer`, `step`, `norm`, `is_skipped`, `loss_scale`, `skipped_steps`, "
     "[`penalised_norm`]",
     "An optimizer: its part of the new weights is published, and the gradients were clipped by "
     "this norm. The step may be skipped; then the weights stay as they were."},
    {"divergence", run, node, 4_KiB, {H::player}, "`attempt`, `optimizer`, `step`, `parameter`",
     "An optimizer: a gradient is not finite any more."},
    {"round_played", run, node, 4_MiB, {H::player}, "",
     "A device: has played a round, and what it did when."},
    {"late_gradients", run, node, 64_KiB, {H::player}, "",
     "A stage: how late the gradients of a step were."},
    {"player_pulse", run, node, 4_KiB, {H::player}, "",
     "A player: it is alive, and waits for this.",
     unordered},
};
// clang-format on

}  // namespace rows

/// Returns all rows, sorted by topic.
constexpr std::span<const MessageType> message_types() { return rows::table; }

/// Whether the table has the type. For static_assert: GCC's UBSan takes no address of a row for a
/// constant.
constexpr bool has_row(std::string_view name) {
  for (std::size_t i = 0; i < std::size(rows::table); ++i)
    if (rows::table[i].name == name) return true;
  return false;
}

/// Returns null for an unknown type. A newer minor version may know it.
constexpr const MessageType* find_message_type(std::string_view name) {
  for (const auto& type : rows::table)
    if (type.name == name) return &type;
  return nullptr;
}

/// Returns the largest size of all types.
std::size_t largest_message();

/// The largest size of a message whose type is unknown.
inline constexpr std::size_t unknown_message_bytes = std::size_t{64} << 10;

/// Whether one of these roles may send the type. Nobody may send an unknown type.
bool may_send(Roles roles, std::string_view type);

/// A name that has a row in the table. Another name does not compile.
class MessageName {
 public:
  consteval MessageName(const char* name) : MessageName(std::string_view(name)) {}
  consteval MessageName(std::string_view name) : name_(name) {
    if (!has_row(name)) message_type_has_no_row();
  }

  constexpr std::string_view view() const { return name_; }
  std::string text() const { return std::string(name_); }

 private:
  /// Not constexpr, so that a call ends the compilation.
  static void message_type_has_no_row();

  std::string_view name_;
};

/// One row in the table of a part that handles messages.
template <class Act>
struct Handles {
  std::string_view type;
  Act act;
};

/// Whether these types are exactly the ones that the part handles, each once. For static_assert;
/// see has_row() for why it counts rows.
constexpr bool handles_all(Handler handler, std::initializer_list<std::string_view> types) {
  std::size_t wanted = 0;
  for (std::size_t i = 0; i < std::size(rows::table); ++i) {
    if (!rows::table[i].handlers.has(handler)) continue;
    ++wanted;
    std::size_t found = 0;
    for (const auto name : types) found += name == rows::table[i].name ? 1 : 0;
    if (found != 1) return false;
  }
  return wanted == types.size();
}
template <class Act, std::size_t count>
constexpr bool handles_all(Handler handler, const Handles<Act> (&table)[count]) {
  std::size_t wanted = 0;
  for (std::size_t i = 0; i < std::size(rows::table); ++i) {
    if (!rows::table[i].handlers.has(handler)) continue;
    ++wanted;
    std::size_t found = 0;
    for (const auto& row : table) found += row.type == rows::table[i].name ? 1 : 0;
    if (found != 1) return false;
  }
  return wanted == count;
}

/// Returns null if the table does not have the type.
template <class Act, std::size_t count>
constexpr const Act* find_handler(const Handles<Act> (&table)[count], std::string_view type) {
  for (const auto& row : table)
    if (row.type == type) return &row.act;
  return nullptr;
}

}  // namespace troupe::transport
