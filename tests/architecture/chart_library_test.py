#!/usr/bin/env python3
"""chart_library_test.py FOLDER: the lock file of the report's chart library pins each package by its hash, without saying
where it is fetched from, and what was fetched is what it pins."""
import json
import pathlib
import sys
import unittest

FOLDER = pathlib.Path(sys.argv.pop())


class ChartLibrary(unittest.TestCase):
    def test_every_package_has_its_hash_and_no_address(self):
        text = (FOLDER / "package-lock.json").read_text()
        packages = {name: package for name, package in json.loads(text)["packages"].items() if name}
        self.assertIn("node_modules/echarts", packages)
        for name, package in packages.items():
            self.assertRegex(package["integrity"], r"^sha512-[A-Za-z0-9+/]{86}==$", name)
            self.assertNotIn("resolved", package, name)
        self.assertNotIn("://", text)

    def test_what_was_fetched_is_what_the_lock_file_has(self):
        fetched = FOLDER / "node_modules" / "verbscope-fetched.json"
        if not fetched.exists():
            self.skipTest("not fetched: analysis/report/vendor/fetch.sh")
        self.assertEqual(fetched.read_text(), (FOLDER / "package-lock.json").read_text())


if __name__ == "__main__":
    unittest.main()
