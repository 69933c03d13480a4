// How memory of a GPU can cross to another process, and why not.
#pragma once

#include "doctor/gpus.hpp"

namespace wc::doctor {

void judge_vmm_fd(const GpuTrial& trial, Diagnosis& diagnosis);

}  // namespace wc::doctor
