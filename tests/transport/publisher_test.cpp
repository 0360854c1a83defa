#include "transport/control/publisher.h"

#include <chrono>
#include <filesystem>
#include <future>
#include <thread>
#include <zmq.hpp>

#include "catch.h"
#include "storage/temporary_directory.h"
#include "transport/control/zmq_sockets.h"
#include "transport/sockets.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

PublisherOptions publisher_options(std::string endpoint = "tcp://127.0.0.1:0") {
  PublisherOptions options;
  options.endpoint = std::move(endpoint);
  options.link = patient_link();
  return options;
}

Message event_of(std::string run, std::string type, int step = 0) {
  auto event = message_of(std::move(type));
  event.run = std::move(run);
  event.body.set("step", step);
  return event;
}

struct Stage {
  explicit Stage(PublisherOptions options = publisher_options()) {
    PublisherEvents events;
    events.subscribed = [this](const std::string& topic) { subscribed.add(topic); };
    events.refused = [this](const std::string&, const std::string& why) { refused.add(why); };
    auto bound = bind_publisher(std::move(options), std::move(events));
    assert(bound.ok());
    socket = std::move(*bound);
  }

  Told<std::string> subscribed;
  Told<std::string> refused;
  std::unique_ptr<Publisher> socket;  // Destroyed first.
};

struct EventListener {
  EventListener(DialOptions options, std::string topic,
                const std::function<void()>& before_each = {}) {
    SubscriberEvents told;
    told.event = [this, before_each](Message event) {
      if (before_each) before_each();
      events.add(std::move(event));
    };
    told.missed = [this](const std::string& run, std::uint64_t count) { missed.add({run, count}); };
    told.gone = [this](const std::string& why) { gone.add(why); };
    told.refused = [this](const std::string& why) { refused.add(why); };
    auto dialled =
        own.network.subscribe(std::move(options), std::move(topic), std::move(told), *own.loop);
    assert(dialled.ok());
    socket = std::move(*dialled);
  }

  Told<Message> events;
  Told<std::pair<std::string, std::uint64_t>> missed;
  Told<std::string> gone;
  Told<std::string> refused;
  OwnNetwork own;
  std::unique_ptr<Subscriber> socket;  // Destroyed first.
};

}  // namespace

TEST_CASE("a subscriber of a run gets its events in order, and no others", "[transport]") {
  const TemporaryDirectory directory;
  for (const auto& endpoint :
       {std::string("tcp://127.0.0.1:0"), "ipc://" + (directory / "events")}) {
    INFO(endpoint);
    Stage stage(publisher_options(endpoint));
    const auto dial = dial_options(stage.socket->endpoint());
    EventListener one(dial, "gpt/");
    EventListener steps(dial, "gpt/step");
    EventListener all(dial, "");
    REQUIRE(stage.subscribed.wait(3));
    REQUIRE(stage.socket->publish(event_of("gpt", "run.state")));
    REQUIRE(stage.socket->publish(event_of("gpt-small", "step", 1)));
    REQUIRE(stage.socket->publish(event_of("", "node.joined")));
    for (int step = 1; step <= 100; ++step)
      REQUIRE(stage.socket->publish(event_of("gpt", "step", step)));
    REQUIRE(one.events.wait(101));
    REQUIRE(steps.events.wait(100));
    REQUIRE(all.events.wait(103));
    CHECK(one.events[0].type == "run.state");
    for (int step = 1; step <= 100; ++step) {
      const auto i = static_cast<std::size_t>(step);
      REQUIRE(one.events[i].body.find("step")->integer());
      CHECK(*one.events[i].body.find("step")->integer() == step);
      CHECK(one.events[i].seq == i + 1);
      CHECK(steps.events[i - 1].seq == i + 1);
    }
    CHECK(all.events[1].run == "gpt-small");
    CHECK(all.events[2].type == "node.joined");
    CHECK(one.missed.count() + steps.missed.count() + all.missed.count() == 0);
    CHECK(one.events.count() == 101);
  }
  CHECK(std::filesystem::is_empty(directory / "."));
}

