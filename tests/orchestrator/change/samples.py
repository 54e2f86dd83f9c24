"""A small workspace, what may be edited in it, and what a refusal must look like."""

import pytest

from orchestrator.change import Policy, Reason, Refusal, Tree
from orchestrator.change.applying import apply_text
from orchestrator.change.edits import Form

SECRET = "the judge's own words"
TREE = Tree.of(
    {
        "src/solve.py": "def solve(x):\n    return x\n\n\ndef other(x):\n    return -x\n",
        "src/deep/data.txt": "one\ntwo\nthree\n",
        "src/hidden.py": f"{SECRET}\n",
        "judge.py": f"{SECRET}\n",
        "README.md": "read me\n",
    }
)
POLICY = Policy(editable=("src/*.py", "src/deep/**"), hidden=("src/hidden.py", "src/deep/secret/**"))


def refusal(text: str | bytes, policy: Policy = POLICY, form: Form = Form.AUTO, tree: Tree = TREE) -> Refusal:
    """The refusal of a text, which is always one line of harmless text that gives nothing away."""
    with pytest.raises(Refusal) as caught:
        apply_text(tree, text, policy, form)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 3000
    assert SECRET not in message
    return caught.value


def reason(text: str | bytes, policy: Policy = POLICY, form: Form = Form.AUTO, tree: Tree = TREE) -> Reason:
    return refusal(text, policy, form, tree).reason


def created(path: str, text: str = "x") -> str:
    return f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{text}\n"


def whole(path: str, text: str = "x\n") -> str:
    return f"File: {path}\n```\n{text}```\n"


def block(path: str, old: str, new: str) -> str:
    return f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"


def edited(text: str | bytes, path: str, before: str, form: Form = Form.AUTO) -> str:
    """What the text makes of one file."""
    tree = apply_text(Tree.of({path: before}), text, Policy(("**",)), form)
    return tree[path].data.decode()
