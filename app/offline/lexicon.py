"""The patterns by which the offline model reads questions, Chinese and English; tables of words stand beside.

All of them are matched against folded text: lower case, plain width, no accents. What figures look like stands in
``numbers.py``, with what reads them.
"""

import re

# Politeness, which may stand before anything.
POLITE = r"请问|请|麻烦你?|帮我|帮忙|给我|为我|你能|能不能|可以|我想|please|can you|could you|also|also,"
# What stands around the name of a place or a text in Chinese: politeness, moments, small words.
FILLER = (
    rf"{POLITE}|告诉我?|知道|查询?(?:一下)?|查查|看一下|看看|一下|说说|讲讲|比较|对比|大?后天|[今明昨]天|现在|現在"
    rf"|当前|目前|未来|接下来"
    r"|最近|[这本下]?周末?|早上|晚上|下午|在|的|[那这]里|那边|当地|去|到|会不会|会|是不是|有没有|是否|什么|怎么样"
    r"|如何|分别|各自|各是"
    r"|都|你|我|外面|哪[里儿个]|出差|旅游|[0-9一二两三四五六七八九十]{1,3}[天日周](?:[以之]?后)?|[以之]?后"
)
# What is asked about a place in Chinese: the name stands before it.
TOPIC = (
    r"天气|天氣|气温|氣溫|温度|预报|时间|時間|时区|几点|幾點|下雨|下雪|冷不冷|热不热|空气|日出|日落|有雨|会下|几度"
    r"|冷吗|热吗|多少度"
)
# No Chinese name of a place holds one of these.
NO_CHINESE_NAME = re.compile(
    r"[我你您他她它这那哪谁吗呢吧啊更没有]|[以之]后|还有|另外|同时|比较|翻译|[语文度率速区]$|是否|可以|多少|什么|怎么"
    r"|如何|几点|天气|时间"
)
# Phrases in which the word of a concept means something else.
NO_TOPIC = re.compile(
    r"时间(?:复杂度|过得|管理)|[没有花费省](?:有|点|什么)?时间|第一时间|\btime complexity\b|\btimes? (?:series"
    r"|machine|management|out)\b"
    r"|\b(?:no|any|free|more|enough|much|little|first|last|real|full|part|spend|waste|save|have|long|every|this|each"
    r"|next"
    r"|of|good|hard|run) ?times?\b(?! (?:is|in|difference|zone))|\btime to\b|\bunder the weather\b|\bhot ?dogs?\b"
    r"|\bcold (?:war|call|case)s?\b"
)

# Asks for a translation, or how something is said.
TRANSLATE = re.compile(
    r"翻译|翻譯|翻成|译成|译为|譯成|[中英日韩法德俄汉]译[中英日韩法德俄汉]|什么意思|[用拿][㐀-鿿]{1,5}[语語文]说"
    r"|[语語文](?:怎么|咋|如何)[说讲写]|\b(?:translat(?:e|ion|ing)|how (?:(?:do|would|can) (?:you|i|we)|to) say)\b"
    r"|\bwhat does\b(?=.{1,200}\bmean\b)|\bsay\b(?=.{1,200}\bin [a-z]+\W*$)"
    r"|\bwhat(?:'s| is)\b(?=.{1,200} in (?:english|chinese|mandarin|japanese|korean|french|german|spanish|italian"
    r"|russian)\W*$)"
)
# Asks for the date in words that may mean other things alone.
WHAT_DAY = re.compile(r"\b(?:what|which) day (?:is|of)\b")
# The answer before, said to be one; then all that points at it and gives no text: "translate that", 把结果翻译成英文.
RESULT = re.compile(r"\b(?:result|answer|reply|response|output)s?\b|结果|回答|答案|答复|回复|输出")
REFERENCE = (
    r"(?:(?:the |your |its |his )?(?:last |previous |above )?(?:result|answer|reply|response|output)s?"
    r"|that|this|it|them|those|(?:上面|刚才|之前|以上|最后|把|将|的|你){0,4}(?:结果|回答|答案|答复|回复|输出|[这那]个"
    r"|它们?|[这那]句话?"
    r"|这段话?|上一?[句条]|上面))(?: above)?[\s,.!?。的]*"
)
# The same, before a request to translate ends: "translate that into French", 把结果翻译成英文.
REFERRED = re.compile(rf"(?:^|(?<=\W)|(?<=[把将])){REFERENCE}(?=翻|译|\s*(?:in)?to\b|$)")
# Stands where a text should be and is none: "the following", 以下内容.
NO_TEXT = re.compile(
    rf"(?:{REFERENCE}|(?:以下|下面|下列|这|這|那|一|请)?的?(?:内容|文字|文本|句子|句话|段话|段文字|一句|一段|个|一下"
    rf"|东西|单词)"
    r"|(?:(?:the|my|a|an|some|this|that|these|following|for) )*(?:following|text|sentence|content|words?|phrase"
    r"|something"
    r"|stuff|me|us|please|translator|translation|here|now|thing)(?: (?:text|sentence|content|please|for me"
    r"|here))*)[\s,.:。?!]*"
)

