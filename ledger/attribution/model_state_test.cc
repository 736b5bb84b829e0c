#include "ledger/attribution/model_state.h"

#include <catch2/catch.hpp>
#include <string>

#include "ledger/attribution/attribution.h"
#include "ledger/attribution/test_job.h"

namespace ledger::attribution {
namespace {

using record::NameCategory;
using record::PhaseKind;

struct Said {
  NameCategory category;
  std::uint64_t address, bytes;
  std::uint64_t elements;
  std::uint8_t element_bytes;
  std::string text, key = "";
  std::uint64_t belongs_to = 0;
  std::uint8_t flags = 0;
};

void Say(TestJob& job, const Said& said) {
  record::Name name = {};
  name.category = said.category;
  name.address = said.address;
  name.bytes = said.bytes;
  name.elements = said.elements;
  name.element_bytes = said.element_bytes;
  name.text = said.text.empty() ? 0 : job.ledger.Text(said.text);
  name.key = said.key.empty() ? 0 : job.ledger.Text(said.key);
  name.belongs_to = said.belongs_to;
  name.flags = said.flags;
  job.ledger.Add(record::Kind::kName, 0, name, record::Layer::kAgent);
}

ModelState ModelStateOf(const TestJob& job) {
  const auto file = *job.ledger.Read();
  const replay::Analysis analysis(file, {});
  const Attribution attribution(file, analysis.devices());
  return ModelStateOf(attribution.grounds(), *attribution.lives(0));
}

std::uint64_t BytesOf(const ModelState& state, Category category) {
  std::uint64_t sum = 0;
  for (const StateTensor& tensor : state.tensors) sum += tensor.category == category ? tensor.Bytes() : 0;
  return sum;
}

TEST_CASE("sixteen bytes for each parameter, an eighth of them here") {
  TestJob job(/*agent=*/true);
  const std::uint64_t elements = 8000;
  const auto weight = job.Allocate(2048);  // 1,000 elements of two bytes, rounded
  Say(job, {NameCategory::kParameter, weight, 2000, elements, 2, "layer.weight", "", 0, record::kNameSharded});
  const auto master = job.Allocate(4096);
  Say(job, {NameCategory::kMasterParameter, master, 4000, elements, 4, "master[0]", "", 0, record::kNameSharded});
  job.Enter(PhaseKind::kForward, 0);
  job.Enter(PhaseKind::kBackward, 0);
  const auto gradient = job.Allocate(2048, 0, true);
  Say(job, {NameCategory::kGradient, gradient, 2000, 1000, 2, "", "", weight, record::kNameFromGraph});
  job.Enter(PhaseKind::kOptimizer, 0);
  for (const char* const key : {"exp_avg", "exp_avg_sq"}) {
    Say(job, {NameCategory::kOptimizerState, job.Allocate(4096), 4000, elements, 4, "master[0]", key, master,
              record::kNameSharded});
  }
  job.Free(gradient, 2048);
  job.Enter(PhaseKind::kForward, 1);

  const ModelState state = ModelStateOf(job);
  CHECK(BytesOf(state, Category::kParameter) == 2 * elements);
  CHECK(BytesOf(state, Category::kGradient) == 2 * elements);
  CHECK(BytesOf(state, Category::kMasterParameter) == 4 * elements);
  CHECK(BytesOf(state, Category::kOptimizerState) == 8 * elements);
  CHECK(state.held[Index(Category::kParameter)] == 2000);
  CHECK(state.held[Index(Category::kGradient)] == 2000);
  CHECK(state.held[Index(Category::kMasterParameter)] == 4000);
  CHECK(state.held[Index(Category::kOptimizerState)] == 8000);
}

TEST_CASE("state that was made for a shard is as large a part of the whole as its parameter") {
  TestJob job(/*agent=*/true);
  const auto flat = job.Allocate(4096);
  Say(job, {NameCategory::kParameter, flat, 4000, 2000, 4, "_flat_param", "", 0, record::kNameSharded});
  job.Enter(PhaseKind::kForward, 0);
  Say(job, {NameCategory::kOptimizerState, job.Allocate(4096), 4000, 1000, 4, "_flat_param", "exp_avg", flat});
  const ModelState state = ModelStateOf(job);
  CHECK(BytesOf(state, Category::kOptimizerState) == 8000);
}

TEST_CASE("tied parameters count once, views of one buffer each") {
  TestJob job(/*agent=*/true);
  const auto tied = job.Allocate(4096), buffer = job.Allocate(8192);
  Say(job, {NameCategory::kParameter, tied, 4000, 1000, 4, "embedding.weight"});
  Say(job, {NameCategory::kParameter, tied, 4000, 1000, 4, "head.weight"});
  Say(job, {NameCategory::kParameter, buffer, 8000, 1000, 4, "a.weight"});
  Say(job, {NameCategory::kParameter, buffer, 8000, 1000, 4, "b.weight"});
  job.Enter(PhaseKind::kForward, 0);
  const ModelState state = ModelStateOf(job);
  CHECK(state.tensors.size() == 3);
  CHECK(BytesOf(state, Category::kParameter) == 12000);
  CHECK(state.held[Index(Category::kParameter)] == 12000);
}

TEST_CASE("a name of another kind that a block had before counts for nothing") {
  TestJob job(/*agent=*/true);
  const auto weight = job.Allocate(4096);
  Say(job, {NameCategory::kMasterParameter, weight, 4096, 1024, 4, "param_groups[0].params[0]"});
  Say(job, {NameCategory::kParameter, weight, 4096, 1024, 4, "layer.weight"});
  job.Enter(PhaseKind::kForward, 0);
  const ModelState state = ModelStateOf(job);
  REQUIRE(state.tensors.size() == 1);
  CHECK(state.tensors[0].name == "layer.weight");
}

TEST_CASE("gradients of whole parameters and of master parameters are told apart from those that are kept") {
  TestJob job(/*agent=*/true);
  const auto master = job.Allocate(4096);
  Say(job, {NameCategory::kMasterParameter, master, 4096, 1024, 4, "master[0]"});
  job.Enter(PhaseKind::kForward, 0);
  const auto whole = job.Allocate(8192);
  Say(job, {NameCategory::kGatheredParameter, whole, 8192, 4096, 2, "layer.weight"});
  job.Enter(PhaseKind::kBackward, 0);
  Say(job, {NameCategory::kGradient, job.Allocate(8192, 0, true), 8192, 4096, 2, "", "", whole});
  Say(job, {NameCategory::kGradient, job.Allocate(4096, 0, true), 4096, 1024, 4, "master[0]", "", master});
  const ModelState state = ModelStateOf(job);
  CHECK(state.held[Index(Category::kGradient)] == 0);
  CHECK(state.unsharded_gradients == 8192);
  CHECK(state.master_gradients == 4096);
}

TEST_CASE("a gradient is persistent where it is alive in a later step than the one that made it") {
  TestJob job(/*agent=*/true);
  job.Allocate(512);
  std::uint64_t gradients[2];
  for (std::uint64_t step = 0; step < 2; ++step) {
    job.Enter(PhaseKind::kForward, step);
    if (step == 1) job.Free(gradients[0], 512);
    job.Enter(PhaseKind::kBackward, step);
    gradients[step] = job.Allocate(512, 0, true);
    Say(job, {NameCategory::kGradient, gradients[step], 512, 128, 4, "weight"});
    job.Enter(PhaseKind::kBetween, step);
    if (step == 1) job.Free(gradients[1], 512);
  }
  const auto file = *job.ledger.Read();
  const replay::Analysis analysis(file, {});
  const Attribution attribution(file, analysis.devices());
  const auto& lives = attribution.lives(0)->lives;
  REQUIRE(lives.size() == 3);
  CHECK(IsPersistent(attribution.grounds(), lives[1]));
  CHECK_FALSE(IsPersistent(attribution.grounds(), lives[2]));
}

}  // namespace
}  // namespace ledger::attribution
