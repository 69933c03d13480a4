"""Every verb against a daemon that works: what it prints, which fields it promises."""

import json
import os
import unittest

from harness import DaemonCase, eventually, pattern, write_shard

ENTRY = {"name", "form", "rank", "world", "fingerprint", "generation", "device", "transport",
         "tensors", "bytes"}


class Load(DaemonCase):
    def test_publishes_under_the_folder_s_name(self):
        document = self.json_of("load", self.checkpoint("tiny"))
        self.assertLessEqual(ENTRY | {"segments", "seconds", "outcome"}, document.keys())
        self.assertEqual((document["name"], document["form"], document["rank"], document["world"]),
                         ("tiny", "raw", 0, 1))
        self.assertEqual((document["outcome"], document["generation"]), ("loaded", 1))
        self.assertEqual((document["device"], document["transport"]), ("cpu", "host_fd"))
        self.assertEqual(document["tensors"], 3)
        self.assertGreaterEqual(document["bytes"], 15003)
        self.assertRegex(document["fingerprint"], "^[0-9a-f]{32}$")
        self.assertGreater(document["seconds"], 0)

    def test_says_what_happened_in_words(self):
        out, _ = self.run_cli("load", self.checkpoint("tiny"))
        self.assertRegex(out, r'^loaded "tiny" in .*: 3 tensors, .* on cpu, read at ')
        self.assertIn("weightcache attach tiny", out)
        out, _ = self.run_cli("load", self.checkpoint("tiny"))
        self.assertRegex(out, r'^"tiny" is resident already')

    def test_unchanged_files_are_not_read_again(self):
        folder = self.checkpoint()
        first = self.json_of("load", folder)
        again = self.json_of("load", folder)
        self.assertEqual(again["outcome"], "already_resident")
        self.assertEqual(again["read_bytes"], 0)
        self.assertEqual(again["fingerprint"], first["fingerprint"])
        self.assertEqual(again["generation"], 1)

    def test_what_is_no_checkpoint_is_told_by_name(self):
        self.assertIn("nothing", self.fails("not_found", "load", "./nothing"))
        folder = self.checkpoint()
        os.truncate(folder / "model.safetensors", 40)
        self.assertIn("model.safetensors", self.fails("corrupt", "load", folder))
        self.assertEqual(self.json_of("ls")["entries"], [])

    def test_an_unknown_transport_or_device_is_refused_with_those_there_are(self):
        folder = self.checkpoint()
        self.assertIn("host_fd", self.fails("unsupported", "load", folder, "--transport", "pigeon"))
        self.fails("unsupported", "load", folder, "--device", "GPU-00000000-0000")


class Ls(DaemonCase):
    def test_an_empty_list_says_what_to_do(self):
        out, _ = self.run_cli("ls")
        self.assertIn("weightcache load PATH", out)
        document = self.json_of("ls")
        self.assertEqual(document["entries"], [])
        self.assertEqual(document["epoch"], self.service["epoch"])

    def test_fields_of_an_entry(self):
        self.run_cli("load", self.checkpoint())
        (entry,) = self.json_of("ls")["entries"]
        self.assertLessEqual(ENTRY | {"state", "leases", "pinned"}, entry.keys())
        self.assertEqual((entry["state"], entry["leases"], entry["pinned"]), ("published", 0, False))
        self.assertEqual(entry["source"], str(self.folder / "model"))

    def test_the_table_is_aligned(self):
        self.run_cli("load", self.checkpoint("a-model-with-a-long-name"))
        self.run_cli("load", self.checkpoint("b", seed=1))
        out, err = self.run_cli("ps")
        head, *rows = out.splitlines()
        self.assertEqual(len(rows), 2)
        self.assertEqual(err, "")
        for title in ("STATE", "DEVICE"):
            at = head.index(title)
            for row in rows:
                self.assertNotEqual(row[at], " ", out)
                self.assertEqual(row[at - 2:at], "  ", out)
        self.assertNotIn("\x1b", out)

    def test_one_name_alone(self):
        self.run_cli("load", self.checkpoint("a"))
        self.run_cli("load", self.checkpoint("b", seed=1))
        self.assertEqual([e["name"] for e in self.json_of("ls", "b")["entries"]], ["b"])

    def test_a_load_in_progress_is_seen(self):
        with self.being_loaded("coming", 1000) as holder:
            self.order(holder, "progress 500")
            entry = eventually(lambda: next((e for e in self.json_of("ls")["entries"]
                                             if e.get("done_bytes") == 500), None), "its progress")
            self.assertEqual((entry["state"], entry["generation"], entry["total_bytes"]),
                             ("loading", 0, 1000))
            self.assertIn("loading 50%", self.run_cli("ls")[0])


