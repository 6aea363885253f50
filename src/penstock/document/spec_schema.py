"""The JSON Schema of a document spec, for editors that complete and check YAML while it is written."""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from penstock.document.spec import DocumentSpec


class _SpecJsonSchema(GenerateJsonSchema):
    """Generates a schema without titles that only repeat the names of keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - of the base class
        """Return that no field gets a title."""
        return False


def build_spec_schema() -> dict[str, Any]:
    """Return the JSON Schema of a document spec."""
    schema = DocumentSpec.model_json_schema(schema_generator=_SpecJsonSchema)
    return schema | {
        "title": "Penstock document spec",
        "description": "What a search index holds: a root table and the tables joined to it.",
    }
