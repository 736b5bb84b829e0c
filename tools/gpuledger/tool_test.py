"""The command line as its users have it: outputs, exit codes, messages.

    tool_test.py --gpuledger FILE --sample FILE --project DIR
"""

import argparse
import copy
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import json_schema

ARGUMENTS = None


class ToolTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.run_folder = self.scratch / "run"
        self.run_folder.mkdir()
        subprocess.run([ARGUMENTS.sample, self.run_folder], check=True)
        self.ledger = self.run_folder / "rank1.pid101.ledger"

    def tool(self, *arguments, status=0, program=None, **options):
        result = subprocess.run([program or ARGUMENTS.gpuledger, *map(str, arguments)], capture_output=True, text=True, timeout=120,
                                stdin=subprocess.DEVNULL, check=False, **options)
        self.assertEqual(result.returncode, status, f"{arguments}\n{result.stdout[-2000:]}\n{result.stderr[-2000:]}")
        return result

    def report(self, *options):
        return json.loads(self.tool("report", self.run_folder, "--json", *options).stdout)

    def truth(self, content):
        path = self.run_folder / "rank1.pid101.truth.json"
        path.write_text(json.dumps(content))
        return path


class Report(ToolTest):
    def test_text_is_the_golden_one(self):
        golden = (ARGUMENTS.project / "tests/golden/report.txt").read_text()
        self.assertEqual(self.tool("report", self.run_folder).stdout, golden)

    def test_json_fits_the_schema(self):
        schema = json.loads((ARGUMENTS.project / "docs/report.schema.json").read_text())
        report = self.report()
        self.assertEqual(json_schema.errors(report, schema), [])
        # And the schema can say no.
        for damage in (lambda r: r["ranks"][0]["peaks"]["allocated"].update(bytes="1"), lambda r: r["ranks"][1].pop("losses"),
                       lambda r: r["summary"].update(more=1), lambda r: r["ranks"][0]["host_memory"].update(pinned_peak=-1)):
            damaged = copy.deepcopy(report)
            damage(damaged)
            self.assertNotEqual(json_schema.errors(damaged, schema), [])

    def test_accounts_add_up(self):
        for rank in self.report()["ranks"]:
            for peak in rank["peaks"].values():
                balance = peak["balance"]
                parts = ("allocated", "pending_free", "inactive_split", "cached_segments", "pool_slack", "context", "unexplained")
                total = sum(balance[key] for key in parts)
                total += sum(account["bytes"] for group in ("nccl", "libraries", "program") for account in balance[group])
                total += sum(pool[key] for pool in balance["private_pools"] for key in parts[1:4])
                self.assertEqual(total, balance["used"])

    def test_categories_and_accounts_of_an_instant_add_up(self):
        for rank in self.report("--blocks", "--at", "device")["ranks"]:
            self.assertEqual([device["at_peak"] for device in rank["devices"]], [rank["at_peak"]])
            self.assertEqual(set(rank["unplaced"].values()), {0, -1})
            for key, peak in (("at_peak", "allocated"), ("at", "device")):
                instant, peak = rank[key], rank["peaks"][peak]
                categories = instant["categories"].values()
                self.assertEqual(sum(category["bytes"] for category in categories), instant["bytes"])
                self.assertEqual(sum(block["bytes"] for block in instant["blocks"]), instant["bytes"])
                self.assertEqual(instant["bytes"], peak["balance"]["allocated"])
                self.assertEqual(sum(account["bytes"] for account in instant["accounts"].values()), peak["balance"]["used"])
                for category in categories:
                    self.assertEqual(sum(category["evidence"].values()), category["bytes"])

    def test_another_instant(self):
        self.assertIn("at device:", self.tool("report", self.run_folder, "--at", "device").stdout)
        self.assertIn("at mark:step 0:", self.tool("report", self.run_folder, "--at", "mark:step 0").stdout)
        self.assertIn("noon", self.tool("report", self.run_folder, "--at", "noon", status=2).stderr)
        self.assertIn("mark:never", self.tool("report", self.run_folder, "--at", "mark:never", status=2).stderr)

    def test_one_rank_by_site(self):
        out = self.tool("report", self.run_folder, "--rank", "0", "--by", "site").stdout
        self.assertIn("Who held it: rank 0", out)
        self.assertIn("by place of allocation", out)
        self.assertIn("no rank 7", self.tool("report", self.run_folder, "--rank", "7", status=2).stderr)

    def test_one_device(self):
        self.assertIn("Who held it: rank 0, device 0", self.tool("report", self.run_folder, "--rank", "0", "--device", "0").stdout)
        self.assertIn("no rank used device 3", self.tool("report", self.run_folder, "--device", "3", status=2).stderr)
        self.assertIn("rank 1 did not use device 3", self.tool("report", self.run_folder, "--rank", "1", "--device", "3", status=2).stderr)

    def test_nothing_to_report_is_an_error_that_says_what_to_do(self):
        empty = self.scratch / "empty"
        empty.mkdir()
        self.assertIn("gpuledger run --out", self.tool("report", empty, status=3).stderr)
        self.assertIn("no such directory", self.tool("report", self.scratch / "nowhere", status=3).stderr)

    def test_an_unreadable_rank_is_named_and_the_others_are_shown(self):
        (self.run_folder / "rank2.pid102.ledger").write_bytes(b"GPU")
        result = self.tool("report", self.run_folder, status=3)
        self.assertIn("rank2.pid102.ledger:3: expected a header", result.stderr)
        self.assertIn("NOT IN THIS REPORT", result.stdout)
        self.assertIn("ledger of 2 ranks", result.stdout)

    def test_a_cut_off_ledger_is_read_and_the_loss_is_named(self):
        data = self.ledger.read_bytes()
        self.ledger.write_bytes(data[:-100])
        losses = {loss["reason"]: loss["count"] for loss in self.report()["ranks"][1]["losses"]}
        self.assertEqual(losses, {"cut_off": 2})


