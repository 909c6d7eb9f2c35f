"""Names that a reading character by character gets wrong, and the names of regions and countries.

Checked by hand against pypinyin 0.55 over some 1,000 names of prefectures, counties and districts.
"""

from functools import cache
from typing import NamedTuple

__all__ = ["COUNTRIES", "MUNICIPALITIES", "PEOPLES", "PROVINCES", "READINGS", "Spelling", "simplified", "spelling_of"]


class Spelling(NamedTuple):
    """How a place is asked for."""

    name: str
    region: str = ""
    """The province, where the name alone would mean another place."""
    country: str = "China"


def spelling_of(name: str) -> Spelling | None:
    """Look up a place in simplified characters that needs a spelling of its own."""
    return _spellings().get(name)


def simplified(text: str) -> str:
    """Replace the traditional characters that are common in names of places."""
    return text.translate(_simplifying())


@cache
def _spellings() -> dict[str, Spelling]:
    rows = (line.split(maxsplit=1) for line in _SPELLINGS.strip().splitlines())
    return {name: Spelling(*spelling.split("|")) for name, spelling in rows}


@cache
def _simplifying() -> dict[int, str]:
    return {ord(pair[0]): pair[1] for pair in _TRADITIONAL.split()}


def _pairs(text: str) -> dict[str, str]:
    return dict(entry.strip().split(" ", 1) for entry in text.split(";"))


# Chinese name, spelling, and after | the province and the country where they are needed.
_SPELLINGS = """
朝阳 Chaoyang
朝阳市 Chaoyang|Liaoning
朝阳区 Chaoyang|Beijing
漯河 Luohe
长治 Changzhi
长垣 Changyuan
长岭 Changling
都匀 Duyun
涡阳 Guoyang
浚县 Xunxian
单县 Shanxian
克孜勒苏 Kezilesu
珲春 Hunchun
穆棱 Muling
郫都 Pidu
什邡 Shifang
筠连 Junlian
六合 Luhe
繁峙 Fanshi
大城 Daicheng
洪洞 Hongtong
覃塘 Qintang
乐陵 Laoling
泊头 Botou
闵行 Minhang
荥经 Yingjing
召陵 Shaoling
伽师 Jiashi
长子 Zhangzi
苏州 Suzhou|Jiangsu
宿州 Suzhou|Anhui
福州 Fuzhou|Fujian
抚州 Fuzhou|Jiangxi
泰州 Taizhou|Jiangsu
台州 Taizhou|Zhejiang
伊春 Yichun|Heilongjiang
宜春 Yichun|Jiangxi
玉林 Yulin|Guangxi
榆林 Yulin|Shaanxi
西安 Xian|Shaanxi
吉安 Jian|Jiangxi
集安 Jian|Jilin
吕梁 Luliang
陕西 Shaanxi
海南州 Hainan|Qinghai
海南藏族自治州 Hainan|Qinghai
哈尔滨 Harbin
齐齐哈尔 Qiqihar
呼和浩特 Hohhot
鄂尔多斯 Ordos
呼伦贝尔 Hulunbuir
巴彦淖尔 Bayannur
乌兰察布 Ulanqab
锡林郭勒 Xilingol
锡林浩特 Xilinhot
乌兰浩特 Ulanhot
二连浩特 Erenhot
阿拉善 Alxa
海拉尔 Hailar
额尔古纳 Ergun
乌鲁木齐 Urumqi
克拉玛依 Karamay
吐鲁番 Turpan
喀什 Kashgar
和田 Hotan
阿克苏 Aksu
阿勒泰 Altay
库尔勒 Korla
伊犁 Ili
博尔塔拉 Bortala
巴音郭楞 Bayingolin
图木舒克 Tumxuk
阿拉尔 Aral
拉萨 Lhasa
日喀则 Shigatse
昌都 Chamdo
林芝 Nyingchi
那曲 Nagqu
阿里 Ngari
江孜 Gyantse
墨脱 Medog
格尔木 Golmud
香格里拉 Shangri-La
甘孜 Garze
阿坝 Aba
台北 Taipei||Taiwan
新北 New Taipei||Taiwan
高雄 Kaohsiung||Taiwan
台中 Taichung||Taiwan
台南 Tainan||Taiwan
台东 Taitung||Taiwan
基隆 Keelung||Taiwan
新竹 Hsinchu||Taiwan
嘉义 Chiayi||Taiwan
桃园 Taoyuan||Taiwan
花莲 Hualien||Taiwan
屏东 Pingtung||Taiwan
宜兰 Yilan||Taiwan
苗栗 Miaoli||Taiwan
彰化 Changhua||Taiwan
南投 Nantou||Taiwan
澎湖 Penghu||Taiwan
金门 Kinmen||Taiwan
"""

