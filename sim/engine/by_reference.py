"""Named arrays that kernels pass on by reference.

A tuple of arrays is passed to a compiled function as a dozen values for each array. In a kernel of a hundred
functions that is what most of the time to compile it goes into; a reference is one value.
"""

from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.imputils import impl_ret_borrowed, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import NativeValue, infer_getattr, register_model, typeof_impl, unbox


class ByReference:
    """What has named arrays (annotated attributes of a dataclass) and is passed to kernels by reference.

    A kernel reads and writes the arrays' elements; which array an attribute is never changes while it runs.
    """


class Reference(types.Type):
    """The type of a reference: the names and types of what it refers to."""

    def __init__(self, fields: tuple[tuple[str, types.Type], ...]) -> None:
        self.fields = fields
        super().__init__(name=f"Reference({', '.join(f'{name}: {kind}' for name, kind in fields)})")


@typeof_impl.register(ByReference)
def type_of(value: ByReference, _context: object) -> Reference:
    """Return the type of a reference to the arrays of a value."""
    return Reference(tuple((name, numba.typeof(getattr(value, name))) for name in value.__annotations__))


@register_model(Reference)
class ReferenceModel(models.PrimitiveModel):
    """A reference is the address of a structure of arrays."""

    def __init__(self, manager: Any, kind: Reference) -> None:
        parts = [manager.lookup(field).get_value_type() for _, field in kind.fields]
        super().__init__(manager, kind, ir.LiteralStructType(parts).as_pointer())


@unbox(Reference)
def enter(kind: Reference, value: Any, context: Any) -> NativeValue:
    """Put the arrays of a Python object into a structure that lives as long as the call."""
    builder = context.builder
    place = cgutils.alloca_once(builder, context.context.get_value_type(kind).pointee)
    is_error = cgutils.false_bit
    for index, (name, field) in enumerate(kind.fields):
        attribute = context.pyapi.object_getattr_string(value, name)
        native = context.unbox(field, attribute)
        builder.store(native.value, cgutils.gep_inbounds(builder, place, 0, index))
        is_error = builder.or_(is_error, native.is_error)
        context.pyapi.decref(attribute)
    return NativeValue(place, is_error=is_error)


@infer_getattr
class ReferenceAttributes(AttributeTemplate):
    """What attributes a reference has."""

    key = Reference

    def generic_resolve(self, kind: Any, name: str) -> Any:  # type: ignore[override]
        """Return the type of an attribute, None if there is no such attribute."""
        return dict(kind.fields).get(name)


@lower_getattr_generic(Reference)
def get_attribute(context: Any, builder: Any, kind: Reference, value: Any, name: str) -> Any:
    """Load an array's description; it never changes, so that once is enough."""
    index = [field for field, _ in kind.fields].index(name)
    loaded = builder.load(cgutils.gep_inbounds(builder, value, 0, index))
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return impl_ret_borrowed(context, builder, kind.fields[index][1], loaded)
