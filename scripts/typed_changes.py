"""A plugin of mypy: changes of a model are typed. A field that is misspelt or mistyped is an error of types

- in a method with `**changes: FieldOf[Record]`, which takes the fields of that record by their names,
- in `model.model_copy(update={"field": value})`, as far as its keys are written out.
"""

from collections.abc import Callable

from mypy.errorcodes import ARG_TYPE, CALL_ARG
from mypy.nodes import ARG_NAMED_OPT, ARG_STAR2, DictExpr, StrExpr, TypeInfo, Var
from mypy.plugin import MethodContext, MethodSigContext, Plugin
from mypy.subtypes import is_subtype
from mypy.types import CallableType, Instance, Type, get_proper_type

_WHERE = "orchestrator.domain."
_FIELD_OF = "orchestrator.domain.records.base.FieldOf"
_COPY = ".model_copy"


class TypedChanges(Plugin):
    def get_method_signature_hook(self, fullname: str) -> Callable[[MethodSigContext], CallableType] | None:
        return _with_fields if fullname.startswith(_WHERE) else None

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        return _checked_copy if fullname.endswith(_COPY) else None


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
    fields = _fields_of(record.type)
    return signature.copy_modified(
        arg_types=[*signature.arg_types[:-1], *fields.values()],
        arg_kinds=[*signature.arg_kinds[:-1], *[ARG_NAMED_OPT] * len(fields)],
        arg_names=[*signature.arg_names[:-1], *fields],
    )


def _checked_copy(context: MethodContext) -> Type:
    model = get_proper_type(context.type)
    given = {name: args[0] for name, args in zip(context.callee_arg_names, context.args, strict=True) if args}
    update = given.get("update")
    if not isinstance(model, Instance) or not isinstance(update, DictExpr):
        return context.default_return_type
    fields = _fields_of(model.type)
    for key, value in update.items:
        if not isinstance(key, StrExpr):
            continue
        if key.value not in fields:
            context.api.fail(f'"{model.type.name}" has no field "{key.value}"', key, code=CALL_ARG)
            continue
        wanted = fields[key.value]
        found = context.api.get_expression_type(value, wanted)
        if not is_subtype(found, wanted):
            context.api.fail(f'Field "{key.value}" of "{model.type.name}" gets another type', value, code=ARG_TYPE)
    return context.default_return_type


def _fields_of(model: TypeInfo) -> dict[str, Type]:
    """Its own and those that it inherits, without what pydantic has in every model."""
    ours = [info for info in reversed(model.mro) if not info.fullname.startswith(("pydantic.", "builtins."))]
    found = [symbol.node for info in ours for symbol in info.names.values()]
    return {it.name: it.type for it in found if isinstance(it, Var) and it.type and not it.name.startswith("_")}


def plugin(version: str) -> type[Plugin]:
    del version
    return TypedChanges
