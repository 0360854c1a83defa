#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>

#include "core/result.h"
#include "core/value.h"
#include "transport/control_socket.h"
#include "transport/fields.h"

namespace troupe::apps {

/// What the head knows of a run.
struct RunStanding {
  std::string name;
  std::string state;  // "starting", "running", "paused", "done", "stopped", "failed"
  std::int64_t step = 0;
  std::int64_t steps = 0;
  std::int64_t log_every = 10;
  std::int64_t began = -1;  // Where this life of it begins in its file of events; -1: not yet.
  double loss = 0;          // Of the last step.
  std::string where;        // "stages 0 1 on alpha, 2 3 on beta"
  std::string why;

  static constexpr auto fields() {
    return std::tuple(transport::required("name", &RunStanding::name),
                      transport::required("state", &RunStanding::state),
                      transport::required("step", &RunStanding::step),
                      transport::required("steps", &RunStanding::steps),
                      transport::optional("log_every", &RunStanding::log_every),
                      transport::optional("began", &RunStanding::began),
                      transport::optional("loss", &RunStanding::loss),
                      transport::optional("where", &RunStanding::where),
                      transport::optional("why", &RunStanding::why));
  }
  bool has_ended() const { return state == "done" || state == "stopped" || state == "failed"; }
};

struct HeadOptions {
  std::string listen;  // "tcp://127.0.0.1:4700"
  std::string events;  // Where events are published.
  std::optional<transport::KeyPair> keys;
  transport::AllowList allowed;
  std::string interface = "127.0.0.1";  // Where nodes reach the head's channels.
  enum class Drills { forbidden, allowed };
  Drills drills = Drills::forbidden;  // Whether `troupe chaos` may do harm here.
  std::function<void(const std::string&)> say;
};

/// Knows nodes and runs; leads the runs, and answers whoever asks.
class HeadService {
 public:
  static Result<std::unique_ptr<HeadService>> open(HeadOptions options);
  /// Drains all runs, and saves them.
  ~HeadService();
  HeadService(const HeadService&) = delete;
  HeadService& operator=(const HeadService&) = delete;

  const std::string& endpoint() const;
  const std::string& events() const;

 private:
  class Service;
  explicit HeadService(std::unique_ptr<Service> service);

  std::unique_ptr<Service> service_;
};

}  // namespace troupe::apps
