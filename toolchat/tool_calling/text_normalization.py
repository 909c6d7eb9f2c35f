"""Text normalization for comparing names: width, case, accents, traditional characters.

Every function maps each character to exactly one, so that a position in the result is the same position in the input.
"""

import unicodedata
from functools import cache, lru_cache


def fold(text: str) -> str:
    """Convert a text to normal width, lower case and Latin letters without accents."""
    return text.lower() if text.isascii() else "".join(map(_folded_character, text))


def simplify(text: str) -> str:
    """Replace traditional and Japanese characters that are common in names of places and languages."""
    return text if text.isascii() else text.translate(_simplifying())


def normalize_name(name: str) -> str:
    """Normalize a name so that all its spellings become one; tables of names use it as their key."""
    return simplify(fold(name))


@lru_cache(maxsize=4096)
def _folded_character(character: str) -> str:
    normal = unicodedata.normalize("NFKC", character)
    character = normal if len(normal) == 1 else character
    # Only Latin letters lose their marks (the blocks end at U+024F and U+1EFF): elsewhere a mark makes another letter,
    # as in й.
    if "À" <= character <= "ɏ" or "Ḁ" <= character <= "ỿ":
        character = unicodedata.normalize("NFD", character)[0]
    lower = character.lower()
    return lower if len(lower) == 1 else character


@cache
def _simplifying() -> dict[int, str]:
    return {ord(pair[0]): pair[1] for pair in _TRADITIONAL.split()}


# Each entry is a character and its simplified form, for names of places and languages only, including the Japanese
# forms of 広島, 横浜 and 沖縄. In other words a character may have several simplified forms.
_TRADITIONAL = """
東东 臺台 灣湾 灘滩 廣广 廈厦 門门 慶庆 長长 瀋沈 陽阳 陰阴 連连 遼辽 龍龙 鐵铁 嶺岭 錦锦 營营 黃黄 雲云 貴贵 蘭兰 銀银
寧宁 鄭郑 濟济 無无 錫锡 蘇苏 鎮镇 揚扬 鹽盐 漢汉 義义 麗丽 溫温 紹绍 興兴 臨临 煙烟 濰潍 棗枣 島岛 萊莱 蕪芜 馬马 銅铜
撫抚 贛赣 鷹鹰 饒饶 萬万 載载 嶽岳 張张 懷怀 婁娄 頭头 欽钦 賀贺 來来 賓宾 亞亚 瓊琼 樂乐 內内 資资 瀘泸 綿绵 達达 畢毕
節节 麥麦 紅红 納纳 薩萨 則则 爾尔 羅罗 烏乌 魯鲁 齊齐 瑪玛 額额 倫伦 貝贝 遷迁 鶴鹤 崗岗 雞鸡 雙双 鴨鸭 綏绥 濱滨 許许
駐驻 關关 絳绛 運运 呂吕 晉晋 陝陕 鹹咸 寶宝 隴陇 涼凉 單单 縣县 區区 國国 鄉乡 裡里 裏里 歷历 禮礼 禪禅 開开 閩闽 園园
圍围 壽寿 聖圣 場场 塢坞 壩坝 墾垦 奧奥 孫孙 實实 寬宽 導导 屬属 嶼屿 巖岩 幹干 廟庙 彌弥 強强 從从 復复 恆恒 應应 戰战
戶户 撥拨 攬揽 敘叙 斷断 會会 條条 楊杨 榮荣 樓楼 標标 樹树 橋桥 檯台 歐欧 歸归 殺杀 氣气 沖冲 沒没 淺浅 淵渊 減减 測测
渾浑 湯汤 溝沟 滄沧 滿满 漁渔 潁颍 潔洁 潿涠 澤泽 瀏浏 瀾澜 灤滦 灃沣 熱热 獅狮 環环 璽玺 瓏珑 畫画 當当 皺皱 盧卢 監监
碼码 磯矶 穎颖 積积 築筑 範范 糧粮 級级 紀纪 純纯 紡纺 組组 結结 給给 統统 經经 維维 網网 緬缅 縉缙 績绩 織织 續续 缽钵
習习 聯联 聲声 肅肃 腳脚 腫肿 膠胶 臘腊 舊旧 艦舰 莊庄 華华 葉叶 葦苇 蒼苍 蓋盖 蓮莲 蔣蒋 薊蓟 藍蓝 藥药 蘆芦 處处 號号
蝦虾 術术 衛卫 補补 製制 複复 見见 規规 覺觉 觀观 訓训 設设 詔诏 詩诗 誠诚 諸诸 謝谢 豐丰 貢贡 費费 賢贤 賴赖 贊赞 趙赵
躍跃 車车 軍军 軒轩 輝辉 輪轮 農农 邊边 郟郏 鄒邹 鄧邓 鄲郸 鄴邺 釣钓 針针 鈞钧 鉛铅 銘铭 鋼钢 錢钱 鍾钟 鐘钟 鑲镶 閘闸
閣阁 閔闵 闊阔 陳陈 陸陆 隨随 險险 雜杂 離离 靈灵 靜静 韓韩 順顺 項项 頓顿 領领 頡颉 顏颜 顧顾 風风 飛飞 館馆 騰腾 驛驿
髮发 發发 鬆松 鬱郁 魚鱼 鮮鲜 鯉鲤 鳳凤 鳴鸣 鴻鸿 鵝鹅 鷺鹭 點点 龜龟 蔥葱 蕭萧 潯浔 瀆渎 濛蒙 瑩莹 蟲虫 鬥斗 嶗崂 嶧峄
澠渑 滎荥 潛潜 滬沪 漣涟 荊荆 邁迈 郵邮 賽赛 吳吴 岡冈 峽峡 涇泾 渦涡 湞浈 湧涌 滸浒 琿珲 檳槟 牆墙 橫横 劍剑 愛爱 繩绳
紐纽 約约 徹彻 圖图 峴岘 霧雾 買买 時时 輔辅 諾诺 広广 縄绳 浜滨 語语 話话 現现 簡简 體体 動动 檢检 識识 別别 粵粤
"""
