#include "bench/crowd.h"

#include <utility>

namespace troupe::bench {

Result<std::unique_ptr<Crowd>> Crowd::gather(const std::string& endpoint, int count,
                                             std::chrono::seconds patience) {
  auto crowd = std::make_unique<Crowd>();
  for (int i = 0; i < count; ++i) {
    actors::NodeOptions options;
    options.name = "extra-" + std::to_string(i);
    options.inventory.host = "nowhere";
    options.inventory.pid = i + 1;
    options.inventory.version = TROUPE_VERSION;
    options.dial.endpoint = endpoint;
    options.open_run = [](const Value&, const actors::Placement&,
                          int) -> Result<std::shared_ptr<actors::RunHome>> {
      return Error{"this node is one of a crowd, and has no devices"};
    };
    options.say = [here = crowd.get()](const std::string& line) { here->heard(line); };
    options.retired = [](const std::string&) {};
    options.rejected = [here = crowd.get()](const std::string& why) {
      const std::lock_guard lock(here->mutex_);
      here->refusal_ = why;
    };
    auto node = actors::Node::start(crowd->env_, std::move(options));
    if (!node) return node.error();
    crowd->nodes_.push_back(std::move(*node));
  }
  std::unique_lock lock(crowd->mutex_);
  const auto all = static_cast<std::size_t>(count);
  if (crowd->changed_.wait_for(lock, patience, [&] { return crowd->welcome_ == all; }))
    return crowd;
  const std::string why = crowd->refusal_.empty() ? "" : "; one was refused: " + crowd->refusal_;
  return Error{std::to_string(crowd->welcome_) + " of " + std::to_string(all) +
               " nodes are welcome after " + std::to_string(patience.count()) + " s" + why};
}

void Crowd::heard(const std::string& line) {
  {
    const std::lock_guard lock(mutex_);
    if (line.starts_with("joined ")) ++welcome_;
  }
  changed_.notify_all();
}

}  // namespace troupe::bench
