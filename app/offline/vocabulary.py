"""Words that the offline model knows, Chinese and English, folded: lower case, plain width, no accents."""

# What a question or a tool can be about; the first word names the concept, the others mean it. A word of one concept
# only: a question is led to the tools whose name, description or parameters speak of the same concept.
CONCEPTS = """
weather: 天气 天氣 气温 氣溫 气象 温度 预报 預報 下雨 下雪 有雨 有雪 降雨 降水 刮风 晴天 多云 冷不冷 热不热 日出 日落
风大 风力 外套 雨伞 带伞 羽绒服 更热 更冷 更暖 最热 最冷 热吗 冷吗 暖和 凉快 穿什么 几度 多少度 哪个热 哪个冷 哪里热
哪里冷 湿度 下不下雨 weather forecast temperature sun sunrise sunset rain raining rainy snow snowing sunny cloudy windy
humidity umbrella sunglasses coat jacket cold colder hot hotter warm warmer; time: 时间 時間 几点 幾點 时刻 钟点 时差
時差 差几个小时 差几小时 还是晚上 什么时候了 time clock oclock timezone; date: 日期 几号 幾號 几月几 星期几 星期幾 周几
礼拜几 date weekday calendar; translate: 翻译 翻譯 翻成 译成 译为 譯成 译文 怎么说 用英语说 translate translation
translating translator; dice: 骰子 色子 筛子 掷 dice die roll; order: 订单 訂單 order; delivery: 快递 物流 包裹 运单
发货 配送 delivery shipment parcel package shipping tracking courier; alarm: 闹钟 鬧鐘 叫醒 alarm wake; reminder: 提醒
备忘 remind reminder; timer: 计时 倒计时 timer countdown stopwatch; calendar: 日程 日历 行程 schedule appointment;
meeting: 会议 開會 开会 meeting conference; mail: 邮件 郵件 邮箱 email mail; message: 短信 消息 sms message; phone:
电话 電話 拨打 phone telephone dial; stock: 股票 股价 股市 stock stocks shares ticker; currency: 汇率 匯率 外汇 货币
换汇 兑换 美元 欧元 日元 英镑 人民币 currency exchange forex usd eur cny rmb gbp jpy dollar; convert: 换算 转换 轉換
convert conversion; price: 价格 價格 多少钱 报价 price cost quote; calculate: 计算 計算 算一下 求和 加法 乘法 calculate
calculator compute arithmetic sum add multiply; news: 新闻 新聞 头条 资讯 news headline headlines; search: 搜索 搜寻
检索 查找 search find lookup query; light: 灯 燈 照明 light lamp lights lamps; music: 音乐 音樂 歌曲 播放 music song
songs; travel: 航班 机票 飞机 火车 高铁 列车 车次 flight flights airline plane train railway; lodging: 酒店 宾馆 旅馆
hotel hotels; restaurant: 餐厅 饭店 餐馆 restaurant; map: 地图 路线 导航 怎么走 距离 多远 map route directions navigate
distance; person: 用户 用戶 客户 顾客 员工 雇员 user account customer client employee staff; product: 商品 产品 货物
库存 存货 product item inventory warehouse; payment: 支付 付款 转账 余额 发票 账单 payment pay transfer balance invoice
bill receipt; ticket: 工单 ticket issue; password: 密码 口令 password passphrase; random: 随机 隨機 random; joke: 笑话
joke; poem: 诗 poem poetry; picture: 图片 照片 图像 画 picture image photo draw; file: 文件 文档 笔记 便签 file
document note notes; todo: 待办 任务 todo task tasks; movie: 电影 影片 movie film; sport: 比赛 比分 match score sport;
health: 健康 体重 步数 health weight steps; cancel: 取消 撤销 cancel; delete: 删除 刪除 移除 delete remove; summary:
总结 摘要 概括 summary summarize summarise; holiday: 节假日 假期 放假 农历 holiday holidays lunar; air: 空气质量 雾霾
air aqi pollution
"""

# Words that stand in any question and say nothing about which tool is meant; no name of a place holds one.
SMALL_WORDS = """
    a an and any are as at be by can could current currently do does for from get give gives has have how i if in is
    it its let like list me my need now of on one or our please provide return returns show some such tell that the
    their them there this to up us use want we what whats when where which who why will with would you your help hi
    thanks hello
"""
# The same for words that stand in any description of a tool, but also in names.
TOOL_WORDS = """
    api data function functions general given helper info information input into method name names number numbers
    object output parameter range ranges request response result service services set specific specified specify
    string text tool tools used user using utility value values city cities place places country location day days
"""
# The same for pairs of Chinese characters.
STOP_PAIRS = """
    什么 怎么 怎样 现在 请问 告诉 一下 我的 你好 可以 帮我 需要 这个 那个 多少 查询 获取 指定 城市 的是 是的 是什 么样
    们的 今天 明天 给我 用于 工具 如果 进行 使用 返回 一个 参数 以及 或者 例如 比如
"""
# Words that no Latin name of a place holds, beside the small ones and the names of languages.
NO_NAME_WORDS = """
    thank find check compare translate say also then here today tomorrow tonight yesterday week weeks weekend month
    year days hour hours minute minutes morning evening night afternoon noon midnight monday tuesday wednesday
    thursday friday saturday sunday january february march april may june july august september october november
    december celsius fahrenheit utc gmt back more so next both general detail details total short advance case fact
    order particular weather time forecast temperature not least first last once all moment about
"""

# Which words beside a number say that it is a parameter's: words of the parameter's name, then words of the question.
UNITS = """
side sides face faces: 面; hour hours: 小时 钟头 h hour; minute minutes: 分钟 分 min minute; second seconds: 秒 sec
second; person persons people guest guests passengers: 人 位 people person guest; count number quantity limit top
amount size copies: 个 次 条 份 件 本 张 颗 times dice piece cop item; amount price money budget cost: 元 块 美元 欧元
日元 人民币 dollar usd eur rmb cny yuan yen pound; age years: 岁 year; year: 年; month: 月; weight kg: 公斤 千克 斤 克
kg gram pound; height: 厘米 米 cm; distance length radius km: 公里 千米 米 km mile meter 位 字; temperature degrees: 度
degree; percent percentage rate: % 百分 percent; page pages: 页 page; floor: 层 楼 floor
"""

# How the values of an enumeration are said otherwise.
SYNONYMS = """
celsius c metric: 摄氏 公制; fahrenheit f imperial: 华氏 英制; on open enable enabled: 打开 开启 启用; off close closed
disable disabled: 关闭 关掉 关上 停用; asc ascending: 升序 从小到大; desc descending: 降序 从大到小; high urgent: 高
紧急; medium normal: 中等 普通 一般 中杯 中号; low: 低; small: 小杯 小号 小份 小; large big: 大杯 大号 大份 大; red:
红; green: 绿; blue: 蓝; yellow: 黄; white: 白; black: 黑; economy: 经济舱; business: 商务舱; first: 头等舱; daily:
每天 每日; weekly: 每周; monthly: 每月; male: 男; female: 女
"""
