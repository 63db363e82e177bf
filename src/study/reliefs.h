#pragma once
// The resources that are relieved, one at a time, in both arms.
#include <string>
#include <vector>

#include "decide/evidence.h"
#include "study/engine.h"

namespace plumbline::study {

/// A rate or capacity of the accelerator taken away as a limit.
struct ResourceRelief {
  std::string resource;
  decide::ReliefKind kind = decide::ReliefKind::rate;
  std::string bottleneck;  ///< empty: the movement that rose most in the symptom's slice
  AcceleratorEdit edit;
};

/// Every rate and capacity the accelerator has: levels, network links, preload, array, vector unit, host.
/// `weight_metric`: the symptom counts weight bytes, so what bounds the streamed tile stands for weight movement.
[[nodiscard]] std::vector<ResourceRelief> resource_reliefs(const ingest::Accelerator& accelerator, bool weight_metric);

}  // namespace plumbline::study
