#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace troupe::bench {

/// The answers that the open pages have had so far.
struct PageCounts {
  std::int64_t answers = 0;
  std::int64_t bytes = 0;
  std::int64_t failed = 0;  // Questions without a good answer.
};

/// Open pages of a head, each with one run in view. One thread asks for all of them what a page
/// asks for, as often as a page does (apps/page/page.js). The thread runs on the last core.
class PageViewers {
 public:
  PageViewers(int port, int viewers, std::string run);
  /// Closes the pages.
  ~PageViewers();
  PageViewers(const PageViewers&) = delete;
  PageViewers& operator=(const PageViewers&) = delete;

  PageCounts counts() const { return {answers_, bytes_, failed_}; }

 private:
  void watch(const std::stop_token& ended, int viewers);
  void look(bool with_about);
  void ask(const std::string& path);

  const int port_;
  const std::string run_;
  std::atomic<std::int64_t> answers_ = 0, bytes_ = 0, failed_ = 0;
  std::jthread thread_;  // Last: it uses the other members.
};

/// Gives the answers that a head's page gave once, on the last core. Viewers that ask it instead
/// disturb a run as much as those that ask the head, except for what they cost the head.
class StandIn {
 public:
  /// Asks the page at `port` for what viewers of the run ask for.
  StandIn(int port, const std::string& run);
  ~StandIn();
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

  int port() const { return port_; }

 private:
  void serve() const;

  std::map<std::string, std::string> answers_;  // Keyed by path.
  int listening_ = -1;
  int port_ = 0;
  std::jthread thread_;  // Last: it uses the other members.
};

/// Returns a port of 127.0.0.1 that nobody listens on.
int free_port();

}  // namespace troupe::bench
