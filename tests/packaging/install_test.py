#!/usr/bin/env python3
"""install_test.py BUILD SOURCE: `cmake --install` into a prefix that is moved afterwards. Everything is run with the source tree,
and the build in it, out of sight."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import installed  # noqa: E402

SOURCE = pathlib.Path(sys.argv.pop())
BUILD = pathlib.Path(sys.argv.pop())
SECONDS = 240


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("hiding the source tree needs root")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbscope-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        subprocess.run(["cmake", "--build", BUILD, "--target", "manual"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--install", BUILD, "--prefix", cls.folder / "first", "--strip"], check=True,
                       stdout=subprocess.DEVNULL)
        cls.prefix = cls.folder / "moved"
        (cls.folder / "first").rename(cls.prefix)
        shutil.copytree(SOURCE / "docs/examples/own_benchmark", cls.folder / "own")
        shutil.copytree(SOURCE / "docs/examples/echo_service", cls.folder / "service")

    def run_hidden(self, *command, **more):
        """Runs it where the source tree is an empty folder, and returns what it printed."""
        hide = 'mount -t tmpfs none "$0" && exec "$@"'
        environment = {"PATH": f"{self.prefix}/bin:/usr/bin:/bin", "HOME": str(self.folder), **more}
        ran = subprocess.run(["unshare", "-m", "sh", "-c", hide, str(SOURCE), *map(str, command)], cwd=self.folder,
                             env=environment, capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(ran.returncode, 0, f"{command}: {ran.stdout}{ran.stderr}")
        return ran.stdout

    def test_quickstarts_commands_run(self):
        for command in installed.quickstart_commands(SOURCE, "quickstart.jsonl"):
            printed = self.run_hidden("sh", "-c", command)
        installed.check_comparison(self, printed)

    def test_configs_come_from_the_prefix_and_from_the_folder_that_is_named(self):
        self.assertIn("sim:cib", self.run_hidden("verbscope", "list"))
        own = self.folder / "configs/clusters"
        own.mkdir(parents=True)
        shutil.copy(self.prefix / "share/verbscope/configs/clusters/cib.json", own / "mine.json")
        self.assertIn("sim:mine", self.run_hidden("verbscope", "list", VERBSCOPE_CONFIGS=str(own.parent)))

    def test_a_benchmark_outside_of_the_tree_is_built_and_runs(self):
        self.run_hidden("cmake", "-S", "own", "-B", "own/build", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.run_hidden("cmake", "--build", "own/build")
        record = self.run_hidden("own/build/own_rate", "--fabric", f"sim:{self.prefix}/share/verbscope/configs/clusters/cib.json",
                                 "-c", "uc", "-s", "32", "-D", "100us", "--out_json_file", "-")
        installed.check_record(self, record, "own_rate")

    def test_a_service_outside_of_the_tree_is_built_and_runs(self):
        self.run_hidden("cmake", "-S", "service", "-B", "service/build", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.run_hidden("cmake", "--build", "service/build")
        printed = self.run_hidden("service/build/echo", "--fabric", f"sim:{self.prefix}/share/verbscope/configs/clusters/cx4.json",
                                  "--calls", "100")
        self.assertIn("100 calls", printed)

    def test_trace_finds_the_library_that_it_preloads_beside_the_programs(self):
        maps = self.run_hidden("verbscope", "trace", "--", "cat", "/proc/self/maps")
        self.assertIn(f"{self.prefix}/bin/libverbscope_trace.so", maps)

    def test_every_program_and_subcommand_has_its_manual_page(self):
        pages = {path.name for path in (self.prefix / "share/man/man1").iterdir()}
        expected = {f"{name}.1" for name in installed.program_names(SOURCE)}
        expected |= {f"verbscope-{name}.1" for name in installed.subcommand_names(SOURCE)}
        self.assertEqual(pages, expected)
        page = (self.prefix / "share/man/man1/send_rate.1").read_text()
        self.assertIn(".TH SEND_RATE", page)
        self.assertIn("post_list", page)

    def complete(self, *words):
        script = 'source "$0/share/bash-completion/completions/$1"; COMP_WORDS=("${@:1}"); COMP_CWORD=$(($# - 1)); ' \
                 '_verbscope; echo "${COMPREPLY[@]}"'
        return set(self.run_hidden("bash", "-c", script, self.prefix, *words).split())

    def test_bash_completes_commands_options_and_words(self):
        self.assertEqual(self.complete("verbscope", "comp"), {"compare", "completion"})
        self.assertEqual(self.complete("verbscope", "diff", "--thr"), {"--threshold"})
        self.assertEqual(self.complete("send_rate", "--post"), {"--post_list"})
        self.assertEqual(self.complete("send_rate", "--connection", "U"), {"UC", "UD"})
        self.assertEqual(self.complete("send_rate", "--out_json_file", "x"), set())  # bash then completes files

    def test_licence_and_documents_are_there(self):
        documents = self.prefix / "share/doc/verbscope"
        self.assertIn("Apache License", (documents / "LICENSE").read_text())
        self.assertTrue((documents / "docs/install.md").exists())


if __name__ == "__main__":
    unittest.main()
