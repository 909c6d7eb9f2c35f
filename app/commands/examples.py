"""What the help of each command shows: examples, and what is to be known beside its arguments."""

__all__ = ["EXAMPLES"]

EXAMPLES = {
    "": """
  toolchat serve                              serve over HTTP; .env and the environment set it up
  toolchat ask "What time is it in Tokyo?"    one question, answered here
  toolchat COMMAND --help                     what a command takes, with examples

exit codes: 0; 1 something failed; 2 the set-up or what was typed is wrong; 3 an answer waits for approval""",
    "serve": """
  toolchat serve
  toolchat serve --workers 4
  SERVER_PORT=9000 LOG_LEVEL=debug toolchat serve""",
    "demo": """
  toolchat demo""",
    "ask": """
  toolchat ask "What time is it in Tokyo?"
  toolchat ask --json "东京现在几点？" 2>/dev/null
  echo "Translate into French: good morning" | toolchat ask -
  toolchat ask --demo "What is the weather in Paris tomorrow?"
  toolchat ask --tool switchLight --approve switchLight "Light on"

The answer goes to standard output, what the tools did to standard error. A tool that needs approval is asked about
in a terminal: y, n, n and a reason, or edit. Elsewhere the exit code is 3.""",
    "chat": """
  toolchat chat
  toolchat chat --demo --tool getCityTimeFunction

Within: /tools, /new, /save FILE, /help, /quit. The arrow keys bring earlier questions back; Ctrl-C stops an answer.""",
    "tools": """
  toolchat tools
  toolchat tools run getCityTimeFunction timeZoneId=Asia/Tokyo
  toolchat tools run --demo getWeatherFunction city=Paris days=2""",
    "tools run": """
  toolchat tools run getCityTimeFunction timeZoneId=Asia/Tokyo
  toolchat tools run --demo getWeatherFunction '{"city": "Paris", "days": 2}'
  toolchat tools run rollDice sides=20 labels:='["a", "b"]'

A value is read as the tool's schema says: days=2 is a number where it asks for one. key:=JSON is read as JSON in any
case. The result goes to standard output, progress to standard error; the exit code is 1 where the tool fails. A tool
that needs approval runs at once: who runs it by hand has decided.""",
    "check": """
  toolchat check
  toolchat check && toolchat serve

Asks each upstream that is set up one question; the exit code is 1 where one does not answer as it should.""",
    "mcp": """
  toolchat mcp
  WEATHER_API_KEY=... toolchat mcp

For MCP hosts that start a process; docs/mcp.md has what they are configured by. Logs go to standard error.""",
    "keys": """
  toolchat keys new alice >> keys.toml

The key goes to standard error, shown this once; the entry for API_KEYS_FILE to standard output.""",
    "eval": """
  toolchat eval docs/eval-example.yaml --demo
  toolchat eval questions.yaml --times 3 --json today.json
  toolchat eval questions.yaml --baseline yesterday.json --at-least 0.95 --junit report.xml

The questions' form: docs/command-line.md.""",
}
"""By the words that are typed."""
