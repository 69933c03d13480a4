"""What the machine can do, and loads that are not digested."""

import json
import unittest

from harness import Case, DaemonCase


class Doctor(Case):
    def test_needs_no_daemon_and_says_that_none_is_there(self):
        out, _ = self.end(self.start("doctor", "--json"), expect=None)
        document = json.loads(out)
        for finding in document["findings"]:
            self.assertLessEqual({"area", "check", "severity", "device", "text", "advice"},
                                 finding.keys())
            self.assertEqual(finding["advice"] == "", finding["severity"] == "ok", finding)
        (daemon,) = [f for f in document["findings"] if f["check"] == "reachable"]
        self.assertEqual(daemon["severity"], "warning")
        self.assertIn(str(self.socket), daemon["text"])
        self.assertEqual("error" in document, document["problems"] > 0)

    def end(self, process, expect=0):
        """A machine of any kind may run this: with a problem or without."""
        if expect is not None:
            return super().end(process, expect)
        out, err = process.communicate(timeout=60)
        self.assertIn(process.returncode, (0, 1), err)
        return out, err


class Undigested(DaemonCase):
    def test_the_daemon_is_found(self):
        out, _ = Doctor.end(self, self.start("doctor"), None)
        self.assertIn(f'answers on "{self.socket}"', out)

    def test_a_load_without_digest_is_known_by_its_files_receipts(self):
        folder = self.checkpoint()
        first = self.json_of("load", folder, "--no-digest")
        self.assertEqual(first["outcome"], "loaded")
        again = self.json_of("load", folder)
        self.assertEqual((again["outcome"], again["fingerprint"]),
                         ("already_resident", first["fingerprint"]))
        self.assertEqual(self.json_of("verify", "model")["mismatches"], [])

    def test_another_copy_of_the_bytes_is_another_source(self):
        first = self.json_of("load", self.checkpoint("a"), "--no-digest")
        other = self.json_of("load", self.checkpoint("b"), "--no-digest")
        self.assertNotEqual(first["fingerprint"], other["fingerprint"])


if __name__ == "__main__":
    unittest.main()
