"""The description of runnable tools in OpenAPI and GET /tools."""

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

import httpx
import pytest

from tests.application import create_app
from tests.serving import service
from toolchat.service.pages.openapi import HIDDEN


@pytest.fixture
async def document(client: httpx.AsyncClient) -> dict[str, Any]:
    shown: dict[str, Any] = (await client.get("/openapi.json")).json()
    return shown


@pytest.fixture
async def tools(client: httpx.AsyncClient) -> dict[str, dict[str, Any]]:
    """Every registered tool, by name, as GET /tools lists it."""
    folders = (await client.get("/tools")).json()
    return {tool["name"]: tool for folder in folders for tool in folder["tools"]}


def run_of(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    operation: dict[str, Any] = document["paths"][f"/tools/{name}"]["post"]
    return operation


def body_of(operation: Mapping[str, Any]) -> Any:
    return operation["requestBody"]["content"]["application/json"]


def references(part: Any) -> Iterator[str]:
    if isinstance(part, Mapping):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        yield from (found for each in part.values() for found in references(each))
    elif isinstance(part, list):
        yield from (found for each in part for found in references(each))


def resolved(document: Any, reference: str) -> Any:
    assert reference.startswith("#/"), reference
    return reduce(lambda part, name: part[name], reference.removeprefix("#/").split("/"), document)


async def test_each_registered_tool_has_an_operation_of_its_own(
    document: dict[str, Any], tools: dict[str, dict[str, Any]]
) -> None:
    assert {"turnPots", "getCityTimeFunction", "getCityTimeMethod"} <= set(tools)
    for name, tool in tools.items():
        operation = run_of(document, name)
        assert operation["operationId"] == f"run_{name}"
        assert operation["description"].startswith(tool["description"])
        assert [each["in"] for each in operation["parameters"] if each["name"] == "name"] == []
    assert "/tools/{name}" not in document["paths"]
    assert "/tools/openDoor" not in document["paths"]


async def test_a_tools_arguments_are_shown_by_its_own_schema(
    document: dict[str, Any], tools: dict[str, dict[str, Any]]
) -> None:
    schema = resolved(document, body_of(run_of(document, "turnPots"))["schema"]["$ref"])
    assert schema == tools["turnPots"]["input_schema"]


async def test_no_two_operations_have_one_id(document: dict[str, Any]) -> None:
    ids = [each["operationId"] for methods in document["paths"].values() for each in methods.values()]
    assert len(ids) == len(set(ids))


async def test_every_reference_leads_somewhere_also_within_a_schema_that_refers_to_itself(
    document: dict[str, Any],
) -> None:
    nested = list(references(document["components"]["schemas"]["nest_arguments"]))
    assert nested
    for reference in references(document):
        assert resolved(document, reference) is not None


async def test_a_tool_that_needs_approval_is_marked_and_requires_a_key(
    document: dict[str, Any], tools: dict[str, dict[str, Any]]
) -> None:
    needed = {
        name: next(each for each in run_of(document, name)["parameters"] if each["name"] == "Idempotency-Key")
        for name in tools
    }
    assert [name for name, each in needed.items() if each["required"]] == ["firePot"]
    assert [name for name, tool in tools.items() if tool["requires_approval"]] == ["firePot"]
    assert "approval" in run_of(document, "firePot")["description"]


async def test_a_new_user_sees_few_operations_and_the_services_own_first() -> None:
    async with service(EXAMPLES_ENABLED="false") as client:
        document = (await client.get("/openapi.json")).json()
    operations = [each for methods in document["paths"].values() for each in methods.values()]
    listed = [each for each in operations if HIDDEN not in each]
    assert len(listed) <= 39
    tags = [each["name"] for each in document["tags"]]
    assert tags[0] == "Chat"
    assert not {"Examples", "Alarms"} & set(tags)


async def test_the_examples_come_last_once_they_are_on(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    assert [each["name"] for each in document["tags"]][-2:] == ["Examples", "Alarms"]


async def test_before_the_service_runs_the_document_shows_the_route_itself() -> None:
    operation = create_app().openapi()["paths"]["/tools/{name}"]["post"]
    assert [each["name"] for each in operation["parameters"] if each["in"] == "path"] == ["name"]
