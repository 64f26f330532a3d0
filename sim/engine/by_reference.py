"""Named arrays that the functions of a kernel pass on by reference. Importing this imports numba.

numba passes a tuple of arrays as a dozen values for each array. In a kernel of a hundred functions that is
what most of the time to compile it goes into; a reference is one value.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.imputils import impl_ret_borrowed, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, register_model


class Reference(types.Type):
    """The type of a reference to a named tuple of arrays."""

    def __init__(self, arrays: types.NamedTuple) -> None:
        self.arrays = arrays
        super().__init__(name=f"Reference({arrays})")


@register_model(Reference)
class ReferenceModel(models.PrimitiveModel):
    """A reference is the address of the tuple."""

    def __init__(self, manager: Any, kind: Reference) -> None:
        arrays: ir.Type = manager.lookup(kind.arrays).get_value_type()
        super().__init__(manager, kind, arrays.as_pointer())


@intrinsic
def refer(_context: Any, arrays: types.NamedTuple) -> Any:
    """Return a reference to a named tuple, good until the calling function returns."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return cgutils.alloca_once_value(builder, arguments[0])

    return Reference(arrays)(arrays), code


@infer_getattr
class ReferenceAttributes(AttributeTemplate):
    """The attributes of a reference are the arrays."""

    key = Reference

    def generic_resolve(self, kind: Any, name: str) -> Any:  # type: ignore[override]
        """Return the type of an array, None if there is none of this name."""
        names = kind.arrays.fields
        return kind.arrays.types[names.index(name)] if name in names else None


@lower_getattr_generic(Reference)
def get_array(context: Any, builder: Any, kind: Reference, value: Any, name: str) -> Any:
    """Load where an array is. That never changes, so that once is enough."""
    index = kind.arrays.fields.index(name)
    loaded = builder.load(cgutils.gep_inbounds(builder, value, 0, index))
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return impl_ret_borrowed(context, builder, kind.arrays.types[index], loaded)