class Attach(DaemonCase):
    def test_tells_what_and_how_fast(self):
        loaded = self.json_of("load", self.checkpoint())
        document = self.json_of("attach", "model")
        self.assertLessEqual(ENTRY | {"segments", "attach_ns", "epoch"}, document.keys())
        self.assertEqual({k: document[k] for k in ENTRY}, {k: loaded[k] for k in ENTRY})
        self.assertEqual(document["epoch"], self.service["epoch"])
        self.assertGreater(document["attach_ns"], 0)
        out, _ = self.run_cli("attach", "model")
        self.assertRegex(out, r'^attached "model" in .*: 3 tensors, .* on cpu, generation 1\n$')

    def test_every_way_to_ask_finds_it(self):
        folder = self.checkpoint()
        loaded = self.json_of("load", folder)
        for text in ("model", "model@1", "@" + loaded["fingerprint"], "@" + loaded["fingerprint"][:8],
                     str(folder), "./model"):
            self.assertEqual(self.json_of("attach", text)["fingerprint"], loaded["fingerprint"], text)

    def test_an_absent_name_gets_the_nearest_ones(self):
        self.run_cli("load", self.checkpoint("llama-8b"))
        self.assertIn('"llama-8b"', self.fails("not_found", "attach", "lama-8b"))
        self.fails("not_found", "attach", "llama-8b@7")
        self.fails("not_found", "attach", "@00000000")

    def test_both_kinds_of_access(self):
        self.run_cli("load", self.checkpoint())
        for access in ("shared", "private"):
            self.run_cli("attach", "model", "--access", access)

    def test_held_it_is_a_lease_and_ends_with_the_process(self):
        self.run_cli("load", self.checkpoint())
        reader = self.held_by_reader("model")
        self.assertEqual(reader.attached["name"], "model")
        self.assertEqual(self.entries()["model", 1]["leases"], 1)
        reader.kill()
        eventually(lambda: self.entries()["model", 1]["leases"] == 0, "the lease's end")

    def test_what_is_loading_is_busy_unless_waited_for(self):
        with self.being_loaded("coming") as holder:
            self.fails("busy", "attach", "coming")
            waiting = self.start("attach", "coming", "--wait", "1m", "--json")
            self.order(holder, "publish")
            out, _ = self.end(waiting)
            self.assertEqual(json.loads(out)["name"], "coming")


class Wait(DaemonCase):
    def test_a_published_entry_is_there_at_once(self):
        self.run_cli("load", self.checkpoint())
        document = self.json_of("wait", "model", "--timeout", "0")
        self.assertEqual((document["name"], document["state"]), ("model", "published"))
        self.assertRegex(self.run_cli("wait", "model")[0], r'^"model" is published: ')

    def test_returns_when_it_is_published(self):
        with self.being_loaded("coming") as holder:
            waiting = self.start("wait", "coming", "--json", "--timeout", 60)
            eventually(lambda: self.json_of("status")["connections"] >= 3, "the waiter's connection")
            self.order(holder, "publish")
            self.assertEqual(json.loads(self.end(waiting)[0])["generation"], 1)

    def test_waits_for_what_nobody_has_begun(self):
        waiting = self.start("wait", "model", "--json", "--timeout", 60)
        eventually(lambda: self.json_of("status")["connections"] >= 2, "the waiter's connection")
        self.run_cli("load", self.checkpoint())
        self.assertEqual(json.loads(self.end(waiting)[0])["name"], "model")

    def test_the_limit_passes(self):
        self.assertIn("nothing", self.fails("timed_out", "wait", "nothing", "--timeout", "50ms"))
        with self.being_loaded("coming"):
            self.fails("timed_out", "wait", "coming", "--timeout", "50ms")

    def test_progress_goes_to_stderr(self):
        with self.being_loaded("coming", 1000) as holder:
            self.order(holder, "progress 250")
            out, err = self.run_cli("wait", "coming", "--timeout", "2s", "--progress", "json",
                                    expect=5)
            lines = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
            self.assertTrue(lines, err)
            self.assertEqual(lines[-1]["total_bytes"], 1000)
            self.assertEqual(out, "")


