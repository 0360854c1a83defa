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
    R"(<!-- Made from transport/wire/message_types.cpp by a test, which leaves a new page beside this one; do not edit. -->

# Messages

Whoever may dial a head may send it these, from any language that has ZeroMQ and msgpack; `clients/python/troupe/wire.py` is all of it in eighty
lines. A message has three parts: a prelude of 16 bytes (`TRPE`, version, sizes), an envelope and a body, both maps of msgpack. The envelope has
`type`, an `id` that the sender draws, and `incarnation`, which it draws once; an answer has the request's id in `re`. What is sent again with
the same id is done once. Fields that are not known are ignored; keys of a configuration that are not known are errors.

A key entitles to roles, which the head's list of hosts gives it: `operator` is a person or a script, `node` and `daemon` are processes of a host. Without
keys (on one machine) everybody has all of them. A request whose role the key lacks is answered with `forbidden`, and ten of
them within a minute end the connection. A type that the head does not know is answered with `unsupported`.
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
       "The first message of a connection is `hello`, or `node.join`; what comes before it is "
       "dropped.\nWho dials sets ZeroMQ's heartbeats (`HEARTBEAT_IVL`, `HEARTBEAT_TTL`) where it "
       "wants to learn that a machine is gone: the head answers them, and does not ask.",
       {
           {"hello", "",
            "Opens a session. Answered with `version`, `events` (where the head publishes) and "
            "`rights` (the roles)."},
       }},
      {"What a head is asked for",
       "Each is answered with `answer`, whose body is given here in brackets, or with `error`.",
       {
           {"status", "", "The head's nodes and runs. [`nodes`, `runs`]"},
           {"run.list", "", "How all runs stand. [`runs`]"},
           {"run.get", "`run`",
            "How one stands. [`name`, `state`, `step`, `steps`, `loss`, `goodput`, `exactness`, "
            "`where`, `why`; `recoveries`: how often it has made a loss good, and `recovered`: how "
            "it did the last time]"},
           {"run.submit", "a configuration, [`resume`], [`from_scratch`]",
            "Begins a run, or goes on with it from its newest checkpoint; `from_scratch` lets a "
            "run that is resumed begin at step 0 if what it saved is gone. [`run`, `chosen` where "
            "there are nodes enough: as the event `run.chosen`]"},
           {"run.events", "[`run`], [`from`]",
            "The events from that byte of its file on; without a run those of the head itself. A "
            "page is at most 60 KiB; with `goes_on` it has a part of one long line, which the next "
            "page continues. [`lines`, `next`, `goes_on`]"},
           {"run.set", "`run`, `set` (`key=value`), [`from`]",
            "Changes a live key after so many steps, or as soon as can be. [`run`, `step`]"},
           {"run.checkpoint", "`run`", "Finishes what is in flight and saves it. [`run`, `step`]"},
           {"run.pause", "`run`", "Finishes what is in flight and waits. [as `run.get`]"},
           {"run.resume", "`run`", "Lets a paused run go on. [as `run.get`]"},
           {"run.stop", "`run`, [`mode`: drain, now]",
            "Ends a run, with its state saved or at once. [as `run.get`]"},
           {"node.list", "", "The nodes. [`nodes`]"},
           {"node.cordon", "`node`", "It gets nothing new. [`node`]"},
           {"node.uncordon", "`node`", "It may be used again. [`node`]"},
           {"node.drain", "`node`",
            "Saves, and moves what it plays to others; answered when it is free. [`node`, `runs`]"},
           {"node.end", "[`node`]",
            "Ends a node, or all of them, for good: it leaves its runs, and its daemon ends with "
            "exit code 0. [`nodes`]"},
           {"config.validate", "a configuration",
            "Only checks it, and its data on the head's machine. [`name`, `warnings`]"},
           {"plan.request", "a configuration",
            "What would run where on the nodes that are there. [as `troupe plan --output json`, "
            "`chosen`, `table`]"},
           {"sim.request", "`config`, [`hours`, `fail_every`, `notice`, `spot`, `seed`]",
            "Hours of it while nodes come and go. [as `troupe sim --output json`, but for "
            "`otherwise`]"},
           {"chaos",
            "`what`: kill, stop, slow, partition, disk-full; `target`, [`seconds`, `times`]",
            "A drill, where the head allows it; the head says the same to the node that is meant."},
       }},
      {"Answers",
       "An answer that would be too many values for a reader comes as JSON in a fourth part, "
       "beside an empty body.",
       {
           {"answer", "as asked", "It is done, or this is what was asked for."},
           {"error", "`code`, `message`, [`path`, `hint`]",
            "It is not done: the message says all of it, for a person; `path` is what of the "
            "request it is about, `hint` what to do."},
           {"ack", "", "In its envelope: the number up to which all has come."},
       }},
      {"Events",
       "Published at the address that `hello` is answered with (SUB; the topic is `RUN/TYPE`), and "
       "kept in a run's file; "
       "[their fields](program.md#events).",
       {
           {"run.state", "", "A run begins, is paused, ends."},
           {"step", "", "A step is done."},
           {"eval", "", "The model was judged by data that it does not learn from."},
           {"checkpoint.saved", "", "A checkpoint is safe on the disk."},
           {"run.chosen", "",
            "What the configuration left open was chosen by the nodes that were there."},
           {"run.changed", "", "A live key was changed."},
           {"run.recovered", "", "A loss is made good, and what it cost."},
           {"plan.changed", "", "Which node has which devices."},
           {"stage.stalled", "", "Somebody has waited for long, and for what."},
           {"node.joined", "", "A node has come."},
           {"node.lost", "", "A node is gone."},
           {"node.cordoned", "", "It gets nothing new."},
           {"node.uncordoned", "", "It may be used again."},
           {"warn", "", "Something that a person should know."},
       }},
      {"A head and the processes of a host",
       "",
       {
           {"node.join", "`name`, `inventory`, [`again`]", "A node: here I am."},
           {"node.welcome", "`name`",
            "The head: so it is called; from now on what both say is numbered, and comes once."},
           {"node.reject", "`reason`, `found`, `wanted`", "The head: not here."},
           {"node.heartbeat", "", "A node lives."},
           {"node.gpus", "`gpus`",
            "A node: how its machine's GPUs are, every two seconds where there are any. Of each "
            "`number`, and what its driver tells: [`name`, `busy` (a share), `used` and `memory` "
            "(bytes), `watts`, `megahertz`, `celsius`, `slowed_by` (a list), `fault`]. `status` "
            "and `node.list` have the same in `gpus` of the node."},
           {"node.unfit", "`run`, `why`",
            "The head: that run gives you no part. The head publishes it, with `node`."},
           {"node.leaving", "`reason`",
            "A node: take its part away, at the next moment at which nothing is lost. The head "
            "publishes it."},
           {"retire", "`reason`",
            "The head: it does not know this one any more; it is welcome as a new one."},
           {"dismiss", "`reason`", "The head: leave your runs and end, together with your daemon."},
           {"exit_notice", "`host`, `pid`, `how`, `last_words`",
            "A daemon: a node process has ended."},
       }},
      {"Of a run, between its head and its nodes",
       "What the players of a run tell one another goes by channels of their own, with the "
       "tensors.",
       {
           {"prepare", "`config`, `placement`, `here`, `tokens`",
            "The head: open what the run needs, and a door for each of the others."},
           {"prepared", "`address`, [`kept`]",
            "It has, and these states of the run are in its memory."},
           {"prepare_failed", "`why`, [`cause`], [`lost`]", "It cannot."},
           {"stage.start", "`addresses`, `tokens`, `step`, `states`, `keepers`",
            "The head: connect, and let your players begin. Of every optimizer: the process that "
            "gives its state, and those that keep copies of it."},
           {"stage.stop", "", "The head: this attempt is over."},
           {"forget", "", "The head: the run has ended, and nothing of it need be kept."},
           {"stage.failed", "`player`, `why`, [`cause`], [`lost`]", "A player has ended."},
           {"play", "`purpose`, `first_step`, `steps`", "The supervisor: play this round next."},
           {"take_snapshot", "",
            "The supervisor, while nothing is in flight: give your part of a checkpoint."},
           {"keep_step", "`step`, `line`",
            "The supervisor: your state after that step is to be kept in the memory of nodes; of "
            "older ones that of the line alone."},
           {"kept", "", "A copy of a state is kept, or why not."},
           {"micro_batch_loss", "", "The last stage: the loss of a micro-batch."},
           {"step_done", "",
            "An optimizer: its part of the new weights is published, clipped by this norm; or "
            "those are the old ones, since in fp16 the step was skipped."},
           {"divergence", "", "An optimizer: a gradient is not finite any more."},
           {"round_played", "", "A device is through with a round, and what it did when."},
           {"late_gradients", "", "A stage: how late the gradients of a step were."},
           {"player_pulse", "", "A player lives, and this is what it waits for."},
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
    page += "| message | body | who says it | at most | |\n|---|---|---|---|---|\n";
    for (const auto& row : section.rows) {
      const auto* type = find_message_type(row.name);
      assert(type && "a message is described that is not in the table");
      page += row_text(*type, row);
      told.push_back(row.name);
    }
  }
  page += "\n## Codes of errors\n\n| code | |\n|---|---|\n";
  for (const auto& kind : refusal_kinds)
    page += "| `" + std::string(kind.name) + "` | " + std::string(kind.help) + " |\n";
  page += "\n## Reserved\n\nNames that nobody says yet:";
  for (const auto& type : message_types())
    if (std::find(told.begin(), told.end(), type.name) == told.end())
      page += " `" + std::string(type.name) + "`";
  return page + "\n";
}

}  // namespace troupe::transport
