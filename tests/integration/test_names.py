"""Names, generations and content: what replaces what, and who keeps the old."""

import os
import unittest

from harness import DaemonCase, eventually


class Names(DaemonCase):
    def test_other_content_does_not_take_a_name(self):
        self.run_cli("load", self.checkpoint("one"), "--name", "model")
        message = self.fails("already_exists", "load", self.checkpoint("two", seed=1), "--name",
                             "model")
        self.assertIn('"model"', message)
        self.assertIn("replace", message)
        self.assertEqual(set(self.entries()), {("model", 1)})

    def test_replace_publishes_beside_and_readers_keep_the_old(self):
        one = self.json_of("load", self.checkpoint("one"), "--name", "model")
        reader = self.held_by_reader("model")
        two = self.json_of("load", self.checkpoint("two", seed=1), "--name", "model", "--replace")
        self.assertEqual((one["generation"], two["generation"]), (1, 2))
        self.assertNotEqual(one["fingerprint"], two["fingerprint"])
        self.assertEqual(self.json_of("attach", "model")["fingerprint"], two["fingerprint"])
        self.assertEqual(self.json_of("attach", "model@1")["fingerprint"], one["fingerprint"])
        self.assertEqual(set(self.entries()), {("model", 1), ("model", 2)})
        reader.terminate()
        self.end(reader)
        eventually(lambda: set(self.entries()) == {("model", 2)}, "the old generation's end")
        self.fails("not_found", "attach", "model@1")

    def test_a_generation_is_never_used_again(self):
        self.run_cli("load", self.checkpoint("one"), "--name", "model")
        self.run_cli("evict", "model")
        again = self.json_of("load", self.checkpoint("one"), "--name", "model")
        self.assertEqual(again["generation"], 2)

    def test_two_names_hold_one_copy(self):
        folder = self.checkpoint("one")
        first = self.json_of("load", folder, "--name", "a")
        held = self.bytes_held()
        second = self.json_of("load", folder, "--name", "b")
        self.assertEqual(second["outcome"], "already_resident")
        self.assertEqual(second["name"], "b")
        self.assertEqual(second["fingerprint"], first["fingerprint"])
        self.assertEqual(self.bytes_held(), held)
        self.run_cli("evict", "a")
        self.fails("not_found", "attach", "a")
        self.assertEqual(self.json_of("verify", "b")["mismatches"], [])
        self.assertEqual(self.bytes_held(), held)
        self.run_cli("evict", "b")
        eventually(lambda: self.bytes_held() == 0, "the memory's return")

    def test_equal_files_elsewhere_are_found_equal_once_read(self):
        first = self.json_of("load", self.checkpoint("one"), "--name", "a")
        held = self.bytes_held()
        second = self.json_of("load", self.checkpoint("copy"), "--name", "b")
        self.assertEqual(second["fingerprint"], first["fingerprint"])
        self.assertEqual(second["outcome"], "already_resident")
        eventually(lambda: self.bytes_held() == held, "the second copy's end")

    def test_a_fingerprint_evicts_the_content_under_all_its_names(self):
        folder = self.checkpoint("one")
        entry = self.json_of("load", folder, "--name", "a")
        self.run_cli("load", folder, "--name", "b")
        self.run_cli("evict", "@" + entry["fingerprint"])
        self.assertEqual(self.json_of("ls")["entries"], [])

    def test_changed_files_are_noticed(self):
        folder = self.checkpoint("model")
        first = self.json_of("load", folder)
        self.checkpoint("model", seed=1)  # same names and sizes, other bytes, same path
        self.fails("already_exists", "load", folder)
        second = self.json_of("load", folder, "--replace")
        self.assertEqual((second["outcome"], second["generation"]), ("loaded", 2))
        self.assertNotEqual(second["fingerprint"], first["fingerprint"])

    def test_a_second_loader_waits_or_says_busy(self):
        with self.being_loaded("model") as holder:
            folder = self.checkpoint("model")
            self.assertIn("model", self.fails("busy", "load", folder, "--no-wait"))
            self.fails("timed_out", "load", folder, "--timeout", "50ms")
            self.fails("timed_out", "load", folder, "--timeout", "0")
            waiting = self.start("load", folder, "--json", "--progress", "plain")
            self.assertIn("waiting for another process that loads it", waiting.stderr.readline())
            holder.stdin.close()  # abandons: the right to load passes on
            holder.wait(60)
            out, _ = self.end(waiting)
            self.assertIn('"outcome":"loaded"', out)


class ShardChanged(DaemonCase):
    def test_a_file_that_changes_while_it_is_read_is_corrupt(self):
        folder = self.large_checkpoint()
        loader = self.stopped_while_loading(folder)
        os.utime(folder / "model.safetensors", ns=(1, 1))
        loader.send_signal(18)  # SIGCONT
        _, err = self.end(loader, expect=1)
        self.assertTrue(err.startswith("weightcache: corrupt: "), err)
        self.assertIn("model.safetensors", err)
        self.assertEqual(self.json_of("ls")["entries"], [])
        eventually(lambda: self.bytes_held() == 0, "the memory's return")


if __name__ == "__main__":
    unittest.main()