READINGS = {"都": ("dou", "du"), "长": ("zhang", "chang"), "朝": ("zhao", "chao"), "勒": ("lei", "le")}
"""Characters whose usual reading is not the one in names of places: what pypinyin says, and what is meant."""

MUNICIPALITIES = _pairs("北京 Beijing; 上海 Shanghai; 天津 Tianjin; 重庆 Chongqing")

PROVINCES = MUNICIPALITIES | _pairs(
    "河北 Hebei; 山西 Shanxi; 内蒙古 Inner Mongolia; 辽宁 Liaoning; 吉林 Jilin; 黑龙江 Heilongjiang; 江苏 Jiangsu;"
    "浙江 Zhejiang; 安徽 Anhui; 福建 Fujian; 江西 Jiangxi; 山东 Shandong; 河南 Henan; 湖北 Hubei; 湖南 Hunan;"
    "广东 Guangdong; 广西 Guangxi; 海南 Hainan; 四川 Sichuan; 贵州 Guizhou; 云南 Yunnan; 西藏 Tibet; 陕西 Shaanxi;"
    "甘肃 Gansu; 青海 Qinghai; 宁夏 Ningxia; 新疆 Xinjiang"
)

COUNTRIES = _pairs(
    "中国 China; 中华人民共和国 China; 中国大陆 China; 美国 USA; 加拿大 Canada; 墨西哥 Mexico; 巴西 Brazil;"
    "澳大利亚 Australia; 澳洲 Australia; 俄罗斯 Russia; 俄国 Russia; 印度尼西亚 Indonesia; 印尼 Indonesia;"
    "蒙古国 Mongolia; 智利 Chile; 厄瓜多尔 Ecuador; 阿尔及利亚 Algeria; 突尼斯 Tunisia; 加纳 Ghana;"
    "坦桑尼亚 Tanzania; 约旦 Jordan; 阿曼 Oman; 格鲁吉亚 Georgia; 立陶宛 Lithuania; 拉脱维亚 Latvia; 爱沙尼亚 Estonia;"
    "斯洛伐克 Slovakia; 斯洛文尼亚 Slovenia; 马耳他 Malta; 塞浦路斯 Cyprus; 玻利维亚 Bolivia; 巴拉圭 Paraguay"
)
"""Countries with more than one time zone, and others that the gazetteer does not list."""

PEOPLES = (
    "土家|蒙古|朝鲜|布依|景颇|哈尼|傈僳|维吾尔|哈萨克|柯尔克孜|仡佬|拉祜|纳西|普米|独龙|撒拉|东乡|保安|裕固|达斡尔|鄂温克"
    "|鄂伦春|锡伯|塔吉克|毛南|仫佬|布朗|苗|藏|羌|彝|回|侗|傣|白|壮|瑶|满|畲|黎|水|佤|怒|土|各"
)
"""Peoples in the names of autonomous prefectures and counties, as alternatives of a pattern; 各 is "various"."""

