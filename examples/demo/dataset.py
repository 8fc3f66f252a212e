"""The demo's input: the RAND Health Insurance Experiment, 20,190 real records in the public domain.

The statsmodels wheel ships it (statsmodels/datasets/randhie); only that one file is read, the package is not installed.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path

MEMBER = "statsmodels/datasets/randhie/randhie.csv"
NAMES = {
    "mdvis": "visits_to_doctor",
    "lncoins": "log_coinsurance",
    "idp": "individual_deductible_plan",
    "lpi": "log_participation_incentive",
    "fmde": "log_maximum_expenditure",
    "physlm": "physical_limitation",
    "disea": "chronic_diseases",
    "hlthg": "health_good",
    "hlthf": "health_fair",
    "hlthp": "health_poor",
}


def load(folder: Path, limit: int) -> list[str]:
    """Return up to `limit` records, each one JSON object as text.

    Raises FileNotFoundError if no statsmodels wheel lies in `folder`.
    """
    wheels = sorted(folder.glob("statsmodels-*.whl"))
    if not wheels:
        raise FileNotFoundError(f"no data set in {folder}: run `make -C examples setup`")
    with zipfile.ZipFile(wheels[-1]) as wheel:
        text = wheel.read(MEMBER).decode("ascii")
    rows = csv.DictReader(io.StringIO(text))
    return [_record(number, row) for number, row in enumerate(rows) if number < limit]


def _record(number: int, row: dict[str, str]) -> str:
    """One row as JSON, with names that a person can read."""
    return json.dumps({"person_year": number} | {NAMES[name]: float(value) for name, value in row.items()})
