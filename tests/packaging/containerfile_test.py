#!/usr/bin/env python3
"""containerfile_test.py SOURCE: the steps of Containerfile, in roots made by mmdebstrap instead of images."""
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import roots  # noqa: E402

SOURCE = pathlib.Path(sys.argv.pop())
BUILD_SECONDS = 5400


class Stage:
    """A root with what the steps since a FROM did to it."""

    def __init__(self, folder):
        self.root = roots.Root(folder, ["ca-certificates"])
        self.directory = "/"
        # How this machine reaches the network and its registries, and whom it trusts, as an engine of containers would pass
        # it on.
        apt = [path for path in pathlib.Path("/etc/apt/apt.conf.d").iterdir() if "Acquire::" in path.read_text()]
        authorities = pathlib.Path("/usr/local/share/ca-certificates").glob("*.crt")
        for path in [pathlib.Path("/etc/resolv.conf"), pathlib.Path("/root/.npmrc"), *apt, *authorities]:
            if path.exists():
                shutil.copy(path, self.root.folder / path.relative_to("/"))
        self.root.run("update-ca-certificates")

    def copy_context(self, target):
        files = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z"], check=True, capture_output=True).stdout
        place = self.root.folder / target.lstrip("/")
        place.mkdir(parents=True)
        subprocess.run(f"tar -C {shlex.quote(str(SOURCE))} --null -T - -c | tar -C {shlex.quote(str(place))} -x", shell=True,
                       input=files, check=True)

    def copy_from(self, other, path, target):
        shutil.copytree(other.root.folder / path.lstrip("/"), self.root.folder / target.lstrip("/"), dirs_exist_ok=True)

    def run(self, command):
        return self.root.run("sh", "-c", command, directory=self.directory, seconds=BUILD_SECONDS,
                             DEBIAN_FRONTEND="noninteractive", NODE_EXTRA_CA_CERTS="/etc/ssl/certs/ca-certificates.crt")


class Containerfile(unittest.TestCase):
    def setUp(self):
        if reason := roots.reason_to_skip():
            self.skipTest(reason)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="verbscope-container-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def test_its_steps_lead_to_a_verbscope_that_lists(self):
        stages, names, stage, entry = [], {}, None, ""
        for line in (SOURCE / "Containerfile").read_text().splitlines():
            word, _, rest = line.partition(" ")
            parts = rest.split()
            if word == "FROM":
                self.assertRegex(parts[0], r"^debian:12")
                stage = Stage(self.folder / str(len(stages)))
                stages.append(stage)
                names[parts[-1]] = stage
            elif word == "COPY" and parts[0].startswith("--from="):
                stage.copy_from(names[parts[0].removeprefix("--from=")], parts[1], parts[2])
            elif word == "COPY":
                stage.copy_context(parts[1])
            elif word == "WORKDIR":
                stage.directory = rest
                (stage.root.folder / rest.lstrip("/")).mkdir(exist_ok=True)
            elif word == "RUN":
                stage.run(rest)
            elif word == "ENTRYPOINT":
                entry = rest
            else:
                self.assertTrue(line.startswith("#") or not line, f"a step that the test does not know: {line}")
        self.assertEqual(entry, '["verbscope"]')
        self.assertIn("send_rate", stage.run("verbscope list").stdout)


if __name__ == "__main__":
    unittest.main()
