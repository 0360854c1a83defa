#include "core/mixture.h"

#include <string>
#include <vector>

#include "catch.h"

using namespace troupe;

namespace {

std::string error_of_mixture(const std::string& text) {
  const auto mixture = Mixture::parse(text);
  return mixture ? "none" : mixture.error().text;
}

/// Returns the text of a mixture whose weights change at a step, or the error.
std::string changed(const std::string& before, std::int64_t step, const std::string& wanted) {
  const auto mixture = Mixture::parse(before), other = Mixture::parse(wanted);
  REQUIRE(mixture);
  REQUIRE(other);
  const auto now = mixture->changed_from(step, *other);
  return now ? now->text() : now.error().text;
}

}  // namespace

TEST_CASE("a mixture is read, and written so that it reads back equal", "[core]") {
  const auto mixture = Mixture::parse("a.bin 14, my b.bin 4;from 2000:  c.bin 1 , a.bin 1");
  REQUIRE(mixture);
  CHECK(mixture->sources == std::vector<std::string>{"a.bin", "my b.bin", "c.bin"});
  CHECK(mixture->text() == "a.bin 7, my b.bin 2; from 2000: c.bin 1, a.bin 1");
  CHECK(*Mixture::parse(mixture->text()) == *mixture);
}

TEST_CASE("a mixture that is none is refused with the part that is wrong", "[core]") {
  CHECK(error_of_mixture("") ==
        "found \"\", wanted a source and its weight from 1 to 1000000, such as \"a.bin 7\"");
  CHECK(error_of_mixture("a.bin 7, b.bin")
            .starts_with("found \"b.bin\", wanted a source and its weight"));
  CHECK(error_of_mixture("a.bin 0").starts_with("found \"a.bin 0\""));
  CHECK(error_of_mixture("a.bin -3").starts_with("found \"a.bin -3\""));
  CHECK(error_of_mixture("a.bin 99999999999999999999").starts_with("found \"a.bin 9999"));
  CHECK(error_of_mixture("a.bin 1, a.bin 2") == "\"a.bin 1, a.bin 2\" names \"a.bin\" twice");
  CHECK(error_of_mixture("a.bin 997, b.bin 991") ==
        "\"a.bin 997, b.bin 991\" makes blocks of 1988 samples; at most 1000 are taken: choose "
        "smaller weights");
  CHECK(error_of_mixture("from 5: a.bin 1") ==
        "begins with step 5; weights for the first step were wanted before");
  CHECK(error_of_mixture("a 1; from 9: a 2; from 9: a 3") ==
        "step 9 comes behind step 9; later steps were wanted");
  CHECK(error_of_mixture("a 1; from x: a 2") ==
        "found \"from x: a 2\", wanted a step, such as \"from 2000: a.bin 1\"");
}

TEST_CASE("weights of a mixture change from a step on", "[core]") {
  CHECK(changed("a 3, b 1", 5, "b 2, a 1") == "a 3, b 1; from 5: b 2, a 1");
  CHECK(changed("a 3, b 1", 5, "a 1; from 9: b 1") == "a 3, b 1; from 5: a 1; from 9: b 1");
  // A change replaces the phases that were planned from there on.
  CHECK(changed("a 3, b 1; from 5: a 1; from 9: b 1", 5, "a 1, b 1") ==
        "a 3, b 1; from 5: a 1, b 1");
  CHECK(changed("a 3, b 1; from 5: a 1", 7, "a 1, b 1") ==
        "a 3, b 1; from 5: a 1; from 7: a 1, b 1");
  // Nothing changes, so no block is cut short.
  CHECK(changed("a 3, b 1; from 5: a 1, b 2", 7, "b 4, a 2") == "a 3, b 1; from 5: a 1, b 2");
  CHECK(changed("a 3, b 1", 0, "b 2, a 1") == "a 1, b 2");
}

TEST_CASE("a mixture keeps its sources when weights change", "[core]") {
  CHECK(changed("a 3, b 1", 5, "a 1, c 1") ==
        "found \"c\", wanted a source of the run, which keeps its sources: \"a\", \"b\"");
  CHECK(changed("a 3; from 9: b 1", 5, "a 1") ==
        "leaves \"b\" out of all steps, but a run keeps its sources; name it in a later phase");
  CHECK(changed("a 3; from 9: b 1; from 12: c 1", 5, "c 1; from 9: b 1") ==
        "names sources in the order \"a\", \"c\", \"b\"; wanted the order of the run: \"a\", "
        "\"b\", \"c\"");
  CHECK(changed("a 3, b 1", 5, "a 1; from 5: b 1") ==
        "changes at step 5, and its first weights hold from step 5 on; later steps were wanted");
}

TEST_CASE("the end of a path stands for a source", "[core]") {
  const std::string run = "/data/a.txt?tokenizer=/t.json 3, /data/b.txt 1, /more/b.txt 1";
  CHECK(changed(run, 5, "a.txt 1") == run + "; from 5: /data/a.txt?tokenizer=/t.json 1");
  CHECK(changed(run, 5, "more/b.txt 1") == run + "; from 5: /more/b.txt 1");
  CHECK(changed(run, 5, "b.txt 1") ==
        "\"b.txt\" stands for several sources; write one of \"/data/b.txt\", \"/more/b.txt\"");
  CHECK(changed(run, 5, "a.txt?tokenizer=/u.json 1").starts_with("found \"a.txt?tokenizer=/u"));
  CHECK(changed(run, 5, ".txt 1").starts_with("found \".txt\""));
  CHECK(changed(run, 5, "a.txt 1, /data/a.txt 1").find("twice") != std::string::npos);
}

TEST_CASE("a mixture changes at most so many times", "[core]") {
  std::string text = "a 1, b 1";
  for (int i = 1; i < 1'000; ++i)
    text += "; from " + std::to_string(i) + (i % 2 ? ": a 1" : ": b 1");
  CHECK(changed(text, 2'000, "b 1") == "changes more than 1000 times");
}

TEST_CASE("the phases of a mixture up to a step", "[core]") {
  const auto mixture = Mixture::parse("a 3, b 1; from 5: a 1; from 9: b 1");
  REQUIRE(mixture);
  CHECK(mixture->until(0).text() == "a 3, b 1");
  CHECK(mixture->until(5).text() == "a 3, b 1");
  CHECK(mixture->until(6).text() == "a 3, b 1; from 5: a 1");
  CHECK(mixture->until(10) == *mixture);
}
