"""The groups of ``docs/configuration.md`` and ``.env.example``: each with who changes its variables, and why."""

__all__ = ["APPROVALS", "GROUPS", "PROVIDERS", "SWITCHES"]

SWITCHES = ("TIME_ENABLED", "TODO_ENABLED", "WEATHER_ENABLED", "BAIDU_TRANSLATE_ENABLED")
"""The switches that every tool module has; the page has one row for all of them."""

PROVIDERS = "The built-in tools' upstreams"
"""The group that ``docs/endpoints.md`` describes, beside the routes that need it."""

APPROVALS = "Approvals by somebody else"
"""The group that ``docs/approvals.md`` describes."""

GROUPS: dict[str, tuple[str, str]] = {
    "The ten to know first": (
        "The model, the address of the service, the keys of its clients, and the state store.",
        "CHAT_PROVIDER DASHSCOPE_API_KEY DASHSCOPE_MODEL OPENAI_API_KEY OPENAI_BASE_URL OPENAI_MODEL SERVER_HOST "
        "SERVER_PORT API_KEYS_FILE STATE_URL",
    ),
    "The model": (
        "Prompt, time limits and retries, fallback models, and options of the providers.",
        "SYSTEM_PROMPT MODEL_TIMEOUT MODEL_MAX_ATTEMPTS BREAKER_FAILURES CHAT_FALLBACKS "
        "DASHSCOPE_BASE_URL DASHSCOPE_ENDPOINT DASHSCOPE_WORKSPACE DASHSCOPE_OPTIONS OPENAI_API OPENAI_IMAGES "
        "OPENAI_OPTIONS OPENAI_CLIENT_CERT OPENAI_CLIENT_KEY",
    ),
    "The tools": (
        "Which tools there are, and the limits of their calls and results.",
        "TOOLS_PATH MCP_SERVERS_FILE TOOL_TIMEOUT TOOL_MAX_ROUNDS TOOL_MAX_CALLS TOOL_MAX_CALLS_PER_SESSION "
        "TOOL_RESULT_MAX_CHARS TOOL_SEARCH_ABOVE TOOL_CALL_REPAIRS TOOL_THROW_EXCEPTION_ON_ERROR "
        + " ".join(SWITCHES)
        + " EXAMPLES_ENABLED SANDBOX_URL",
    ),
    PROVIDERS: (
        "Their accounts, and their addresses behind a gateway.",
        "WEATHER_PROVIDER WEATHER_API_KEY WEATHER_BASE_URL WEATHER_GEOCODING_URL TRANSLATE_PROVIDER "
        "BAIDU_TRANSLATE_APP_ID BAIDU_TRANSLATE_SECRET_KEY BAIDU_TRANSLATE_BASE_URL "
        "BAIDU_TRANSLATE_REQUESTS_PER_SECOND LIBRETRANSLATE_URL LIBRETRANSLATE_API_KEY",
    ),
    APPROVALS: (
        "Who is told of them, and how long their record is stored ([approvals.md](approvals.md)).",
        "APPROVALS_WEBHOOK_URL APPROVALS_WEBHOOK_SECRET APPROVALS_WEBHOOK_ALLOW_PRIVATE AUDIT_DAYS",
    ),
    "Conversations": (
        "How much of a conversation is stored and sent to the model, and for how long.",
        "MEMORY_MAX_MESSAGES MEMORY_MAX_TOKENS MEMORY_TOOL_ROUNDS SESSION_TTL SESSION_WAIT "
        "QUESTION_MAX_CHARS REDIS_TIMEOUT",
    ),
    "Clients and quotas": (
        "For clients on other machines: keys, browsers, proxies and quotas ([security.md](security.md)).",
        "API_KEYS ALLOW_ANONYMOUS OPEN_PATHS ALLOWED_HOSTS CORS_ORIGINS PUBLIC_URL TRUSTED_PROXIES FORWARDED_HEADER "
        "MAX_QUESTIONS REQUESTS_PER_MINUTE TOKENS_PER_DAY PEOPLE_JWT_SECRET",
    ),
    "Tokens of an identity provider": (
        "For clients that send JSON Web Tokens ([security.md](security.md#tokens-of-an-identity-provider)).",
        "JWT_JWKS_URL JWT_ISSUER JWT_AUDIENCE JWT_CLAIMS",
    ),
    "The server": (
        "Processes, time limits, proxies and the log.",
        "SERVER_ROOT_PATH SERVER_WORKERS SERVER_WORKER_TIMEOUT SERVER_CLIENT_TIMEOUT SERVER_IDLE_TIMEOUT "
        "REQUEST_TIMEOUT SHUTDOWN_TIMEOUT OPENAI_API_PROGRESS LOG_LEVEL LOG_PROVIDER_MESSAGES",
    ),
}
