#include "schedule/mapping_memo.h"

namespace plumbline::schedule {

Result<KernelSchedule> MappingMemo::choose(const MappingRequest& request) {
  for (const Known& known : known_) {
    if (known.shrink == request.shrink && lower::same_content(known.kernel, request.kernel)) return known.schedule;
  }
  PL_TRY(KernelSchedule made, choose_mapping(request));
  known_.push_back({request.kernel, request.shrink, made});
  return made;
}

}  // namespace plumbline::schedule
