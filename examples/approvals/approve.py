"""A clerk asks for a refund, a manager approves it, and an auditor reads the record."""

import json
import os
from typing import Any

import httpx

URL = os.environ.get("TOOLCHAT_URL", "http://127.0.0.1:8083")


def client_with(key: str) -> httpx.Client:
    """Return a client that sends the key of this variable."""
    headers = {"X-API-Key": os.environ[key], "Accept": "application/json"}
    return httpx.Client(base_url=URL, headers=headers, timeout=60)


def checked(response: httpx.Response) -> httpx.Response:
    """Return the response of a request that succeeded; otherwise show what the service says."""
    if response.is_error:
        raise SystemExit(response.text)
    return response


def main() -> None:
    """Play the three parts one after the other."""
    with client_with("CLERK") as clerk, client_with("MANAGER") as manager, client_with("AUDITOR") as auditor:
        asked = checked(clerk.get("/chat", params={"query": "Refund amount 50"})).json()
        print("clerk:", asked["finish_reason"])

        waiting: list[dict[str, Any]] = checked(manager.get("/approvals")).json()["approvals"]
        approval = next(each for each in waiting if each["id"] == asked["approval"]["id"])
        print("manager sees:", approval["calls"][0]["name"], approval["calls"][0]["arguments"])

        own = clerk.post(f"/approvals/{approval['id']}", json=decisions_for(approval))
        print("clerk decides:", own.json()["code"])

        answer = checked(manager.post(f"/approvals/{approval['id']}", json=decisions_for(approval))).json()
        print("answer:", answer["answer"])

        newest = checked(auditor.get("/audit", params={"tool": "refund"})).text.splitlines()[0]
        record = json.loads(newest)
        print(f"record: {record['decision']} by {record['by']}, asked by {record['asked_by']}")


def decisions_for(approval: dict[str, Any]) -> dict[str, Any]:
    """Approve every call that waits."""
    return {"decisions": {each["id"]: {"approved": True} for each in approval["calls"]}}


if __name__ == "__main__":
    main()