# Each entry is a traditional character and its simplified form.
_TRADITIONAL = """
東东 臺台 灣湾 灘滩 廣广 廈厦 門门 慶庆 長长 瀋沈 陽阳 陰阴 連连 遼辽 龍龙 鐵铁 嶺岭 錦锦 營营 黃黄 雲云 貴贵
蘭兰 銀银 寧宁 鄭郑 濟济 無无 錫锡 蘇苏 鎮镇 揚扬 鹽盐 漢汉 義义 麗丽 溫温 紹绍 興兴 臨临 煙烟 濰潍 棗枣 島岛
萊莱 蕪芜 馬马 銅铜 撫抚 贛赣 鷹鹰 饒饶 萬万 載载 嶽岳 張张 懷怀 婁娄 頭头 欽钦 賀贺 來来 賓宾 亞亚 瓊琼 樂乐
內内 資资 瀘泸 綿绵 達达 畢毕 節节 麥麦 紅红 納纳 薩萨 則则 爾尔 羅罗 烏乌 魯鲁 齊齐 瑪玛 額额 倫伦 貝贝 遷迁
鶴鹤 崗岗 雞鸡 雙双 鴨鸭 綏绥 濱滨 許许 駐驻 關关 絳绛 運运 呂吕 晉晋 陝陕 鹹咸 寶宝 隴陇 涼凉 單单 縣县 區区
國国 鄉乡 裡里 裏里 歷历 禮礼 禪禅 開开 閩闽 園园 圍围 壽寿 聖圣 場场 塢坞 壩坝 墾垦 奧奥 孫孙 實实 寬宽 導导
屬属 嶼屿 巖岩 幹干 廟庙 彌弥 強强 從从 復复 恆恒 應应 戰战 戶户 撥拨 攬揽 敘叙 斷断 會会 條条 楊杨 榮荣 樓楼
標标 樹树 橋桥 檯台 歐欧 歸归 殺杀 氣气 沖冲 沒没 淺浅 淵渊 減减 測测 渾浑 湯汤 溝沟 滄沧 滿满 漁渔 潁颍 潔洁
潿涠 澤泽 瀏浏 瀾澜 灤滦 灃沣 熱热 獅狮 環环 璽玺 瓏珑 畫画 當当 皺皱 盧卢 監监 碼码 磯矶 穎颖 積积 築筑 範范
糧粮 級级 紀纪 純纯 紡纺 組组 結结 給给 統统 經经 維维 網网 緬缅 縉缙 績绩 織织 續续 缽钵 習习 聯联 聲声 肅肃
腳脚 腫肿 膠胶 臘腊 舊旧 艦舰 莊庄 華华 葉叶 葦苇 蒼苍 蓋盖 蓮莲 蔣蒋 薊蓟 藍蓝 藥药 蘆芦 處处 號号 蝦虾 術术
衛卫 補补 製制 複复 見见 規规 覺觉 觀观 訓训 設设 詔诏 詩诗 誠诚 諸诸 謝谢 豐丰 貢贡 費费 賢贤 賴赖 贊赞 趙赵
躍跃 車车 軍军 軒轩 輝辉 輪轮 農农 邊边 郟郏 鄒邹 鄧邓 鄲郸 鄴邺 釣钓 針针 鈞钧 鉛铅 銘铭 鋼钢 錢钱 鍾钟 鐘钟
鑲镶 閘闸 閣阁 閔闵 闊阔 陳陈 陸陆 隨随 險险 雜杂 離离 靈灵 靜静 韓韩 順顺 項项 頓顿 領领 頡颉 顏颜 顧顾 風风
飛飞 館馆 騰腾 驛驿 髮发 發发 鬆松 鬱郁 魚鱼 鮮鲜 鯉鲤 鳳凤 鳴鸣 鴻鸿 鵝鹅 鷺鹭 點点 龜龟 蔥葱 蕭萧 潯浔 瀆渎
濛蒙 瑩莹 蟲虫 鬥斗 嶗崂 嶧峄 澠渑 滎荥 潛潜 滬沪 漣涟 荊荆 邁迈 郵邮 賽赛 吳吴 岡冈 峽峡 涇泾 渦涡 湞浈 湧涌
滸浒 琿珲 檳槟 牆墙
"""
