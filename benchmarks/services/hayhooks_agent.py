"""Hayhooks: a Haystack ``Agent`` behind OpenAI's chat completions, its wrapper as its documentation shows."""

import os
import sys
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import uvicorn
from hayhooks import BasePipelineWrapper, async_streaming_generator, create_app
from hayhooks.server.pipelines.registry import registry
from hayhooks.server.utils.module_loader import create_pipeline_wrapper_instance
from haystack.dataclasses import ChatMessage

from benchmarks.services.haystack_agent import time_agent
from benchmarks.services.tools import Tools


class PipelineWrapper(BasePipelineWrapper):  # type: ignore[misc] # it has no types here
    """Answers with the agent that has the time tool."""

    def setup(self) -> None:
        """Make the agent."""
        self.pipeline = time_agent(Tools(aiohttp.ClientSession, os.environ["BENCH_UPSTREAM"]))  # type: ignore[arg-type]

    async def run_chat_completion_async(
        self,
        model: str,  # noqa: ARG002
        messages: list[dict[str, Any]],
        body: dict[str, Any],
    ) -> AsyncGenerator[Any, None] | str:
        """Answer, as a stream where one is asked for."""
        asked = [ChatMessage.from_openai_dict_format(each) for each in messages]
        if body.get("stream"):
            pieces: AsyncGenerator[Any, None] = async_streaming_generator(
                self.pipeline, pipeline_run_args={"messages": asked}
            )
            return pieces
        result = await self.pipeline.run_async(messages=asked)
        return str(result["messages"][-1].text)


if __name__ == "__main__":
    app = create_app()
    registry.add("toolchat", create_pipeline_wrapper_instance(sys.modules[__name__]))
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=False, log_level="warning", backlog=2048)
