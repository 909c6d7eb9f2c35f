"""The offline chat model: a rule-based model without a key, which answers from the results of the offered tools."""