class Verify(ToolTest):
    def test_holds(self):
        self.assertIn("holds  replayed_allocated", self.tool("verify", self.run_folder).stdout)

    def test_truth_beside_the_ledger_is_used(self):
        window = {"from": None, "to": "step 0", "device": 0, "max_allocated": 512 << 20, "max_reserved": 1 << 30}
        self.truth({"windows": [window], "snapshots": []})
        self.assertIn("holds  window_peaks", self.tool("verify", self.run_folder).stdout)
        window["max_allocated"] += 1
        self.truth({"windows": [window]})
        self.assertIn("FAILS  window_peaks", self.tool("verify", self.run_folder, status=1).stdout)

    def test_truth_from_elsewhere(self):
        other = self.scratch / "truth.json"
        other.write_text(json.dumps({"snapshots": [{"mark": "step 0", "device": 0, "blocks": []}]}))
        self.tool("verify", self.ledger, "--against", other, status=1)
        other.write_text(json.dumps({"snapshots": [{"mark": "step 0", "device": 0, "blocks": [{"address": 0x10000000, "size": 512 << 20}]}]}))
        self.tool("verify", self.ledger, "--against", other)
        self.assertIn("name the ledger", self.tool("verify", self.run_folder, "--against", other, status=3).stderr)
        self.tool("verify", self.ledger, "--against", self.scratch / "nowhere", status=3)

    def test_a_truth_file_that_is_none(self):
        self.truth([1])
        self.assertIn("expected a JSON object", self.tool("verify", self.run_folder, status=3).stderr)


