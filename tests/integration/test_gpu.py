"""GPU memory from load to eviction, and its bad days: simulated GPUs, real daemon and processes."""

import os
import shutil
import signal
import unittest

from gpus import GPU, LIBRARIES, MIB, GpuCase
from harness import eventually
from test_deaths import POINTS

LIAR = os.environ["WEIGHTCACHE_LIAR"]


class Life(GpuCase):
    def test_loaded_attached_verified_evicted(self):
        loaded = self.json_of("load", self.checkpoint(size=3 * MIB), "--device", "1")
        self.assertEqual((loaded["device"], loaded["transport"], loaded["outcome"]),
                         (GPU[1], "vmm_fd", "loaded"))
        attached = self.json_of("attach", "model")
        self.assertEqual((attached["device"], attached["bytes"]), (GPU[1], loaded["bytes"]))
        self.assertEqual(self.json_of("verify", "model")["mismatches"], [])
        again = self.json_of("load", self.folder / "model", "--device", "cuda:1")
        self.assertEqual(again["outcome"], "already_resident")
        self.run_cli("evict", "model")
        eventually(lambda: self.used(1) == 0, "the memory's return")

    def test_resident_bytes_are_exact_for_whoever_sizes_a_cache(self):
        loaded = self.json_of("load", self.checkpoint(size=3 * MIB), "--device", "0")
        self.assertEqual(loaded["bytes"] % (2 * MIB), 0)
        self.assertEqual(loaded["bytes"], self.used(0))
        (device,) = [d for d in self.json_of("status")["devices"] if d["device"] == GPU[0]]
        self.assertEqual((device["bytes"], device["used_bytes"]), (self.used(0), self.used(0)))
        self.assertEqual(device["total_bytes"], 64 * MIB)

    def test_the_daemon_has_no_driver_in_it(self):
        self.run_cli("load", self.checkpoint(), "--device", "0")
        self.held_by_reader("model")
        self.no_driver_in_the_daemon()


class DeviceFull(GpuCase):
    memory = "16MiB"

    def test_says_what_is_needed_what_is_free_and_who_holds_the_rest(self):
        self.run_cli("load", self.checkpoint("a", size=3 * MIB, tensors=2), "--device", "0")
        reader = self.held_by_reader("a")
        big = self.checkpoint("big", size=4 * MIB, seed=9)
        message = self.fails("exhausted", "load", big, "--device", "0")
        for text in ("14.0 MiB", "8.0 MiB of 16.0 MiB are free", '"a" (8.0 MiB, 1 lease)'):
            self.assertIn(text, message)
        self.assertEqual(self.used(0), 8 * MIB)
        reader.terminate()
        self.end(reader)

    def test_room_is_made_of_what_nobody_uses(self):
        self.run_cli("load", self.checkpoint("a", size=3 * MIB, tensors=2), "--device", "0")
        self.run_cli("load", self.checkpoint("big", size=4 * MIB, seed=9), "--device", "0")
        self.assertEqual([name for name, _ in self.entries()], ["big"])
        self.assertIn('evicted "a@1"', self.log())
        self.assertEqual(self.json_of("verify", "big")["mismatches"], [])

    def test_memory_that_others_took_meanwhile_is_told_with_what_could_go(self):
        self.run_cli("load", self.checkpoint("a", size=1 * MIB), "--device", "0")
        # The third use: two were the trial of how memory can be made here.
        full = self.with_env(WEIGHTCACHE_SIM_FAIL="cuMemCreate:3=2")
        other = self.checkpoint("b", seed=5)
        out, err = self.run_cli("load", other, "--device", "0", expect=6, **full)
        self.assertEqual(out, "")
        self.assertIn("cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY: 2.0 MiB are needed", err)
        self.assertIn('nobody uses "a" (4.0 MiB): evict it', err)


