#!/usr/bin/python3
"""validate_records.py SCHEMA RESULTS: checks every line of a results file against the record's JSON Schema.

Exit code 0: all valid; 1: the first errors are printed, one a line; 77: python3-jsonschema is not installed."""
import json
import sys

try:
    from jsonschema import Draft202012Validator
except ImportError:
    print("python3-jsonschema is not installed")
    sys.exit(77)


def main(schema_path, results_path):
    with open(schema_path, encoding="utf-8") as file:
        schema = json.load(file)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    errors = 0
    records = 0
    with open(results_path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            records += 1
            for error in validator.iter_errors(json.loads(line)):
                where = "/".join(str(part) for part in error.absolute_path)
                print(f"{results_path}:{number}: {where}: {error.message[:200]}")
                errors += 1
    if records == 0:
        print(f"{results_path}: no record")
    return 1 if errors or records == 0 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
