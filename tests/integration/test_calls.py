"""What needs no daemon: wrong calls, help, a checkpoint on disk, and how the absence of one is told."""

import json
import os
import struct
import unittest
from pathlib import Path

from harness import Case, write_shard

VERBS = ("serve", "load", "ls", "ps", "attach", "wait", "verify", "inspect", "leases", "evict", "rm",
         "pin", "unpin", "drain", "stop", "status", "completion")

# One right call of each verb that asks a daemon.
CALLS = (("load", "{checkpoint}"), ("ls",), ("ps",), ("attach", "x"), ("wait", "x"), ("verify", "x"),
         ("leases",), ("evict", "x"), ("rm", "x"), ("pin", "x"), ("unpin", "x"), ("drain", "x"),
         ("stop",), ("status",))


class WrongCalls(Case):
    def wrong(self, *arguments: str) -> str:
        out, err = self.run_cli(*arguments, expect=2)
        self.assertEqual(out, "")
        self.assertTrue(err.startswith("weightcache: invalid_argument: "), err)
        self.assertIn("\nusage: weightcache ", err)
        return err

    def test_each_tells_what_is_wrong_and_the_usage(self):
        self.assertIn("a verb is missing", self.wrong())
        self.assertIn('no verb "laod"', self.wrong("laod"))
        self.assertIn('did you mean "load"', self.wrong("loda"))
        self.assertIn("SOURCE is required", self.wrong("load"))
        self.assertIn("--nonsense", self.wrong("load", "x", "--nonsense"))
        self.assertIn("not expected: y", self.wrong("load", "x", "y"))
        self.assertIn('"soon" is not a duration', self.wrong("wait", "x", "--timeout", "soon"))
        self.assertIn('"-1" is not a number', self.wrong("load", "x", "--threads=-1"))
        self.assertIn("none of shared|private", self.wrong("attach", "x", "--access", "none"))
        self.assertIn("--timeout needs a value", self.wrong("wait", "x", "--timeout"))
        self.assertIn("usage: weightcache load [OPTIONS] SOURCE", self.wrong("load"))

    def test_with_json_they_are_documents_too(self):
        out, err = self.run_cli("load", "--json", expect=2)
        self.assertEqual(json.loads(out)["error"]["code"], "invalid_argument")
        self.assertIn("SOURCE is required", err)

    def test_wrong_budgets_and_groups_are_refused_before_anything_starts(self):
        for arguments in (("--budget", "cpu"), ("--budget", "=1G"), ("--budget", "cpu=lots"),
                          ("--budget", "cuda:0=1G"), ("--group", "no-such-group"),
                          ("--allow-read", "no-such-user"), ("--allow-publish", "@no-such")):
            self.fails("invalid_argument", "serve", *arguments)
            self.fails("invalid_argument", "serve", "--detach", *arguments)
        self.assertFalse(self.socket.exists())


class Help(Case):
    def test_version(self):
        out, _ = self.run_cli("--version")
        self.assertRegex(out, r"^weightcache \d+\.\d+\.\d+\n$")

    def test_every_verb_explains_itself(self):
        for verb in VERBS:
            for flag in ("--help", "-h"):
                out, err = self.run_cli(verb, flag)
                self.assertIn("usage: weightcache ", out)
                self.assertIn("example", out)
                self.assertIn("--json", out)
                self.assertEqual(err, "")

    def test_the_program_lists_its_verbs(self):
        out, _ = self.run_cli("--help")
        for verb in VERBS:
            self.assertIn(verb, out)
        self.assertIn("first steps", out)

    def test_help_is_understood_as_a_word_too(self):
        self.assertEqual(self.run_cli("help"), self.run_cli("--help"))
        self.assertEqual(self.run_cli("help", "load"), self.run_cli("load", "--help"))
        self.run_cli("help", "loda", expect=2)

    def test_an_answer_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w") as full:
            _, err = self.run_cli("--help", expect=1, stdout=full)
            self.assertIn("weightcache: io: write", err)
            _, err = self.run_cli("inspect", self.checkpoint(), expect=1, stdout=full)
            self.assertIn("weightcache: io: write", err)