class LoaderKilled(GpuCase):
    def test_at_each_point_its_memory_comes_back(self):
        folder = self.checkpoint(size=3 * MIB)
        for point in POINTS:
            with self.subTest(point):
                self.run_cli("load", folder, "--device", "0", expect=-signal.SIGKILL,
                             **self.with_env(WEIGHTCACHE_KILL_AT=point))
                eventually(lambda: self.used(0) == 0, "the memory's return")
                eventually(lambda: self.bytes_held() == 0, "the account's return")
                self.assertEqual(self.json_of("ls")["entries"], [])
        self.run_cli("load", folder, "--device", "0")
        self.assertEqual(self.json_of("verify", "model")["mismatches"], [])


class LyingPublisher(GpuCase):
    def lie(self, how):
        out, _ = self.end(self.start(how, "model", GPU[0], program=LIAR))
        return out

    def finds_out(self, how, message):
        self.assertEqual(self.lie(how), "published\n")
        self.assertEqual(self.entries()["model", 1]["state"], "published")
        self.assertIn(message, self.run_cli("attach", "model", expect=1)[1])
        eventually(lambda: self.entries()["model", 1]["state"] == "failed", "the entry's failure")
        self.assertIn('nobody can map "model@1"', self.log())
        for verb in (("attach", "model"), ("wait", "model", "--timeout", "10s")):
            self.assertIn("has failed, and must be loaded again: import segment 0",
                          self.fails("corrupt", *verb))
        # Who publishes it again replaces it.
        self.assertEqual(self.lie("honest"), "published\n")
        self.run_cli("attach", "model")
        eventually(lambda: self.used(0) == 4 * MIB and self.used(1) == 0, "the lie's memory")

    def test_a_descriptor_that_is_smaller_than_it_says(self):
        self.finds_out("smaller", "the descriptor does not hold 4.0 MiB of this GPU's memory")

    def test_a_descriptor_of_another_gpu(self):
        self.finds_out("other", "the descriptor does not hold 4.0 MiB of this GPU's memory")

    def test_a_descriptor_that_is_no_memory(self):
        self.finds_out("no-memory", "the descriptor is no memory that this driver has exported")

    def test_one_readers_fault_takes_nothing_from_those_who_can_map_it(self):
        refused = self.with_env(WEIGHTCACHE_SIM_FAIL="cuMemMap:1=1")
        self.lie("honest")
        reader = self.held_by_reader("model")
        self.assertIn("corrupt: ", self.run_cli("attach", "model", expect=1, **refused)[1])
        self.assertEqual(self.entries()["model", 1]["state"], "published")
        reader.terminate()
        self.end(reader)
        # Nobody holds it now, but somebody did, and detached in order.
        self.run_cli("attach", "model", expect=1, **refused)
        eventually(lambda: self.entries()["model", 1]["leases"] == 0, "the lease's end")
        self.assertEqual(self.entries()["model", 1]["state"], "published")
        self.run_cli("attach", "model")

    def test_other_content_may_have_a_failed_entrys_name(self):
        self.lie("smaller")
        self.run_cli("attach", "model", expect=1)
        eventually(lambda: self.entries()["model", 1]["state"] == "failed", "the entry's failure")
        self.run_cli("load", self.checkpoint(), "--device", "0")
        self.assertEqual(self.json_of("verify", "model")["mismatches"], [])


class Visibility(GpuCase):
    def setUp(self):
        super().setUp()
        self.run_cli("load", self.checkpoint("on-second"), "--device", "1", "--name", "second")

    def attach(self, visible, expect=0):
        seen = self.with_env(CUDA_VISIBLE_DEVICES=visible)
        return self.run_cli("attach", "second", expect=expect, **seen)[1]

    def test_hidden_by_ordinal(self):
        err = self.attach("0", expect=1)
        for text in ("weightcache: unsupported: ", GPU[1], "visible are cuda:0 " + GPU[0],
                     'CUDA_VISIBLE_DEVICES is "0"'):
            self.assertIn(text, err)
        self.assertEqual(self.entries()["second", 1]["state"], "published")

    def test_hidden_by_uuid(self):
        self.assertIn(f'CUDA_VISIBLE_DEVICES is "{GPU[0]}"', self.attach(GPU[0], expect=1))

    def test_no_gpu_is_visible(self):
        err = self.attach("", expect=1)
        self.assertIn("finds no usable GPU: cuInit: CUDA_ERROR_NO_DEVICE", err)

    def test_reordered_it_is_found_by_its_uuid(self):
        self.attach("1,0")
        self.attach(GPU[1])
        other = self.json_of("load", self.checkpoint("b", seed=3), "--device", "cuda:0",
                             **self.with_env(CUDA_VISIBLE_DEVICES="1,0"))
        self.assertEqual(other["device"], GPU[1])

    def test_a_hidden_device_can_not_be_loaded_to(self):
        _, err = self.run_cli("load", self.checkpoint("b"), "--device", "cuda:1", expect=3,
                              **self.with_env(CUDA_VISIBLE_DEVICES="1"))
        self.assertIn('no device "cuda:1" in this process', err)

    def test_several_gpus_ask_for_a_choice(self):
        message = self.fails("invalid_argument", "load", self.checkpoint("b"))
        for text in ("cuda:0", "cuda:1", GPU[0], GPU[1], '"cpu"'):
            self.assertIn(text, message)


