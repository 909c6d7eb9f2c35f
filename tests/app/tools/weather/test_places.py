"""Names of places, put into words that WeatherAPI knows."""

import pytest

from app.tools.weather.places import place_query


@pytest.mark.parametrize(
    ("city", "q"),
    [
        ("北京", "Beijing, China"),
        ("重庆市", "Chongqing, China"),
        ("西安", "Xian, Shaanxi, China"),
        # What pypinyin gets wrong.
        ("朝阳市", "Chaoyang, Liaoning, China"),
        ("北京市朝阳区", "Chaoyang, Beijing, China"),
        ("涡阳", "Guoyang, China"),
        ("长子", "Zhangzi, China"),
        # What pinyin cannot tell apart.
        ("苏州", "Suzhou, Jiangsu, China"),
        ("宿州", "Suzhou, Anhui, China"),
        ("陕西", "Shaanxi, China"),
        ("山西", "Shanxi, China"),
        # Spellings of their own.
        ("呼和浩特", "Hohhot, China"),
        ("香港", "Hong Kong"),
        ("臺北市", "Taipei, Taiwan"),
        ("台湾台中", "Taichung, Taiwan"),
        # Suffixes and hints.
        ("沙市", "Shashi, China"),
        ("喀什地区", "Kashgar, China"),
        ("上海浦东新区", "Pudong, Shanghai, China"),
        ("恩施土家族苗族自治州", "Enshi, China"),
        ("湘西土家族苗族自治州凤凰县", "Fenghuang, Xiangxi, China"),
        ("海南藏族自治州", "Hainan, Qinghai, China"),
        ("苏州,安徽", "Suzhou, Anhui, China"),
        ("安徽宿州", "Suzhou, Anhui, China"),
        ("安徽省宿州市埇桥区", "Yongqiao, Anhui, China"),
        ("苏州市昆山", "Kunshan, Jiangsu, China"),
        ("苏州, Anhui", "Suzhou, Anhui, China"),
        ("Suzhou，安徽", "Suzhou, Anhui, China"),
        ("江苏省南京市六合区", "Luhe, Jiangsu, China"),
        ("杭州 西湖", "Xihu, Hangzhou, China"),
        ("北京，中国", "Beijing, China"),
        ("北京Beijing 3", "Beijing, China"),
        # Abroad.
        ("东京", "Tokyo, Japan"),
        ("広島", "Hiroshima, Japan"),
        ("美国纽约", "New York, USA"),
        ("加拿大伦敦", "London, Canada"),
        ("Dijon, 法国", "Dijon, France"),
        ("圣·彼得堡", "Saint Petersburg, Russia"),
        ("新加坡", "Singapore"),
        ("美国", "USA"),
        # Latin letters.
        ("Beijing", "Beijing"),
        ("São Paulo", "Sao Paulo"),
        ("Xi’an", "Xi'an"),
        ("10001", "10001"),
        ("39.9， 116.4", "39.9,116.4"),
    ],
)
def test_a_place_is_sent_in_a_form_that_weatherapi_knows(city: str, q: str) -> None:
    assert place_query(city).q == q


@pytest.mark.parametrize(
    ("city", "chinese"), [("北京", True), ("Beijing", False), ("つくば市", False), ("서울", False)]
)
def test_only_chinese_names_count_as_chinese(city: str, chinese: bool) -> None:
    assert place_query(city).chinese is chinese
