"""A folder whose advisor sends the client a notice behind every answer."""

from toolchat import Advisor, AdvisorChain, ChatRequest, ChatResponse, Emit, Notice, ToolModule


class Watch(Advisor):
    order = 250

    async def advise(self, request: ChatRequest, chain: AdvisorChain, emit: Emit) -> ChatResponse:
        response = await chain.proceed(request, emit)
        await emit(Notice("harbour", {"ships": 2}))
        return response


module = ToolModule(advisors=(Watch,))
