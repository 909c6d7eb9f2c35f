"""The words and patterns by which the offline model reads questions and tools, Chinese and English.

All of it is matched against folded text: lower case, plain width, no accents, simplified as far as names need it. What
numbers, dates and days look like stands in ``numbers.py`` and ``days.py``, with what reads them.
"""

import re

# Stands for every character of a name that is known, so that patterns find what stands beside one.
MARK = "\N{OBJECT REPLACEMENT CHARACTER}"
# Stands before the name of a concept among the terms of a text.
CONCEPT = "concept:"
# Politeness, which may stand before anything.
POLITE = r"请问|请|麻烦你?|帮我|帮忙|给我|为我|你能|能不能|可以|我想|please|can you|could you|also,?"
# What stands around the name of a place in Chinese: politeness, moments, small words.
FILLER = (
    rf"{POLITE}|告诉我?|知道|查询?(?:一下)?|查查|看一下|看看|一下|说说|讲讲|比较|对比|大?[后後]天|[今明昨]天|现在"
    r"|当前|目前|未来|接下来|最近|[这本下]?周末?|早上|晚上|下午|在|的|[那这]里|那边|当地|去|到|会不会|会|是不是"
    r"|有没有|是否|什么|怎么样|如何|分别|各自|各是|都|你|我|外面|哪[里儿个]|出差|旅游"
    r"|[0-9一二两三四五六七八九十]{1,3}[天日周](?:[以之]?[后後])?|[以之]?[后後]"
)
# What is asked about a place in Chinese: the name stands before it.
TOPIC = (
    r"天气|气温|温度|预报|时[间間]|时区|[几幾]点|下雨|下雪|冷不冷|热不热|空气|日出|日落|有雨|会下|几度|冷吗|热吗"
    r"|多少度"
)
# No Chinese name of a place holds one of these.
NO_CHINESE_NAME = re.compile(
    r"[我你您他她它这那哪谁吗呢吧啊更没有]|[以之]后|还有|另外|同时|比较|翻译|[语文度率速区]$|是否|可以|多少|什么|怎么"
    r"|如何|几点|天气|时间"
)
# Phrases in which the word of a concept means something else.
NO_TOPIC = re.compile(
    r"时间(?:复杂度|过得|管理)|[没有花费省](?:有|点|什么)?时间|第一时间|\btimes? (?:complexity|series|machine"
    r"|management|out)\b|\b(?:no|any|free|more|enough|much|little|first|last|real|full|part|spend|waste|save|have"
    r"|long|every|this|each|next|of|good|hard|run) ?times?\b(?! (?:is|in|difference|zone))|\btime to\b"
    r"|\bwhat time (?:do|does|did|should|can)\b|(?:火车|高铁|航班|飞机|地铁|银行|商店|超市)[㐀-鿿]{0,4}几点"
    r"|几点(?:出发|到|开|关|结束|下班|上班|起飞|发车|的)|\bunder the weather\b|\bhot ?dogs?\b"
)
# Asks for a translation, or how something is said.
TRANSLATE = re.compile(
    r"翻[译譯]|翻成|[译譯][成为]|[中英日韩法德俄]译[中英日韩法德俄]|什么意思|[用拿][㐀-鿿]{1,5}[语文]说"
    r"|[语文](?:(?:怎么|咋|如何)[说讲写]|是(?:什么|啥))|\btranslat(?:e|ion|ing)\b|\bhow (?:(?:do|would|can) (?:you|i"
    r"|we)|to) say\b|\b[a-z]+ words? for\b|\bwhat does\b(?=.{1,200}\bmean\b)|\bsay\b(?=.{1,200}\bin [a-z]+\W*$)"
    r"|\bwhat(?:'s| is)\b(?=.{1,200} in (?:english|chinese|mandarin|japanese|korean|french|german|spanish|italian"
    r"|russian)\W*$)"
)
# Ask for the date and for the time in words that may mean other things alone.
WHAT_DAY = re.compile(r"\b(?:what|which) day (?:is|of)\b")
DAY_OR_NIGHT = re.compile(r"\b(?:day|night)(?:time)? or (?:day|night)|\bhow late is it\b")
# The answer before, said to be one; then all that points at it and gives no text: "translate that", 把结果翻译成英文.
RESULT = re.compile(r"\b(?:result|answer|reply|response|output)s?\b|结果|回答|答案|答复|回复|输出")
REFERENCE = (
    r"(?:(?:the |your |its |his )?(?:last |previous |above )?(?:result|answer|reply|response|output)s?|that|this|it"
    r"|them|those|(?:上面|刚才|之前|以上|最后|把|将|的|你){0,4}(?:结果|回答|答案|答复|回复|输出|[这那]个|它们?"
    r"|[这那]句话?|这段话?|上一?[句条]|上面|一[遍次]))(?: above)?[\s,.!?。的]*"
)
# The same, before a request to translate ends, or such a request alone: "translate that into French", 翻译成英文.
REFERRED = re.compile(
    rf"(?:^|(?<=\W)|(?<=[把将说])){REFERENCE}(?=翻|译|\s*(?:(?:in)?to|in [a-z]+\W*$)\b|$)|^[请再\s]*翻译?[成为]"
    r"|^\W*translate (?:in)?to\b"
)
# Stands where a text should be and is none: "the following", 以下内容.
NO_TEXT = re.compile(
    rf"(?:{REFERENCE}|(?:以下|下面|下列|[这那一请])?的?(?:内容|文字|文本|句子|句话|段话|段文字|一句|一段|个|一下|东西"
    rf"|单词|[吗吧呢])"
    r"|(?:(?:the|my|a|an|some|this|that|these|following|for) )*(?:following|text|sentence|content|words?|phrase"
    r"|something|stuff|me|us|please|translator|translation|here|now|thing)(?: (?:text|sentence|content|please|for me"
    r"|here))*)[\s,.:。?!]*"
)
# Asks what something means: in the language of the question, where it names none.
MEANING = re.compile(r"什么意思|\bmeans?\b")
# Begins a question that says what not to do; one that takes something back, which only tools that do so may answer.
FORBIDDEN = re.compile(r"\s*(?:please\s+)?(?:do\s*n['o’]?t|never)\b|\s*请?(?:不要|不用|别|勿)")
UNDONE = re.compile(r"\s*(?:please\s+)?(?:delete|cancel|remove)\b|\s*请?(?:帮我)?(?:取消|删除|删掉)")
# Wants a judgement that no figure gives: which is hotter, whether to take a coat.
JUDGED = re.compile(
    r"[更最][热冷暖凉高低好适]|哪[个里儿][热冷]|[热冷暖凉]吗|[冷热]不[冷热]|暖和吗|凉快吗|要不要|[要用该][带穿]"
    r"|穿什么|适合|合适吗|差多少|相差|\b(?:hotter|colder|warmer|cooler|hottest|coldest|warmest|better|nicer|should i"
    r"|do i (?:need|have)|(?:is it|will it be) (?:\w+ ){0,3}(?:cold|hot|warm|nice)|good (?:day|time)|what (?:should"
    r"|to) (?:i )?wear)\b"
)
# Asks a clock about another moment than now.
OTHER_MOMENT = re.compile(
    r"\b(?:hours?|minutes?|hrs?|mins?) (?:from now|later|ago|ahead)\b|\bin (?:[0-9.]+|an?|[a-z]+) (?:hours?"
    r"|minutes?)\b|\b(?:when|if) it(?:'s| is| will be)\b(?=.*[0-9])|\b(?:[0-9]{1,2} ?(?:am|pm)|noon|midnight)\b"
    r"|\bat [0-9]{1,2}:[0-9]{2}|(?:小时|钟头|分钟)\s*(?:[以之]?[后後前])|[0-9一二三四五六七八九十]\s*[点时半](?!区"
    r"|差)|时差|时间差|差几个?(?:小时|钟头)|差多少|相差|\btime difference\b|\bnext (?:year|[a-z]+day)\b"
)
# Wants degrees Fahrenheit; how a tool's parameter says that it takes a unit.
FAHRENHEIT = re.compile(r"华氏|\bfahrenheit\b|[°˚º]\s?f\b|℉")
TAKES_A_UNIT = re.compile(r"\bunits?\b|fahrenheit|华氏|单位")
# Where something comes from, and where it goes to: before a name in a question; in what a parameter is called.
FROM = re.compile(r"(?:从|由|自|把|将|\bfrom|[0-9.] ?) ?$")
TO = re.compile(r"(?:到|去|飞|往|至|抵达|成|为|换|兑|\bto|\binto|\bin) ?$")
SOURCE = re.compile(r"\b(?:from|source|src|origin|start|departure|base)\b|源|原|出发|起点")
TARGET = re.compile(r"\b(?:to|target|dest|destination|end|arrival|into)\b|目标|目的|终点")
# An id: a word with a digit in it; words in capitals such as TSLA where no word has a digit.
ID = re.compile(r"(?<![a-z0-9])#?([a-z]{0,10}[-_]?[0-9][a-z0-9_-]{0,40})(?![a-z0-9_-])")
CAPITALS = re.compile(r"(?<![A-Za-z0-9])([A-Z][A-Z0-9.]{1,9})(?![A-Za-z0-9])")
# Any word, for a parameter with a pattern; Chinese, or Japanese syllables.
TOKEN = re.compile(r"([^\s\0,;，；。、?？!！\"“”()（）㐀-鿿]{1,60})")
HAN, KANA = re.compile(r"[㐀-鿿]+"), re.compile(r"[぀-ヿ]")
# How a description asks for days ahead, languages by name, names of places in English, durations; a switch.
WANTS_DAYS_AHEAD = re.compile(r"\b(?:ahead|later|offset|from now|after)\b|[之以]后|后第")
WANTS_LANGUAGE_NAMES = re.compile(r"\b(?:such as|like) (?:english|chinese|japanese|french)|language names?\b|语言名称")
WANTS_ENGLISH = re.compile(r"\bin english\b|english name|英文名|拼音")
WANTS_DURATIONS = re.compile(r"\bduration\b|时长")
IS_A_SWITCH = re.compile(r"\b(?:on|enabled?|state|power)\b|开关")
# Numbers that are hardly meant as one: 一 in 一下, 零 alone.
NO_QUANTITY = re.compile(r"[一两]$|^[零〇万千百]+$")
# Something is not wanted, or is to be on, or off.
NEGATION = re.compile(r"不|别|没|无需|无|关|\b(?:no|not|without|don't|dont|off|disable|exclude)\b")
ON = re.compile(r"启用|包括|包含|需要|开|\b(?:on|enable|with|include|including)\b")
OFF = re.compile(r"停用|关|\b(?:off|disable)\b")
# A greeting, thanks or a farewell and nothing else; thanks alone; a question what the model can do or is.
SMALL_TALK = re.compile(
    r"(?:\s|[,.!?。~、]|你好|您好|[你大]们?家?好|嗨|哈喽|在吗|早上好|早安|晚上好|晚安|下午好|谢谢你?|多谢|感谢|再见"
    r"|拜拜|好的|[好吗呀啊了]|okay|ok|hello|hi|hey|there|good (?:morning|evening|afternoon|night)|how are you|today"
    r"|what's up|how's it going|thanks?(?: you)?|very much|a lot|so much|bye|goodbye|see you)++"
)
THANKS = re.compile(r"谢谢|多谢|感谢|\bthank")
WHAT_IT_CAN = re.compile(
    r"你[都还]?(?:能|会|可以)[做干帮回些说讲]|你有(?:什么|哪些)[功本用]|你(?:是[谁什哪]|叫什么|是\w{1,12}吗)|怎么用"
    r"|如何使用|有(?:什么|哪些)(?:功能|工具)|帮助$|\bwhat (?:can|do) (?:you|u) (?:do|help|answer|know)\b"
    r"|\bhelp(?: me)?\s*[.!?]*$|\bcan you speak\b|\bwho are you\b|\bwhat (?:\w+ )?are you\b"
    r"|\bare you (?:an? )?(?:chatgpt|ai|bot|robot|human|real)\b|\bhow do (?:i|you) (?:use|work)\b"
    r"|\bwhat (?:questions )?can i ask\b"
)
# Asks what was asked before.
WHAT_WAS_ASKED = re.compile(
    r"我(?:刚才|刚刚?|之前|前面|上一?次|都)[都还]?[问说][了过的些哪是]*[什啥哪]|[上前]一?个问题是|\bwhat (?:did"
    r"|have) i (?:just |already )?(?:ask(?:ed)?|sa(?:y|id))\b(?! about)|\bwhat was my (?:last |previous )?question\b"
)
# A todo list; a plan that is asked for; a list that is there already, or what is left of it; a change of its items.
LIST = r"待办|任务(?:清单|列表)|\bto-?dos?\b|\b(?:todo|task)s? list\b"
PLAN = re.compile(rf"{LIST}|计划|规划|步骤|\bplan\b|\bsteps\b")
LIST_ASKED_FOR = re.compile(
    rf"{LIST}|(?:我的|当前|目前的?)计划|计划(?:进[行展]|完成|怎么样|是什么|还剩)|还剩什么|还[有剩](?:哪些|几[项个步]"
    rf"|什么(?:没做|要做|没完成|事))"
    r"|(?:完成|做完|搞定)了(?:[吗没几]|多少)|进度|进展|第[一二三四五六七八九十0-9]+[步项]|\bstep [0-9]|\bmy list\b"
    r"|\bthe plan\b|\bprogress\b|\b(?:my|open|remaining) (?:plan|tasks)\b|\b(?:are|is) (?:we|you|it|everything"
    r"|all) (?:all )?done\b|\bwhat remains\b|\bwhat(?:'s| is| are)? (?:still )?(?:left|remaining|open|next|done"
    r"|missing)\b|\bhow far\b|^\s*(?:add|添加|加上|加一[条项个]|新增)\s*:"
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
    r"\s*(?P<lead>(?:(?:那么|那|还有|换成|改成|再看|好的?|谢谢|(?:and|but|or|ok|okay|thanks|great|then|so|now|(?:what"
    r"|how) about)\b)[\s,]*)*)(?:(?:in|at|for|of|to|into)\s(?!\S+ (?:days?|weeks?)\b)|在"
    r"|用)?(?P<rest>.+?)(?P<tail>(?:[\s,]*(?:呢|怎么样|如何|怎么说|(?:then|too|as well|please)\b))*)[\s?!.。]*",
    re.DOTALL,
)
# Points at a place that was named before.
THERE = re.compile(r"\bthere\b|[那当][里边儿地]|哪[个里儿]")
# What may stand between the things that a follow-up names; between those of a list. "7:00 to 8:00" is none.
BETWEEN = re.compile(r"(?:[\s\0,、&?!.。]|\b(?:and|or|in)\b|和|与|跟|以及|及|还有)*")
IN_A_ROW = re.compile(r"(?:[\s\0,、&#]|\b(?:and|or|at|for|in|orders?)\b|[和与跟及再又设各一个的号点早晚上]|闹钟|订单)*")
# Asks or tells something, and is no text to be translated.
NO_NEW_TEXT = re.compile(
    r"\b(?:who|whom|what|when|where|why|which|how|is|are|do|does|did|can|could|tell|give|show|sing|write)\b"
    r"|[谁哪讲什怎]|告诉"
)
# What stands before a text that is only quoted: a colon that is not part of a time or an address, or a line break.
SEPARATOR = re.compile(r"(?<![0-9]):(?!//)|:(?![0-9/])|\n")
# No quotation holds its own opening mark, so that a row of these is not read again and again.
QUOTED = re.compile(
    r"「[^「」]+」|『[^『』]+』|“[^“”]+”|‘[^‘’]+’|《[^《》]+》|\"[^\"]+\"|«[^«»]+»|(?<![a-z0-9])'[^']+'(?![a-z0-9])"
)
# Where a question goes on to something else.
BREAK = re.compile(
    r"[,;。!?、\n]+|\.(?=\s|$)|\b(?:and|also|then|plus|as well as)\b|以及|还有|并且?|然后|另外|同时|[和与跟及再]|最后"
)

