#include "apps/client/stacks_text.h"

#include "core/json.h"
#include "core/threads/thread_stacks.h"

namespace troupe::apps {
namespace {

const Value::List& list_below(const Value& value, const char* key) {
  static const Value::List none;
  const Value* list = value.find(key);
  return list && list->list() ? *list->list() : none;
}

/// Returns "node beta", or "head".
std::string title_of(const Value& process) {
  const auto kind = text_of(process, "kind");
  return kind == "head" ? kind : kind + " " + text_of(process, "name");
}

/// Returns ": device 0 (stage 0), device 1 (stages 1 2)", or nothing.
std::string devices_text(const Value& process) {
  std::string text;
  for (const auto& device : list_below(process, "devices")) {
    const auto& stages = list_below(device, "stages");
    text += (text.empty() ? ": device " : ", device ") + text_of(device, "device") +
            (stages.size() == 1 ? " (stage" : " (stages");
    for (const auto& stage : stages) text += " " + to_json(stage);
    text += ")";
  }
  return text;
}

std::vector<ThreadStack> threads_of(const Value& process) {
  std::vector<ThreadStack> stacks;
  for (const auto& thread : list_below(process, "threads")) {
    auto& stack = stacks.emplace_back();
    stack.name = text_of(thread, "name");
    stack.thread = static_cast<int>(number_in(thread, "thread"));
    stack.state = text_of(thread, "state");
    stack.why_none = text_of(thread, "why_none");
    for (const auto& frame : list_below(thread, "frames"))
      if (frame.text()) stack.frames.push_back(*frame.text());
  }
  return stacks;
}

}  // namespace

std::string stacks_text(const Value& answer, std::size_t most_frames) {
  std::string text;
  for (const auto& process : list_below(answer, "processes")) {
    text += (text.empty() ? "" : "\n") + title_of(process) + " (process " +
            text_of(process, "process") + ")" + devices_text(process) + "\n";
    if (const auto why = text_of(process, "why"); !why.empty()) text += "  " + why + "\n";
    text += to_text(threads_of(process), most_frames);
    if (const auto left_out = text_of(process, "left_out"); !left_out.empty())
      text += "  " + left_out + " more threads were left out\n";
  }
  return text;
}

std::vector<std::string> silent_processes(const Value& answer) {
  std::vector<std::string> silent;
  for (const auto& process : list_below(answer, "processes"))
    if (const auto why = text_of(process, "why"); !why.empty())
      silent.push_back(title_of(process) + ": " + why);
  return silent;
}

}  // namespace troupe::apps
