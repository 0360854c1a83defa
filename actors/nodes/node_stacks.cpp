#include "actors/nodes/node_stacks.h"

#include <algorithm>
#include <utility>

#include "actors/executors.h"

namespace troupe::actors {
namespace {

constexpr std::string_view separator = "; ";

}  // namespace

NodeStacks answer_with(std::vector<ThreadStack> stacks, const TellStacks& question) {
  constexpr std::size_t around_a_thread = 96;  // The bytes of names of fields, at most.
  std::ranges::stable_partition(stacks, [](const ThreadStack& stack) {
    return stack.name.starts_with(device_thread_prefix);
  });
  NodeStacks answer;
  answer.question = question.question;
  auto room = static_cast<std::size_t>(question.bytes);
  for (auto& stack : stacks) {
    ThreadPlace place{
        std::move(stack.name), stack.thread, std::move(stack.state), {}, std::move(stack.why_none)};
    for (const auto& frame : stack.frames)
      place.frames += (place.frames.empty() ? "" : std::string(separator)) + frame;
    const auto size =
        around_a_thread + place.name.size() + place.frames.size() + place.why_none.size();
    if (size > room) {
      ++answer.left_out;
      continue;
    }
    room -= size;
    answer.threads.push_back(std::move(place));
  }
  return answer;
}

Value::List to_list(const std::vector<ThreadPlace>& threads) {
  Value::List list;
  for (const auto& thread : threads) {
    Value one = Value::Map{};
    one.set("name", thread.name);
    one.set("thread", static_cast<std::int64_t>(thread.thread));
    one.set("state", thread.state);
    Value::List frames;
    std::string_view rest = thread.frames;
    while (!rest.empty()) {
      const auto end = std::min(rest.find(separator), rest.size());
      frames.emplace_back(std::string(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + separator.size(), rest.size()));
    }
    one.set("frames", std::move(frames));
    if (!thread.why_none.empty()) one.set("why_none", thread.why_none);
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace troupe::actors
