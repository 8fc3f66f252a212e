"""The vectors have teeth: a model with one rule taken out must disagree with one of them.

Each case replaces one piece of the model's source; what an SDK could get wrong in the same way is then caught too.
"""

import types
from pathlib import Path

import pytest

from conftest import ROOT
from specheck import answers, model
from specheck.tree import Tree, Vector

TREE = Tree(ROOT)
READER = [
    ("NAME.fullmatch(text)", "re.match(NAME.pattern + '$', text)"),
    ("{1,249}", "{1,250}"),
    ("{1,249}", "{1,248}"),
    ("[A-Za-z0-9._-]", r"[\\w._-]"),
    ('{".", ".."}', '{"."}'),
    ("len(key) != 32", "len(key) < 32"),
    ("len(key) != 32", "len(key) > 32"),
    ('startswith("c19e")', 'startswith("c19e01")'),
    ('if given["value"] is None', 'if not given["value"]'),
    ('if not value.startswith(b"\\xc1\\x9e")', 'if not value.startswith(b"\\xc1")'),
    ("    _parse(given, value)\n", '    if given["plaintext"] == "reject":\n        _parse(given, value)\n'),
    ('if given["plaintext"] != "accept":', "if False:"),
    ("if len(value) == 2:", "if False:"),
    ("if value[2] != 1:", "if value[2] > 1:"),
    ("if value[2] != 1:", "if value[2] == 0:"),
    ("if value[2] != 1:", "if value[2] != 1 and len(value) >= 60:"),
    ("if len(value) < 60:", "if len(value) < 61:"),
    ("if len(value) < 60:", "if len(value) < 59:"),
    ("if len(value) < 60:", "if len(value) < 60 and not value[3] & 0xF8:"),
    *(("flags & 0xF8", f"flags & {0xF8 & ~(1 << bit):#x}") for bit in range(3, 8)),
    ("flags & 3 > 1", "flags & 3 == 2"),
    ("flags & 3 > 1", "flags & 3 == 3"),
    ("if not flags & 1 and len(value) - 60 > ", "if len(value) - 60 > "),
    ("len(value) - 60 > given", "len(value) - 60 >= given"),
    ("len(value) - 60 > given", "len(value) - 61 > given"),
    ('"record_key" not in given', "False"),
    ('"record_key" not in given', 'given.get("record_key") is None'),
    ("if kid_of(key).hex() != kid:", "if False:"),
    ("scope, key = _key(given, value[4:20].hex())", 'scope, key = "claims", _key(given, value[4:20].hex())[1]'),
    (
        'given["keys"].get(kid, {"error": "key-unknown"})',
        'given["keys"].get(kid) or next(iter(given["keys"].values()))',
    ),
    ("aad = envelope[:20] + struct", "aad = envelope[:3] + b'\\x00' + envelope[4:20] + struct"),
    ('if given["record_key"] is None:', 'if not given["record_key"]:'),
    ('return aad + b"\\xff" * 4', 'return aad + struct.pack(">I", 4) + b"\\xff" * 4'),
    ("if not frame.startswith", "if False and frame.startswith"),
    ("if len(plaintext) > limit:", "if len(plaintext) > limit + 1:"),
    ("if len(plaintext) > limit:", "if len(plaintext) >= limit:"),
    ("not decompressor.eof or ", ""),
    (" or decompressor.unused_data", ""),
    ("    if value[3] & 1:\n", "    if value[3] & 5:\n"),
    ("len(value) // 2 > given", "len(value) // 2 >= given"),
    ("len(value) // 2 > given", "len(value) // 2 - 1 > given"),
]
SDK = [
    ("[0-9a-f]{32}", r"[0-9a-fA-F]{32}"),
    ("[0-9a-f]{32}", r"[\\da-f]{32}"),
    ("KID.fullmatch(text)", "re.match(KID.pattern + '$', text)"),
    ("WEEK = 604_800", "WEEK = 604_801"),
    ("WEEK = 604_800", "WEEK = 604_799"),
    ("DEPTH = 8", "DEPTH = 9"),
    ("DEPTH = 8", "DEPTH = 7"),
    ('mode in ("encrypt", "clear", "forbid")', "isinstance(mode, str)"),
    ('mode in ("encrypt", "clear", "forbid")', 'str(mode).lower() in ("encrypt", "clear", "forbid")'),
    ('answer.get("plaintext") in ("reject", "accept") and ', ""),
    ("    _lease(answer)\n    entries", "    entries"),
    ("    _lease(entry)\n", ""),
    ("sorted(kids) == sorted(given", "set(kids) == set(given"),
    ("sorted(kids) == sorted(given", "set(kids) >= set(given"),
    ("sorted(kids) == sorted(given", "set(kids) <= set(given"),
    ("sorted(kids) == sorted(given", "len(kids) == len(given"),
    ('"key" not in entry and ', ""),
    (' and isinstance(error.get("code"), str)', ""),
    ('if error["code"] in OF_A_KID else "not-authorized"', ""),
    ("_need(is_kafka_name(entry.get", "_need(isinstance(entry.get"),
    ('_check_key(entry["key"], kid)', "len(kid)"),
    ('_check_key(_base64(answer.get("key")), answer["kid"])', '_base64(answer.get("key"))'),
    ("if status != 200:", "if status >= 300:"),
    ('.split(";")[0].strip().lower()', ".lower()"),
    ('.split(";")[0].strip().lower()', '.split(";")[0].strip()'),
    ('    _need(content_type == "application/json")\n', ""),
    ('_need(content_type == "application/json")', '_need(content_type.startswith("application/json"))'),
    ('_need(content_type == "application/json")', '_need("application/json" in content_type)'),
    ('        _need(content_type == "application/problem+json")\n', ""),
    ('content_type == "application/problem+json"', 'content_type.endswith("json")'),
    ("status == 429 or status >= 500", "status >= 500"),
    ("status == 429 or status >= 500", "status == 429 or status == 503"),
    ("if code in CODES.get(status, set()):", "if any(code in codes for codes in CODES.values()):"),
    ("if status in (401, 403) else", "if status == 403 else"),
    ("if status in (401, 403) else", "if 400 <= status < 500 else"),
    ("object_pairs_hook=_unique, ", ""),
    (", parse_constant=_no_constant", ""),
    ("isinstance(document, dict) and ", ""),
    ("type(seconds) is int", "isinstance(seconds, int)"),
    ("type(seconds) is int", "isinstance(seconds, int | float)"),
    ("1 <= answer", "0 <= answer"),
    ('<= answer["expires_in"] <= WEEK', '<= WEEK and 1 <= answer["expires_in"] <= WEEK'),
    ('<= answer["expires_in"] <= WEEK', '<= answer["expires_in"]'),
    ("    _need(base64.b64encode(data).decode() == text)\n", ""),
    ("    _need(isinstance(text, str))\n    try:", "    text = text if isinstance(text, str) else ''\n    try:"),
]


