"""Wire protocols of others: OpenAI's, Anthropic's, MCP, the AI SDK and AG-UI, each a package of its own.

A protocol translates its requests into prompts for the service's chat client, and the answers into its own format. To
add one, write a package with

- routes that read a request and call ``answer_prompt``,
- answer formats, subclasses of ``BufferedFormat`` or ``StreamFormat``,
- a function that answers a ``ToolchatError`` in the protocol's format,

and describe it by a ``ProtocolAdapter``: the prefix of its paths, the function that adds its routes, its error
function, and its limit for request bodies. ``toolchat/service/main.py`` lists the adapters. The modules beside the
packages are what several wires share: parts of requests, conversations, saved turns, and the end of an answer.
"""