class NoDaemon(Case):
    def test_every_verb_says_where_it_looked_and_how_to_start_one(self):
        checkpoint = self.checkpoint()
        for call in CALLS:
            message = self.fails("disconnected", *(a.format(checkpoint=checkpoint) for a in call))
            self.assertIn(str(self.socket), message)
            self.assertIn("weightcache serve --detach", message)
            self.assertEqual(message.count("weightcache serve"), 1)

    def test_without_a_socket_given_each_usual_path_is_told(self):
        del self.env["WEIGHTCACHE_SOCKET"]
        self.env["XDG_RUNTIME_DIR"] = str(self.folder)
        if Path("/run/weightcache/socket").exists():
            self.skipTest("a daemon of this system runs")
        message = self.fails("disconnected", "ls")
        self.assertIn(f"{self.folder}/weightcache/socket", message)
        self.assertIn("/run/weightcache/socket", message)

    def test_the_socket_option_wins(self):
        message = self.fails("disconnected", "ls", "--socket", f"{self.folder}/other/socket")
        self.assertIn("other/socket", message)
        self.assertNotIn(str(self.socket), message)

    def test_completion_is_silent(self):
        self.assertEqual(self.run_cli("__complete", "names"), ("", ""))


class Denied(Case):
    def setUp(self):
        super().setUp()
        self.socket.parent.mkdir(mode=0o700)

    def test_a_directory_that_others_can_write_is_not_trusted(self):
        self.socket.parent.chmod(0o777)
        self.assertIn("0777"[1:], self.fails("denied", "ls"))
        self.assertIn("can be written by others", self.fails("denied", "serve"))
        self.assertIn("can be written by others", self.fails("denied", "serve", "--detach"))
        self.assertEqual(list(self.socket.parent.iterdir()), [])

    def test_a_directory_of_somebody_else_is_not_trusted(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give a directory away")
        os.chown(self.socket.parent, 65534, 65534)
        self.assertIn("65534", self.fails("denied", "ls"))
        self.assertIn("65534", self.fails("denied", "serve", "--detach"))
        self.assertEqual(list(self.socket.parent.iterdir()), [])

    def test_a_link_in_place_of_the_directory_is_not_followed(self):
        real = self.folder / "real"
        real.mkdir(mode=0o700)
        self.socket.parent.rmdir()
        self.socket.parent.symlink_to(real)
        self.fails("denied", "ls")
        self.fails("denied", "serve", "--detach")
        self.assertEqual(list(real.iterdir()), [])


class InspectOnDisk(Case):
    def test_lists_every_tensor_with_its_place(self):
        folder = self.checkpoint(tensors=2, size=5000)
        document = self.json_of("inspect", folder)
        header = struct.unpack("<Q", (folder / "model.safetensors").read_bytes()[:8])[0]
        self.assertEqual(document["tensors"], [
            {"name": "layer.0.weight", "dtype": "U8", "shape": [5000], "file": "model.safetensors",
             "offset": 8 + header, "bytes": 5000},
            {"name": "layer.1.weight", "dtype": "U8", "shape": [5001], "file": "model.safetensors",
             "offset": 8 + header + 5000, "bytes": 5001}])
        self.assertEqual(document["files"], 1)
        self.assertEqual(document["bytes"], 10001)
        self.assertEqual(document["file_bytes"], 8 + header + 10001)
        self.assertEqual(document["name"], "model")

    def test_people_get_a_table(self):
        out, _ = self.run_cli("inspect", self.checkpoint())
        lines = out.splitlines()
        self.assertIn("3 tensors in 1 file", lines[0])
        self.assertRegex(lines[1], r"^TENSOR +DTYPE +SHAPE +SIZE +FILE +OFFSET$")
        self.assertRegex(lines[2], r"^layer\.0\.weight +U8 +5000 +4\.9 KiB +model\.safetensors +\d+$")

    def test_a_name_that_is_no_entry_may_be_a_folder_here(self):
        self.checkpoint("Llama")
        self.assertEqual(len(self.json_of("inspect", "Llama")["tensors"]), 3)

    def test_what_is_nowhere_is_not_found(self):
        self.fails("not_found", "inspect", "./nothing")
        message = self.fails("not_found", "inspect", "nothing")
        self.assertIn("no checkpoint on disk", message)
        self.assertIn("no entry", message)

    def test_a_file_that_is_cut_short_is_corrupt(self):
        folder = self.checkpoint()
        file = folder / "model.safetensors"
        os.truncate(file, file.stat().st_size - 1)
        self.assertIn("model.safetensors", self.fails("corrupt", "inspect", folder))

    def test_names_cannot_steer_the_terminal(self):
        folder = self.folder / "evil"
        folder.mkdir()
        write_shard(folder / "model.safetensors", {"a\u202eb": b"x" * 8})  # right to left
        out, _ = self.run_cli("inspect", folder)
        self.assertNotIn("\u202e", out)
        self.assertIn("a\\xe2\\x80\\xaeb", out)
        write_shard(folder / "model.safetensors", {"\x1b]0;owned\x07": b"x" * 8})
        self.assertNotIn("\x1b", self.fails("corrupt", "inspect", folder))


if __name__ == "__main__":
    unittest.main()
