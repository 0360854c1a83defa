#include "transport/wire/messages_page.h"

#include <algorithm>
#include <cassert>
#include <string_view>
#include <vector>

#include "transport/wire/message_types.h"
#include "transport/wire/refusal.h"

namespace troupe::transport {
namespace {

constexpr std::string_view introduction =
    R"(<!-- Made by a test from transport/wire/messages_page.cpp; do not edit. -->

# Messages

Every client that may connect to a head can send these messages, from any language that has ZeroMQ
and msgpack. `clients/python/troupe/wire.py` implements the format in eighty lines. A message has
three parts: a prelude of 16 bytes (`TRPE`, version, sizes), an envelope and a body. Envelope and
body are msgpack maps. The envelope has `type`, an `id` that the sender draws, and `incarnation`,
which the sender draws once per process. An answer has the request's id in `re`. The head executes
a request that arrives twice with the same id only once. It ignores unknown fields; unknown
configuration keys are errors.

The head's allow list gives roles to each key: `operator` is a person or a script, `node` and
`daemon` are processes of a host. Without keys (on one machine) everybody has all roles. The head
answers a request with `forbidden` if the key lacks its role; ten of them within a minute end the
connection. It answers an unknown type with `unsupported`.
)";

struct Row {
  std::string_view name;
  std::string_view body;  // Its fields; those in [] may be left out.
  std::string_view help;
};

struct Section {
  std::string_view title;
  std::string_view help;
  std::vector<Row> rows;
};

const std::vector<Section>& sections() {
  static const std::vector<Section> all = {
      {"A connection",
       "The first message of a connection is `hello` or `node.join`; the head drops earlier "
       "messages.\nThe dialing side sets ZeroMQ's heartbeats (`HEARTBEAT_IVL`, `HEARTBEAT_TTL`) "
       "to\ndetect lost machines: the head answers heartbeats and sends none.",
       {
           {"hello", "",
            "Opens a session. The answer has `version`, `events` (the address of published events) "
            "and `rights` (the roles)."},
       }},
      {"Requests to a head",
       "The head answers each request with `answer`, whose fields stand below in brackets, or with "
       "`error`.",
       {
           {"status", "", "Lists the nodes and runs of the head. [`nodes`, `runs`]"},
           {"run.list", "", "Lists all runs with their progress. [`runs`]"},
           {"run.get", "`run`",
            "Shows one run. [`name`, `state`, `step`, `steps`, `loss`, `goodput`, `exactness`, "
            "`where`, `why`; `recoveries`: number of recoveries from failures; `recovered`: "
            "description of the last recovery]"},
           {"run.submit", "a configuration, [`resume`], [`from_scratch`]",
            "Starts a run, or resumes it from its newest checkpoint. With `from_scratch` a resumed "
            "run starts at step 0 if its checkpoints are gone. [`run`; `chosen`, if there are "
            "enough nodes: as in the event `run.chosen`]"},
           {"run.events", "[`run`], [`from`]",
            "Returns a run's events from a byte offset of its file on; without `run`, the head's "
            "own events. A page has at most 60 KiB. `goes_on` marks a page with part of one long "
            "line, which the next page continues. [`lines`, `next`, `goes_on`]"},
           {"run.set", "`run`, `set` (`key=value`), [`from`]",
            "Changes a live key at the step `from`, or at the next possible step. [`run`, `step`]"},
           {"run.checkpoint", "`run`",
            "Finishes the work in flight and saves a checkpoint. [`run`, `step`]"},
           {"run.pause", "`run`", "Finishes the work in flight and pauses the run. [as `run.get`]"},
           {"run.resume", "`run`", "Continues a paused run. [as `run.get`]"},
           {"run.stop", "`run`, [`mode`: drain, now]",
            "Stops a run: after saving its state (drain), or at once (now). [as `run.get`]"},
           {"node.list", "", "Lists the nodes. [`nodes`]"},
           {"node.cordon", "`node`", "Cordons a node: it gets no new work. [`node`]"},
           {"node.uncordon", "`node`", "Uncordons a node: it may get work again. [`node`]"},
           {"node.drain", "`node`",
            "Drains a node: saves its state and moves its work to other nodes. The answer comes "
            "when the node is free. [`node`, `runs`]"},
           {"node.end", "[`node`]",
            "Stops a node, or all nodes, permanently: it leaves its runs, and its daemon exits "
            "with code 0. [`nodes`]"},
           {"config.validate", "a configuration",
            "Checks a configuration and its data on the head's machine. Starts nothing. [`name`, "
            "`warnings`]"},
           {"plan.request", "a configuration",
            "Plans a run on the connected nodes. Starts nothing. [as `troupe plan --output json`, "
            "`chosen`, `table`]"},
           {"sim.request", "`config`, [`hours`, `fail_every`, `notice`, `spot`, `seed`]",
            "Simulates hours of a run while nodes join and leave. [as `troupe sim --output json`, "
            "except `otherwise`]"},
           {"chaos",
            "`what`: kill, stop, slow, partition, disk-full; `target`, [`seconds`, `times`]",
            "Injects a fault, if the head allows it. The head forwards the message to the affected "
            "node."},
       }},
      {"Answers",
       "An answer with too many values for the decoder comes as JSON in a fourth part, with an "
       "empty body.",
       {
           {"answer", "depends on the request",
            "The request succeeded. The body holds its result."},
           {"error", "`code`, `message`, [`path`, `hint`]",
            "The request failed. `message` explains the failure to a person, `path` names the part "
            "of the request, `hint` says what to do."},
           {"ack", "", "Acknowledges, in its envelope, all messages up to a number."},
       }},
      {"Events",
       "The head publishes events at the address in the answer to `hello` (SUB; the topic "
       "is\n`RUN/TYPE`) and appends them to the run's file; see [their fields](program.md#events).",
       {
           {"run.state", "", "A run started, paused or ended."},
           {"step", "", "A step is complete."},
           {"eval", "", "The model was evaluated on the validation data."},
           {"checkpoint.saved", "", "A checkpoint is saved on disk."},
           {"run.chosen", "", "The values of \"auto\" keys were chosen for the connected nodes."},
           {"run.changed", "", "A live key changed."},
           {"run.recovered", "", "A run recovered from a failure; the event tells the cost."},
           {"plan.changed", "", "A new assignment of devices to nodes."},
           {"stage.stalled", "",
            "A part of a run has waited for a long time; the event tells for what."},
           {"node.joined", "", "A node joined."},
           {"node.lost", "", "A node was lost or left."},
           {"node.cordoned", "", "A node was cordoned: it gets no new work."},
           {"node.uncordoned", "", "A node was uncordoned: it may get work again."},
           {"warn", "", "A warning for a person."},
       }},
      {"Between a head and the processes of a host",
       "",
       {
           {"node.join", "`name`, `inventory`, [`again`]", "A node asks to join."},
           {"node.welcome", "`name`",
            "The head accepts a node and tells it its name. From now on both sides number their "
            "messages, and each is delivered once."},
           {"node.reject", "`reason`, `found`, `wanted`", "The head rejects a node."},
           {"node.heartbeat", "", "A node is alive."},
           {"node.gpus", "`gpus`",
            "A node reports the GPUs of its machine every two seconds, if it has any. Each has "
            "`number` and what its driver reports: [`name`, `busy` (a share), `used` and `memory` "
            "(bytes), `watts`, `megahertz`, `celsius`, `slowed_by` (a list), `fault`]. `status` "
            "and `node.list` have the same in `gpus` of the node."},
           {"node.unfit", "`run`, `why`",
            "The head tells a node that a run does not use it. The head also publishes it, with "
            "`node`."},
           {"node.leaving", "`reason`",
            "A node asks for its work to be moved away at the next point at which nothing is lost. "
            "The head also publishes it."},
           {"retire", "`reason`",
            "The head no longer knows this node. The node may join again as a new one."},
           {"dismiss", "`reason`",
            "The head tells a node to leave its runs and to stop, together with its daemon."},
           {"exit_notice", "`host`, `pid`, `how`, `last_words`",
            "A daemon reports that a node process has ended."},
       }},
      {"Between a head and the nodes of a run",
       "Players of a run send messages to each other, with their tensors, over channels of their "
       "own.",
       {
           {"prepare", "`config`, `placement`, `here`, `tokens`",
            "The head tells a node to prepare a run: open its data and one listening port per "
            "peer."},
           {"prepared", "`address`, [`kept`]",
            "The node is prepared. `kept` lists the states of the run in its memory."},
           {"prepare_failed", "`why`, [`cause`], [`lost`]", "The node cannot prepare the run."},
           {"stage.start", "`addresses`, `tokens`, `step`, `states`, `keepers`",
            "The head tells a node to connect and to start its players. `states` and `keepers` "
            "name, for each optimizer, the process that provides its state and those that keep "
            "copies of it."},
           {"stage.stop", "", "The head ends this attempt."},
           {"forget", "", "The head reports that the run has ended. The node drops its copies."},
           {"stage.failed", "`player`, `why`, [`cause`], [`lost`]", "A player has failed."},
           {"play", "`purpose`, `first_step`, `steps`", "The supervisor orders the next round."},
           {"take_snapshot", "",
            "The supervisor asks an optimizer for its part of a checkpoint. Nothing is in flight "
            "meanwhile."},
           {"keep_step", "`step`, `line`",
            "The supervisor asks an optimizer to keep copies of its state after `step` in the "
            "memory of nodes. Of older states only that of `line`, the recovery point, is kept."},
           {"kept", "", "A node keeps a copy of a state, or reports why not."},
           {"micro_batch_loss", "", "The last stage reports the loss of a micro-batch."},
           {"step_done", "",
            "An optimizer has published its part of the new weights, clipped by this norm. If fp16 "
            "overflowed, the step was skipped and the weights are the old ones."},
           {"divergence", "", "An optimizer found a gradient that is not finite."},
           {"round_played", "",
            "A device has finished a round; the message has the times of its actions."},
           {"late_gradients", "", "A stage reports the delays of the gradients of a step."},
           {"player_pulse", "", "A player is alive; the message names what it waits for."},
       }},
  };
  return all;
}

std::string size_of(std::size_t bytes) {
  constexpr std::size_t kib = 1024;
  return bytes % (kib * kib) == 0 ? std::to_string(bytes / kib / kib) + " MiB"
                                  : std::to_string(bytes / kib) + " KiB";
}

std::string row_text(const MessageType& type, const Row& row) {
  return "| `" + std::string(row.name) + "` | " + std::string(row.body) + " | " +
         to_string(type.from) + " | " + size_of(type.bytes) + " | " + std::string(row.help) +
         " |\n";
}

}  // namespace

std::string messages_page() {
  std::string page(introduction);
  std::vector<std::string_view> told;
  for (const auto& section : sections()) {
    page += "\n## " + std::string(section.title) + "\n\n";
    if (!section.help.empty()) page += std::string(section.help) + "\n\n";
    page += "| message | body | sender | largest size | meaning |\n|---|---|---|---|---|\n";
    for (const auto& row : section.rows) {
      const auto* type = find_message_type(row.name);
      assert(type && "a message is described that is not in the table");
      page += row_text(*type, row);
      told.push_back(row.name);
    }
  }
  page += "\n## Codes of errors\n\n| code | meaning |\n|---|---|\n";
  for (const auto& kind : refusal_kinds)
    page += "| `" + std::string(kind.name) + "` | " + std::string(kind.help) + " |\n";
  page += "\n## Reserved\n\nNo program sends these types yet:";
  for (const auto& type : message_types())
    if (std::find(told.begin(), told.end(), type.name) == told.end())
      page += " `" + std::string(type.name) + "`";
  return page + "\n";
}

}  // namespace troupe::transport
