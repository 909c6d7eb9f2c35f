"""The tables of places, as text; :mod:`app.places.gazetteer` reads them.

An entry is an English name, in brackets the state or province where the name alone would not do (for WeatherAPI in
China, for a question such as ``Portland, Oregon`` elsewhere), and behind a colon the further names. Chinese names are
in simplified characters, those that only Taiwan uses (雪梨, 义大利) as well; look-ups fold all other forms.

A line with square brackets opens a country. An entry behind them makes the country itself a place, where one time zone
holds for (nearly) all of its people; among several, any would be a wrong guess. ``@`` gives the zone of all that
follows, or behind an entry that of this one.
"""

PLACES = """
[China] China: PRC, 中国, 中国大陆 @Asia/Shanghai
Beijing: Peking, 北京; Shanghai: 上海; Guangzhou: Canton, 广州; Shenzhen: 深圳; Tianjin: 天津;
Chongqing: Chungking, 重庆; Chengdu: 成都; Hangzhou: 杭州; Nanjing: Nanking, 南京; Wuhan: 武汉;
Xi'an (Shaanxi): Xian, 西安; Suzhou (Jiangsu): 苏州; Changsha: 长沙; Zhengzhou: 郑州; Qingdao: Tsingtao, 青岛;
Jinan: 济南; Shenyang: 沈阳; Dalian: 大连; Harbin: 哈尔滨; Changchun: 长春; Jilin City: 吉林; Shijiazhuang: 石家庄;
Taiyuan: 太原; Hefei: 合肥; Nanchang: 南昌; Fuzhou (Fujian): 福州; Xiamen: Amoy, 厦门; Quanzhou: 泉州; Zhangzhou: 漳州;
Putian: 莆田; Ningbo: 宁波; Wenzhou: 温州; Jiaxing: 嘉兴; Huzhou: 湖州; Shaoxing: 绍兴; Jinhua: 金华; Yiwu: 义乌;
Taizhou, Zhejiang: 台州; Taizhou, Jiangsu: 泰州; Zhoushan: 舟山; Wuxi: 无锡; Changzhou: 常州; Nantong: 南通;
Yangzhou: 扬州; Zhenjiang: 镇江; Xuzhou: 徐州; Lianyungang: 连云港; Yancheng: 盐城; Huai'an: 淮安; Kunshan: 昆山;
Foshan: 佛山; Dongguan: 东莞; Zhuhai: 珠海; Zhongshan: 中山; Huizhou: 惠州; Shantou: 汕头; Zhanjiang: 湛江;
Jiangmen: 江门; Zhaoqing: 肇庆; Shaoguan: 韶关; Nanning: 南宁; Guilin: 桂林; Liuzhou: 柳州; Beihai: 北海; Haikou: 海口;
Sanya: 三亚; Guiyang: 贵阳; Zunyi: 遵义; Kunming: 昆明; Lijiang: 丽江; Dali: 大理; Xishuangbanna: 西双版纳; Lhasa: 拉萨;
Lanzhou: 兰州; Dunhuang: 敦煌; Xining: 西宁; Yinchuan: 银川; Urumqi: Ürümchi, 乌鲁木齐; Kashgar: Kashi, 喀什;
Hohhot: 呼和浩特; Baotou: 包头; Ordos: 鄂尔多斯; Hulunbuir: 呼伦贝尔; Tangshan: 唐山; Baoding: 保定;
Qinhuangdao: 秦皇岛; Zhangjiakou: 张家口; Chengde: 承德; Handan: 邯郸; Langfang: 廊坊; Datong: 大同; Luoyang: 洛阳;
Kaifeng: 开封; Nanyang: 南阳; Yantai: 烟台; Weihai: 威海; Weifang: 潍坊; Zibo: 淄博; Linyi: 临沂; Jining: 济宁;
Tai'an: 泰安; Wuhu: 芜湖; Huangshan: 黄山; Bengbu: 蚌埠; Jiujiang: 九江; Ganzhou: 赣州; Jingdezhen: 景德镇;
Yichang: 宜昌; Xiangyang: 襄阳; Jingzhou: 荆州; Zhangjiajie: 张家界; Yueyang: 岳阳; Zhuzhou: 株洲; Hengyang: 衡阳;
Mianyang: 绵阳; Leshan: 乐山; Yibin: 宜宾; Xianyang: 咸阳; Baoji: 宝鸡; Yan'an: 延安; Daqing: 大庆; Qiqihar: 齐齐哈尔;
Mudanjiang: 牡丹江; Mohe: 漠河; Anshan: 鞍山; Dandong: 丹东; Yanji: 延吉
[Hong Kong] Hong Kong: Hongkong, 香港 @Asia/Hong_Kong
[Macau] Macau: Macao, 澳门 @Asia/Macau
[Taiwan] Taiwan: 台湾 @Asia/Taipei
Taipei: 台北; Kaohsiung: 高雄; Taichung: 台中; Tainan: 台南
[Japan] Japan: 日本 @Asia/Tokyo
Tokyo: 东京; Osaka: 大阪; Kyoto: 京都; Nagoya: 名古屋; Sapporo: 札幌; Fukuoka: 福冈; Yokohama: 横滨; Kobe: 神户;
Hiroshima: 广岛; Hokkaido: 北海道; Okinawa: 冲绳
[South Korea] South Korea: Korea, 韩国, 南韩 @Asia/Seoul
Seoul: 首尔, 汉城; Busan: Pusan, 釜山; Jeju: 济州岛
[North Korea] North Korea: 朝鲜, 北韩 @Asia/Pyongyang
Pyongyang: 平壤
[Mongolia] @Asia/Ulaanbaatar
Ulaanbaatar: Ulan Bator, 乌兰巴托
[Singapore] Singapore: 新加坡, 星洲 @Asia/Singapore
[Malaysia] Malaysia: 马来西亚 @Asia/Kuala_Lumpur
Kuala Lumpur: 吉隆坡; Penang: 槟城
[Thailand] Thailand: 泰国 @Asia/Bangkok
Bangkok: 曼谷; Phuket: 普吉, 普吉岛; Chiang Mai: 清迈
[Vietnam] Vietnam: 越南 @Asia/Ho_Chi_Minh
Hanoi: 河内; Ho Chi Minh City: Saigon, 胡志明市, 胡志明, 西贡; Da Nang: Danang, 岘港
[Cambodia] Cambodia: 柬埔寨 @Asia/Phnom_Penh
Phnom Penh: 金边; Siem Reap: 暹粒
[Laos] Laos: 老挝, 寮国 @Asia/Vientiane
Vientiane: 万象
[Myanmar] Myanmar: Burma, 缅甸 @Asia/Yangon
Yangon: Rangoon, 仰光
[Philippines] Philippines: 菲律宾 @Asia/Manila
Manila: 马尼拉; Cebu: 宿务, 宿雾
[Brunei] Brunei: 文莱, 汶莱 @Asia/Brunei
[Indonesia] @Asia/Jakarta
Jakarta: 雅加达; Bali: Denpasar, 巴厘岛, 峇里岛 @Asia/Makassar
[India] India: 印度 @Asia/Kolkata
New Delhi: Delhi, 新德里, 德里; Mumbai: Bombay, 孟买; Bangalore: Bengaluru, 班加罗尔; Chennai: Madras, 金奈;
Kolkata: Calcutta, 加尔各答; Hyderabad: 海得拉巴
[Pakistan] Pakistan: 巴基斯坦 @Asia/Karachi
Karachi: 卡拉奇; Islamabad: 伊斯兰堡
[Bangladesh] Bangladesh: 孟加拉国, 孟加拉 @Asia/Dhaka
Dhaka: 达卡
[Nepal] Nepal: 尼泊尔 @Asia/Kathmandu
Kathmandu: 加德满都
[Sri Lanka] Sri Lanka: 斯里兰卡 @Asia/Colombo
Colombo: 科伦坡, 可伦坡
[Maldives] Maldives: 马尔代夫, 马尔地夫 @Indian/Maldives
[Kazakhstan] Kazakhstan: 哈萨克斯坦 @Asia/Almaty
Almaty: 阿拉木图; Astana: 阿斯塔纳
[Uzbekistan] Uzbekistan: 乌兹别克斯坦 @Asia/Tashkent
Tashkent: 塔什干
[United Arab Emirates] United Arab Emirates: UAE, 阿联酋 @Asia/Dubai
Dubai: 迪拜, 杜拜; Abu Dhabi: 阿布扎比, 阿布达比
[Saudi Arabia] Saudi Arabia: 沙特, 沙特阿拉伯, 沙乌地阿拉伯 @Asia/Riyadh
Riyadh: 利雅得; Mecca: 麦加; Jeddah: 吉达
[Qatar] Qatar: 卡塔尔, 卡达 @Asia/Qatar
Doha: 多哈
[Kuwait] Kuwait: 科威特 @Asia/Kuwait
[Iraq] Iraq: 伊拉克 @Asia/Baghdad
Baghdad: 巴格达
[Iran] Iran: 伊朗 @Asia/Tehran
Tehran: Teheran, 德黑兰
[Israel] Israel: 以色列 @Asia/Jerusalem
Jerusalem: 耶路撒冷; Tel Aviv: 特拉维夫
[Lebanon] Lebanon: 黎巴嫩 @Asia/Beirut
Beirut: 贝鲁特
[Turkey] Turkey: Türkiye, 土耳其 @Europe/Istanbul
Istanbul: 伊斯坦布尔, 伊斯坦堡; Ankara: 安卡拉
[UK] United Kingdom: UK, Britain, Great Britain, England, Scotland, 英国, 英格兰, 苏格兰 @Europe/London
London (England): 伦敦; Manchester (England): 曼彻斯特; Edinburgh (Scotland): 爱丁堡; Birmingham (England): 伯明翰;
Liverpool (England): 利物浦; Glasgow (Scotland): 格拉斯哥; Oxford (England): 牛津; Cambridge (England): 剑桥
[Ireland] Ireland: 爱尔兰 @Europe/Dublin
Dublin: 都柏林
[France] France: 法国 @Europe/Paris
Paris: 巴黎; Lyon: 里昂; Marseille: Marseilles, 马赛; Nice, Provence: 尼斯
[Germany] Germany: Deutschland, 德国 @Europe/Berlin
Berlin: 柏林; Munich (Bavaria): München, 慕尼黑; Frankfurt (Hesse): Frankfurt am Main, 法兰克福; Hamburg: 汉堡;
Cologne: Köln, 科隆; Stuttgart: 斯图加特; Düsseldorf: Duesseldorf, 杜塞尔多夫
[Italy] Italy: 意大利, 义大利 @Europe/Rome
Rome: Roma, 罗马; Milan: Milano, 米兰; Venice: Venezia, 威尼斯; Florence: Firenze, 佛罗伦萨, 佛罗伦斯;
Naples: Napoli, 那不勒斯
[Vatican] Vatican: Vatican City, 梵蒂冈 @Europe/Vatican
[Spain] Spain: 西班牙 @Europe/Madrid
Madrid: 马德里; Barcelona: 巴塞罗那, 巴塞隆纳
[Portugal] Portugal: 葡萄牙 @Europe/Lisbon
Lisbon: Lisboa, 里斯本; Porto: 波尔图
[Switzerland] Switzerland: 瑞士 @Europe/Zurich
Zurich: 苏黎世; Geneva: Genève, 日内瓦; Bern: 伯尔尼
[Austria] Austria: 奥地利 @Europe/Vienna
Vienna: Wien, 维也纳; Salzburg: 萨尔茨堡
[Netherlands] Netherlands: Holland, 荷兰 @Europe/Amsterdam
Amsterdam: 阿姆斯特丹; Rotterdam: 鹿特丹; The Hague: 海牙
[Belgium] Belgium: 比利时 @Europe/Brussels
Brussels: 布鲁塞尔
[Luxembourg] Luxembourg: 卢森堡 @Europe/Luxembourg
[Denmark] Denmark: 丹麦 @Europe/Copenhagen
Copenhagen: 哥本哈根
[Sweden] Sweden: 瑞典 @Europe/Stockholm
Stockholm: 斯德哥尔摩
[Norway] Norway: 挪威 @Europe/Oslo
Oslo: 奥斯陆
[Finland] Finland: 芬兰 @Europe/Helsinki
Helsinki: 赫尔辛基
[Iceland] Iceland: 冰岛 @Atlantic/Reykjavik
Reykjavik: 雷克雅未克
[Poland] Poland: 波兰 @Europe/Warsaw
Warsaw: 华沙; Krakow: Cracow, 克拉科夫
[Czechia] Czechia: Czech Republic, 捷克 @Europe/Prague
Prague: Praha, 布拉格
[Hungary] Hungary: 匈牙利 @Europe/Budapest
Budapest: 布达佩斯
[Romania] Romania: 罗马尼亚 @Europe/Bucharest
Bucharest: 布加勒斯特
[Bulgaria] Bulgaria: 保加利亚 @Europe/Sofia
Sofia: 索非亚
[Greece] Greece: 希腊 @Europe/Athens
Athens: 雅典
[Serbia] Serbia: 塞尔维亚 @Europe/Belgrade
Belgrade: 贝尔格莱德
[Croatia] Croatia: 克罗地亚, 克罗埃西亚 @Europe/Zagreb
Zagreb: 萨格勒布
[Ukraine] Ukraine: 乌克兰 @Europe/Kyiv
Kyiv: Kiev, 基辅
[Belarus] Belarus: 白俄罗斯 @Europe/Minsk
Minsk: 明斯克
[Russia] @Europe/Moscow
Moscow: 莫斯科; Saint Petersburg: St. Petersburg, St Petersburg, 圣彼得堡; Novosibirsk: 新西伯利亚 @Asia/Novosibirsk;
Vladivostok: 海参崴, 符拉迪沃斯托克 @Asia/Vladivostok
[Egypt] Egypt: 埃及 @Africa/Cairo
Cairo: 开罗
[Morocco] Morocco: 摩洛哥 @Africa/Casablanca
Casablanca: 卡萨布兰卡
[South Africa] South Africa: 南非 @Africa/Johannesburg
Johannesburg: 约翰内斯堡, 约翰尼斯堡; Cape Town: 开普敦
[Kenya] Kenya: 肯尼亚, 肯亚 @Africa/Nairobi
Nairobi: 内罗毕, 奈洛比
[Nigeria] Nigeria: 尼日利亚, 奈及利亚 @Africa/Lagos
Lagos: 拉各斯
[Ethiopia] Ethiopia: 埃塞俄比亚 @Africa/Addis_Ababa
Addis Ababa: 亚的斯亚贝巴
[USA] @America/New_York
New York (New York): New York City, NYC, 纽约; Washington (DC): Washington DC, Washington D.C., 华盛顿;
Boston (Massachusetts): 波士顿; Philadelphia (Pennsylvania): 费城; Miami (Florida): 迈阿密; Atlanta (Georgia): 亚特兰大;
Orlando (Florida): 奥兰多; Pittsburgh (Pennsylvania): 匹兹堡; Cleveland (Ohio): 克利夫兰;
Baltimore (Maryland): 巴尔的摩; Detroit (Michigan): 底特律 @America/Detroit;
Indianapolis (Indiana): 印第安纳波利斯 @America/Indiana/Indianapolis
[USA] @America/Chicago
Chicago (Illinois): 芝加哥; Houston (Texas): 休斯敦, 休士顿, 休斯顿; Dallas (Texas): 达拉斯; Austin (Texas): 奥斯汀;
San Antonio (Texas): 圣安东尼奥; New Orleans (Louisiana): 新奥尔良, 纽奥良; Minneapolis (Minnesota): 明尼阿波利斯;
Nashville (Tennessee): 纳什维尔; St. Louis (Missouri): St Louis, Saint Louis, 圣路易斯;
Denver (Colorado): 丹佛 @America/Denver; Salt Lake City (Utah): 盐湖城 @America/Denver;
Phoenix (Arizona): 凤凰城, 菲尼克斯 @America/Phoenix
[USA] California: 加州, 加利福尼亚 @America/Los_Angeles
Los Angeles (California): LA, L.A., 洛杉矶; San Francisco (California): SF, 旧金山, 三藩市, 圣弗朗西斯科;
San Diego (California): 圣迭戈, 圣地牙哥; San Jose (California): 圣何塞, 圣荷西;
Silicon Valley (California): 硅谷, 矽谷; Seattle (Washington): 西雅图; Portland (Oregon): 波特兰;
Las Vegas (Nevada): 拉斯维加斯; Hawaii: 夏威夷 @Pacific/Honolulu; Honolulu (Hawaii): 檀香山, 火奴鲁鲁 @Pacific/Honolulu;
Anchorage (Alaska): 安克雷奇 @America/Anchorage
[Canada] @America/Toronto
Toronto (Ontario): 多伦多; Ottawa (Ontario): 渥太华; Montreal (Quebec): 蒙特利尔, 蒙特娄;
Quebec City (Quebec): 魁北克城, 魁北克市; Vancouver (British Columbia): 温哥华 @America/Vancouver;
Calgary (Alberta): 卡尔加里, 卡加利 @America/Edmonton; Edmonton (Alberta): 埃德蒙顿 @America/Edmonton;
Winnipeg (Manitoba): 温尼伯 @America/Winnipeg; Halifax (Nova Scotia): 哈利法克斯 @America/Halifax
[Mexico] @America/Mexico_City
Mexico City: 墨西哥城; Cancun: 坎昆 @America/Cancun
[Cuba] Cuba: 古巴 @America/Havana
Havana: 哈瓦那
[Panama] Panama: 巴拿马 @America/Panama
[Brazil] @America/Sao_Paulo
Sao Paulo: 圣保罗; Rio de Janeiro: 里约热内卢, 里约; Brasilia: 巴西利亚
[Argentina] Argentina: 阿根廷 @America/Argentina/Buenos_Aires
Buenos Aires: 布宜诺斯艾利斯
[Chile] @America/Santiago
Santiago: 圣地亚哥
[Peru] Peru: 秘鲁 @America/Lima
Lima: 利马
[Colombia] Colombia: 哥伦比亚 @America/Bogota
Bogota: 波哥大
[Venezuela] Venezuela: 委内瑞拉 @America/Caracas
Caracas: 加拉加斯
[Uruguay] Uruguay: 乌拉圭 @America/Montevideo
Montevideo: 蒙得维的亚
[Australia] @Australia/Sydney
Sydney (New South Wales): 悉尼, 雪梨; Canberra: 堪培拉, 坎培拉; Melbourne (Victoria): 墨尔本 @Australia/Melbourne;
Brisbane (Queensland): 布里斯班 @Australia/Brisbane; Gold Coast (Queensland): 黄金海岸 @Australia/Brisbane;
Perth (Western Australia): 珀斯, 伯斯 @Australia/Perth; Adelaide (South Australia): 阿德莱德 @Australia/Adelaide;
Darwin (Northern Territory): 达尔文 @Australia/Darwin; Hobart (Tasmania): 霍巴特 @Australia/Hobart
[New Zealand] New Zealand: 新西兰, 纽西兰 @Pacific/Auckland
Auckland: 奥克兰; Wellington: 惠灵顿, 威灵顿; Christchurch: 基督城; Queenstown: 皇后镇
[Fiji] Fiji: 斐济 @Pacific/Fiji
"""