# Begins a question that says what not to do; one that takes something back, which only tools that do so may answer.
FORBIDDEN = re.compile(r"\s*(?:please\s+)?(?:do\s*n['o’]?t|never)\b|\s*请?(?:不要|不用|别|勿)")
UNDONE = re.compile(r"\s*(?:please\s+)?(?:delete|cancel|remove)\b|\s*请?(?:帮我)?(?:取消|删除|删掉)")
UNDOES = re.compile(r"delete|cancel|remove|取消|删")
# Wants a judgement that no figure gives: which is hotter, whether to take a coat.
JUDGED = re.compile(
    r"[更最][热冷暖凉高低好适]|哪[个里儿][热冷]|[热冷暖凉]吗|[冷热]不[冷热]|暖和吗|凉快吗|要不要|[要用该][带穿]"
    r"|穿什么|适合|合适吗"
    r"|差多少|相差|\b(?:hotter|colder|warmer|cooler|hottest|coldest|warmest|better|nicer|should i|do i (?:need|have)"
    r"|(?:is it|will it be) (?:\w+ ){0,3}(?:cold|hot|warm|nice)|good (?:day|time)|what (?:should|to) (?:i )?wear)\b"
)
# Asks a clock about another moment than now.
OTHER_MOMENT = re.compile(
    r"\b(?:hours?|minutes?|hrs?|mins?) (?:from now|later|ago|ahead)\b|\bin (?:[0-9.]+|an?|[a-z]+) (?:hours?|minutes?)\b"
    r"|\b(?:when|if) it(?:'s| is| will be)\b(?=.*[0-9])|\b(?:[0-9]{1,2} ?(?:am|pm)|noon|midnight)\b"
    r"|\bat [0-9]{1,2}:[0-9]{2}"
    r"|(?:小时|小時|钟头|分钟|分鐘)\s*(?:[以之]?[后後前])|[0-9一二三四五六七八九十]\s*[点點时時半](?!区|區|差)|时差"
    r"|时间差|差几个?小时"
    r"|差多少|相差|\btime difference\b|\bnext (?:year|[a-z]+day)\b"
)
# Wants degrees Fahrenheit; how a tool's parameter says that it takes a unit.
FAHRENHEIT = re.compile(r"华氏|華氏|\bfahrenheit\b|[°˚º]\s?f\b|℉")
TAKES_A_UNIT = re.compile(r"\bunits?\b|fahrenheit|华氏|单位")

# Where something comes from, and where it goes to: before a name in a question; in what a parameter is called.
FROM = re.compile(r"(?:从|由|自|把|将|\bfrom|[0-9.] ?) ?$")
TO = re.compile(r"(?:到|去|飞|往|至|抵达|成|为|换|兑|\bto|\binto|\bin) ?$")
SOURCE = re.compile(r"\b(?:from|source|src|origin|start|departure|base)\b|源|原|出发|起点")
TARGET = re.compile(r"\b(?:to|target|dest|destination|end|arrival|into)\b|目标|目的|终点")

