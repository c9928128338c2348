"""Write the type stubs of the generated module: python/wraith/wraith/__init__.pyi.

The generated source has all annotations, but creates its enums and errors in ways that no type checker follows.
With `--check` nothing is written, and a file that is out of date is an error.
"""

import enum
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from importlib import import_module
from types import FunctionType, ModuleType

STUBS = Path(__file__).parent / "python/wraith/wraith/__init__.pyi"
HEAD = '''# Made by stubs.py from the generated module.

import datetime
import enum
import typing

Duration = datetime.timedelta
# Some fields are called so.
_Bytes: typing.TypeAlias = bytes
'''


def signature(function: FunctionType) -> str:
    """Format the parameters and the result for a stub."""
    parts: list[str] = []
    shape = inspect.signature(function)
    for parameter in shape.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        has_default = parameter.default is not parameter.empty
        parts.append(typed(parameter, function) + (" = ..." if has_default else ""))
    result = shape.return_annotation
    return f"({', '.join(parts)}) -> {'None' if result is shape.empty else named(result)}"


def typed(parameter: inspect.Parameter, function: FunctionType) -> str:
    if parameter.name == "self" or parameter.name == "cls":
        return parameter.name
    # A parameter without an annotation is a field of an error.
    known = parameter.annotation is not parameter.empty
    return f"{parameter.name}: {named(parameter.annotation) if known else error_field(function, parameter.name)}"


def error_field(init: FunctionType, field: str) -> str:
    """Return the type of a field of an error, which the generated converter of the error names."""
    error, case, _ = init.__qualname__.split(".")
    converter = getattr(sys.modules[init.__module__], f"_UniffiFfiConverterType{error}")
    _, checks = inspect.getsource(converter.check_lower).split(f"isinstance(value, {error}.{case})")
    found = re.search(rf"_UniffiFfiConverter(\w+)\.check_lower\(value\.{field}\)", checks)
    assert found is not None, f"{error}.{case} has no field {field}"
    return {"String": "str", "UInt64": "int"}.get(found[1], found[1].removeprefix("Type"))


def named(annotation: str) -> str:
    return re.sub(r"\bbytes\b", "_Bytes", annotation)


def init(of: type) -> FunctionType | None:
    """Return the constructor generated for this class, or None if the class has none of its own."""
    function = of.__init__  # type: ignore[misc]
    return function if isinstance(function, FunctionType) else None


def with_fields(of: type, indent: str) -> Iterator[str]:
    """Yield the fields that the constructor sets, and the constructor."""
    made = init(of)
    if made is None:
        yield f"{indent}def __init__(self, *args: object) -> None: ..."
        return
    for parameter in list(inspect.signature(made).parameters.values())[1:]:
        yield indent + typed(parameter, made)
    yield f"{indent}def __init__{signature(made)}: ..."


def methods(of: type) -> Iterator[str]:
    for name, member in vars(of).items():
        is_class = isinstance(member, classmethod)
        function = member.__func__ if is_class else member
        if name.startswith("_") or not isinstance(function, FunctionType):
            continue
        if is_class:
            yield "    @classmethod"
        begin = "async def" if inspect.iscoroutinefunction(function) else "def"
        yield f"    {begin} {name}{signature(function)}: ..."


def variants(of: type) -> list[tuple[str, type]]:
    """Yield the cases of an enum with fields or of an error, each a nested subclass."""
    inner = ((name, member) for name, member in vars(of).items() if not name.startswith("_"))
    return [(name, one) for name, one in inner if isinstance(one, type) and issubclass(one, of)]


def class_lines(name: str, item: type) -> Iterator[str]:
    cases = variants(item)
    if issubclass(item, enum.Enum):
        yield f"class {name}(enum.Enum):"
        yield from (f"    {member.name} = {member.value!r}" for member in item)
    elif cases:
        yield f"class {name}(Exception):" if issubclass(item, Exception) else f"class {name}:"
        for case, inner in cases:
            yield f"    class {case}({name}):"
            yield from with_fields(inner, "        ")
        yield from (line for line in methods(item) if "def is_" not in line or line[11].isupper())
    elif issubclass(item, Exception):
        yield f"class {name}(Exception): ..."
    elif takes_names(item):
        yield f"class {name}:"
        yield from with_fields(item, "    ")
    else:
        yield f"class {name}:"
        made = vars(item).get("__init__")
        # A class whose objects come only from other calls has no public constructor.
        if isinstance(made, FunctionType) and "args" not in inspect.signature(made).parameters:
            yield f"    def __init__{signature(made)}: ..."
        yield from methods(item)


def takes_names(item: type) -> bool:
    """Return whether the class is a record, whose fields are passed by name."""
    made = init(item)
    parameters = inspect.signature(made).parameters.values() if made else ()
    return any(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters)


def stubs(module: ModuleType) -> str:
    out = [HEAD]
    # Omit the generator's internal names.
    own = ("Protocol", "Impl")
    names = sorted(name for name in module.__all__ if not name.endswith(own))
    for name in names:
        item = getattr(module, name)
        if isinstance(item, type):
            out.append("\n".join(class_lines(name, item)) + "\n")
        else:
            begin = "async def" if inspect.iscoroutinefunction(item) else "def"
            out.append(f"{begin} {name}{signature(item)}: ...\n")
    out.append("__all__ = [\n" + "".join(f'    "{name}",\n' for name in names) + "]\n")
    return "\n".join(out)


def main() -> None:
    made = stubs(import_module("wraith.wraith.wraith"))
    if "--check" not in sys.argv:
        STUBS.write_text(made)
    elif STUBS.read_text() != made:
        sys.exit(f"{STUBS} is not of this library: run stubs.py")


if __name__ == "__main__":
    main()
