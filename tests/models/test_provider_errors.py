"""A provider's error is told by its code and status, and nothing of its text is shown."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from toolchat.errors import ToolchatError
from toolchat.models.profiles import Profile, profile_named
from toolchat.models.provider_errors import provider_error, retry_after_from

FREE = "Free allocated quota exceeded."
TOKENS = "Allocated quota exceeded, please increase your quota limit."
PLAN = "You exceeded your current quota, please check your plan and billing details."


def error_of(
    status: int, code: str = "", message: str = "", retry_after: float | None = None, profile: Profile = Profile()
) -> ToolchatError:
    return provider_error(
        status=status,
        code=code,
        message=message,
        retry_after=retry_after,
        variables="OPENAI",
        profile=profile,
    )


@pytest.mark.parametrize(
    ("status", "code", "message", "meaning"),
    [
        (400, "context_length_exceeded", "", "context-too-long"),
        (400, "", "This model's maximum context length is 8192 tokens.", "context-too-long"),
        (400, "InvalidParameter", "Range of input length should be [1, 30720]", "context-too-long"),
        (413, "BadRequest.TooLarge", "", "context-too-long"),
        (413, "", "", "context-too-long"),
        (400, "DataInspectionFailed", "", "content-filtered"),
        (400, "data_inspection_failed", "", "content-filtered"),
        (400, "content_filter", "", "content-filtered"),
        (401, "InvalidApiKey", "", "provider-auth"),
        (401, "invalid_api_key", "", "provider-auth"),
        (401, "invalid_request_error", "You didn't provide an API key.", "provider-auth"),
        (401, "", "", "provider-auth"),
        (402, "", "Insufficient Balance", "provider-quota"),
        (402, "", "", "provider-quota"),
        (403, "30001", "Sorry, your account balance is insufficient", "provider-quota"),
        (400, "invalid_request_error", "Your credit balance is too low.", "provider-quota"),
        (403, "AccountOverdueError", "", "provider-quota"),
        (429, "exceeded_current_quota_error", "", "provider-quota"),
        (400, "billing_hard_limit_reached", "", "provider-quota"),
        (403, "account_deactivated", "", "provider-auth"),
        (403, "Model.AccessDenied", "", "provider-auth"),
        (403, "AllocationQuota.FreeTierOnly", "", "provider-quota"),
        (400, "Arrearage", "", "provider-quota"),
        (429, "CommodityNotPurchased", "", "provider-quota"),
        (429, "PrepaidBillOverdue", "", "provider-quota"),
        (429, "PostpaidBillOverdue", "", "provider-quota"),
        (429, "insufficient_quota", PLAN, "provider-quota"),
        (429, "insufficient_quota", TOKENS, "provider-rate-limited"),
        (429, "insufficient_quota", FREE, "provider-quota"),
        (429, "Throttling.AllocationQuota", TOKENS, "provider-rate-limited"),
        (429, "Throttling.AllocationQuota", FREE, "provider-quota"),
        (400, "Throttling.AllocationQuota", TOKENS, "provider-rate-limited"),
        (429, "Throttling", "", "provider-rate-limited"),
        (429, "Throttling.RateQuota", "", "provider-rate-limited"),
        (429, "Throttling.BurstRate", "", "provider-rate-limited"),
        (429, "limit_requests", "", "provider-rate-limited"),
        (429, "limit_burst_rate", "", "provider-rate-limited"),
        (429, "rate_limit_exceeded", "", "provider-rate-limited"),
        (429, "", "", "provider-rate-limited"),
        (404, "model_not_found", "", "not-configured"),
        (404, "Model.NotExist", "", "not-configured"),
        (400, "model_not_supported", "", "not-configured"),
        (400, "InvalidParameter", "url error, please check url！", "not-configured"),
        (404, "", "", "not-configured"),
        (500, "InternalError", "", "upstream-unavailable"),
        (400, "InternalError.Algo", "Expecting ',' delimiter", "upstream-unavailable"),
        (500, "RequestTimeOut", "", "upstream-unavailable"),
        (400, "ResponseTimeout", "", "upstream-unavailable"),
        (503, "ModelUnavailable", "", "upstream-unavailable"),
        (529, "overloaded_error", "", "upstream-unavailable"),
        (408, "", "", "upstream-unavailable"),
        (502, "", "<html>", "upstream-unavailable"),
        (200, "", "something broke", "upstream-unavailable"),
        (200, "server_error", "", "upstream-unavailable"),
        (200, "1008", "insufficient balance", "provider-quota"),
        (400, "InternalError.Algo.InvalidParameter", "Repetitive tool calls", "upstream-invalid"),
        (200, "invalid_request_error", "", "upstream-invalid"),
        (422, "", "", "upstream-invalid"),
        (409, "conflict", "", "upstream-unavailable"),
        (425, "", "", "upstream-unavailable"),
        (418, "", "", "upstream-invalid"),
    ],
)
def test_each_code_and_status_has_its_meaning(status: int, code: str, message: str, meaning: str) -> None:
    error = error_of(status, code, message)
    assert error.code == meaning
    assert message == "" or message not in error.detail


@pytest.mark.parametrize(
    ("code", "detail"),
    [
        ("InvalidParameter", "the provider refused the request (code InvalidParameter)"),
        ("", "the provider refused the request (status 400)"),
        ("sk-key with blanks", "the provider refused the request (status 400)"),
        ("sk-canary-1234", "the provider refused the request (status 400)"),
        ("x" * 65, "the provider refused the request (status 400)"),
        ("<b>\n", "the provider refused the request (status 400)"),
    ],
)
def test_only_a_code_that_is_a_known_word_is_shown(code: str, detail: str) -> None:
    assert error_of(400, code).detail == detail


@pytest.mark.parametrize(
    ("status", "code", "message", "remedy"),
    [
        (404, "model_not_found", "", "set OPENAI_MODEL"),
        (404, "not_found_error", "model 'm' not found, try pulling it first", "set OPENAI_MODEL"),
        (400, "InvalidParameter", "url error, please check url", "set OPENAI_MODEL or OPENAI_ENDPOINT"),
        (404, "", "", "check OPENAI_BASE_URL, which usually ends in /v1"),
        (404, "", "Invalid URL (POST /v1/v1/chat/completions)", "check OPENAI_BASE_URL, which usually ends in /v1"),
        (401, "", "", "check OPENAI_API_KEY"),
    ],
)
def test_what_the_operator_can_set_right_names_the_variable(status: int, code: str, message: str, remedy: str) -> None:
    assert error_of(status, code, message).detail.endswith(remedy)


@pytest.mark.parametrize(
    ("status", "code", "logged"),
    [
        (429, "Throttling.AllocationQuota", {"upstream_status": 429, "provider_code": "Throttling.AllocationQuota"}),
        (200, "1008", {"upstream_status": 200}),
        (401, "sk-canary-1234", {"upstream_status": 401}),
    ],
)
def test_the_log_has_the_status_and_a_known_code(status: int, code: str, logged: dict[str, object]) -> None:
    assert error_of(status, code).log_fields == logged


@pytest.mark.parametrize(
    ("provider", "status", "code", "meaning"),
    [
        ("minimax", 200, "1002", "provider-rate-limited"),
        ("minimax", 200, "20132", "upstream-unavailable"),
        ("glm", 200, "1002", "provider-auth"),
        ("glm", 429, "1113", "provider-quota"),
        ("kimi", 429, "1113", "provider-rate-limited"),
        ("minimax", 401, "1002", "provider-auth"),
    ],
)
def test_a_number_counts_within_its_profile_but_never_against_a_401(
    provider: str, status: int, code: str, meaning: str
) -> None:
    assert error_of(status, code, profile=profile_named(provider)).code == meaning


def test_a_code_of_a_profile_is_shown_and_logged() -> None:
    error = error_of(200, "2013", profile=profile_named("minimax"))
    assert error.detail == "the provider refused the request (code 2013)"
    assert error.log_fields["provider_code"] == "2013"


@pytest.mark.parametrize("name", ["azure", "dashscope", "minimax", "kimi"])
def test_a_refused_key_comes_with_the_advice_of_the_profile(name: str) -> None:
    profile = profile_named(name)
    assert "check OPENAI_API_KEY, and that OPENAI_BASE_URL " in error_of(401, profile=profile).detail


def test_a_country_that_is_not_served_is_no_fault_of_the_key() -> None:
    error = error_of(403, "unsupported_country_region_territory", "Country, region, or territory not supported")
    assert error.detail == "the chat provider does not answer from this server's country"


def test_a_malformed_call_is_worth_another_try() -> None:
    error = error_of(400, "tool_use_failed", retry_after=1)
    assert (error.code, error.retryable, error.retry_after) == ("upstream-invalid", True, 1)


@pytest.mark.parametrize(
    ("status", "given", "passed"), [(429, 2.0, 2.0), (503, 7.0, 7.0), (429, 900.0, 60.0), (429, None, None)]
)
def test_the_wait_is_passed_on_and_bounded(status: int, given: float | None, passed: float | None) -> None:
    assert error_of(status, retry_after=given).retry_after == passed


def test_no_wait_is_passed_on_where_waiting_does_not_help() -> None:
    assert error_of(401, retry_after=5).retry_after is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "3600"}, 60),
        ({"retry-after": "-4"}, 0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry-after": "Wed, 21 Oct 2099 07:28:00 -0000"}, 60),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": "Wed, 99 Oct 2099 99:99:99 GMT"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_from(headers) == seconds


def test_retry_after_as_a_date_counts_from_now() -> None:
    now = datetime.now(UTC)
    seconds = retry_after_from({"retry-after": format_datetime(now + timedelta(seconds=30), usegmt=True)})
    passed = (datetime.now(UTC) - now).total_seconds()
    assert seconds is not None
    assert 29 - passed < seconds <= 30  # a date has whole seconds
