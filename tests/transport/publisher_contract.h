#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "catch.h"
#include "tests/transport/network_under_test.h"

namespace troupe::transport {

/// Subscribers of every network get the events of their topic, in order and without a gap.
inline void check_publisher_contract(NetworkUnderTest& under_test) {
  const auto wait_for = [&](const std::function<bool()>& condition) {
    const bool holds = under_test.run_until(condition);
    REQUIRE(holds);
  };
  PublisherOptions options;
  options.endpoint = "tcp://127.0.0.1:0";
  options.link = long_limits();
  const auto publisher = under_test.network(0).open_publisher(std::move(options));
  REQUIRE(publisher);
  Noted<Message> heard;
  SubscriberEvents events;
  events.event = [&](Message event) { heard.add(std::move(event)); };
  const auto loop = under_test.env(1).make_loop({"test"});
  const auto subscriber = under_test.network(1).subscribe(dialing((*publisher)->endpoint()), "gpt/",
                                                          std::move(events), *loop);
  REQUIRE(subscriber);
  const auto event_of = [](const char* run, std::uint64_t id) {
    auto event = note("step", id);
    event.run = run;
    return event;
  };
  // Events from before the subscription are lost.
  wait_for([&] {
    REQUIRE((*publisher)->publish(event_of("gpt", 0)));
    return heard.size() > 0;
  });
  for (std::uint64_t id = 1; id <= 100; ++id) {
    REQUIRE((*publisher)->publish(event_of("gpt", id)));
    REQUIRE((*publisher)->publish(event_of("gpt-small", id)));
  }
  wait_for([&] { return heard.size() > 0 && heard[heard.size() - 1].id == 100; });
  const auto all = heard.all();
  CHECK(std::ranges::all_of(all, [](const Message& event) { return event.run == "gpt"; }));
  for (std::size_t i = 1; i < all.size(); ++i) CHECK(all[i].seq == all[i - 1].seq + 1);
}

}  // namespace troupe::transport