# What a question or a tool can be about; the first word names the concept, the others mean it. A word of one concept
# only: a question is led to the tools whose name, description or parameters speak of the same concept.
CONCEPTS = """
weather: 天气 气温 气象 温度 预报 下雨 下雪 有雨 有雪 降雨 降水 刮风 晴天 多云 冷不冷 热不热 日出 日落 风大 风力 外套
雨伞 带伞 羽绒服 台风 暴雨 大风 短袖 穿啥 更热 更冷 更暖 最热 最冷 热吗 冷吗 暖和 凉快 穿什么 几度 多少度 哪个热 哪个冷
哪里热 哪里冷 湿度 下不下雨 weather forecast temperature sun sunrise sunset rain raining rainy snow snowing sunny cloudy
windy humidity umbrella sunglasses sunscreen coat raincoat jacket boots picnic storm storms typhoon fog foggy degrees
cold colder hot hotter warm warmer; time: 时间 时間 几点 幾点 时刻 钟点 时差 差几个小时 差几小时 差几个钟头 还是白天
还是晚上 还是黑夜 还是夜里 什么时候了 time clock oclock timezone; date: 日期 几号 幾号 几月几 星期几 星期幾 周几 礼拜几
date weekday calendar; translate: 翻译 翻譯 翻成 译成 译为 譯成 译文 怎么说 用英语说 translate translation translating
translator; dice: 骰子 色子 筛子 掷 dice die roll; order: 订单 訂单 order; delivery: 快递 物流 包裹 运单 发货 delivery
shipment parcel package shipping courier; alarm: 闹钟 叫醒 叫我起床 alarm wake; reminder: 提醒 备忘 remind reminder;
timer: 倒计时 timer countdown; meeting: 会议 开会 meeting conference; mail: 邮件 邮箱 email mail; message: 短信 消息 sms
message; stock: 股票 股价 stock stocks shares ticker; currency: 汇率 外汇 货币 换汇 兑换 美元 欧元 日元 英镑 人民币
currency exchange forex usd eur cny rmb gbp jpy dollar; convert: 换算 转换 convert conversion; price: 价格 多少钱 报价
price cost quote; calculate: 计算 算一下 求和 加法 calculate calculator arithmetic sum add multiply; news: 新闻 头条
news headline headlines; search: 搜索 检索 查找 search find lookup query; light: 灯 照明 light lamp lights lamps; music:
音乐 歌曲 播放 music song songs; travel: 航班 机票 飞机 火车 高铁 flight flights plane train; lodging: 酒店 宾馆 hotel
hotels; restaurant: 餐厅 饭店 餐馆 订位 桌子 restaurant; person: 用户 客户 user customer client; coffee: 咖啡 拿铁
coffee latte; product: 商品 产品 库存 product item inventory; todo: 待办 任务 todo task tasks; cancel: 取消 撤销 删除
移除 cancel delete remove; air: 空气质量 雾霾 air aqi pollution
"""
# Words that stand in any question and say nothing about which tool is meant; no name of a place holds one.
SMALL_WORDS = """
a an and any are as at be by can could current currently do does for from get give gives has have how i if in is it its
let like list me my need now of on one or our please provide return returns show some such tell that the their them
there this to up us use want we what whats when where which who why will with would you your help hi thanks hello
"""
# The same for words that stand in any description of a tool, but also in names.
TOOL_WORDS = """
api data function functions general given helper info information input into method name names number numbers object
output parameter range ranges request response result service services set specific specified specify string text tool
tools used user using utility value values city cities place places country location day days
"""
# The same for pairs of Chinese characters.
STOP_PAIRS = """
什么 怎么 怎样 现在 请问 告诉 一下 我的 你好 可以 帮我 需要 这个 那个 多少 查询 获取 指定 城市 的是 是的 是什 么样 们的
今天 明天 给我 用于 工具 如果 进行 使用 返回 一个 参数 以及 或者 例如 比如
"""
# Words that no Latin name of a place or of a language holds, beside the small ones.
NO_NAME_WORDS = """
him her everyone know meet see go thanks thank find check compare translate say also then here today tomorrow tonight
yesterday week weeks weekend month year days hour hours minute minutes morning evening night afternoon noon midnight
monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september
october november december celsius fahrenheit utc gmt back more so next both general detail details total short advance
case fact order particular weather time forecast temperature not least first last once all moment about
"""
# Which words beside a number say that it is a parameter's: words of the parameter's name, then words of the question.
UNITS = """
side sides face faces: 面; hour hours: 小时 钟头 h hour; minute minutes: 分钟 分 min minute; second seconds: 秒 sec
second; person persons people guest guests passengers: 人 位 people person guest; count number quantity limit top amount
size copies: 个 次 条 份 件 本 张 颗 枚 times dice coin piece cop item; amount price money budget cost: 元 块 dollar
usd eur rmb cny yuan yen pound; age years: 岁 year; weight kg: 公斤 千克 斤 克 kg gram pound; height: 厘米 米 cm;
distance length radius km: 公里 千米 米 km mile meter; percent rate: % percent; page pages: 页 page; floor: 层 楼 floor
"""
# How the values of an enumeration are said otherwise.
SYNONYMS = """
celsius c metric: 摄氏 公制; fahrenheit f imperial: 华氏 英制; on open enable enabled: 打开 开启 启用; off close closed
disable disabled: 关闭 关掉 关上 停用; high urgent: 高 紧急; medium normal: 中等 普通 中杯 中号; low: 低; small: 小杯
小号 小份 小; large big: 大杯 大号 大份 大; red: 红; green: 绿; blue: 蓝; yellow: 黄; white: 白; black: 黑; daily: 每天
每日; weekly: 每周; monthly: 每月
"""


NO_NAMES = frozenset(f"{SMALL_WORDS} {NO_NAME_WORDS}".split())
