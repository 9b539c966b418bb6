#!/usr/bin/env python3
"""packages_test.py BUILD SOURCE: the packages of this build. The .deb is installed into a root that has nothing else but Debian,
the .tar.gz unpacked in a home folder there, by an ordinary user; of the .rpm the contents are compared."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import installed  # noqa: E402
import roots  # noqa: E402

SOURCE = pathlib.Path(sys.argv.pop())
BUILD = pathlib.Path(sys.argv.pop())


def output_of(*command):
    return subprocess.run([*map(str, command)], check=True, capture_output=True, text=True).stdout


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if reason := roots.reason_to_skip():
            raise unittest.SkipTest(reason)
        shutil.rmtree(BUILD / "packages", ignore_errors=True)
        subprocess.run(["cmake", "--build", BUILD, "--target", "packages"], check=True, stdout=subprocess.DEVNULL)
        cls.deb, cls.archive = (next((BUILD / "packages").glob(f"verbscope*.{kind}")) for kind in ("deb", "tar.gz"))
        folder = pathlib.Path(tempfile.mkdtemp(prefix="verbscope-packages-"))
        cls.addClassCleanup(shutil.rmtree, folder)
        # mmdebstrap makes the folders of a package's path in the root, which must have none of the source tree's.
        cls.root = roots.Root(folder / "root", [shutil.copy(cls.deb, folder)])

    def run_quickstart(self, path, user, directory):
        for command in installed.quickstart_commands(SOURCE, "quickstart.jsonl"):
            ran = self.root.run("sh", "-c", command, user=user, directory=directory, PATH=f"{path}:{roots.PATH}")
        installed.check_comparison(self, ran.stdout)

    def test_1_the_deb_needs_only_what_it_names(self):
        self.assertFalse((self.root.folder / str(SOURCE).lstrip("/")).exists())
        self.run_quickstart("/usr/bin", "root", "/root")
        for name in installed.program_names(SOURCE):
            self.assertIn("verbscope 0.", self.root.run(name, "--version").stdout)
        refused = self.root.run("send_rate", check=False)
        self.assertEqual(refused.returncode, 1)  # no RDMA device
        self.assertEqual(refused.stderr.count("\n"), 1, refused.stderr)

    def test_2_the_archive_runs_in_a_home_folder(self):
        """The package goes, what it depends on stays."""
        self.root.run("dpkg", "--remove", "verbscope")
        self.root.run("useradd", "--create-home", "someone")
        home = self.root.folder / "home/someone"
        shutil.copy(self.archive, home / "verbscope.tar.gz")
        self.root.run("tar", "-xzf", "verbscope.tar.gz", user="someone", directory="/home/someone")
        unpacked = next(home.glob("verbscope-*"))
        unpacked.rename(home / "tools")  # the prefix may be any
        self.run_quickstart("/home/someone/tools/bin", "someone", "/home/someone")

    def test_3_the_rpm_has_the_same_files(self):
        if not shutil.which("rpm"):
            self.skipTest("rpm is not there")
        rpm = next((BUILD / "packages").glob("verbscope*.rpm"))
        in_rpm = {line for line in output_of("rpm", "-qlp", rpm).splitlines()}
        listed = output_of("dpkg-deb", "--contents", self.deb).splitlines()
        in_deb = {line.split()[5].lstrip(".") for line in listed if not line.startswith("d")}
        self.assertEqual({path for path in in_deb if path not in in_rpm}, set())
        self.assertIn("libibverbs.so.1", output_of("rpm", "-qp", "--requires", rpm))
        self.assertIn("Apache-2.0", output_of("rpm", "-qp", "--queryformat", "%{LICENSE}", rpm))


if __name__ == "__main__":
    unittest.main()