TEST_CASE("an event is sent in one part, behind its topic", "[transport]") {
  Stage stage;
  zmq::context_t context;
  zmq::socket_t script(context, zmq::socket_type::sub);
  script.set(zmq::sockopt::linger, 0);
  script.set(zmq::sockopt::subscribe, "gpt/");
  script.connect(stage.socket->endpoint());
  REQUIRE(stage.subscribed.wait());
  CHECK(stage.subscribed[0] == "gpt/");
  REQUIRE(stage.socket->publish(event_of("gpt", "step", 7)));
  zmq::message_t part;
  REQUIRE(script.recv(part));
  CHECK_FALSE(part.more());
  CHECK(part.to_string_view().starts_with(std::string_view("gpt/step\0TRPE", 13)));
  const auto event = decode_event(part.to_string_view());
  REQUIRE(event);
  CHECK(event->run == "gpt");
}

TEST_CASE("a slow subscriber learns how many events it missed", "[transport]") {
  auto options = publisher_options();
  options.link.high_water = 4;
  Stage stage(options);
  auto dial = dial_options(stage.socket->endpoint());
  dial.link.high_water = 4;
  dial.link.queue = 4;
  std::promise<void> go_on;
  auto until_then = go_on.get_future().share();
  EventListener slow(dial, "gpt/", [until_then] { until_then.wait(); });
  EventListener quick(dial_options(stage.socket->endpoint()), "other/");
  REQUIRE(stage.subscribed.wait(2));
  auto event = event_of("gpt", "plan.changed");
  Value::List lanes;
  for (int i = 0; i < 15; ++i) lanes.push_back(std::string(60'000, 'x'));
  event.body.set("lanes", lanes);
  constexpr std::uint64_t count = 100;
  for (std::uint64_t i = 0; i < count; ++i) REQUIRE(stage.socket->publish(event));
  // The publisher never waits.
  REQUIRE(stage.socket->publish(event_of("other", "step")));
  REQUIRE(quick.events.wait());
  go_on.set_value();
  // An event that comes after the gap reveals it. The publisher may drop some: it has not heard yet
  // that there is room again. Each turn waits for the publisher by the quick subscriber, so that no
  // more events are published than it can send.
  const auto end = std::chrono::steady_clock::now() + patience;
  std::size_t turns = 1;
  for (std::uint64_t last = 0; last < count;) {
    REQUIRE(std::chrono::steady_clock::now() < end);
    REQUIRE(stage.socket->publish(event_of("gpt", "step")));
    REQUIRE(stage.socket->publish(event_of("other", "step")));
    REQUIRE(quick.events.wait(++turns));
    if (const auto seen = slow.events.count(); seen > 0) last = slow.events[seen - 1].seq;
  }
  REQUIRE(slow.missed.wait());
  CHECK(slow.missed[0].first == "gpt");
  // More events may be under way. The counts of received and missed events add up once all have
  // come.
  bool adds_up = false;
  while (!adds_up && std::chrono::steady_clock::now() < end) {
    const auto seen = slow.events.count();
    std::uint64_t missed = 0;
    for (std::size_t i = 0; i < slow.missed.count(); ++i) missed += slow.missed[i].second;
    adds_up = seen + missed == slow.events[seen - 1].seq;
    if (!adds_up) std::this_thread::yield();
  }
  CHECK(adds_up);
  CHECK(slow.missed[0].second > 0);
}

TEST_CASE("subscribers reconnect to a publisher that was away", "[transport]") {
  const TemporaryDirectory directory;
  const auto endpoint = "ipc://" + (directory / "events");
  auto stage = std::make_unique<Stage>(publisher_options(endpoint));
  EventListener listener(dial_options(endpoint), "");
  REQUIRE(stage->subscribed.wait());
  REQUIRE(stage->socket->publish(event_of("gpt", "step", 1)));
  REQUIRE(listener.events.wait(1));
  stage.reset();
  REQUIRE(listener.gone.wait());
  stage = std::make_unique<Stage>(publisher_options(endpoint));
  REQUIRE(stage->subscribed.wait());
  REQUIRE(stage->socket->publish(event_of("gpt", "step", 2)));
  REQUIRE(listener.events.wait(2));
  // The new publisher counts from 1 again, and nothing was missed.
  CHECK(listener.events[1].seq == 1);
  CHECK(listener.missed.count() == 0);
}

TEST_CASE("a subscriber that is behind gets the last events of a head that has gone",
          "[transport]") {
  const RawListener head;
  auto options = dial_options(head.endpoint());
  options.link.queue = 1;
  std::promise<void> go_on;
  auto until_then = go_on.get_future().share();
  EventListener slow(options, "gpt/", [until_then] { until_then.wait(); });
  RawConnection last = head.accept();
  REQUIRE(last.shake_hands("PUB"));
  REQUIRE(last.wait_for("gpt/"));
  constexpr std::size_t count = 20;
  for (std::size_t i = 1; i <= count; ++i) {
    auto event = event_of("gpt", "step");
    event.seq = i;
    const auto bytes = encode_event(event);
    REQUIRE(bytes);
    last.send_message({*bytes});
  }
  last.finish();
  REQUIRE(last.closed());
  go_on.set_value();
  REQUIRE(slow.gone.wait());
  CHECK(slow.events.count() == count);
  CHECK(slow.missed.count() == 0);
}

TEST_CASE("bytes that are not exactly one event are refused", "[transport]") {
  const auto good = encode_event(event_of("gpt", "step", 7));
  REQUIRE(good);
  const auto read = decode_event(*good);
  REQUIRE(read);
  CHECK(topic_of(*read) == "gpt/step");
  for (std::size_t size = 0; size < good->size(); ++size) {
    INFO(size);
    CHECK_FALSE(decode_event(std::string_view(*good).substr(0, size)));
  }
  CHECK_FALSE(decode_event(*good + "x"));
  CHECK_FALSE(decode_event("gpt-other" + good->substr(3)));
  CHECK_FALSE(encode_event(event_of(std::string("g\0t", 3), "step")));
  auto heavy = event_of("gpt", "step");
  heavy.payload = {"x"};
  CHECK_FALSE(encode_event(heavy));
}

TEST_CASE("only keys on the allow list may subscribe", "[transport]") {
  const auto head_keys = *make_key_pair();
  const auto known = *make_key_pair();
  auto options = publisher_options();
  options.keys = head_keys;
  options.allowed.add(known.public_key, {"laptop", {Role::operator_}});
  Stage stage(options);
  auto dial = dial_options(stage.socket->endpoint());
  dial.head_key = head_keys.public_key;
  dial.keys = *make_key_pair();
  EventListener stranger(dial, "");
  REQUIRE(stranger.refused.wait());
  CHECK(stranger.refused[0] ==
        stage.socket->endpoint() +
            ": the head does not know this key; add it to the head's allow list");
  dial.keys = known;
  EventListener listener(dial, "");
  REQUIRE(stage.subscribed.wait());
  REQUIRE(stage.socket->publish(event_of("gpt", "step")));
  CHECK(listener.events.wait());
  CHECK(stranger.events.count() == 0);
  CHECK(stage.socket->counters()[Count::unknown_key] >= 1);
}

TEST_CASE("a subscriber with too many topics is disconnected", "[transport]") {
  auto options = publisher_options();
  options.topic_bytes = 70;  // Ten topics of seven bytes.
  Stage stage(options);
  RawConnection greedy(stage.socket->endpoint());
  REQUIRE(greedy.shake_hands("SUB"));
  for (int i = 0; i < 100; ++i) greedy.send_message({"\1run-" + std::to_string(10 + i)});
  CHECK(greedy.closed());
  CHECK(stage.subscribed.count() == 10);
  REQUIRE(stage.refused.wait());
  CHECK(stage.refused[0] == "subscribes to too much, or says what is no subscription");
}

TEST_CASE("a peer that sends something other than subscriptions is disconnected", "[transport]") {
  Stage stage;
  RawConnection chatty(stage.socket->endpoint());
  REQUIRE(chatty.shake_hands("SUB"));
  chatty.send_message({"stop all runs"});
  CHECK(chatty.closed());
}

TEST_CASE("a peer that subscribes to an overlong topic is disconnected, and others are served",
          "[transport]") {
  Stage stage;
  RawConnection long_winded(stage.socket->endpoint());
  REQUIRE(long_winded.shake_hands("SUB"));
  long_winded.send_message({"\1" + std::string(2000, 'x')});
  CHECK(long_winded.closed());
  EventListener listener(dial_options(stage.socket->endpoint()), "gpt/");
  REQUIRE(stage.subscribed.wait());
  REQUIRE(stage.socket->publish(event_of("gpt", "step")));
  CHECK(listener.events.wait());
}

TEST_CASE("events that no subscriber could decode are refused", "[transport]") {
  Stage stage;
  auto event = event_of("gpt", "step");
  event.body = 3;
  CHECK_FALSE(stage.socket->publish(event));
  event = event_of("gpt", "step");
  event.payload = {std::string(std::size_t{1} << 20, 'x')};
  CHECK_FALSE(stage.socket->publish(event));
  CHECK_FALSE(bind_publisher(publisher_options(stage.socket->endpoint())));
  CHECK_FALSE(bind_publisher(publisher_options("tcp://*:0")));
}