class Drivers(GpuCase):
    def test_without_libcuda_the_entry_is_unsupported_and_cpu_serves(self):
        none = self.with_env(WEIGHTCACHE_LIBCUDA="/nonexistent/libcuda.so.1")
        self.run_cli("load", self.checkpoint("a"), "--device", "0")
        err = self.run_cli("attach", "a", expect=1, **none)[1]
        self.assertIn("weightcache: unsupported: ", err)
        self.assertIn("no CUDA driver: /nonexistent/libcuda.so.1", err)
        self.assertEqual(self.json_of("load", self.checkpoint("b"), **none)["device"], "cpu")

    def test_without_exportable_memory_it_says_why_and_what_is_left(self):
        folder = self.checkpoint()
        for cause in ({"WEIGHTCACHE_SIM_NO_VMM": "1"}, {"WEIGHTCACHE_SIM_MISSING": "cuMemCreate"}):
            _, err = self.run_cli("load", folder, "--device", "0", expect=1,
                                  **self.with_env(**cause))
            self.assertIn("weightcache: unsupported: ", err)
            self.assertIn("can't export memory as a descriptor", err)
            self.assertIn("host_fd, on device cpu, is left", err)
        self.assertEqual(self.json_of("load", folder, "--device", "cpu")["transport"], "host_fd")

    def test_a_driver_that_is_too_old_says_which_is_needed(self):
        old = self.with_env(WEIGHTCACHE_SIM_MISSING="cuDeviceGetUuid")
        err = self.run_cli("load", self.checkpoint(), "--device", "0", expect=1, **old)[1]
        self.assertIn("a driver of CUDA 11.4 or later is needed", err)

    def test_a_reader_may_have_another_driver_than_the_loader(self):
        # The daemon has none at all.
        self.run_cli("load", self.checkpoint(), "--device", "0")
        other = self.folder / "other-libcuda.so.1"
        shutil.copy(LIBRARIES / "libcuda.so.1", other)
        reader = self.held_by_reader("model", **self.with_env(WEIGHTCACHE_LIBCUDA=str(other)))
        self.assertIn(str(other), self.maps_of(reader.pid))
        self.no_driver_in_the_daemon()

    def test_a_transport_that_the_device_lacks_is_named_with_those_it_has(self):
        for device, transport, able in (("0", "host_fd", "vmm_fd"), ("0", "torch_ipc", "vmm_fd"),
                                        ("cpu", "vmm_fd", "host_fd")):
            message = self.fails("unsupported", "load", self.checkpoint(), "--device", device,
                                 "--transport", transport)
            self.assertIn(f'transport "{transport}"', message)
            self.assertIn(f'can do "{able}"', message)


