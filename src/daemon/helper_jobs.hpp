// The jobs themselves, each run in a process of its own: it may take seconds, and be killed.
#pragma once

#include <string>
#include <vector>

#include "base/fd.hpp"
#include "daemon/job.hpp"

namespace wc::daemon {

/// Does the job and answers through the socket, an error too. False: no answer could be sent.
[[nodiscard]] bool run_job(FdView socket, const Job& job, std::vector<Fd> descriptors);

/// "reserving 2.0 GiB in 3 segments", for messages.
[[nodiscard]] std::string describe(const Job& job);

}  // namespace wc::daemon