class Verify(DaemonCase):
    def test_equal_bytes(self):
        self.run_cli("load", self.checkpoint())
        document = self.json_of("verify", "model")
        self.assertEqual((document["name"], document["tensors"], document["bytes"]),
                         ("model", 3, 15003))
        self.assertEqual(document["mismatches"], [])
        self.assertRegex(self.run_cli("verify", "model")[0], r'^"model" equals the disk: 3 tensors')

    def test_a_byte_that_differs_is_found_and_named(self):
        self.run_cli("load", self.checkpoint())
        other = self.checkpoint("other")
        whole = bytearray((other / "model.safetensors").read_bytes())
        whole[-5] ^= 1  # four before the last of layer.2.weight, which has 5,002
        (other / "model.safetensors").write_bytes(whole)
        document = self.json_of("verify", "model", other, expect=1)
        self.assertEqual(document["error"]["code"], "mismatch")
        self.assertEqual(document["mismatches"], [{"tensor": "layer.2.weight", "offset": 4997}])
        out, err = self.run_cli("verify", "model", other, expect=1)
        self.assertIn('"layer.2.weight" differs from byte 4,997 on', out)
        self.assertRegex(err, r'^weightcache: mismatch: 1 of 3 tensors of "model"')

    def test_other_tensors_are_a_mismatch_too(self):
        self.run_cli("load", self.checkpoint())
        self.fails("mismatch", "verify", "model", self.checkpoint("other", size=6000))

    def test_a_source_that_is_gone_is_not_found(self):
        folder = self.checkpoint()
        self.run_cli("load", folder)
        (folder / "model.safetensors").unlink()
        folder.rmdir()
        self.fails("not_found", "verify", "model")


class Inspect(DaemonCase):
    def test_a_resident_entry(self):
        self.run_cli("load", self.checkpoint())
        document = self.json_of("inspect", "model")
        self.assertEqual([(t["name"], t["dtype"], t["shape"], t["bytes"]) for t in document["tensors"]],
                         [(f"layer.{i}.weight", "U8", [5000 + i], 5000 + i) for i in range(3)])
        self.assertEqual(document["bytes"], 15003)
        self.assertTrue(all(t["offset"] % 512 == 0 for t in document["tensors"]))
        self.assertEqual(self.json_of("status")["leases"], 0)


class Leases(DaemonCase):
    def test_tells_who_holds_what(self):
        self.run_cli("load", self.checkpoint("a"))
        self.run_cli("load", self.checkpoint("b", seed=1))
        self.assertEqual(self.run_cli("leases")[0], "nobody holds anything\n")
        reader = self.held_by_reader("a")
        self.held_by_reader("b")
        (lease,) = self.json_of("leases", "a")["leases"]
        self.assertEqual((lease["name"], lease["generation"], lease["pid"], lease["uid"]),
                         ("a", 1, reader.pid, os.getuid()))
        self.assertEqual(lease["label"], "weightcache attach")
        self.assertIn("attach a --hold", lease["command"])
        self.assertEqual(len(self.json_of("leases")["leases"]), 2)
        out, _ = self.run_cli("leases", "a")
        self.assertRegex(out.splitlines()[0], r"^NAME +GEN +RANK +LABEL +PID +USER +SINCE")
        self.assertIn(str(reader.pid), out)


