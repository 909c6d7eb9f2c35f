"""The gazetteer: names of places, their time zones, regions and countries, and the names of languages.

The tables are files, which are read at their first use, so importing costs next to nothing.
"""
