#include "apps/node/node_daemon.h"

#include <mutex>
#include <tuple>
#include <utility>

#include "apps/exit_code.h"
#include "transport/control/conversation.h"

namespace troupe::apps {
namespace {

/// Returns whether another process in its place could succeed.
bool is_worth_another(const ProcessEnd& end) {
  if (end.signal != 0) return true;
  const auto code = static_cast<ExitCode>(end.code);
  return code != ExitCode::usage && code != ExitCode::no_head && code != ExitCode::dismissed;
}

bool is_dismissed(const ProcessEnd& end) {
  return end.signal == 0 && static_cast<ExitCode>(end.code) == ExitCode::dismissed;
}

}  // namespace

/// The daemon's own connection to the head. A report that cannot be sent now is dropped, since a
/// restarted head discovers the present nodes itself.
class NodeDaemon::Line {
 public:
  explicit Line(const Context& context)
      : incarnation_(transport::new_incarnation(context.env)),
        network_(context.network),
        loop_(context.env.make_loop({"daemon"})) {}

  Status dial(const transport::DialOptions& options,
              const std::function<void(const std::string&)>& status) {
    transport::ClientEvents heard;
    heard.connected = [this, status, endpoint = options.endpoint] {
      status("connected to the head at " + endpoint);
      transport::Message hello;
      hello.type = transport::MessageName("hello").text();
      hello.incarnation = incarnation_;
      (void)client_->send(hello);
    };
    heard.gone = [status, endpoint = options.endpoint](transport::Gone, const std::string& why) {
      status("waits for the head at " + endpoint + ": " + why);
    };
    heard.message = [this](const transport::Message& message) {
      const auto* proof = message.body.find("term_proof");
      if (!proof || !proof->text()) return;  // The message is not an answer to the hello.
      const std::lock_guard lock(mutex_);
      if (message.term < term_) return;
      term_ = message.term;
      term_proof_ = *proof->text();
    };
    auto client = network_.dial(options, std::move(heard), *loop_);
    if (!client) return client.error();
    client_ = std::move(*client);
    client_->start();
    return Done{};
  }
  void tell(const actors::ExitNotice& notice) {
    (void)client_->send(transport::to_message(notice));
  }
  /// Returns the newest term and its proof.
  std::pair<std::uint64_t, std::string> term() const {
    const std::lock_guard lock(mutex_);
    return {term_, term_proof_};
  }

 private:
  const std::uint64_t incarnation_;
  mutable std::mutex mutex_;
  std::uint64_t term_ = 0;
  std::string term_proof_;
  transport::Network& network_;
  std::unique_ptr<Loop> loop_;                        // Outlives the client.
  std::unique_ptr<transport::ControlClient> client_;  // Its callbacks are tasks of the loop.
};

NodeDaemon::NodeDaemon(const Context& context, NodeDaemonOptions options)
    : context_(context), options_(std::move(options)), line_(std::make_unique<Line>(context)) {}

NodeDaemon::~NodeDaemon() = default;

Result<std::unique_ptr<NodeDaemon>> NodeDaemon::start(const Context& context,
                                                      NodeDaemonOptions options) {
  std::unique_ptr<NodeDaemon> daemon(new NodeDaemon(context, std::move(options)));
  const auto& dial = daemon->options_.dial;
  if (auto dialed = daemon->line_->dial(dial, daemon->options_.status); !dialed)
    return dialed.error();
  daemon->process_ =
      std::make_unique<KeptProcess>(context.env, context.processes, daemon->keep_options());
  return daemon;
}

KeepOptions NodeDaemon::keep_options() {
  KeepOptions options;
  options.arguments = [this] {
    auto arguments = options_.arguments;
    std::tie(arguments.term, arguments.term_proof) = line_->term();
    life_ = new_life(context_.env);
    auto words = arguments.words();
    if (options_.quiet) words.emplace_back("-q");
    return words;
  };
  options.environment = [this] { return environment_of(life_); };
  options.end_patience = options_.leave_patience;
  options.ended = [this](const ProcessEnd& end) { return process_ended(end); };
  return options;
}

/// Returns whether another process takes its place.
bool NodeDaemon::process_ended(const ProcessEnd& end) {
  line_->tell(notice_of(life_, end));
  const bool again = is_worth_another(end);
  if ((end.signal != 0 || end.code != 0) && !is_dismissed(end))
    options_.say("node process " + std::to_string(end.process) + " " + to_text(end) +
                 (again && !leaves_ ? "; another one is started" : ""));
  if (!again) options_.ended(is_dismissed(end) ? 0 : end.code);
  return again;
}

void NodeDaemon::end(std::function<void()> then) {
  leaves_ = true;
  process_->end(std::move(then));
}

}  // namespace troupe::apps