# Begins what somebody is called by; addresses of mail and of pages.
NAMED = re.compile(
    r"(?:名叫|名为|叫做|叫|姓名[是为:]|名字[是为:]|\bnamed|\bcalled|\bname is) ?([㐀-鿿·]{1,8}|[a-z][\w.-]*)"
)
EMAIL = re.compile(r"([a-z0-9._%+-]{1,64}@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,5})")
URL = re.compile(r"(https?://[^\s，。、]{1,500})")
# An id: a word with a digit in it; what is called one; words in capitals such as TSLA where no word has a digit.
ID = re.compile(r"(?<![a-z0-9])#?([a-z]{0,10}[-_]?[0-9][a-z0-9_-]{0,40})(?![a-z0-9_-])")
LABELLED = re.compile(
    r"(?:代码|编号|单号|号码|\b(?:id|code|number|symbol|ticker)) ?(?:是|为|is|=|:|#) ?([a-z][a-z0-9._-]{0,39})"
)
CAPITALS = re.compile(r"(?<![A-Za-z0-9])([A-Z][A-Z0-9.]{1,9})(?![A-Za-z0-9])")

# Any word, for a parameter with a pattern.
TOKEN = re.compile(r"([^\s\0,;，；。、?？!！\"“”()（）㐀-鿿]{1,60})")
HAN, KANA = re.compile(r"[㐀-鿿]"), re.compile(r"[぀-ヿ]")

# How a description asks for days ahead, languages by name, names of places in English, durations; a switch.
WANTS_DAYS_AHEAD = re.compile(r"\b(?:ahead|later|offset|from now|after)\b|[之以][后後]|后第")
WANTS_LANGUAGE_NAMES = re.compile(
    r"\b(?:such as|eg|e g|like) (?:english|chinese|japanese|french)|language names?\b|语言名称"
)
WANTS_ENGLISH = re.compile(r"\bin english\b|english name|英文名|拼音")
WANTS_DURATIONS = re.compile(r"\bduration\b|时长")
IS_A_SWITCH = re.compile(r"\b(?:on|enabled?|state|power)\b|开关")
# Numbers that are hardly meant as one: 一 in 一下, 零 alone.
NO_QUANTITY = re.compile(r"[一两]$|^[零〇万千百]+$")
# Something is not wanted, or is to be on, or off.
NEGATION = re.compile(r"不要|不用|不|别|没|无需|无|关|\b(?:no|not|without|don't|dont|off|disable|exclude)\b")
ON = re.compile(r"打开|开启|启用|包括|包含|需要|开|\b(?:on|enable|with|include|including)\b")
OFF = re.compile(r"关闭|关掉|关上|停用|关|\b(?:off|disable)\b")

# Asks somebody to do something; with "open" for questions that no tool's concept has to fit.
WISH = re.compile(
    rf"\s*(?:(?:{POLITE})\s*)*(?:\b(?:tell|sing|write|give|show|play|draw|make|recite|find|book|buy|order|send)\b"
    r"|[讲说唱写画放播来发订买]|推荐|(?P<open>\b(?:who|why)\b|谁|为什么))"
)
# Comes along with any answer, so that a wish for it is not called unanswered.
COMES_ALONG = frozenset(("time", "date", "calendar", "search", "translate"))
# Ends a clause only because another follows.
GOES_ON = re.compile(r"(?:\b(?:and|also|then|plus)|还有|并且?|然后|另外|同时|[再和])$")