class EvictPinDrain(DaemonCase):
    def setUp(self):
        super().setUp()
        self.run_cli("load", self.checkpoint())

    def test_evict_gives_the_memory_back(self):
        held = self.bytes_held()
        document = self.json_of("evict", "model")
        self.assertEqual(document, {"entries": 1, "bytes": held, "leases": 0})
        self.fails("not_found", "attach", "model")
        eventually(lambda: self.bytes_held() == 0, "the memory's return")

    def test_readers_keep_what_is_evicted(self):
        reader = self.held_by_reader("model")
        out, _ = self.run_cli("rm", "model")
        self.assertIn("stay until 1 reader detaches", out)
        self.fails("not_found", "attach", "model")
        self.assertGreater(self.bytes_held(), 0)
        self.assertEqual(len(self.json_of("leases")["leases"]), 1)
        reader.terminate()
        self.end(reader)
        eventually(lambda: self.bytes_held() == 0, "the memory's return")

    def test_a_pin_protects(self):
        self.assertEqual(self.json_of("pin", "model"), {"name": "model", "pinned": True})
        self.assertTrue(self.entries()["model", 1]["pinned"])
        self.assertIn("published, pinned", self.run_cli("ls")[0])
        self.fails("busy", "evict", "model")
        self.assertEqual(self.json_of("unpin", "model"), {"name": "model", "pinned": False})
        self.assertFalse(self.entries()["model", 1]["pinned"])
        self.run_cli("pin", "model")
        self.run_cli("evict", "model", "--force")
        self.assertEqual(self.json_of("ls")["entries"], [])

    def test_what_is_loading_is_evicted_only_by_force(self):
        with self.being_loaded("coming") as holder:
            self.fails("busy", "evict", "coming")
            self.run_cli("evict", "coming", "--force")
            self.order(holder, "publish")
            self.assertEqual(holder.wait(60), 1)
            self.assertIn("cancelled", holder.stderr.read())
        self.assertNotIn("coming", {name for name, _ in self.entries()})

    def test_drain_refuses_newcomers_and_waits_for_readers(self):
        reader = self.held_by_reader("model")
        self.fails("timed_out", "drain", "model", "--timeout", "50ms")
        self.fails("timed_out", "drain", "model", "--timeout", "0")
        self.assertEqual(self.entries()["model", 1]["state"], "draining")
        self.assertIn("drain", self.fails("busy", "attach", "model"))
        self.assertEqual(self.json_of("drain", "model", "--undo"),
                         {"name": "model", "draining": False})
        self.run_cli("attach", "model")
        draining = self.start("drain", "model", "--json")
        eventually(lambda: self.entries()["model", 1]["state"] == "draining", "the drain's begin")
        reader.terminate()
        self.end(reader)
        self.assertEqual(json.loads(self.end(draining)[0]), {"name": "model", "draining": True})
        self.run_cli("drain", "model", "--undo")

    def test_absent_names_are_not_found(self):
        for verb in ("evict", "pin", "unpin", "drain"):
            self.assertIn('"model"', self.fails("not_found", verb, "modle"), verb)


class Status(DaemonCase):
    def test_fields(self):
        loaded = self.json_of("load", self.checkpoint())
        self.held_by_reader("model")
        document = self.json_of("status")
        self.assertEqual((document["epoch"], document["pid"]),
                         (self.service["epoch"], self.service["pid"]))
        self.assertEqual((document["entries"], document["leases"]), (1, 1))
        self.assertGreaterEqual(document["uptime_s"], 0)
        self.assertLess(document["rss_bytes"], 1 << 30)
        (device,) = document["devices"]
        self.assertLessEqual({"device", "bytes", "budget_bytes"}, device.keys())
        self.assertEqual((device["device"], device["bytes"]), ("cpu", loaded["bytes"]))
        out, _ = self.run_cli("status")
        self.assertIn(f"pid {self.service['pid']}", out)
        self.assertRegex(out, r"\ncpu +")


class Budget(DaemonCase):
    serve_options = ("--budget", "cpu=64KiB")

    def test_what_does_not_fit_says_what_could_go(self):
        self.run_cli("load", self.checkpoint("small"))
        message = self.fails("exhausted", "load", self.checkpoint("big", size=50000))
        self.assertIn("small", message)
        self.assertIn("KiB", message)
        self.assertEqual(self.json_of("status")["devices"][0]["budget_bytes"], 65536)
        self.run_cli("evict", "small")
        message = self.fails("exhausted", "load", self.checkpoint("big", size=50000))
        self.assertEqual(self.json_of("ls")["entries"], [])


class Completion(DaemonCase):
    def test_names_of_entries(self):
        self.run_cli("load", self.checkpoint("b"))
        self.run_cli("load", self.checkpoint("a", seed=1))
        self.assertEqual(self.run_cli("__complete", "names"), ("a\nb\n", ""))


class Strange(DaemonCase):
    def test_shards_and_empty_tensors_and_verbs_as_names(self):
        folder = self.folder / "ls"
        folder.mkdir()
        write_shard(folder / "model-00001-of-00002.safetensors", {"a": pattern(100), "empty": b""})
        write_shard(folder / "model-00002-of-00002.safetensors", {"b": pattern(100, 1)})
        (folder / "model.safetensors.index.json").write_text(json.dumps({
            "metadata": {}, "weight_map": {"a": "model-00001-of-00002.safetensors",
                                           "empty": "model-00001-of-00002.safetensors",
                                           "b": "model-00002-of-00002.safetensors"}}))
        self.assertEqual(self.json_of("load", folder)["name"], "ls")
        self.assertEqual(self.json_of("attach", "ls")["tensors"], 3)
        self.assertEqual(self.json_of("verify", "ls")["mismatches"], [])
        self.assertEqual(self.json_of("inspect", folder)["files"], 2)


if __name__ == "__main__":
    unittest.main()