class Dump(ToolTest):
    def test_json_is_one_object_per_record(self):
        records = [json.loads(line) for line in self.tool("dump", self.ledger, "--json").stdout.splitlines()]
        self.assertEqual([record["record"] for record in records], list(range(len(records))))
        self.assertEqual(sum(record["kind"] == "block_alloc" for record in records), 3)

    def test_filters(self):
        blocks = self.tool("dump", self.ledger, "--kind", "block_alloc,block_free").stdout.splitlines()
        self.assertEqual(len(blocks), 5)
        after = self.tool("dump", self.ledger, "--kind", "block_alloc", "--from", "mark:step 0").stdout.splitlines()
        self.assertEqual(len(after), 2)
        self.assertEqual(len(self.tool("dump", self.ledger, "--limit", "4").stdout.splitlines()), 4)
        self.assertEqual(self.tool("dump", self.ledger, "--from", "1000").stdout, "")
        self.assertIn("no mark", self.tool("dump", self.ledger, "--from", "mark:x", status=2).stderr)
        self.tool("dump", self.ledger, "--kind", "x", status=2)
        self.tool("dump", self.scratch / "nowhere", status=3)


class Run(ToolTest):
    """With a library in the recorder's place that does nothing: what is tested is the launcher."""

    def setUp(self):
        super().setUp()
        for folder in ("bin", "lib/simgpu"):
            (self.scratch / "install" / folder).mkdir(parents=True)
        self.program = self.scratch / "install/bin/gpuledger"
        shutil.copy2(ARGUMENTS.gpuledger, self.program)
        (self.scratch / "install/lib/libledger.so").symlink_to(self.libc())
        (self.scratch / "install/lib/simgpu/libcuda.so.1").symlink_to(self.libc())
        self.out = self.scratch / "out"

    @staticmethod
    def libc():
        with open("/proc/self/maps", encoding="ascii") as maps:
            return next(line.split()[-1] for line in maps if "/libc.so.6" in line)

    def record(self, *command, status=0, options=()):
        return self.tool("run", "--out", self.out, *options, "--", *command, status=status, program=self.program)

    def test_status_and_output_are_the_commands(self):
        result = self.record("/bin/sh", "-c", "echo out; exit 5", status=5)
        self.assertEqual(result.stdout, "out\n")
        self.assertIn("no ledger", result.stderr)
        self.record("/no/such/command", status=127)
        self.tool("run", status=2, program=self.program)

    def test_the_command_has_its_environment(self):
        result = self.record("/bin/sh", "-c", "echo $LD_PRELOAD; echo $LEDGER_DIR; echo $CUDA_VISIBLE_DEVICES; echo $SIMGPU_PROFILE",
                             options=("--sim", "2", "--gpu", "tiny"))
        install = self.scratch / "install"
        self.assertEqual(result.stdout.splitlines(), [f"{install}/lib/libledger.so", str(self.out), "0,1", "tiny"])

    def test_next_command_is_told(self):
        result = self.record(ARGUMENTS.sample, self.out)
        self.assertIn(f"2 ledgers in {self.out}. Next: gpuledger report {self.out}", result.stderr)

    def test_a_directory_with_something_in_it_is_refused_unless_forced(self):
        self.record(ARGUMENTS.sample, self.out)
        self.assertIn("not empty", self.record("/bin/true", status=2).stderr)
        self.record("/bin/true", options=("--force",))

    def test_signals_reach_the_whole_group(self):
        script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done"
        process = subprocess.Popen([self.program, "run", "--out", self.out, "--", "/bin/sh", "-c", script], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=30), 9)
        process.stdout.close()

    def test_a_missing_recorder_is_named(self):
        (self.scratch / "install/lib/libledger.so").unlink()
        self.assertIn("lib/libledger.so: the recorder is not there", self.record("/bin/true", status=3).stderr)


class Help(ToolTest):
    def test_help_teaches_by_examples(self):
        for command in ([], ["run"], ["report"], ["verify"], ["dump"]):
            result = self.tool(*command, "--help")
            self.assertIn("Examples:", result.stdout)
        self.tool(status=2)
        self.tool("nonsense", status=2)
        self.tool("--version")


def main():
    global ARGUMENTS
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--gpuledger", "--sample", "--project"):
        parser.add_argument(name, type=pathlib.Path, required=True)
    ARGUMENTS, rest = parser.parse_known_args()
    os.environ.pop("LD_PRELOAD", None)
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