# A greeting, thanks or a farewell and nothing else; thanks alone; a question what the model can do or is.
SMALL_TALK = re.compile(
    r"(?:\s|[,.!?。~、]|你好|您好|[你大]们?家?好|嗨|哈喽|在吗|早上好|早安|晚上好|晚安|下午好|谢谢你?|多谢|感谢|再见"
    r"|拜拜|好的|[好吗呀啊了]"
    r"|okay|ok|hello|hi|hey|there|good (?:morning|evening|afternoon|night)|how are you|today|what's up|how's it going"
    r"|thanks?(?: you)?|very much|a lot|so much|bye|goodbye|see you)++"
)
THANKS = re.compile(r"谢谢|多谢|感谢|\bthank")
WHAT_IT_CAN = re.compile(
    r"你[都还]?(?:能|会|可以)[做干帮回些]|你有(?:什么|哪些)[功本用]|你(?:是[谁什]|叫什么|是\w{1,12}吗)|怎么用"
    r"|如何使用|有(?:什么|哪些)(?:功能|工具)"
    r"|帮助$|\bwhat (?:can|do) (?:you|u) (?:do|help|answer|know)\b|\bwho are you\b|\bhelp(?: me)?\s*[.!?]*$"
    r"|\bwhat (?:\w+ )?are you\b|\bare you (?:an? )?(?:chatgpt|ai|bot|robot|human|real)\b"
    r"|\bhow do (?:i|you) (?:use|work)\b|\bwhat (?:questions )?can i ask\b"
)
# Questions about the conversation: what was asked before, whether all of it is meant, and who asks.
WHAT_WAS_ASKED = re.compile(
    r"我(?:刚才|刚刚?|之前|前面|上一?次|先前)[都还]?[问说][了过你的些哪是]*[什啥哪]|我(?:都|一共"
    r"|总共)?问[了过你些哪]+(?:什么|啥|问题)"
    r"|(?:(?:刚才|刚刚?|之前|前面|上一?次|先前)的?|[上前]一?个)问题是"
    r"|\bwhat (?:did|have) i (?:just |already )?(?:ask(?:ed)?|sa(?:y|id))\b(?! about)"
    r"|\b(?:what (?:was|were)|repeat) my (?:(?:last|previous|earlier) )?questions?\b"
)
ALL_THAT_WAS_ASKED = re.compile(r"[都些]|一共|总共|\bhave i\b|\bquestions\b|\bso far\b")
WHO_AM_I = re.compile(r"我的?(?:名字|姓名)?[叫是](?:什么|啥|谁)|\bwho am i\b|\bwhat(?:'s| is) my name\b")
MY_NAME = re.compile(
    r"(?:我的?(?:名字|姓名)?叫做?|我的?(?:名字|姓名)是|\bmy name(?:'s| is)|\bcall me)"
    r"(?! ?(?:什么|啥|谁|你|他|她|不|(?:what|who|not|a|when|back|if|at|on|later|in)\b)) ?"
    r"(?P<name>[^?\n,;!。]{1,60}?)\s*(?=[,;!。\n]|\.(?:\s|$)|\band\b|请|今年|来自|$)"
)

# A todo list; a plan that is asked for; a list that is there already, or what is left of it; a change of its items.
LIST = r"待办|任务(?:清单|列表)|\bto-?dos?\b|\b(?:todo|task)s? list\b"
PLAN = re.compile(rf"{LIST}|计划|规划|步骤|\bplan\b|\bsteps\b")
LIST_ASKED_FOR = re.compile(
    rf"{LIST}|(?:我的|当前|目前的?)计划|计划(?:进[行展]|完成|怎么样|是什么|还剩)|还剩什么|还[有剩](?:哪些|几[项个步]"
    rf"|什么(?:没做|要做|没完成|事))"
    r"|(?:完成|做完|搞定)了[吗没]|进度|进展|第[一二三四五六七八九十0-9]+[步项]|\bstep [0-9]|\bmy list\b|\bthe plan\b"
    r"|\b(?:my|open|remaining) (?:plan|tasks)\b|\b(?:are|is) (?:we|you|it|everything|all) (?:all )?done\b"
    r"|\bwhat(?:'s| is| are)? (?:still )?(?:left|remaining|open|next|done|missing)\b|\bwhat remains\b|\bhow far\b"
    r"|\bprogress\b|^\s*(?:add|添加|加上|加一[条项个]|新增)\s*:"
)
LIST_CHANGED = re.compile(
    r"加到|加入|[添追]加|加上|新增|加一[条项个]|标记|清空|划掉|删|\b(?:add|append|mark|clear|delete|remove|tick)\b"
)
# Begins a question whose steps follow at once; stands before a step.
PLAN_AT_ONCE = re.compile(rf"[\s,]*(?:(?:{POLITE}|你)\s*)*(?:plan to\b|[计规]划(?:一下)?)")
STEP_OPENING = re.compile(r"(?:[\s,、*•-]|首先|最后|先|再|然后|接着|(?:and|then|first|next|finally|lastly)\b)+")

