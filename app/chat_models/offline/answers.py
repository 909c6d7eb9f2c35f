"""What the offline model says: from results, or when it calls no tool."""

from collections.abc import Iterable, Sequence

from app.chat_models.offline.numbers import horizon
from app.chat_models.offline.planning import Incomplete, Plan
from app.chat_models.offline.question import Question
from app.chat_models.offline.results import Reader, told
from app.chat_models.offline.roles import Role, role_of
from app.chat_models.offline.schemas import Parameter
from app.chat_models.offline.texts import places
from app.chat_models.offline.vocabulary import concepts_in
from app.messages import ToolCall, ToolResponse
from app.tool_calling.definition import ToolDefinition
from app.tool_calling.events import parsed_arguments

__all__ = ["details", "from_results", "without_a_fitting_tool", "without_tools"]

_MOST_TOOLS = 8
_CANNOT = {
    "time": ("不知道现在几点", "cannot know what time it is"),
    "date": ("不知道今天的日期", "cannot know today's date"),
    "weather": ("不知道天气怎么样", "cannot know the weather"),
    "translate": ("没有办法翻译", "cannot translate"),
}
_DETAILS = {
    Role.TIME_ZONE: ("城市或时区", "the city or time zone"),
    Role.PLACE: ("地点", "the place"),
    Role.TEXT: ("要处理的文字", "the text"),
    Role.LANGUAGE: ("语言", "the language"),
    Role.DAYS: ("天数", "the number of days"),
    Role.NUMBER: ("数值", "a number"),
    Role.IDENTIFIER: ("编号", "the id"),
    Role.DATE: ("日期", "the date"),
    Role.TIME_OF_DAY: ("时间", "the time"),
    Role.DATE_TIME: ("日期和时间", "the date and time"),
    Role.DURATION: ("时长", "how long"),
    Role.EMAIL: ("邮箱地址", "the e-mail address"),
    Role.URL: ("链接", "the link"),
    Role.NAME: ("名称", "the name"),
}


def without_tools(question: Question) -> str:
    """Say what this model is, that it cannot know, and how to get a real answer."""
    about = next((_CANNOT[concept] for concept, _ in concepts_in(question.command) if concept in _CANNOT), None)
    if about is None:
        return _without_a_tool_for_it(question.chinese)
    if question.chinese:
        return (
            f"我是离线替身模型：没有联网，这次也没有可用的工具，所以{about[0]}。\n"
            "想得到真实的答案，可以把地址末尾的 /chat 换成 /chat-tool-function 或 /chat-tool-method，让工具去查；"
            "也可以设置 DASHSCOPE_API_KEY 或 OPENAI_API_KEY，重新启动后由真正的大模型回答。"
        )
    return (
        f"I am the offline stand-in model: I have no network and was given no tools, so I {about[1]}.\n"
        "For a real answer, replace /chat at the end of the address by /chat-tool-function or /chat-tool-method, so "
        "that a tool looks it up; or set DASHSCOPE_API_KEY or OPENAI_API_KEY and restart, and a real model answers."
    )


def _without_a_tool_for_it(chinese: bool) -> str:
    if chinese:
        return (
            "我是离线替身模型：没有联网，这次也没有可用的工具，所以没有办法回答这个问题。\n"
            "要自由对话，请设置 DASHSCOPE_API_KEY 或 OPENAI_API_KEY，重新启动后由真正的大模型回答。"
        )
    return (
        "I am the offline stand-in model: I have no network and was given no tools, so I cannot answer this question.\n"
        "For free conversation, set DASHSCOPE_API_KEY or OPENAI_API_KEY and restart, and a real model answers."
    )


def without_a_fitting_tool(question: Question, tools: tuple[ToolDefinition, ...]) -> str:
    """Say that none of the tools fits, and what they are for."""
    offered = "\n".join(_listed(tool, question.chinese) for tool in tools[:_MOST_TOOLS])
    if question.chinese:
        return (
            f"我是离线替身模型，只能借助工具回答，而这次的工具都不适合这个问题。我可以用：\n{offered}\n"
            "要自由对话，请设置 DASHSCOPE_API_KEY 或 OPENAI_API_KEY，接入真正的大模型。"
        )
    return (
        "I am the offline stand-in model: I can only answer by tools, and none of them fits this. "
        f"I can use:\n{offered}\n"
        "For free conversation, set DASHSCOPE_API_KEY or OPENAI_API_KEY, so that a real model answers."
    )


def from_results(
    responses: Sequence[ToolResponse], calls: Sequence[ToolCall], question: Question, planned: Plan
) -> str:
    """Tell what the tools answered, what is still missing, and what the plan left out."""
    question = question.with_payloads_meant()
    by_id = {call.id: call for call in calls}
    wanted = horizon(question.command)
    day = wanted.offset if wanted else None
    parts = [told(each, Reader(question.chinese, _place(by_id.get(each.id), question), day)) for each in responses]
    told_of = {each.name for each in responses}
    parts += details(tuple(each for each in planned.incomplete if each.tool.name not in told_of), question)
    parts += planned.remarks
    return "\n".join(parts) or without_tools(question)


def details(incomplete: Iterable[Incomplete], question: Question) -> list[str]:
    """Name the details that fitting tools still need, each once."""
    return list(dict.fromkeys(_asking_for(each, question) for each in incomplete))


def _asking_for(incomplete: Incomplete, question: Question) -> str:
    tool, chinese = incomplete.tool.name, question.chinese
    details = ("、" if chinese else ", ").join(_detail(each, chinese) for each in incomplete.missing[:_MOST_TOOLS])
    unknown = next((each.name for each in incomplete.places if each.zone is None), None)
    if unknown and any(role_of(each) is Role.TIME_ZONE for each in incomplete.missing):
        note = f"我不知道“{unknown}”在哪个时区。" if chinese else f'I do not know the time zone of "{unknown}". '
    else:
        note = ""
    if chinese:
        return f"{note}要用 {tool} 回答，还缺少：{details}。请补充后再问一次。"
    return f"{note}To answer with {tool} I still need {details}. Please ask again with it."


def _listed(tool: ToolDefinition, chinese: bool) -> str:
    description = " ".join(tool.description.split())[:120]
    return f"- {tool.name}{'：' if chinese else ': '}{description}"


def _detail(parameter: Parameter, chinese: bool) -> str:
    given = " ".join(parameter.description.split())[:80]
    name = f"{parameter.name}: {given}" if given else parameter.name
    known = _DETAILS.get(role_of(parameter))
    if known is None:
        return name
    return f"{known[0]}（{name}）" if chinese else f"{known[1]} ({name})"


def _place(call: ToolCall | None, question: Question) -> str | None:
    """The place of a call in the question's own words."""
    arguments = parsed_arguments(call) if call else {}
    values = [each for each in arguments.values() if isinstance(each, str)] if isinstance(arguments, dict) else []
    named = (each for each in places(question) if each.english is not None)
    return next((each.name for each in named if each.zone in values or each.name in values), None)
