/** The page's words in two languages. */

/** @type {Record<string, Record<string, string>>} */
export const TEXTS = {
  en: {
    tabs: "Views", compare: "Compare", conversation: "Conversation", docs: "API docs",
    compareTitle: "One question, asked three ways",
    compareLead: "Without a tool, with a function tool, with a method tool: see what the model called, what came back, and how long it took.",
    folder: "Tool", question: "Question", examples: "Example questions", ask: "Ask", stop: "Stop",
    time: "Time", weather: "Weather", baidu_translate: "Translate",
    none: "No tool", function: "Function tool", method: "Method tool",
    noneLead: "The model alone.", functionLead: "Found by its name in the container.", methodLead: "A marked method of an object.",
    noVariant: "This folder has no such tool.", idle: "The answer appears here.", waiting: "Asking…", calling: "Calling the tool…",
    modelName: "Model: {name}", notAnswered: "Not answered.", askAgain: "Ask again", stopped: "Stopped.", sandbox: "Sandbox data", cutOff: "The model was cut off by its length limit.",
    arguments: "Arguments", result: "Result", cached: "cached",
    "call.running": "running", "call.ok": "ok", "call.error": "error", "call.stopped": "stopped", "call.rejected": "rejected",
    total: "Total", tokens: "Tokens", rounds: "Rounds", model: "Model", tokensInOut: "{input} in, {output} out",
    conversationTitle: "Conversation", newConversation: "New conversation", message: "Message",
    messagePlaceholder: "Ask something", send: "Send", plan: "Plan with a todo list",
    talkEmpty: "Every tool of the service is offered, and earlier questions are remembered.",
    todo: "Todo list", todoEmpty: "Nothing planned yet.", todoCount: "{completed} of {total} done",
    pending: "to do", in_progress: "in progress", completed: "done",
    approvalTitle: "The model asks for your consent", approve: "Approve", reject: "Reject", approved: "Approved", rejected: "Rejected",
    answered: "{name}: {answer}", failed: "{name} failed: {reason}", stoppedName: "{name}: stopped",
    assistant: "Assistant", user: "You", forgotten: "The conversation was forgotten.",
    problem: "The question was not answered", requestId: "Request {id}",
    "advice.connection-lost": "The connection to the service was lost. Check that it runs, then ask again.",
    "advice.unexpected-answer": "Something between this page and the service answered in its place.",
    "instead.session-busy": "Another question of this conversation is still being answered.",
    "advice.session-busy": "Wait for it, then ask again; or start a new conversation.",
    "advice.store-unavailable": "Nothing is lost. Try again in a few seconds.",
    "advice.not-configured": "Set the variable and restart the service.",
    "advice.retry": "Trying again may help.",
  },
  zh: {
    tabs: "视图", compare: "对比", conversation: "对话", docs: "API 文档",
    compareTitle: "同一个问题，三种问法",
    compareLead: "不给工具、给函数工具、给方法工具：看大模型调用了什么、得到了什么、用了多久。",
    folder: "工具", question: "问题", examples: "示例问题", ask: "提问", stop: "停止",
    time: "时间", weather: "天气", baidu_translate: "翻译",
    none: "无工具", function: "函数工具", method: "方法工具",
    noneLead: "只有大模型。", functionLead: "在容器里按名称查找。", methodLead: "对象上被标记的方法。",
    noVariant: "这个工具没有这种形式。", idle: "回答会出现在这里。", waiting: "正在提问…", calling: "正在调用工具…",
    modelName: "模型：{name}", notAnswered: "还没有得到回答。", askAgain: "重新提问", stopped: "已停止。", sandbox: "沙箱数据", cutOff: "回答超出长度上限，被截断。",
    arguments: "参数", result: "结果", cached: "缓存",
    "call.running": "运行中", "call.ok": "成功", "call.error": "出错", "call.stopped": "已停止", "call.rejected": "已拒绝",
    total: "总用时", tokens: "Token", rounds: "轮次", model: "模型", tokensInOut: "输入 {input}，输出 {output}",
    conversationTitle: "对话", newConversation: "新对话", message: "消息",
    messagePlaceholder: "问点什么", send: "发送", plan: "用待办清单规划",
    talkEmpty: "服务的所有工具都可用，前面的问题也会被记住。",
    todo: "待办清单", todoEmpty: "还没有计划。", todoCount: "已完成 {completed}/{total}",
    pending: "待办", in_progress: "进行中", completed: "已完成",
    approvalTitle: "大模型请求你的同意", approve: "同意", reject: "拒绝", approved: "已同意", rejected: "已拒绝",
    answered: "{name}：{answer}", failed: "{name}失败：{reason}", stoppedName: "{name}：已停止",
    assistant: "助手", user: "你", forgotten: "对话已清除。",
    problem: "问题没有得到回答", requestId: "请求 {id}",
    "advice.connection-lost": "与服务的连接断开了。请确认服务在运行，然后重新提问。",
    "advice.unexpected-answer": "在本页面和服务之间，有别的程序代替服务作了回答。",
    "instead.session-busy": "这个对话里还有一个问题正在回答。",
    "advice.session-busy": "请等它结束后重新提问，或者开始新对话。",
    "advice.store-unavailable": "内容没有丢失。请几秒后再试。",
    "advice.not-configured": "请设置这个变量，然后重启服务。",
    "advice.retry": "重试可能会成功。",
  },
};

const KEY = "toolchat.language";
let chosen = localStorage.getItem(KEY) ?? (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");

/** @returns {"en" | "zh"} */
export function language() {
  return chosen === "zh" ? "zh" : "en";
}

/** @param {string} key @param {string} [otherwise] the text when there is none of this key */
export function text(key, otherwise = key, values = {}) {
  const found = TEXTS[language()][key] ?? otherwise;
  return found.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

/** Writes a text into an element, and again when the language changes.
 * @template {HTMLElement} T @param {T} element @param {string} key @param {Record<string, unknown>} [values] @returns {T} */
export function say(element, key, values) {
  element.dataset.text = key;
  if (values) element.dataset.values = JSON.stringify(values);
  else delete element.dataset.values;
  element.textContent = text(key, key, values);
  return element;
}

/** Writes every text of the page anew; without a language, in the chosen one. @param {string} [name] */
export function translate(name) {
  if (name) localStorage.setItem(KEY, (chosen = name));
  document.documentElement.lang = language() === "zh" ? "zh-CN" : "en";
  for (const each of document.querySelectorAll("[data-text]")) {
    each.textContent = text(each.dataset.text, each.textContent, JSON.parse(each.dataset.values ?? "{}"));
  }
  for (const each of document.querySelectorAll("[data-placeholder]")) each.placeholder = text(each.dataset.placeholder);
  for (const each of document.querySelectorAll("[data-label]")) each.ariaLabel = text(each.dataset.label);
  document.dispatchEvent(new Event("languagechange"));
}