# What steps are cut at: their numbers, else semicolons and lines, else commas.
STEP_MARKS = (
    re.compile(r"(?<![0-9A-Za-z./-])\(?(?:[0-9]{1,2}|[一二三四五六七八九十]{1,2})[.、):](?![0-9])"),
    re.compile(r"[;\n]"),
    re.compile(r"[,。]|\.\s|\band then\b|\bthen\b|然后|接着"),
)

# A follow-up: a small word, then what is new, then another small word.
FOLLOW_UP = re.compile(
    r"\s*(?P<lead>(?:(?:那么|那|还有|换成|改成|再看|(?:and|but|or|ok|okay|then|so|now|(?:what|how) about)\b)[\s,]*)*)"
    r"(?:(?:in|at|for|of|to|into)\s(?!\S+ (?:days?|weeks?)\b)|在|用)?"
    r"(?P<rest>.+?)(?P<tail>(?:[\s,]*(?:呢|怎么样|如何|怎么说|(?:then|too|as well|please)\b))*)[\s?!.。]*",
    re.DOTALL,
)
# What may stand between the things that a follow-up or a list names.
BETWEEN = re.compile(r"(?:[\s\0,、&?!.。]|\b(?:and|or|in)\b|和|与|與|跟|以及|及|还有)*")
# What may stand between the times or the orders of a list; a range ("7:00 to 8:00") is none.
IN_A_ROW = re.compile(
    r"(?:[\s\0,、&#]|\b(?:and|or|at|for|in|on|another|one|also|then|orders?|alarms?|id)\b|和|与|跟|以及|及|还有|再|又"
    r"|设|[各一]?个|的|闹钟|订单|[号点早晚]"
    r"|早上|上午|下午|晚上)*"
)
# Asks or tells something, and is no text to be translated.
NO_NEW_TEXT = re.compile(
    r"\b(?:who|whom|what|when|where|why|which|how|is|are|do|does|did|can|could|tell|give|show|sing|write)\b|[谁哪讲]"
    r"|[什怎]么|告诉"
)
# What is cut off a question to get what a search is for.
SEARCH_OPENING = re.compile(
    rf"(?:{POLITE}|麻烦|我要|去|search for|search|look up|find|lookup|query|搜索|[查检]询|查找|检索|[搜查]一下|[查找]"
    rf"|about|for|关于"
    r"|一下|the|\s)+"
)

# What stands before a text that is only quoted: a colon that is not part of a time or an address, or a line break.
SEPARATOR = re.compile(r"(?<![0-9]):(?!//)|:(?![0-9/])|\n")
# No quotation holds its own opening mark, so that a row of these is not read again and again.
QUOTED = re.compile(
    r"「[^「」]+」|『[^『』]+』|“[^“”]+”|‘[^‘’]+’|《[^《》]+》|\"[^\"]+\"|«[^«»]+»|(?<![a-z0-9])'[^']+'(?![a-z0-9])"
)
# Where a question goes on to something else.
BREAK = re.compile(
    r"[,;。!?、\n]+|\.(?=\s|$)|\b(?:and|also|then|plus|as well as)\b|以及|还有|並且|并且|并|然后|另外|同时"
    r"|[和与跟及再]|最后"
)