def _changed(module: types.ModuleType, old: str, new: str) -> types.ModuleType:
    source = Path(str(module.__file__)).read_text("utf-8")
    assert old in source
    changed = types.ModuleType(module.__name__)
    exec(compile(source.replace(old, new), str(module.__file__), "exec"), changed.__dict__)  # noqa: S102
    return changed


def _disagreeing(module: types.ModuleType) -> list[str]:
    """The vectors with which the functions of this module (named like a kind) do not agree."""
    return [
        vector["id"]
        for kind, vector in TREE.vectors()
        if (function := getattr(module, kind.replace("-", "_"), None)) is not None
        and "xaes" not in kind
        and _outcome(function, vector) != _expected(vector)
    ]


def _expected(vector: Vector) -> object:
    return vector["error"]["code"] if vector["result"] == "error" else vector["output"]


def _outcome(function: types.FunctionType, vector: Vector) -> object:
    try:
        return function(vector["input"])
    except Exception as error:  # noqa: BLE001 - a broken model may end in anything
        return getattr(error, "code", error)


@pytest.mark.parametrize("module", [model, answers])
def test_whole_model_agrees(module: types.ModuleType) -> None:
    assert _disagreeing(module) == []


@pytest.mark.parametrize(("old", "new"), READER)
def test_reader_without_one_rule_is_noticed(old: str, new: str) -> None:
    assert _disagreeing(_changed(model, old, new)) != []


@pytest.mark.parametrize(("old", "new"), SDK)
def test_sdk_without_one_rule_is_noticed(old: str, new: str) -> None:
    assert _disagreeing(_changed(answers, old, new)) != []
