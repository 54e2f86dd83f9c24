"""Secrets are found where people leave them, and not where they do not; and the finding does not tell them."""

import base64
import random
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.change import Policy, Tree
from orchestrator.llm.secrets import Found, kind_of_secret, secrets_in, secrets_in_tree
from orchestrator.task import TaskError
from orchestrator.wiring.secrets import refuse_secrets
from tests.orchestrator.proposers.llm.scripts import make_task

ROOT = Path(__file__).parents[3]


def drawn(length: int, letters: str = string.ascii_letters + string.digits) -> str:
    """Something random, the same every time; put together here so that no scanner of others finds it in this file."""
    rng = random.Random(f"{length}/{letters}")
    return "A1b2" + "".join(rng.choice(letters) for _ in range(length - 4))


UPPER = string.ascii_uppercase + string.digits
SECRETS = {
    "a private key": "-----BEGIN " + "RSA PRIVATE KEY-----",
    "an AWS key": "AKIA" + drawn(16, UPPER).upper(),
    "a Google key": "AIza" + drawn(35),
    "a GitHub token": "ghp_" + drawn(36),
    "a GitLab token": "glpat-" + drawn(20),
    "a Slack token": "xoxb-" + drawn(24),
    "an Anthropic key": "sk-ant-" + "api03-" + drawn(40),
    "an OpenAI key": "sk-" + drawn(48),
    "a Hugging Face token": "hf_" + drawn(34),
    "a Stripe key": "sk_live_" + drawn(24),
    "a package registry's token": "npm_" + drawn(36),
    "a signed token": f"eyJ{drawn(20)}.eyJ{drawn(30)}.{drawn(30)}",
}


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize("around", ["{}", "x = '{}'", '{{"key": "{}"}}', "# use {} here", "export KEY={}"])
def test_keys_of_a_known_form(kind: str, around: str) -> None:
    """Wherever they stand, with their line and kind."""
    text = f"first\n\n{around.format(SECRETS[kind])}\nlast\n"
    assert secrets_in(text.encode()) == [(3, kind)]


@pytest.mark.parametrize(
    "line",
    [
        'password = "{}"',
        "DB_PASSWORD='{}'",
        '"api_key": "{}",',
        "client.secret_token = b'{}'",
        "apiKey: '{}'",
        'credentials := "{}"',
    ],
)
def test_random_values_of_telling_names(line: str) -> None:
    """In a program, a setting or JSON; with upper and lower case, digits, or hexadecimal. Without quotes, such a word
    is a name but where settings are. The kind is that of the first one, however often the words stand before it.
    """
    for value in (drawn(20), base64.b64encode(drawn(18).encode()).decode(), drawn(32, "0123456789abcdef").lower()):
        assert secrets_in(line.replace("{}", value).encode()) == [(1, "a password or a token")]
    plain = f"API_TOKEN={drawn(24)}".encode()
    for path in (".env", "deploy/.env.local", "app.ini", "config.yaml"):
        assert secrets_in(plain, path) == [(1, "a password or a token")]
        assert kind_of_secret(b"api_key\n" * 30_000 + plain, path) == "a password or a token"
    assert (secrets_in(plain, "solve.py"), kind_of_secret(plain, "x.py")) == ([], None)
    address = f"url = postgresql://app:{drawn(14)}@db/main".encode()
    assert secrets_in(address) == [(1, "a password in an address")]


@pytest.mark.parametrize(
    "line",
    [
        "token = tokenizer.next_token(stream, 1234567890)",
        'password = "password"',
        'password = "correct-horse-battery-staple"',
        'api_key = os.environ["ANTHROPIC_API_KEY_1"]',
        'API_KEY = "your-api-key-goes-here-123"',
        'api_key = "<insert key 12345 here>"',
        'secret = "${SECRET_KEY_BASE_1}"',
        "postgresql://user:password@host/database",
        "tokens = 'the quick brown fox 12345678'",
        'sk-learn-contrib-1234567890 = "x"',
        'token = "aaaaaaaaaaaaaaa1A"',
        "def tokenize(text: str) -> list[str]:",
        'SECRET = "the-answer-is-42"',
        "AKIA is a prefix; AKIAEXAMPLE is too short",
    ],
)
def test_what_only_looks_like_one(line: str) -> None:
    """Words, placeholders, code and examples raise no alarm."""
    assert secrets_in(line.encode(), "config.toml") == []


def test_what_we_ship_is_clean() -> None:
    """No file of the examples, of the starter task or of the default playbook is taken for a secret."""
    for folder in ("examples", "orchestrator/task/starter", "orchestrator/playbook"):
        files = [path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        assert files
        for path in files:
            assert secrets_in(path.read_bytes(), path.name) == [], path


def test_hidden_files_may_hold_what_they_want() -> None:
    """They are never shown; all others are looked through, editable or not."""
    key = SECRETS["an AWS key"]
    tree = Tree.of({"solve.py": "x = 1\n", "config.py": f"\n\nKEY = '{key}'\n", "keys/prod.py": f"K = '{key}'\n"})
    assert secrets_in_tree(tree, Policy(("*.py",), ("keys/*",))) == [Found("config.py", 3, "an AWS key")]


def test_the_campaign_does_not_begin() -> None:
    """One line with place and kind and what to do; the secret itself is not in it."""
    task, key = make_task(), SECRETS["an AWS key"]
    with pytest.raises(TaskError) as refused:
        refuse_secrets(task, Tree.of({"config.py": f"\n\nKEY = '{key}'\n"}))
    assert str(refused.value) == (
        "workspace/config.py line 3 looks like an AWS key, and a model would be shown it; "
        "take it out, or add the file to hidden"
    )
    assert key not in repr(refused.value)
    with pytest.raises(TaskError, match=r"the statement line 2 looks like a GitHub token.*; take it out$"):
        refuse_secrets(make_task(statement=f"Do it.\nUse {SECRETS['a GitHub token']}"), Tree())
    with pytest.raises(TaskError, match=r"playbook/notes\.md line 1 looks like an Anthropic key"):
        refuse_secrets(task, Tree(), {"notes.md": SECRETS["an Anthropic key"]})
    refuse_secrets(task, Tree.of({"solve.py": "x = 1\n"}), {"notes.md": "Be quick."})


@given(st.binary(max_size=2000))
def test_any_bytes_can_be_looked_through(data: bytes) -> None:
    """Text or not, each line is named once and exists."""
    found = secrets_in(data, "x.env")
    assert len({line for line, _ in found}) == len(found)
    assert all(1 <= line <= data.count(b"\n") + 1 for line, _ in found)
