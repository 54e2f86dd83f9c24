"""A plugin of mypy: a method with `**changes: FieldOf[Record]` takes the fields of that record by their names, each of
its type. So a field that is misspelt or mistyped where a record is changed is an error of types.
"""

from collections.abc import Callable

from mypy.nodes import ARG_NAMED_OPT, ARG_STAR2, Var
from mypy.plugin import MethodSigContext, Plugin
from mypy.types import CallableType, Instance, get_proper_type

_WHERE = "orchestrator.domain."
_FIELD_OF = "orchestrator.domain.records.base.FieldOf"


class TypedChanges(Plugin):
    def get_method_signature_hook(self, fullname: str) -> Callable[[MethodSigContext], CallableType] | None:
        return _with_fields if fullname.startswith(_WHERE) else None


def _with_fields(context: MethodSigContext) -> CallableType:
    signature = context.default_signature
    if not signature.arg_kinds or signature.arg_kinds[-1] is not ARG_STAR2:
        return signature
    changes = get_proper_type(signature.arg_types[-1])
    if not isinstance(changes, Instance) or changes.type.fullname != _FIELD_OF:
        return signature
    record = get_proper_type(changes.args[0])
    if not isinstance(record, Instance):
        return signature
    ours = [info for info in record.type.mro if info.fullname.startswith(_WHERE)]
    found = [symbol.node for info in ours for symbol in info.names.values()]
    fields = {it.name: it.type for it in found if isinstance(it, Var) and it.type and not it.name.startswith("_")}
    return signature.copy_modified(
        arg_types=[*signature.arg_types[:-1], *fields.values()],
        arg_kinds=[*signature.arg_kinds[:-1], *[ARG_NAMED_OPT] * len(fields)],
        arg_names=[*signature.arg_names[:-1], *fields],
    )


def plugin(version: str) -> type[Plugin]:
    del version
    return TypedChanges
