#include "cluster/attacks.h"

#include <array>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "actors/player_id.h"
#include "cluster/liar.h"
#include "transport/sockets.h"

namespace troupe::tests {
namespace {

using Random = std::mt19937_64;

std::string noise(Random& random, std::size_t most) {
  std::string bytes(1 + random() % most, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

/// Sends bytes to any socket of the head, which disconnects if it cannot read them.
void say_and_hang_up(const std::string& endpoint, const std::string& bytes) {
  RawConnection line(endpoint);
  line.send(bytes);
  line.finish();
  (void)line.closed();
}

std::vector<std::string> hello(Random& random) {
  auto message = message_of("hello", random() >> 1);
  message.incarnation = random() >> 1;
  return parts_of(message);
}

std::vector<std::string> about(const Target& target, const std::string& type) {
  auto message = message_of(type, 1);
  message.run = target.run;
  message.epoch = 1;
  message.incarnation = 1;
  message.seq = 1;
  return parts_of(message);
}

/// Returns message parts with an arbitrary body and a matching prelude.
std::vector<std::string> with_body(const std::string& type, const std::string& body) {
  auto parts = parts_of(message_of(type));
  parts[2] = body;
  for (std::size_t i = 0; i < 4; ++i)
    parts[0][12 + i] = static_cast<char>(body.size() >> (8 * i) & 0xff);
  return parts;
}

void talk_noise(const Target& target, Random& random) {
  say_and_hang_up(random() % 2 ? target.control : target.events, noise(random, 4096));
}
void talk_http(const Target& target, Random& random) {
  say_and_hang_up(random() % 2 ? target.control : target.events,
                  "GET /status HTTP/1.1\r\nHost: head\r\n\r\n");
}
void talk_tls(const Target& target, Random& random) {
  say_and_hang_up(target.control, "\x16\x03\x01\x02" + noise(random, 512));
}
void leave_in_the_greeting(const Target& target, Random& random) {
  RawConnection line(target.control);
  line.send(std::string("\xff\0\0\0\0\0\0\0\0\x7f\3", 1 + random() % 11));
}
void claim_a_huge_frame(const Target& target, Random& random) {
  RawConnection line(target.control);
  if (!line.shake_hands()) return;
  line.send_message(hello(random));
  line.send(std::string("\2\x40\0\0\0\0\0\0\0", 9) + std::string(1000, 'x'));
  (void)line.closed();
}
void cut_a_message_off(const Target& target, Random& random) {
  RawConnection line(target.control);
  if (!line.shake_hands()) return;
  line.send_message(hello(random));
  line.send(std::string("\1\20", 2) + about(target, "node.heartbeat")[0]);
}
void give_orders_without_a_hello(const Target& target, Random&) {
  RawConnection line(target.control);
  if (!line.shake_hands()) return;
  for (int i = 0; i < 20; ++i) line.send_message(about(target, "run.stop"));
}
void speak_another_version(const Target& target, Random& random) {
  RawConnection line(target.control);
  if (!line.shake_hands()) return;
  auto parts = hello(random);
  parts[0][4] = static_cast<char>(2 + random() % 200);
  line.send_message(parts);
  (void)line.closed();
}
void talk_nonsense_in_a_session(const Target& target, Random& random) {
  RawConnection line(target.control);
  if (!line.shake_hands()) return;
  line.send_message(hello(random));
  const std::array bodies = {
      noise(random, 1000),
      "\x81\xa1\x61" + std::string(1000, '\x91'),               // Deep nesting.
      std::string("\x81\xa1\x61\xdd\xff\xff\xff\xff"),          // A long list.
      std::string("\x81\xa1\x61\xdb\xff\xff\xff\xff"),          // A long text.
      std::string("\x81\xa1\x61\xcb\x7f\xf8\0\0\0\0\0\0", 12),  // NaN.
      std::string("\x80\x80"),
  };
  for (std::size_t i = 0; i < 12; ++i)
    line.send_message(with_body("node.heartbeat", bodies[i % bodies.size()]));
  (void)line.closed();
}
void change_bytes_of_good_messages(const Target& target, Random& random) {
  RawConnection line(target.control);
  if (!line.shake_hands()) return;
  line.send_message(hello(random));
  for (int i = 0; i < 200; ++i) {
    auto parts = about(target, "player_pulse");
    auto& part = parts[random() % 2 ? 0 : 2];
    part[random() % part.size()] = static_cast<char>(random());
    line.send_message(parts);
  }
}
void be_a_node_of_nobody(const Target& target, Random& random) {
  RawConnection line(target.control);
  if (!line.shake_hands()) return;
  line.send_message(hello(random));
  for (const auto* type : {"stage.failed", "prepare_failed", "prepared", "step_done", "divergence",
                           "round_played", "micro_batch_loss", "node.leaving", "of.tomorrow"})
    for (int times = 0; times < 2; ++times) line.send_message(about(target, type));
  (void)line.wait_for("not a message type that this head supports");
}
void join_as_another_version(const Target& target, Random& random) {
  RawConnection line(target.control);
  if (!line.shake_hands()) return;
  auto message = message_of("node.join", 1);
  message.incarnation = random() >> 1;
  message.body.set("name", "alpha");
  line.send_message(parts_of(message));
  (void)line.wait_for("node.reject");
}
void say_hello_without_end(const Target& target, Random& random) {
  RawConnection line(target.control);
  if (!line.shake_hands()) return;
  for (int i = 0; i < 50; ++i) line.send_message(hello(random));
}
void ask_and_never_listen(const Target& target, Random& random) {
  RawConnection line(target.control);
  if (!line.shake_hands()) return;
  line.send_message(hello(random));
  for (int i = 0; i < 500; ++i) line.send_message(about(target, "status"));
}
void subscribe_to_everything(const Target& target, Random& random) {
  RawConnection line(target.events);
  if (!line.shake_hands("SUB")) return;
  for (int i = 0; i < 200; ++i) line.send_message({"\1" + noise(random, 200)});
}

/// Sends more than the head buffers, and leaves. ZeroMQ stops reading then, and notices the end
/// late.
void flood_and_leave(const Target& target, Random& random) {
  RawConnection line(random() % 2 ? target.control : target.events);
  if (!line.shake_hands()) return;
  std::string flood;
  for (int i = 0; i < 20'000; ++i) flood += std::string("\0\1x", 3);
  line.send(flood);
}

/// Joins like an honest node, and then reports about a run in which it has no part.
void lie_as_a_node(const Target& target, Random& random) {
  Liar liar(target.control);
  const bool claims_a_term = random() % 4 == 0;
  if (!liar.join("liar", claims_a_term ? random() >> 1 : 0)) return;
  constexpr std::array types = {"round_played", "step_done",    "micro_batch_loss", "divergence",
                                "player_pulse", "stage.failed", "prepare_failed",   "prepared",
                                "kept",         "exit_notice",  "node.leaving"};
  constexpr std::array numbers = {"replica", "device",    "first_step", "step",
                                  "index",   "optimizer", "stage",      "most_parcels",
                                  "life",    "signal",    "patiences"};
  constexpr std::array<std::int64_t, 5> wild = {-1, 0, 300, 999'999'999,
                                                std::numeric_limits<std::int64_t>::max()};
  for (int i = 0; i < 20; ++i) {
    auto message = Liar::about(target.run, types[random() % types.size()]);
    for (const auto* number : numbers) message.body.set(number, wild[random() % wild.size()]);
    message.body.set("attempt", 1);
    message.body.set("purpose", "training");
    message.body.set("reason", "\x1b]0;owned\x07");
    message.body.set("to", transport::to_value(actors::the_supervisor));
    liar.say(std::move(message));
  }
  (void)liar.is_thrown_out();
}

/// Gives orders that cannot be carried out.
void give_wild_orders(const Target& target, Random& random) {
  RawConnection line(target.control);
  if (!line.shake_hands()) return;
  line.send_message(hello(random));
  for (const auto* type : {"run.set", "run.events", "node.drain", "node.cordon", "chaos",
                           "run.submit", "plan.request", "config.validate"}) {
    auto message = message_of(type, random() >> 1);
    for (const auto* key : {"node", "setting", "config", "what"})
      message.body.set(key, "\x1b[2J\n" + std::string(random() % 100, 'x'));
    message.body.set("from", std::numeric_limits<std::int64_t>::max());
    line.send_message(parts_of(message));
  }
  (void)line.wait_for("error");
}

constexpr Attack attacks[] = {
    talk_noise,
    talk_http,
    talk_tls,
    leave_in_the_greeting,
    claim_a_huge_frame,
    cut_a_message_off,
    speak_another_version,
    give_orders_without_a_hello,
    be_a_node_of_nobody,
    talk_nonsense_in_a_session,
    change_bytes_of_good_messages,
    join_as_another_version,
    say_hello_without_end,
    ask_and_never_listen,
    subscribe_to_everything,
    flood_and_leave,
    lie_as_a_node,
    give_wild_orders,
};

}  // namespace

std::span<const Attack> all_attacks() { return attacks; }

}  // namespace troupe::tests
