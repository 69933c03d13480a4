// What is made from the verbs' descriptions: help, manual pages, completion.
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/completion.hpp"
#include "cli/facts.hpp"
#include "cli/help.hpp"
#include "cli/man.hpp"
#include "cli/nearest.hpp"

namespace wc::cli {
namespace {

using testing::HasSubstr;

class DocumentsTest : public testing::Test {
 protected:
  DocumentsTest() {
    verbs_.reserve(32);
    add_verbs(verbs_);
    add_common(common_, values_);
  }

  std::vector<Verb> verbs_;
  CommonOptions values_;
  Options common_;
};

TEST_F(DocumentsTest, EveryVerbIsDescribedForNewcomers) {
  for (const auto& verb : verbs_) {
    EXPECT_FALSE(verb.summary.empty()) << verb.name;
    EXPECT_TRUE(verb.run) << verb.name;
    for (const auto& option : verb.options.all()) {
      EXPECT_FALSE(option.help.empty()) << verb.name << " " << option.names;
      EXPECT_NE(option.help.back(), '.') << verb.name << " " << option.names;
    }
    if (verb.hidden) continue;
    EXPECT_FALSE(verb.description.empty()) << verb.name;
    EXPECT_FALSE(verb.examples.empty()) << verb.name;
  }
}

TEST_F(DocumentsTest, NoVerbNamesAnOptionTwice) {
  for (const auto& verb : verbs_) {
    std::set<std::string> seen = {"--help"};
    for (const auto& option : common_.all()) seen.insert(long_name(option));
    for (const auto& option : verb.options.all()) {
      EXPECT_TRUE(seen.insert(long_name(option)).second) << verb.name << " " << option.names;
    }
  }
}

TEST_F(DocumentsTest, HelpListsEveryVerbAndEveryOption) {
  const std::string program = program_help(verbs_, common_, 80);
  for (const auto& verb : verbs_) {
    if (verb.hidden) {
      EXPECT_EQ(program.find(verb.name), std::string::npos);
      continue;
    }
    EXPECT_THAT(program, HasSubstr("\n  " + verb.name));
    const std::string help = verb_help(verb, common_, 80);
    for (const auto& option : verb.options.all()) EXPECT_THAT(help, HasSubstr(option.names));
    for (const auto& example : verb.examples) EXPECT_THAT(help, HasSubstr(example.command));
  }
}

TEST_F(DocumentsTest, ProseOfHelpFitsTheTerminal) {
  std::istringstream lines(program_help(verbs_, common_, 72));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 72U) << line;
}

TEST_F(DocumentsTest, ManualPagesTellTheSameAsHelp) {
  for (const auto& verb : verbs_) {
    if (verb.hidden) continue;
    const std::string page = verb_page(verb, verbs_, common_);
    EXPECT_EQ(page.find(".TH WEIGHTCACHE"), 0U);
    for (const char* title : {"NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "EXAMPLES"}) {
      EXPECT_THAT(page, HasSubstr(format(".SH {}\n", title))) << verb.name;
    }
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) EXPECT_FALSE(line.empty()) << verb.name;
  }
}

TEST_F(DocumentsTest, CompletionOffersEveryVerbInEveryShell) {
  for (const auto& script : {bash_completion(verbs_, common_), zsh_completion(verbs_, common_),
                             fish_completion(verbs_, common_)}) {
    EXPECT_THAT(script, HasSubstr("__complete names"));
    for (const auto& verb : verbs_) {
      if (verb.hidden) continue;
      EXPECT_THAT(script, HasSubstr(verb.name));
    }
    EXPECT_EQ(script.find("__man"), std::string::npos);
  }
}

TEST(NearestTest, FindsWhatWasMeantAndNothingFarOff) {
  const std::vector<std::string> known = {"load", "ls", "leases", "evict"};
  EXPECT_EQ(nearest("lod", known), "load");
  EXPECT_EQ(nearest("laod", known), "load");
  EXPECT_EQ(nearest("evcit", known), "evict");
  EXPECT_EQ(nearest("lease", known), "leases");
  EXPECT_EQ(nearest("zzzz", known), std::nullopt);
}

}  // namespace
}  // namespace wc::cli