# What pinyin reads wrongly, cannot tell apart (苏州 and 宿州) or spells otherwise than atlases do: checked by hand
# against pypinyin 0.55 over some 1,000 names of prefectures, counties and districts. Only a name that stands by itself
# is looked up here: in sentences too many of these are pieces of other words (大城市, 长子, 阿里巴巴, 最新北京).
LESSER_PLACES = """
[China] @Asia/Shanghai
Chaoyang: 朝阳; Chaoyang (Liaoning): 朝阳市; Chaoyang (Beijing): 朝阳区; Luohe: 漯河; Changzhi: 长治; Changyuan: 长垣;
Changling: 长岭; Duyun: 都匀; Guoyang: 涡阳; Xunxian: 浚县; Shanxian: 单县; Kezilesu: 克孜勒苏; Hunchun: 珲春;
Muling: 穆棱; Pidu: 郫都; Shifang: 什邡; Junlian: 筠连; Luhe: 六合; Fanshi: 繁峙; Daicheng: 大城; Hongtong: 洪洞;
Qintang: 覃塘; Laoling: 乐陵; Botou: 泊头; Minhang: 闵行; Yingjing: 荥经; Shaoling: 召陵; Jiashi: 伽师; Zhangzi: 长子;
Suzhou (Anhui): 宿州; Fuzhou (Jiangxi): 抚州; Yichun (Heilongjiang): 伊春; Yichun (Jiangxi): 宜春;
Yulin (Guangxi): 玉林; Yulin (Shaanxi): 榆林; Jian (Jiangxi): 吉安; Jian (Jilin): 集安; Luliang: 吕梁;
Hainan (Qinghai): 海南州, 海南藏族自治州; Bayannur: 巴彦淖尔; Ulanqab: 乌兰察布; Xilingol: 锡林郭勒; Xilinhot: 锡林浩特;
Ulanhot: 乌兰浩特; Erenhot: 二连浩特; Alxa: 阿拉善; Hailar: 海拉尔; Ergun: 额尔古纳; Karamay: 克拉玛依; Turpan: 吐鲁番;
Hotan: 和田; Aksu: 阿克苏; Altay: 阿勒泰; Korla: 库尔勒; Ili: 伊犁; Bortala: 博尔塔拉; Bayingolin: 巴音郭楞;
Tumxuk: 图木舒克; Aral: 阿拉尔; Shigatse: 日喀则; Chamdo: 昌都; Nyingchi: 林芝; Nagqu: 那曲; Ngari: 阿里; Gyantse: 江孜;
Medog: 墨脱; Golmud: 格尔木; Shangri-La: 香格里拉; Garze: 甘孜; Aba: 阿坝; Luan: 六安; Yueqing: 乐清; Laoting: 乐亭;
Yuxian: 蔚县; Yuli: 尉犁; Zhongmu: 中牟; Muping: 牟平; Donge: 东阿; Panyu: 番禺; Dabu: 大埔; Yanshan: 铅山;
Biyang: 泌阳; Zongyang: 枞阳; Qianwei: 犍为; Wubu: 吴堡; Xinzhuang: 莘庄; Wayaobu: 瓦窑堡; Chaigoubu: 柴沟堡;
Xushuguan: 浒墅关
[Taiwan] @Asia/Taipei
New Taipei: 新北; Taitung: 台东; Keelung: 基隆; Hsinchu: 新竹; Chiayi: 嘉义; Taoyuan: 桃园; Hualien: 花莲;
Pingtung: 屏东; Yilan: 宜兰; Miaoli: 苗栗; Changhua: 彰化; Nantou: 南投; Penghu: 澎湖; Kinmen: 金门
"""

# Words that hold a place's name and mean something else: in a sentence they are passed over.
NOT_PLACES = """
三明治 大理石 大同小异 印度尼西亚 印度洋 罗马数字 罗马字 汉堡包 上海话 广州话 东京湾 纽约客 北京烤鸭 中山路 中山大学
中山公园 孙中山 达尔文主义
"""

# Last parts of the tz database's ids that mean something else, or another place, in a sentence.
NOT_NAMES = """
Canary Center Central Chatham Christmas Easter Jersey Johnston Knox Midway Norfolk North Oral Petersburg Regina Resolute
Reunion South Stanley Truk Victoria Vincennes Virgin Wake West Winamac Yancowinna
"""
