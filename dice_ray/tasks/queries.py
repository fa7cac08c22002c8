"""Shipped queries for NER as reading comprehension: one for each type of span, by data set."""

# ruff: noqa: RUF001 - Chinese punctuation

from __future__ import annotations

from collections.abc import Mapping

QUERIES: Mapping[str, Mapping[str, str]] = {
    "conll03": {
        "PER": "Which people are named: first names, family names, nicknames?",
        "LOC": "Which places are named: countries, cities, regions, rivers, mountains, buildings?",
        "ORG": "Which organizations are named: companies, agencies, parties, clubs, teams, institutions?",
        "MISC": "What else has a name: nationalities, languages, religions, events, titles of works, products?",
    },
    "ontonotes5": {
        "PERSON": "Which people are named, real or invented?",
        "NORP": "Which nationalities, religious groups or political groups are named?",
        "FAC": "Which structures that people built are named: buildings, airports, roads, bridges?",
        "ORG": "Which companies, agencies, institutions or other organizations are named?",
        "GPE": "Which countries, states or cities are named?",
        "LOC": "Which places without a government are named: mountains, rivers, seas, continents, regions?",
        "PRODUCT": "Which products are named: vehicles, weapons, devices, foods, no services?",
        "EVENT": "Which events are named: storms, battles, wars, games, festivals?",
        "WORK_OF_ART": "Which titles of books, films, songs or other works are mentioned?",
        "LAW": "Which laws, treaties or other legal documents are named?",
        "LANGUAGE": "Which languages are named?",
        "DATE": "Which dates, days, years, ages or periods of a day or longer are mentioned?",
        "TIME": "Which times of a day, or periods shorter than a day, are mentioned?",
        "PERCENT": "Which percentages are mentioned, with their sign or word?",
        "MONEY": "Which amounts of money are mentioned, with their currency?",
        "QUANTITY": "Which measurements are mentioned: weights, distances, sizes, with their unit?",
        "ORDINAL": "Which ordinal numbers are mentioned: first, second, third?",
        "CARDINAL": "Which other numbers are mentioned, of none of the kinds of dates, money, shares or measures?",
    },
    "msra": {
        "PER": "文中提到了哪些人的姓名？",
        "LOC": "文中提到了哪些地点：国家、省市、山川、街道、景点？",
        "ORG": "文中提到了哪些机构：政府部门、公司、学校、团体？",
    },
    "ontonotes4": {
        "PER": "文中提到了哪些人物的名字，真实或虚构？",
        "GPE": "文中提到了哪些有政府的地区：国家、省、市、县？",
        "LOC": "文中提到了哪些没有政府的地点：山脉、河流、海洋、大洲、区域？",
        "ORG": "文中提到了哪些组织：公司、机关、党派、学校、媒体？",
    },
    "wnut17": {
        "person": "Which people are named, real or invented, also by a nickname or a handle?",
        "location": "Which places are named: countries, cities, streets, venues, landmarks?",
        "corporation": "Which companies are named, as those who act, not as what they sell?",
        "product": "Which things that can be bought or used are named: devices, programs, foods, vehicles?",
        "creative-work": "Which titles of films, songs, books, series or games are mentioned?",
        "group": "Which bands, teams, clubs or other groups that are no companies are named?",
    },
    "weibo": {
        "PER.NAM": "文中提到了哪些人的姓名或昵称？",
        "PER.NOM": "文中用哪些普通名词指人，例如朋友、老师、男人？",
        "LOC.NAM": "文中提到了哪些有专名的地点：山川、街道、场馆？",
        "LOC.NOM": "文中用哪些普通名词指地点，例如家乡、路边？",
        "ORG.NAM": "文中提到了哪些有专名的机构：公司、学校、球队？",
        "ORG.NOM": "文中用哪些普通名词指机构，例如公司、学校？",
        "GPE.NAM": "文中提到了哪些国家、省、市的专名？",
        "GPE.NOM": "文中用哪些普通名词指国家或城市，例如祖国、全国？",
    },
}
"""By data set and type."""
