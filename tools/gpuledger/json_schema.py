"""As much of JSON Schema as docs/report.schema.json uses; anything else in a schema is an error."""

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "required", "properties", "additionalProperties", "items",
         "minimum", "const"}


def errors(value, schema, root=None, where="$"):
    """What is wrong with the value, as a list of sentences; empty when nothing is."""
    root = schema if root is None else root
    found = []
    unknown = set(schema) - KNOWN
    if unknown:
        raise ValueError(f"{where}: the schema uses {sorted(unknown)}, which this validator does not know")
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        found += errors(value, root["$defs"][name], root, where)
    if "const" in schema and value != schema["const"]:
        found.append(f"{where}: expected {schema['const']!r}, got {value!r}")
    if "type" in schema:
        expected = TYPES[schema["type"]]
        if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
            return [*found, f"{where}: expected {schema['type']}, got {value!r:.60}"]
    if "minimum" in schema and value < schema["minimum"]:
        found.append(f"{where}: {value} is below {schema['minimum']}")
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            found += errors(item, schema["items"], root, f"{where}[{index}]")
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        found += [f"{where}: {key} is missing" for key in schema.get("required", []) if key not in value]
        others = schema.get("additionalProperties", True)
        for key, item in value.items():
            if key in properties:
                found += errors(item, properties[key], root, f"{where}.{key}")
            elif others is False:
                found.append(f"{where}: {key} is not in the schema")
            elif isinstance(others, dict):
                found += errors(item, others, root, f"{where}.{key}")
    return found