class FixedAddress(GpuCase):
    ADDRESS = "0x200000000000"

    def mapped_at(self, pid):
        start = self.ADDRESS.removeprefix("0x")
        return [line for line in self.maps_of(pid).splitlines() if line.startswith(start + "-")]

    def test_every_process_has_it(self):
        for device, kind in (("0", "memory-"), ("cpu", "memfd:")):
            with self.subTest(device):
                loaded = self.json_of("load", self.checkpoint(device), "--device", device,
                                      "--address", self.ADDRESS, "--name", device)
                self.assertEqual(loaded["address"], self.ADDRESS)
                for _ in range(2):
                    reader = self.held_by_reader(device)
                    self.assertEqual(reader.attached["address"], self.ADDRESS)
                    (line,) = self.mapped_at(reader.pid)
                    self.assertIn(kind, line)

    def test_another_address_than_it_has_is_a_mismatch(self):
        folder = self.checkpoint()
        self.assertIsNone(self.json_of("load", folder, "--device", "0")["address"])
        message = self.fails("mismatch", "load", folder, "--device", "0", "--address", self.ADDRESS)
        self.assertIn(f"is resident at any address, not at the address {self.ADDRESS}", message)
        self.run_cli("evict", "model")
        self.run_cli("load", folder, "--device", "0", "--address", self.ADDRESS)
        again = self.json_of("load", folder, "--device", "0", "--address", self.ADDRESS)
        self.assertEqual(again["outcome"], "already_resident")
        again = self.json_of("load", folder, "--device", "0")
        self.assertEqual(again["outcome"], "already_resident")

    def test_an_address_that_can_not_be_is_refused_before_anything_is_read(self):
        for wrong in ("0x1000", "0x800000000000", "12345"):
            message = self.fails("invalid_argument", "load", self.checkpoint(), "--address", wrong)
            self.assertIn("a multiple of 2.0 MiB", message)
        _, err = self.run_cli("load", self.checkpoint(), "--address", "here", expect=2)
        self.assertIn('"here" is no address like 0x200000000000', err)


class Doctor(GpuCase):
    def findings(self, expect=0, **variables):
        document = self.json_of("doctor", expect=expect, **self.with_env(**variables))
        told = {}
        for finding in document["findings"]:
            told.setdefault(finding["check"], []).append(finding)
        return told, document

    def test_tells_the_gpus_by_uuid_and_what_they_can_do(self):
        told, document = self.findings()
        self.assertEqual([d["device"] for d in document["devices"]], GPU)
        self.assertEqual([d["total_bytes"] for d in document["devices"]], [64 * MIB] * 2)
        self.assertEqual([f["device"] for f in told["vmm_fd"]], GPU)
        self.assertTrue(all(f["severity"] == "ok" for f in told["vmm_fd"]))
        self.assertIn("GPUDirect RDMA: yes, fabric handles: no", told["vmm_fd"][0]["text"])

    def test_tells_of_gpus_that_this_process_can_not_see(self):
        _, document = self.findings(CUDA_VISIBLE_DEVICES="1")
        self.assertEqual([(d["device"], d["ordinal"]) for d in document["devices"]],
                         [(GPU[1], 0), (GPU[0], None)])

    def test_warns_of_persistence_mode_and_of_a_pending_mig_switch(self):
        told, document = self.findings(WEIGHTCACHE_SIM_PERSISTENCE="off",
                                       WEIGHTCACHE_SIM_MIG="pending")
        self.assertEqual({f["severity"] for f in told["persistence_mode"]}, {"warning"})
        self.assertIn("-pm 1", told["persistence_mode"][0]["advice"])
        self.assertEqual({f["severity"] for f in told["mig"]}, {"warning"})
        self.assertEqual(document["devices"][0]["mig_mode"], False)

    def test_a_gpu_that_can_not_export_is_a_problem_with_a_status(self):
        told, document = self.findings(expect=1, WEIGHTCACHE_SIM_NO_VMM="1")
        self.assertEqual({f["severity"] for f in told["vmm_fd"]}, {"problem"})
        self.assertEqual(document["error"]["code"], "unsupported")

    def test_without_nvml_the_rest_is_told(self):
        told, document = self.findings(WEIGHTCACHE_LIBNVML="/nonexistent/libnvidia-ml.so.1")
        self.assertEqual(told["nvml"][0]["severity"], "warning")
        self.assertIsNone(document["devices"][0]["used_bytes"])


if __name__ == "__main__":
    unittest.main()
